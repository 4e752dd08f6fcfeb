/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_kinds.c: maps the categories of all versions of Kineto to kinds of spans.
 */
#include "importers/kineto/kineto_import.h"

#include <stepscope/stepscope.h>
#include <string.h>

struct category {
	const char *name;
	uint8_t length;
	enum span_kind kind;
	bool is_device;
};

#define ROW(name, kind, is_device)                                                                                     \
	{                                                                                                              \
		name, sizeof(name) - 1, kind, is_device                                                                \
	}

static const struct category categories[] = {
	ROW("cpu_op", SPAN_OP, false),
	ROW("python_function", SPAN_PYTHON, false),
	ROW("cuda_runtime", SPAN_RUNTIME, false),
	ROW("kernel", SPAN_KERNEL, true),
	ROW("user_annotation", SPAN_ANNOTATION, false),
	ROW("gpu_memcpy", SPAN_MEMCPY, true),
	ROW("gpu_memset", SPAN_MEMSET, true),
	ROW("gpu_user_annotation", SPAN_ANNOTATION, true),
	ROW("cuda_driver", SPAN_RUNTIME, false),
	ROW("cuda_sync", SPAN_SYNC, true),
	ROW("overhead", SPAN_OVERHEAD, false),
	/* until 2021 */
	ROW("Operator", SPAN_OP, false),
	ROW("Kernel", SPAN_KERNEL, true),
	ROW("Memcpy", SPAN_MEMCPY, true),
	ROW("Memset", SPAN_MEMSET, true),
	ROW("Runtime", SPAN_RUNTIME, false),
	ROW("Python", SPAN_PYTHON, false),
	/* other devices */
	ROW("hip_runtime", SPAN_RUNTIME, false),
	ROW("mtia_runtime", SPAN_RUNTIME, false),
	ROW("xpu_runtime", SPAN_RUNTIME, false),
	ROW("xpu_driver", SPAN_RUNTIME, false),
	ROW("xpu_sync", SPAN_SYNC, true),
	ROW("privateuse1_runtime", SPAN_RUNTIME, false),
	ROW("privateuse1_driver", SPAN_RUNTIME, false),
	ROW("glow_runtime", SPAN_RUNTIME, false),
	ROW("hpu_op", SPAN_KERNEL, true),
	ROW("mtia_ccp_events", SPAN_KERNEL, true),
	ROW("collective_comm", SPAN_COLLECTIVE, true),
};

static bool begins_with(const struct kineto_value *value, const char *prefix)
{
	size_t length = strlen(prefix);
	return value->type == VALUE_STRING && value->length >= length && memcmp(value->at, prefix, length) == 0;
}

static bool is_phase(const char *text, size_t length)
{
	static const char *const names[] = {"data",          "forward",    "backward",  "optimizer",
	                                    "communication", "checkpoint", "evaluation"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0)
			return true;
	return false;
}

static bool kineto_kinds_is_number(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (text[i] < '0' || text[i] > '9')
			return false;
	return length > 0 && length < 19;
}

/* Recognises "ProfilerStep#12", and our own exporter's "stepscope::forward". */
static enum span_kind kind_of_annotation(const struct kineto_value *name)
{
	if (begins_with(name, "ProfilerStep#") && kineto_kinds_is_number(name->at + 13, name->length - 13))
		return SPAN_STEP;
	if (begins_with(name, "stepscope::") && is_phase(name->at + 11, name->length - 11))
		return SPAN_PHASE;
	return SPAN_ANNOTATION;
}

/* PyTorch without Kineto writes operators without a category; so do other programs. */
static enum span_kind kind_without_category(const struct kineto_event *event)
{
	const struct kineto_value *name = &event->fields[KINETO_EVENT_NAME];
	if (!kineto_is_text(&event->fields[KINETO_EVENT_PID], "CPU functions"))
		return SPAN_RANGE;
	return kind_of_annotation(name) == SPAN_STEP ? SPAN_STEP : SPAN_OP;
}

static enum span_kind kind_of_mtia(const struct kineto_value *name)
{
	if (kineto_is_text(name, "dma_request"))
		return SPAN_MEMCPY;
	return kineto_is_text(name, "event_wait") || kineto_is_text(name, "event_record") ? SPAN_SYNC : SPAN_KERNEL;
}

struct kineto_kind kineto_kind_of(const struct kineto_event *event)
{
	const struct kineto_value *cat = &event->fields[KINETO_EVENT_CAT], *name = &event->fields[KINETO_EVENT_NAME];
	if (cat->type != VALUE_STRING)
		return (struct kineto_kind){kind_without_category(event), false};
	for (size_t i = 0; i < sizeof categories / sizeof *categories; i++) {
		const struct category *category = &categories[i];
		if (category->length != cat->length || memcmp(category->name, cat->at, cat->length) != 0)
			continue;
		enum span_kind kind = category->kind;
		if (kind == SPAN_ANNOTATION && !category->is_device)
			kind = kind_of_annotation(name);
		else if (kind == SPAN_PYTHON && begins_with(name, "nn.Module: "))
			kind = SPAN_MODULE;
		else if (kind == SPAN_OP && kind_of_annotation(name) == SPAN_STEP) /* until 2021 */
			kind = SPAN_STEP;
		else if (begins_with(cat, "mtia_ccp"))
			kind = kind_of_mtia(name);
		return (struct kineto_kind){kind, category->is_device};
	}
	return (struct kineto_kind){SPAN_OTHER, false};
}
