/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_torch_classes.c: what a record says about a training, by the kind and the text of its symbol, which is looked at once.
 */
#include "base/memory.h"
#include "importers/recording/recording_torch_scan.h"
#include "pytorch/names.h"

#include <stdlib.h>
#include <string.h>

#define MAX_COMPILED 4096u /* optimizers' calls */

/* Interned by the agent before its first operator (src/agents/torch/agent.c). */
static const char agent_name[] = "torch.agent";

static bool recording_torch_classes_is_text(const char *text, uint32_t length, const char *whole)
{
	return length == strlen(whole) && !memcmp(text, whole, length);
}

/* A name of a class: no "aten::", no "TorchDynamo Cache Lookup". What torch.compile makes takes a number only with a graph. */
static bool is_function(const char *text, uint32_t length)
{
	return !memchr(text, ':', length) && !memchr(text, ' ', length) &&
	       !recording_torch_classes_is_text(text, length, "CompiledFunction");
}

static enum symbol_class class_of_operator(const char *text, uint32_t length)
{
	bool is_many = pytorch_takes_many(text, length);
	if (pytorch_begins_n(text, length, PYTORCH_SCALER))
		return CLASS_SCALER;
	if (pytorch_is_of_sampler(text, length))
		return CLASS_SAMPLER;
	if (pytorch_begins_n(text, length, PYTORCH_COLLECTIVE))
		return CLASS_COLLECTIVE;
	if (pytorch_begins_n(text, length, PYTORCH_MODE))
		return CLASS_MODE;
	if (pytorch_begins_n(text, length, PYTORCH_COMPILED))
		return CLASS_COMPILED;
	if (pytorch_begins_n(text, length, PYTORCH_ENGINE))
		return CLASS_NODE;
	if (pytorch_zeroes(text, length))
		return is_many ? CLASS_ZERO_MANY : CLASS_ZERO;
	if (pytorch_writes(text, length))
		return is_many ? CLASS_WRITE_MANY : CLASS_WRITE;
	if (is_function(text, length))
		return CLASS_FUNCTION;
	return recording_torch_classes_is_text(text, length, "aten::add")    ? CLASS_ADD
	       : recording_torch_classes_is_text(text, length, PYTORCH_ONES) ? CLASS_ONES
	                                                                     : CLASS_OP;
}

static enum symbol_class recording_torch_classes_class_of(uint8_t kind, const char *text, uint32_t length)
{
	switch (kind) {
	case STEPSCOPE_SYMBOL_TEXT:
		return recording_torch_classes_is_text(text, length, "torch.optimizer")    ? CLASS_OPTIMIZER_KEY
		       : recording_torch_classes_is_text(text, length, "torch.module")     ? CLASS_MODULE_KEY
		       : recording_torch_classes_is_text(text, length, "torch.loader")     ? CLASS_LOADER_KEY
		       : recording_torch_classes_is_text(text, length, "torch.loader_end") ? CLASS_LOADER_END_KEY
		                                                                           : CLASS_UNKNOWN;
	case STEPSCOPE_SYMBOL_RANGE:
		return recording_torch_classes_is_text(text, length, PYTORCH_SAVE)           ? CLASS_SAVE
		       : recording_torch_classes_is_text(text, length, PYTORCH_COMPILE)      ? CLASS_COMPILE
		       : recording_torch_classes_is_text(text, length, PYTORCH_LOADER_START) ? CLASS_LOADER_START
		       : recording_torch_classes_is_text(text, length, PYTORCH_LOADER_AGAIN) ? CLASS_LOADER_START
		       : recording_torch_classes_is_text(text, length, PYTORCH_LOADER_STOP)  ? CLASS_LOADER_STOP
		       : pytorch_profiler_step(text, length)                                 ? CLASS_PROFILER_STEP
		       : pytorch_is_rare(text, length)                                       ? CLASS_RARE
		                                                                             : CLASS_UNKNOWN;
	case STEPSCOPE_SYMBOL_OP:
		return class_of_operator(text, length);
	case STEPSCOPE_SYMBOL_BACKWARD:
		return pytorch_begins_n(text, length, PYTORCH_ACCUMULATE) ? CLASS_ACCUMULATE : CLASS_GRADIENT;
	case STEPSCOPE_SYMBOL_SCRIPT:
		return CLASS_OP;
	case STEPSCOPE_SYMBOL_MODULE:
		return CLASS_MODULE;
	case STEPSCOPE_SYMBOL_ANNOTATION:
		return pytorch_begins_n(text, length, PYTORCH_OPTIMIZER_STEP)        ? CLASS_OPTIMIZER
		       : pytorch_begins_n(text, length, PYTORCH_OPTIMIZER_ZERO_GRAD) ? CLASS_ZERO_GRAD
		       : pytorch_begins_n(text, length, PYTORCH_LOADER_HERE)         ? CLASS_DATA_HERE
		       : pytorch_begins_n(text, length, PYTORCH_LOADER)              ? CLASS_DATA
		       : pytorch_profiler_step(text, length)                         ? CLASS_PROFILER_STEP
		                                                                     : CLASS_UNKNOWN;
	default:
		return CLASS_UNKNOWN;
	}
}

/* Of the code that the name of a record says. */
static uint32_t code_of(const char *text, uint32_t length)
{
	const uint32_t before = (uint32_t)strlen(PYTORCH_COMPILED);
	return pytorch_code_number(text + before, length - before);
}

/* "torch.compiled CODE OPTIMIZER" */
static void note_compiled(struct torch_scan *scan, const char *text, uint32_t length)
{
	const uint32_t before = (uint32_t)strlen(PYTORCH_COMPILED_CALL);
	char numbers[64], *end;
	if (!pytorch_begins_n(text, length, PYTORCH_COMPILED_CALL) || length - before >= sizeof numbers ||
	    scan->optimizer_count == MAX_COMPILED)
		return;
	memcpy(numbers, text + before, length - before);
	numbers[length - before] = 0;
	uint64_t code = strtoull(numbers, &end, 10);
	if (!(scan->optimizer_count & (scan->optimizer_count + 1)))
		scan->optimizers = memory_resize(scan->optimizers, 2 * (size_t)scan->optimizer_count + 2,
		                                 sizeof *scan->optimizers);
	number_map_set(&scan->compiled, code, scan->optimizer_count);
	scan->optimizers[scan->optimizer_count++] = strtoull(end, NULL, 10);
}

uint64_t torch_compiled_optimizer(const struct torch_scan *scan, uint32_t symbol)
{
	uint32_t code = number_map_find(&scan->codes, symbol);
	uint32_t found = number_map_find(&scan->compiled, code);
	return code == NUMBER_MAP_NONE || found == NUMBER_MAP_NONE ? 0 : scan->optimizers[found];
}

void torch_scan_symbol(struct recording *recording, uint32_t id, uint8_t kind, const char *text, uint32_t length)
{
	struct recorded_session *session = recording->session;
	bool is_mark = kind == STEPSCOPE_SYMBOL_TEXT && length == sizeof agent_name - 1 &&
	               !memcmp(text, agent_name, length);
	if (is_mark && !session->torch) {
		session->torch = memory_resize(NULL, 1, sizeof *session->torch);
		memset(session->torch, 0, sizeof *session->torch);
	}
	struct torch_scan *scan = session->torch;
	enum symbol_class class = scan ? recording_torch_classes_class_of(kind, text, length) : CLASS_UNKNOWN;
	if (scan && kind == STEPSCOPE_SYMBOL_TEXT)
		note_compiled(scan, text, length);
	if (class == CLASS_UNKNOWN || id >= 1u << 24)
		return;
	if (id >= scan->class_capacity) {
		uint32_t capacity = (id / 1024 + 1) * 2048;
		scan->classes = memory_resize(scan->classes, capacity, 1);
		memset(scan->classes + scan->class_capacity, 0, capacity - scan->class_capacity);
		scan->class_capacity = capacity;
	}
	scan->classes[id] = (uint8_t) class;
	if (class == CLASS_COMPILED)
		number_map_set(&scan->codes, id, code_of(text, length));
	if (class == CLASS_PROFILER_STEP)
		number_map_set(&scan->profiler_steps, id, pytorch_profiler_step(text, length));
}
