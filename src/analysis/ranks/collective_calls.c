/* SPDX-License-Identifier: Apache-2.0
 *
 * collective_calls.c: see collective_calls.h.
 */
#include "analysis/ranks/collective_calls.h"

#include "analysis/analysis.h"
#include "base/lower_bound.h"
#include "base/memory.h"
#include "base/merge_sort.h"
#include "base/storage.h"
#include "pytorch/names.h"
#include "pytorch/types.h"

#include <stdlib.h>
#include <string.h>

enum call_class {
	CALL_NONE,
	CALL_ISSUE,
	CALL_ENQUEUE, /* by a backend for devices, mostly in an issue; a copy of the range may be on the device's track */
	CALL_EXECUTION,
};

struct call_search {
	const struct model *model;
	struct collective_calls *calls;
	uint32_t issue_capacity, execution_capacity;
	uint8_t *classes; /* by string: enum call_class */
};

/* Of c10d's backends only gloo executes collectives on the host. MPI and UCC may, but do not tell. */
static enum call_class collective_calls_class_of(const char *name)
{
	if (pytorch_begins(name, PYTORCH_COLLECTIVE))
		return CALL_ISSUE;
	if (pytorch_begins(name, PYTORCH_GLOO))
		return CALL_EXECUTION;
	return pytorch_enqueues(name) ? CALL_ENQUEUE : CALL_NONE;
}

/* Classifies all names. Returns false if no name is that of a collective, as in most recordings. */
static bool collective_calls_classify(struct call_search *search)
{
	const struct intern *strings = &search->model->strings;
	bool has_any = false;

	search->classes = memory_resize(NULL, (size_t)strings->count + 1, 1);
	for (uint32_t name = 0; name <= strings->count; name++) {
		search->classes[name] = (uint8_t)collective_calls_class_of(intern_text(strings, name));
		has_any |= search->classes[name] != CALL_NONE;
	}
	return has_any;
}

static void collective_calls_add(struct storage *storage, struct collective_call **list, uint32_t *count,
                                 uint32_t *capacity, const struct collective_call *call)
{
	STORAGE_GROW(storage, *list, *count, *capacity, 256);
	(*list)[(*count)++] = *call;
}

static void read_group(struct collective_group *group, const struct model *model, const struct span_arg *arg)
{
	const char *key = model_text(model, arg->key);

	if (arg->type == STEPSCOPE_ARG_SYMBOL && !strcmp(key, PYTORCH_GROUP_NAME))
		group->name = arg->text;
	else if (arg->type == STEPSCOPE_ARG_SYMBOL && !strcmp(key, PYTORCH_GROUP_RANKS))
		group->members = arg->text;
	else if (arg->type == STEPSCOPE_ARG_I64 && !strcmp(key, PYTORCH_GROUP_SIZE) && arg->i64 > 0 &&
	         arg->i64 < INT32_MAX)
		group->ranks = (uint32_t)arg->i64;
}

struct collective_group collective_group_of(const struct model *model, uint32_t track, uint32_t row)
{
	struct collective_group group = {0};

	for (uint32_t i = model_first_arg(model, track, row);
	     i < model->args_count && model->args[i].track == track && model->args[i].row == row; i++)
		read_group(&group, model, &model->args[i]);
	return group;
}

/* Returns the time from which issues and executions are complete: earlier ones were removed again, at least on one
 * side. */
static int64_t whole_since(const struct process *process)
{
	return process->has_removed ? process->removed_until_ns : INT64_MIN;
}

static void search_track(struct call_search *search, uint32_t number)
{
	const struct track *track = search->model->tracks[number];
	struct collective_calls *calls = search->calls;
	int64_t since_ns = whole_since(&search->model->processes[track->process]);
	int64_t issued_ns = INT64_MIN; /* end of the last issue: issues nested in it do not count */
	bool is_host = track->kind == TRACK_THREAD;

	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			enum call_class class = (enum call_class)search->classes[chunk->name[i]];
			struct collective_call call;

			if (class == CALL_NONE)
				continue;
			call = (struct collective_call){.process = track->process,
			                                .track = number,
			                                .name = chunk->name[i],
			                                .inputs = chunk->inputs ? chunk->inputs[i] : 0,
			                                .step = chunk->step[i],
			                                .start_ns = chunk->start_ns[i],
			                                .end_ns = chunk->start_ns[i] + chunk->dur_ns[i]};

			if (class == CALL_EXECUTION && call.start_ns >= since_ns) {
				call.group = collective_group_of(search->model, number, chunk->first_row + i);
				collective_calls_add(calls->storage, &calls->executions, &calls->execution_count,
				                     &search->execution_capacity, &call);
			} else if (class != CALL_EXECUTION && is_host && call.start_ns >= issued_ns) {
				issued_ns = call.end_ns;
				if (call.start_ns >= since_ns)
					collective_calls_add(calls->storage, &calls->issues, &calls->issue_count,
					                     &search->issue_capacity, &call);
			}
		}
		model_chunk_done(search->model, chunk);
	}
}

static int collective_calls_compare_calls(const void *left, const void *right)
{
	const struct collective_call *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* ---- matching ---- */

#define NO_KIND 0u
#define NO_TENSOR (-1)

/* The execution that gloo makes of each issue. Its tensors have as many elements as this input of the issue. */
static const struct kind {
	const char *issue, *execution;
	int input;
} kinds[] = {
	{NULL, NULL, NO_TENSOR},
	{"allreduce_", "all_reduce", 0},
	{"allreduce_coalesced_", "all_reduce", 0},
	{"_reduce_scatter_base_", "all_reduce", 1},
	{"reduce_scatter_", "reduce_scatter", 1},
	{"broadcast_", "broadcast", 0},
	{"reduce_", "reduce", 0},
	{"allgather_", "all_gather", 1},
	{"_allgather_base_", "all_gather", 1},
	{"gather_", "gather", 1},
	{"scatter_", "scatter", NO_TENSOR},
	{"alltoall_base_", "all_to_all", 1},
	{"alltoall_", "all_to_all", NO_TENSOR},
	{"send", "send", 0},
	{"recv_", "recv", 0},
	{"barrier", "barrier", NO_TENSOR},
};

/* Returns the first kind with this execution. */
static uint32_t kind_of_execution(const char *name)
{
	for (uint32_t i = 1; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strcmp(kinds[i].execution, name))
			return i;
	}
	return NO_KIND;
}

/* Returns the elements of the tensor, or of the tensors of a list, at *text, and moves *text after it. Returns 1 for
 * another input. */
static double elements(const char **text)
{
	double sum = 0, product = 1;
	int depth = 0;
	bool is_inner = false; /* no nested list so far */

	do {
		if (**text == '[') {
			depth++;
			product = 1;
			is_inner = true;
		} else if (**text == ']') {
			depth--;
			sum += is_inner ? product : 0;
			is_inner = false;
		} else if (**text >= '0' && **text <= '9') {
			char *end;

			product *= strtod(*text, &end);
			*text = end;
			continue;
		}
		++*text;
	} while (depth && **text && **text != '\n');
	if (**text == ' ')
		++*text;
	return sum;
}

static double elements_of(const char *inputs, int input)
{
	double sum = 0;

	for (int i = 0; *inputs == '['; i++) {
		double count = elements(&inputs);

		sum += input == i || input == NO_TENSOR ? count : 0;
	}
	return sum;
}

static void describe_issue(struct collective_call *call, const struct model *model)
{
	const char *name = model_text(model, call->name);

	call->elements = 0;
	call->kind = NO_KIND;
	if (!pytorch_begins(name, PYTORCH_COLLECTIVE)) /* executed on a device */
		return;
	name += strlen(PYTORCH_COLLECTIVE);
	for (uint32_t i = 1; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].issue, name) != 0)
			continue;
		call->kind = kind_of_execution(kinds[i].execution);
		if (kinds[i].input != NO_TENSOR && call->inputs)
			call->elements = elements_of(model_text(model, call->inputs), kinds[i].input);
	}
}

static void describe_execution(struct collective_call *call, const struct model *model)
{
	call->kind = kind_of_execution(strchr(model_text(model, call->name), ':') + 1);
	call->elements = 0;
	if (kinds[call->kind].input != NO_TENSOR && call->inputs)
		call->elements = elements_of(model_text(model, call->inputs), NO_TENSOR);
}

static int collective_calls_compare_keys(const struct collective_call *a, const struct collective_call *b)
{
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return (a->elements > b->elements) - (a->elements < b->elements);
}

static int compare_by_key(const void *left, const void *right)
{
	const struct collective_call *a = *(struct collective_call *const *)left,
				     *b = *(struct collective_call *const *)right;
	int order = collective_calls_compare_keys(a, b);

	if (order)
		return order;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static struct collective_call **by_key(struct storage *storage, struct collective_call *list, uint32_t count)
{
	struct collective_call **sorted = storage_resize(storage, NULL, (size_t)count + 1,
	                                                 sizeof(struct collective_call *));

	for (uint32_t i = 0; i < count; i++) {
		list[i].partner = MODEL_NONE;
		sorted[i] = &list[i];
	}
	merge_sort_in(storage, sorted, count, sizeof(struct collective_call *), compare_by_key);
	return sorted;
}

static uint32_t end_of_key(struct collective_call *const *sorted, uint32_t first, uint32_t count)
{
	uint32_t end = first;

	while (end < count && !collective_calls_compare_keys(sorted[end], sorted[first]))
		end++;
	return end;
}

/* Issues and executions of one kind and size in a process, in order of time. */
struct same_kind {
	struct collective_call **issues, **executions;
	uint32_t issue_count, execution_count;
};

/* Returns how many executions were issued before the first of the issues: the largest excess of executions over issues
 * at any time. There cannot be more, because at some time all issues had been executed. */
static uint32_t count_before(const struct same_kind *same)
{
	uint32_t before = 0, i = 0;

	for (uint32_t e = 0; e < same->execution_count; e++) {
		while (i < same->issue_count && same->issues[i]->start_ns <= same->executions[e]->start_ns)
			i++;
		before = e + 1 > i + before ? e + 1 - i : before;
	}
	return before;
}

static bool has_lost(const struct model *model, uint32_t process)
{
	for (uint32_t i = 0; i < model->ledger_count; i++)
		if (ledger_is_loss(model->ledger[i].kind) &&
		    (model->ledger[i].process == process || model->ledger[i].process == MODEL_NONE))
			return true;
	return false;
}

/* Executions without their issue, and issues at the end without an execution, are accepted only if older operators
 * were removed again. */
static void match_same(struct collective_calls *calls, const struct model *model, const struct same_kind *same)
{
	uint32_t process = same->issues[0]->process, before = count_before(same);
	bool is_all = same->issue_count == same->execution_count && !before;
	bool is_rest = model->processes[process].has_removed && !has_lost(model, process);

	for (uint32_t i = 0; (is_all || is_rest) && i < same->issue_count && i + before < same->execution_count; i++) {
		struct collective_call *issue = same->issues[i], *execution = same->executions[i + before];

		issue->partner = (uint32_t)(execution - calls->executions);
		issue->group = execution->group;
		execution->partner = (uint32_t)(issue - calls->issues);
	}
}

static void match(struct collective_calls *calls, const struct model *model)
{
	struct collective_call **issues, **executions;
	uint32_t i = 0, e = 0;

	for (uint32_t k = 0; k < calls->issue_count; k++)
		describe_issue(&calls->issues[k], model);
	for (uint32_t k = 0; k < calls->execution_count; k++)
		describe_execution(&calls->executions[k], model);
	issues = by_key(calls->storage, calls->issues, calls->issue_count);
	executions = by_key(calls->storage, calls->executions, calls->execution_count);
	while (i < calls->issue_count && e < calls->execution_count) {
		int order = collective_calls_compare_keys(issues[i], executions[e]);
		uint32_t issues_end = end_of_key(issues, i, calls->issue_count);
		uint32_t executions_end = end_of_key(executions, e, calls->execution_count);

		if (!order && issues[i]->kind != NO_KIND)
			match_same(calls, model,
			           &(struct same_kind){&issues[i], &executions[e], issues_end - i, executions_end - e});
		i = order <= 0 ? issues_end : i;
		e = order >= 0 ? executions_end : e;
	}
	storage_release(calls->storage, issues);
	storage_release(calls->storage, executions);
}

/* ---- bytes ---- */

static bool collective_calls_is_number(const char *type, size_t length)
{
	return (length == 6 && !memcmp(type, "Scalar", 6)) || (length == 10 && !memcmp(type, "ScalarList", 10));
}

void collective_calls_find(struct collective_calls *calls, const struct model *model)
{
	struct call_search search = {.model = model, .calls = calls};

	*calls = (struct collective_calls){.storage = model->storage};
	bool is_worth_it = collective_calls_classify(&search);
	for (uint32_t track = 0; track < model->tracks_count && is_worth_it; track++)
		search_track(&search, track);
	merge_sort_in(calls->storage, calls->issues, calls->issue_count, sizeof(*calls->issues),
	              collective_calls_compare_calls);
	merge_sort_in(calls->storage, calls->executions, calls->execution_count, sizeof(*calls->executions),
	              collective_calls_compare_calls);
	match(calls, model);
	free(search.classes);
}

void collective_calls_release(struct collective_calls *calls)
{
	storage_release(calls->storage, calls->issues);
	storage_release(calls->storage, calls->executions);
	memset(calls, 0, sizeof(*calls));
}

/* Returns the index of the first call of that process or a later one. */
static uint32_t first_from(const struct collective_call *list, uint32_t count, uint32_t process)
{
	return LOWER_BOUND(list, count, item, item->process < process);
}

void collective_calls_of(const struct collective_call *list, uint32_t count, uint32_t process, uint32_t *first,
                         uint32_t *end)
{
	*first = first_from(list, count, process);
	*end = first_from(list, count, process + 1);
}

bool collective_bytes(const char *inputs, double *bytes, const char **reason)
{
	const char *types = inputs ? strstr(inputs, "\nt ") : NULL;

	*bytes = 0;
	*reason = NULL;
	if (!inputs || !inputs[0])
		return false;
	*reason = "input types were not recorded";
	if (!types)
		return false;
	*reason = "the size of one of its element types is unknown";
	for (types += 3; *inputs == '['; types += types[0] == ';') {
		size_t length = strcspn(types, ";\n");
		bool is_tensor = length && !collective_calls_is_number(types, length), has_sizes = inputs[1] != ']';
		const struct pytorch_type *type = is_tensor ? pytorch_type_named(types, length) : NULL;
		double count = elements(&inputs);

		if ((is_tensor && (!type || !type->bytes)) || (!length && has_sizes))
			return false;
		*bytes += type ? type->bytes * count : 0;
		types += length;
	}
	return *bytes > 0;
}
