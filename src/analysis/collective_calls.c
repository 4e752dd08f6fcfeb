/* SPDX-License-Identifier: Apache-2.0
 *
 * collective_calls.c: see collective_calls.h.
 */
#include "analysis/collective_calls.h"

#include "base/memory.h"
#include "pytorch/types.h"

#include <stdlib.h>
#include <string.h>

enum call_class {
	CALL_UNKNOWN, /* not looked at */
	CALL_NONE,
	CALL_ISSUE,
	CALL_EXECUTION,
};

struct call_search {
	const struct model *model;
	struct collective_calls *calls;
	uint32_t issue_capacity, execution_capacity;
	uint8_t *classes; /* by string */
	uint32_t class_capacity;
};

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static enum call_class class_of(struct call_search *search, uint32_t name)
{
	if (name >= search->class_capacity) {
		uint32_t capacity = 2 * name + 64;

		search->classes = memory_resize(search->classes, capacity, 1);
		memset(search->classes + search->class_capacity, 0, capacity - search->class_capacity);
		search->class_capacity = capacity;
	}
	if (search->classes[name] == CALL_UNKNOWN) {
		const char *text = model_text(search->model, name);

		search->classes[name] = starts_with(text, "c10d::")                                ? CALL_ISSUE
		                        : starts_with(text, "gloo:") || starts_with(text, "nccl:") ? CALL_EXECUTION
		                                                                                   : CALL_NONE;
	}
	return (enum call_class)search->classes[name];
}

static void add(struct collective_call **list, uint32_t *count, uint32_t *capacity, const struct collective_call *call)
{
	if (*count == *capacity) {
		*capacity = *capacity ? 2 * *capacity : 256;
		*list = memory_resize(*list, *capacity, sizeof(**list));
	}
	(*list)[(*count)++] = *call;
}

static void search_track(struct call_search *search, uint32_t number)
{
	const struct track *track = search->model->tracks[number];
	struct collective_calls *calls = search->calls;
	int64_t issued_ns = INT64_MIN; /* end of the issue that holds what follows */

	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			enum call_class class = class_of(search, chunk->name[i]);
			struct collective_call call = {.process = track->process,
			                               .track = number,
			                               .name = chunk->name[i],
			                               .inputs = chunk->inputs ? chunk->inputs[i] : 0,
			                               .step = chunk->step[i],
			                               .start_ns = chunk->start_ns[i],
			                               .end_ns = chunk->start_ns[i] + chunk->dur_ns[i]};

			if (class == CALL_EXECUTION) {
				add(&calls->executions, &calls->execution_count, &search->execution_capacity, &call);
			} else if (class == CALL_ISSUE && call.start_ns >= issued_ns) {
				add(&calls->issues, &calls->issue_count, &search->issue_capacity, &call);
				issued_ns = call.end_ns;
			}
		}
		model_chunk_done(search->model, chunk);
	}
}

static int compare_calls(const void *left, const void *right)
{
	const struct collective_call *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Most recordings have none. */
static bool has_any(struct call_search *search)
{
	for (uint32_t name = 1; name < search->model->strings.count; name++) {
		if (class_of(search, name) != CALL_NONE)
			return true;
	}
	return false;
}

void collective_calls_find(struct collective_calls *calls, const struct model *model)
{
	struct call_search search = {.model = model, .calls = calls};

	memset(calls, 0, sizeof(*calls));
	bool is_worth_it = has_any(&search);
	for (uint32_t track = 0; track < model->tracks_count && is_worth_it; track++)
		search_track(&search, track);
	if (calls->issue_count)
		qsort(calls->issues, calls->issue_count, sizeof(*calls->issues), compare_calls);
	if (calls->execution_count)
		qsort(calls->executions, calls->execution_count, sizeof(*calls->executions), compare_calls);
	free(search.classes);
}

void collective_calls_release(struct collective_calls *calls)
{
	free(calls->issues);
	free(calls->executions);
	memset(calls, 0, sizeof(*calls));
}

void collective_calls_of(const struct collective_call *list, uint32_t count, uint32_t process, uint32_t *first,
                         uint32_t *end)
{
	*first = 0;
	while (*first < count && list[*first].process < process)
		++*first;
	*end = *first;
	while (*end < count && list[*end].process == process)
		++*end;
}

/* ---- bytes ---- */

/* Elements of the tensor or other input at *text, which is moved behind it. */
static double elements(const char **text)
{
	double product = 1;
	int depth = 0;

	do {
		depth += **text == '[';
		depth -= **text == ']';
		if (**text >= '0' && **text <= '9') {
			char *end;

			product *= strtod(*text, &end);
			*text = end;
			continue;
		}
		++*text;
	} while (depth && **text && **text != '\n');
	if (**text == ' ')
		++*text;
	return product;
}

bool collective_bytes(const char *inputs, double *bytes, const char **reason)
{
	const char *types = inputs ? strstr(inputs, "\nt ") : NULL;

	*bytes = 0;
	*reason = "sizes of inputs were not recorded (--with shapes)";
	if (!inputs || !inputs[0])
		return false;
	*reason = "types of inputs were not recorded";
	if (!types)
		return false;
	*reason = "its type is not one whose size is known";
	for (types += 3; *inputs == '['; types += types[0] == ';') {
		size_t length = strcspn(types, ";\n");
		const struct pytorch_type *type = pytorch_type_named(types, length);
		double size = type ? type->bytes : 0, count = elements(&inputs);

		*bytes += size * count;
		types += length;
	}
	return *bytes > 0;
}
