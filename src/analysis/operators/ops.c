/* SPDX-License-Identifier: Apache-2.0
 *
 * ops.c: the table `ops`. Folds all spans that start in measured steps into one row per name and kind (and shape,
 * thread, phase when asked). Self time is exact: the rows, with what lies in no operation, sum to all time in spans.
 */
#include "analysis/devices/device_names.h"
#include "analysis/devices/device_work.h"
#include "analysis/memory/memory_pool.h"
#include "analysis/memory/span_memory.h"
#include "analysis/operators/flop_counts.h"
#include "analysis/operators/launched_time.h"
#include "analysis/operators/ops_columns.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/input_steps.h"
#include "analysis/step_times/step_kinds.h"

#include "base/clamped.h"
#include "base/memory.h"
#include "base/storage.h"
#include "model/lanes.h"
#include "pytorch/names.h"
#include "table/bound.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <stepscope/format.h>
#include <string.h>

/* ---- groups: rows to be ---- */

struct op_key {
	uint32_t name, shape, track, kind,
		phase;       /* as wide as that, so that comparing does not wait for narrow stores */
	uint32_t is_sampled; /* see step_kinds.h: of a row those two are apart until it is made */
};

struct op_group {
	struct op_key key;
	uint32_t open; /* spans of the group around the current one, for recursion */
	int64_t calls, open_calls, total_ns, self_ns;
	int64_t step_self_ns;                          /* on threads that mark steps */
	int64_t timed_calls, timed_ns, min_ns, max_ns; /* calls with begin and end */
	int64_t flop_calls, byte_calls;
	int64_t lacking_calls, lacking_profiler_calls; /* see struct flop_count; the same by the other definition */
	double flops, bytes, profiler_flops;
	double rated_flops; /* of calls of which it is known how long their work took, and that time */
	int64_t rated_calls, rated_ns;
	int64_t profiler_calls;
	enum flops_result flops_result; /* the best of its calls */
	bool has_inner_flops;           /* counted at operations inside of it */
	int64_t memory, self_memory;    /* bytes allocated minus freed */
	int64_t device_ns, self_device_ns, launched;
	struct step_sightings seen;
};

/* Time in no operation, in steps that do not stand for others, and in those that do. */
#define REST 0u
#define REST_SAMPLED 1u
#define FIRST_GROUP 2u

struct op_fold {
	const struct model *model;
	const struct analysis_options *options;
	const struct step_times *times;
	struct op_group *groups; /* the first are REST and REST_SAMPLED */
	uint32_t group_count, group_capacity;
	uint32_t *slots; /* open addressing, group number or 0; a power of two */
	uint32_t slot_count;
	uint32_t *by_name; /* by string: the group of it that was found last; 0: none */
	struct open_op {   /* a call and what is inside it */
		uint32_t group;
		uint16_t depth;
		bool has_flops;
		int64_t dur_ns;
		double flops; /* that the program told of it */
		int64_t memory;
		int64_t device_ns, launched;
		int64_t lost; /* of launches: their work, or how long it took, is not in the recording */
	} * stack;
	uint32_t stack_depth, stack_capacity;
	struct open_op left; /* the call that is left */
	uint32_t flops_key, bytes_key;
	struct flop_counts flop_counts;
	uint32_t next_arg;
	struct span_memory span_memory;
	const struct launches *launches;
	struct launched_time launched_time;
	struct name_classes launching; /* calls of the runtime */
	struct name_classes rare;
	bool counts_rare;         /* what is rare, in all steps */
	bool *is_unseen;          /* by process: it uses a device, and what it launched on it was not recorded */
	double steps;             /* that sums are of */
	bool is_step_track;       /* the track that is visited marks steps */
	bool is_unseen_track;     /* it is of such a process */
	int64_t step_self_ns;     /* all groups together */
	int64_t unseen_ns;        /* of that in steps and micro-batches alone */
	double unseen_sampled_ns; /* the same of sampled steps, with their weights */
	int64_t unseen_left_ns;   /* what may still be of the step */
	int64_t device_ns, unlaunched_ns,
		unlaunched;     /* work of devices that counts; of it without a launch: time, count */
	int64_t calls, outside; /* spans that are no structure: all, and those not in measured steps */
};

static bool key_equal(const struct op_key *a, const struct op_key *b)
{
	return a->name == b->name && a->shape == b->shape && a->track == b->track && a->kind == b->kind &&
	       a->phase == b->phase && a->is_sampled == b->is_sampled;
}

static uint32_t key_hash(const struct op_key *key)
{
	uint64_t hash = key->name;

	hash = hash * 0x9e3779b97f4a7c15u + key->shape;
	hash = hash * 0x9e3779b97f4a7c15u + key->track;
	hash = hash * 0x9e3779b97f4a7c15u + (key->kind << 8 | key->phase << 1 | key->is_sampled);
	hash *= 0x9e3779b97f4a7c15u;
	return (uint32_t)(hash >> 32);
}

static uint32_t *find_slot(const struct op_fold *fold, const struct op_key *key)
{
	uint32_t slot = key_hash(key) & (fold->slot_count - 1);

	while (fold->slots[slot] && !key_equal(&fold->groups[fold->slots[slot]].key, key))
		slot = (slot + 1) & (fold->slot_count - 1);
	return &fold->slots[slot];
}

static void grow_slots(struct op_fold *fold)
{
	fold->slot_count = fold->slot_count ? fold->slot_count * 2 : 256;
	fold->slots = storage_resize(fold->model->storage, fold->slots, fold->slot_count, sizeof(*fold->slots));
	memset(fold->slots, 0, fold->slot_count * sizeof(*fold->slots));
	for (uint32_t i = FIRST_GROUP; i < fold->group_count; i++)
		*find_slot(fold, &fold->groups[i].key) = i;
}

static uint32_t add_group(struct op_fold *fold, const struct op_key *key)
{
	STORAGE_GROW(fold->model->storage, fold->groups, fold->group_count, fold->group_capacity, 64);
	fold->groups[fold->group_count] = (struct op_group){.key = *key, .min_ns = INT64_MAX};
	return fold->group_count++;
}

static bool is_rare(struct op_fold *fold, const struct span_view *span)
{
	return fold->counts_rare && span->kind == SPAN_RANGE && name_class(&fold->rare, fold->model, span->name);
}

/* Does it count? In these steps it does. */
static bool is_counted(struct op_fold *fold, const struct span_view *span)
{
	return step_times_measures(fold->times, span->step) ||
	       (is_rare(fold, span) && step_times_knows_rare(fold->times, span->step));
}

static uint32_t rest_of(const struct op_fold *fold, const struct span_view *span)
{
	return step_kinds_is_sampled(fold->times, span->step) ? REST_SAMPLED : REST;
}

static uint32_t find_group(struct op_fold *fold, const struct span_view *span)
{
	unsigned by = fold->options->by;
	struct op_key key = {.name = span->name,
	                     .shape = by & BY_SHAPE ? span->shape : 0,
	                     .track = by & BY_THREAD ? span->track_index : 0,
	                     .kind = span->kind,
	                     .phase = by & BY_PHASE ? span->phase : 0,
	                     .is_sampled = rest_of(fold, span) && !is_rare(fold, span)};
	uint32_t *slot, *last = &fold->by_name[span->name];

	if (*last && key_equal(&fold->groups[*last].key, &key))
		return *last;
	if (fold->group_count * 2 >= fold->slot_count)
		grow_slots(fold);
	slot = find_slot(fold, &key);
	if (!*slot)
		*slot = add_group(fold, &key);
	return *last = *slot;
}

/* ---- the fold ---- */

static bool is_structure(uint8_t kind)
{
	return kind == SPAN_STEP || kind == SPAN_PHASE || kind == SPAN_MICRO_BATCH || kind == SPAN_MODULE;
}

/* Where the self time of structure goes: a module's to the operation or range around it, so that recording modules changes no row. */
static uint32_t group_around(const struct op_fold *fold, const struct span_view *span)
{
	return span->kind == SPAN_MODULE && fold->stack_depth ? fold->stack[fold->stack_depth - 1].group
	                                                      : rest_of(fold, span);
}

/* What a call computed. Its work took what it launched on a device took there, or, where it launched nothing, as long as it did itself;
 * how long it took is not known where the recording does not have all that was launched. */
static void add_flops_of(const struct op_fold *fold, struct op_group *group, double flops)
{
	const struct open_op *call = &fold->left;

	group->flops += flops;
	group->flop_calls++;
	if (call->lost || (!call->launched && fold->is_unseen_track))
		return;
	group->rated_flops += flops;
	group->rated_calls++;
	clamped_add(&group->rated_ns, call->launched ? call->device_ns : call->dur_ns);
}

/* A call of the runtime that launches, and nothing in it or around it did: during the capture of a graph, or its work was cut off. */
static void find_lost(struct op_fold *fold, struct open_op *call)
{
	const struct op_key *key = &fold->groups[call->group].key;
	const struct open_op *around = fold->stack_depth ? &fold->stack[fold->stack_depth - 1] : NULL;

	if (key->kind != SPAN_RUNTIME || !name_class(&fold->launching, fold->model, key->name))
		return;
	call->lost += !call->launched && !(around && fold->groups[around->group].key.kind == SPAN_RUNTIME);
}

static void leave_call(struct op_fold *fold)
{
	struct open_op *call = &fold->left;
	struct op_group *group;

	*call = fold->stack[--fold->stack_depth];
	group = &fold->groups[call->group];
	find_lost(fold, call);
	if (call->has_flops)
		add_flops_of(fold, group, call->flops);
	flop_counts_leave(&fold->flop_counts, call->depth); /* before those around it, while it is what is left */
	if (--group->open == 0) {
		clamped_add(&group->memory, call->memory);
		clamped_add(&group->device_ns, call->device_ns);
	}
	if (fold->stack_depth) {
		struct open_op *around = &fold->stack[fold->stack_depth - 1];

		clamped_add(&around->memory, call->memory);
		clamped_add(&around->device_ns, call->device_ns);
		around->launched += call->launched;
		around->lost += call->lost;
	}
}

/* Leaves the groups of spans that are not around a span of this depth. */
static void leave(struct op_fold *fold, uint32_t depth)
{
	while (fold->stack_depth && fold->stack[fold->stack_depth - 1].depth >= depth)
		leave_call(fold);
}

static struct open_op *enter(struct op_fold *fold, uint32_t group, const struct span_view *span, int64_t memory)
{
	MEMORY_GROW(fold->stack, fold->stack_depth, fold->stack_capacity, 64);
	fold->stack[fold->stack_depth] = (struct open_op){
		.group = group, .depth = span->depth, .dur_ns = span->dur_ns, .memory = memory};
	fold->groups[group].open++;
	return &fold->stack[fold->stack_depth++];
}

static void use_flops(void *context, const struct flop_count *count)
{
	struct op_fold *fold = context;
	struct op_group *group = &fold->groups[count->tag];

	group->flops_result = count->result > group->flops_result ? count->result : group->flops_result;
	group->has_inner_flops |= count->is_outside;
	group->lacking_calls += count->lacks_inputs;
	if (count->is_counted)
		add_flops_of(fold, group, count->flops);
}

static void add_profiler_flops(struct op_fold *fold, struct op_group *group, const struct span_view *span,
                               uint32_t inputs, bool is_timed)
{
	double count;
	enum flops_result result = flops_of(&fold->flop_counts.flops, FLOPS_PROFILER, span->name, inputs, &count);

	if (result == FLOPS_KNOWN && is_timed) {
		group->profiler_flops += count;
		group->profiler_calls++;
	}
	group->lacking_profiler_calls += result == FLOPS_NO_SIZES &&
	                                 flop_likeness_lacks(fold->flop_counts.walk.likeness, span->step);
}

/* Of operators that PyTorch told. */
static void add_flops(struct op_fold *fold, uint32_t number, const struct span_view *span, bool is_timed)
{
	struct flop_counts *counts = &fold->flop_counts;
	bool has_one = !flops_has_none(&counts->flops, FLOPS_COUNTER, span->name);
	bool has_other = !flops_has_none(&counts->flops, FLOPS_PROFILER, span->name);
	uint32_t inputs = has_one || has_other ? flop_walk_inputs(&counts->walk, span) : 0;

	if (has_one)
		flop_counts_enter(counts, span, inputs, number);
	if (has_other)
		add_profiler_flops(fold, &fold->groups[number], span, inputs, is_timed);
}

static double arg_number(const struct span_arg *arg)
{
	switch (arg->type) {
	case STEPSCOPE_ARG_F64:
		return arg->f64;
	case STEPSCOPE_ARG_I64:
		return (double)arg->i64;
	case STEPSCOPE_ARG_U64:
		return (double)arg->u64;
	default:
		return 0;
	}
}

/* The facts of the span. Facts and spans come in the same order, so one walk through both is enough. Call: NULL: it does not count. */
static void add_facts(struct op_fold *fold, struct open_op *call, const struct span_view *span, bool is_timed)
{
	const struct model *model = fold->model;

	for (; fold->next_arg < model->args_count; fold->next_arg++) {
		const struct span_arg *arg = &model->args[fold->next_arg];

		if (arg->track > span->track_index || (arg->track == span->track_index && arg->row > span->row))
			return;
		if (!call || arg->track != span->track_index || arg->row != span->row)
			continue;
		if (arg->key == fold->flops_key && is_timed) {
			call->flops += arg_number(arg);
			call->has_flops = true;
		} else if (arg->key == fold->bytes_key) {
			fold->groups[call->group].bytes += arg_number(arg);
			fold->groups[call->group].byte_calls++;
		}
	}
}

/* The group of the innermost operator that is open; where none is, of the innermost range or annotation; `rest`: of neither (model/launches.h). */
static uint32_t innermost_operation(const struct op_fold *fold, uint32_t rest)
{
	uint32_t range = 0;

	for (uint32_t i = fold->stack_depth; i-- > 0;) {
		uint32_t group = fold->stack[i].group;
		uint32_t kind = fold->groups[group].key.kind;

		if (kind == SPAN_OP || kind == SPAN_COLLECTIVE)
			return group;
		if (!range && (kind == SPAN_RANGE || kind == SPAN_ANNOTATION))
			range = group;
	}
	return range ? range : rest;
}

/* Called after enter() of the call that launched it. */
static void add_launched(struct op_fold *fold, const struct span_view *span)
{
	const struct launched_call *call = launched_time_at(&fold->launched_time, span->track_index, span->row);
	uint32_t group;

	if (!call)
		return;
	group = innermost_operation(fold, rest_of(fold, span));
	clamped_add(&fold->groups[group].self_device_ns, call->dur_ns);
	fold->groups[group].launched += call->count;
	clamped_add(&fold->stack[fold->stack_depth - 1].device_ns, call->dur_ns);
	fold->stack[fold->stack_depth - 1].launched += call->count;
	fold->stack[fold->stack_depth - 1].lost += call->untimed;
}

static void add_call(struct op_group *group, const struct span_view *span, bool is_timed)
{
	group->calls++;
	if (group->open == 0)
		clamped_add(&group->total_ns, span->dur_ns);
	if (!is_timed) {
		group->open_calls++;
		return;
	}
	group->timed_calls++;
	clamped_add(&group->timed_ns, span->dur_ns);
	group->min_ns = span->dur_ns < group->min_ns ? span->dur_ns : group->min_ns;
	group->max_ns = span->dur_ns > group->max_ns ? span->dur_ns : group->max_ns;
}

/* Other spans on a device's track are of a host that gave its threads the numbers of streams. */
static bool is_of_device(const struct span_view *span)
{
	return span->track->kind == TRACK_DEVICE &&
	       (span_is_device_work(span->kind) || span->kind == SPAN_SYNC || span->kind == SPAN_ANNOTATION);
}

/* A wait for a collective has no span either, but is the phase communication: of a step no more than what is `other`. */
static void note_unseen(struct op_fold *fold, const struct span_view *span)
{
	const struct step_time *step = span->step < 0 ? NULL : &fold->times->steps[span->step];

	if (!fold->is_step_track || !step || span->phase || (span->kind != SPAN_STEP && span->kind != SPAN_MICRO_BATCH))
		return;
	if (span->kind == SPAN_STEP)
		fold->unseen_left_ns = step->has_phases ? step->phase_ns[PHASE_OTHER] : span->dur_ns;
	int64_t unseen_ns = span->self_ns < fold->unseen_left_ns ? span->self_ns : fold->unseen_left_ns;
	fold->unseen_left_ns -= unseen_ns;
	if (step_kinds_is_sampled(fold->times, span->step))
		fold->unseen_sampled_ns += (double)unseen_ns * step->weight;
	else
		clamped_add(&fold->unseen_ns, unseen_ns);
}

static void sight(const struct op_fold *fold, struct op_group *group, int32_t step)
{
	if (group->key.is_sampled)
		step_kinds_sight(&group->seen, fold->times, step, 1);
}

/* The time in none of them: by its length, not by calls. */
static void sight_rest(struct op_fold *fold, uint32_t number, const struct span_view *span)
{
	if (number == REST_SAMPLED)
		step_kinds_sight(&fold->groups[number].seen, fold->times, span->step, (double)span->self_ns);
}

static bool visit(void *context, const struct span_view *span)
{
	struct op_fold *fold = context;
	bool is_timed = span_is_timed(span->flags);
	int64_t memory = span_memory_of(&fold->span_memory, span->track_index, span->row);
	uint32_t number;

	leave(fold, span->depth);
	if (is_of_device(span))
		return true; /* the table of kernels has them */
	fold->calls += !is_structure(span->kind);
	if (!is_counted(fold, span)) {
		fold->outside += !is_structure(span->kind);
		add_facts(fold, NULL, span, false);
		return true;
	}
	number = is_structure(span->kind) ? group_around(fold, span) : find_group(fold, span);
	clamped_add(&fold->groups[number].self_ns, span->self_ns);
	clamped_add(&fold->groups[number].step_self_ns, fold->is_step_track ? span->self_ns : 0);
	clamped_add(&fold->groups[number].self_memory, memory);
	note_unseen(fold, span);
	if (is_structure(span->kind)) {
		sight_rest(fold, number, span);
		if (fold->stack_depth)
			clamped_add(&fold->stack[fold->stack_depth - 1].memory, memory);
		return true;
	}
	add_call(&fold->groups[number], span, is_timed);
	sight(fold, &fold->groups[number], span->step);
	add_facts(fold, enter(fold, number, span, memory), span, is_timed);
	if (span->kind == SPAN_OP)
		add_flops(fold, number, span, is_timed);
	if (span->kind == SPAN_RUNTIME)
		add_launched(fold, span);
	return true;
}

/* ---- the table ---- */

/* Work of devices that counts, straight from their spans: launched in measured steps, or without a launch but in one. */
static void sum_device(const struct op_fold *fold, int64_t *all_ns, int64_t *unlaunched_ns, int64_t *unlaunched)
{
	const struct model *model = fold->model;

	*all_ns = *unlaunched_ns = *unlaunched = 0;
	for (uint32_t number = 0; number < fold->launches->track_count; number++) {
		const struct track *track = model->tracks[number];

		for (uint32_t c = 0; fold->launches->by_track[number] && c < track->chunk_count; c++) {
			const struct span_chunk *chunk = track->chunks[c], *at;

			for (uint32_t i = 0, k; i < chunk->count; i++) {
				const struct launch *launch = launches_of(fold->launches, number, chunk->first_row + i);
				bool is_launched = launch->track != MODEL_NONE;

				if (!span_is_device_work(chunk->kind[i]))
					continue;
				at = is_launched ? track_chunk(model->tracks[launch->track], launch->row, &k)
				                 : track_chunk(track, chunk->first_row + i, &k);
				if (!step_times_measures(fold->times, at->step[k]))
					continue;
				clamped_add(all_ns, chunk->dur_ns[i]);
				clamped_add(unlaunched_ns, is_launched ? 0 : chunk->dur_ns[i]);
				*unlaunched += !is_launched;
			}
			model_chunk_done(model, chunk);
		}
	}
}

/* What all rows together must have: straight from the allocations. */
static int64_t memory_in_spans(const struct op_fold *fold)
{
	const struct model *model = fold->model;
	wide_bytes sum = 0;

	for (uint32_t i = 0; i < model->memory_count; i++) {
		const struct memory_event *event = &model->memory[i];
		uint32_t index;

		if (event->row == MODEL_NONE || event->is_found || event->device >= 0 ||
		    (event->is_free && event->partner == MODEL_NONE))
			continue;
		if (step_times_measures(fold->times,
		                        track_chunk(model->tracks[event->track], event->row, &index)->step[index]))
			sum += event->is_free ? -(wide_bytes)event->bytes : (wide_bytes)event->bytes;
	}
	return bytes_that_fit(sum);
}

/* ---- of both kinds of steps ---- */

/* The sums of the run; means, and what they are made from, stay those of what was recorded. */
static void join(struct op_group *group, const struct op_group *sampled, double factor)
{
	step_kinds_join(&group->calls, sampled->calls, factor);
	step_kinds_join(&group->total_ns, sampled->total_ns, factor);
	step_kinds_join(&group->self_ns, sampled->self_ns, factor);
	step_kinds_join(&group->step_self_ns, sampled->step_self_ns, factor);
	step_kinds_join(&group->memory, sampled->memory, factor);
	step_kinds_join(&group->self_memory, sampled->self_memory, factor);
	step_kinds_join(&group->device_ns, sampled->device_ns, factor);
	step_kinds_join(&group->self_device_ns, sampled->self_device_ns, factor);
	step_kinds_join(&group->launched, sampled->launched, factor);
	group->flops += sampled->flops * factor;
	group->profiler_flops += sampled->profiler_flops * factor;
	group->bytes += sampled->bytes * factor;
	group->open_calls += sampled->open_calls;
	group->timed_calls += sampled->timed_calls;
	clamped_add(&group->timed_ns, sampled->timed_ns);
	group->min_ns = sampled->min_ns < group->min_ns ? sampled->min_ns : group->min_ns;
	group->max_ns = sampled->max_ns > group->max_ns ? sampled->max_ns : group->max_ns;
	group->flop_calls += sampled->flop_calls;
	group->lacking_calls += sampled->lacking_calls;
	group->lacking_profiler_calls += sampled->lacking_profiler_calls;
	group->byte_calls += sampled->byte_calls;
	group->rated_flops += sampled->rated_flops;
	group->rated_calls += sampled->rated_calls;
	clamped_add(&group->rated_ns, sampled->rated_ns);
	group->profiler_calls += sampled->profiler_calls;
	group->flops_result = sampled->flops_result > group->flops_result ? sampled->flops_result : group->flops_result;
	group->has_inner_flops |= sampled->has_inner_flops;
	group->seen = sampled->seen;
}

static double rest_factor(const struct op_fold *fold, const struct op_group *rest)
{
	return rest->seen.amount > 0 ? rest->seen.weighted / rest->seen.amount : fold->times->factor;
}

/* Sampled groups become a part of those of the same row, which are all that is left. The totals are known without the rows: of what is multiplied they
 * are as much more as the rows are. */
static void join_groups(struct op_fold *fold, int64_t *memory, int64_t *device_ns)
{
	uint32_t count = fold->group_count;

	for (uint32_t i = 0; i < count; i++) {
		const struct op_group sampled = fold->groups[i];
		bool is_rest = i == REST_SAMPLED;
		struct op_key key = sampled.key;

		if (!is_rest && !key.is_sampled)
			continue;
		key.is_sampled = 0;
		if (fold->group_count * 2 >= fold->slot_count)
			grow_slots(fold);
		uint32_t *slot = is_rest ? NULL : find_slot(fold, &key);
		if (slot && !*slot)
			*slot = add_group(fold, &key);
		struct op_group *group = &fold->groups[slot ? *slot : REST];
		int64_t self_memory = group->self_memory + sampled.self_memory;
		int64_t self_device_ns = group->self_device_ns + sampled.self_device_ns;

		join(group, &sampled,
		     is_rest ? rest_factor(fold, &sampled) : step_kinds_factor(fold->times, &sampled.seen));
		clamped_add(memory, group->self_memory - self_memory);
		clamped_add(device_ns, group->self_device_ns - self_device_ns);
	}
	clamped_add(&fold->unseen_ns, clamped_int(round(fold->unseen_sampled_ns)));
}

/* ---- columns ---- */

static void add_columns(struct table *table, struct op_fold *fold)
{
	unsigned by = fold->options->by;
	int64_t total = 0, memory = memory_in_spans(fold);

	sum_device(fold, &fold->device_ns, &fold->unlaunched_ns, &fold->unlaunched);
	join_groups(fold, &memory, &fold->device_ns);
	for (uint32_t i = 0; i < fold->group_count; i++) {
		if (i == REST_SAMPLED || fold->groups[i].key.is_sampled)
			continue;
		clamped_add(&total, fold->groups[i].self_ns);
		clamped_add(&fold->step_self_ns, fold->groups[i].step_self_ns);
	}
	for (int i = 0; i < OP_COLUMNS; i++) {
		struct table_column copy = operation_columns[i];

		if ((i == OP_SHAPE && !(by & BY_SHAPE)) || (i == OP_THREAD && !(by & BY_THREAD)) ||
		    (i == OP_PHASE && !(by & BY_PHASE)) ||
		    ((i == OP_SELF_MEMORY || i == OP_MEMORY) && !fold->model->memory_count))
			copy.is_hidden = true;
		copy.is_hidden |= i == OP_STEP_MEAN && fold->times->job_detailed == fold->times->job_selected;
		if (i >= OP_SELF_DEVICE && !fold->launches->work_count)
			copy.is_hidden = true;
		copy.total = (double)(i == OP_SELF_MEMORY ? memory : i == OP_SELF_DEVICE ? fold->device_ns : total);
		table_column(table, &copy);
	}
}

static void set_key(struct table *table, int row, const struct op_fold *fold, const struct op_key *key)
{
	const struct model *model = fold->model;
	unsigned by = fold->options->by;

	table_set_text(table, row, OP_NAME, model_text(model, key->name));
	table_set_text(table, row, OP_KIND, span_kind_name(key->kind));
	if (by & BY_THREAD)
		table_set_text(table, row, OP_THREAD, track_label(model, key->track, &table->arena));
	else
		table_set_missing(table, row, OP_THREAD, "rows are not by thread: --by thread");
	if (by & BY_PHASE)
		table_set_text(table, row, OP_PHASE, key->phase ? phase_name(key->phase) : "none");
	else
		table_set_missing(table, row, OP_PHASE, "rows are not by phase: --by phase");
	if (key->shape)
		table_set_text(table, row, OP_SHAPE, model_text(model, key->shape));
	else
		table_set_missing(table, row, OP_SHAPE,
		                  by & BY_SHAPE ? "no shape was recorded: --with shapes"
		                                : "rows are not by shape: --by shape");
}

static void set_memory(struct table *table, int row, const struct op_fold *fold, const struct op_group *group)
{
	const char *lost = memory_sums_unknown(fold->model);
	const char *reason = lost ? lost : "memory was not recorded: --with memory";

	table_set_missing(table, row, OP_SELF_MEMORY, reason);
	table_set_missing(table, row, OP_MEMORY, reason);
	if (!fold->model->memory_count || lost)
		return;
	table_set_int(table, row, OP_SELF_MEMORY, group->self_memory);
	table_set_int(table, row, OP_MEMORY, group->memory);
}

static void set_device(struct table *table, int row, const struct op_fold *fold, const struct op_group *group)
{
	if (!fold->launches->work_count) {
		for (int column = OP_SELF_DEVICE; column <= OP_LAUNCHED; column++)
			table_set_missing(table, row, column, DEVICE_NOTHING);
		return;
	}
	table_set_int(table, row, OP_SELF_DEVICE, group->self_device_ns);
	table_set_int(table, row, OP_LAUNCHED, group->launched);
	table_set_int(table, row, OP_DEVICE, group->device_ns);
}

static const char *why_no_flops(const struct op_group *group)
{
	if (group->lacking_calls)
		return FLOP_LIKENESS_MISSING;
	if (group->has_inner_flops)
		return "counted at the operations inside of it";
	switch (group->flops_result) {
	case FLOPS_NO_SIZES:
		return "the sizes of its inputs were not recorded: --with shapes";
	case FLOPS_UNKNOWN:
		return "the inputs that were recorded do not say it";
	case FLOPS_KNOWN:
		return "no call has both begin and end";
	case FLOPS_NO_FORMULA:
		break;
	}
	return "not recorded: --with shapes, and the program must give them, or PyTorch's operator have a formula";
}

static const char *why_no_rate(const struct op_group *group)
{
	if (!group->flop_calls)
		return "no floating point operations were recorded";
	if (!group->rated_calls)
		return "the work of devices that its calls launched is not recorded, and they do not wait for it";
	return "the calls took no measurable time";
}

static void set_facts(struct table *table, int row, const struct op_group *group)
{
	if (group->flop_calls && !group->lacking_calls)
		table_set_double(table, row, OP_FLOPS, group->flops);
	else
		table_set_missing(table, row, OP_FLOPS, why_no_flops(group));
	if (group->profiler_calls && !group->lacking_profiler_calls)
		table_set_double(table, row, OP_PROFILER_FLOPS, group->profiler_flops);
	else
		table_set_missing(table, row, OP_PROFILER_FLOPS,
		                  group->lacking_profiler_calls
		                          ? FLOP_LIKENESS_MISSING
		                          : "torch.profiler counts none for it, or its inputs were not recorded");
	if (group->rated_ns > 0)
		table_set_double(table, row, OP_FLOP_RATE, group->rated_flops / ((double)group->rated_ns / 1e9));
	else
		table_set_missing(table, row, OP_FLOP_RATE, why_no_rate(group));
	if (group->byte_calls)
		table_set_double(table, row, OP_BYTES, group->bytes);
	else
		table_set_missing(table, row, OP_BYTES, "not recorded: --with shapes, and the program must give them");
}

static void set_times(struct table *table, int row, const struct op_group *group)
{
	table_set_int(table, row, OP_CALLS, group->calls);
	table_set_int(table, row, OP_TOTAL, group->total_ns);
	table_set_int(table, row, OP_INCOMPLETE, group->open_calls);
	if (group->timed_calls) {
		table_set_double(table, row, OP_MEAN, (double)group->timed_ns / (double)group->timed_calls);
		table_set_int(table, row, OP_MIN, group->min_ns);
		table_set_int(table, row, OP_MAX, group->max_ns);
		return;
	}
	for (int column = OP_MEAN; column <= OP_MAX; column++)
		table_set_missing(table, row, column, "no call has both begin and end");
}

static void set_step_self(struct table *table, int row, const struct op_fold *fold, int64_t step_self_ns)
{
	int64_t total = fold->step_self_ns;

	if (total > 0) {
		table_set_double(table, row, OP_STEP_MEAN, (double)step_self_ns / (fold->steps > 0 ? fold->steps : 1));
		table_set_int(table, row, OP_STEP_SELF, step_self_ns);
		table_set_double(table, row, OP_STEP_RATIO, (double)step_self_ns / (double)total);
		return;
	}
	table_set_missing(table, row, OP_STEP_MEAN, "no thread marks steps");
	table_set_missing(table, row, OP_STEP_SELF, "no thread marks steps");
	table_set_missing(table, row, OP_STEP_RATIO, "no thread marks steps");
}

static void set_unseen(struct table *table, int row, const struct op_fold *fold)
{
	if (fold->step_self_ns > 0)
		table_set_double(table, row, OP_UNSEEN, (double)fold->unseen_ns / (double)fold->step_self_ns);
	else
		table_set_missing(table, row, OP_UNSEEN, "no thread marks steps");
}

static void set_self(struct table *table, int row, int64_t self_ns)
{
	table_set_int(table, row, OP_SELF, self_ns);
	if (table->columns[OP_SELF].total > 0)
		table_set_double(table, row, OP_RATIO, (double)self_ns / table->columns[OP_SELF].total);
	else
		table_set_missing(table, row, OP_RATIO, "the spans took no time");
}

/* Work of devices whose launch is not in the trace belongs to no operation, nor to the host's time in none. */
static void add_unlaunched(struct table *table, const struct op_fold *fold)
{
	int row = table_row(table);

	for (int column = 0; column < OP_COLUMNS; column++)
		table_set_missing(table, row, column, "not an operation");
	table_set_text(table, row, OP_NAME, "(launched by nothing in the trace)");
	table_set_text(table, row, OP_KIND, "rest");
	table_set_int(table, row, OP_SELF_DEVICE, fold->unlaunched_ns);
	table_set_int(table, row, OP_LAUNCHED, fold->unlaunched);
	set_self(table, row, 0);
	set_step_self(table, row, fold, 0);
}

static void add_group_row(struct table *table, const struct op_fold *fold, uint32_t number)
{
	const struct op_group *group = &fold->groups[number];
	int row = table_row(table);

	set_key(table, row, fold, &group->key);
	set_times(table, row, group);
	set_facts(table, row, group);
	set_memory(table, row, fold, group);
	set_device(table, row, fold, group);
	set_self(table, row, group->self_ns);
	set_step_self(table, row, fold, group->step_self_ns);
	table_set_missing(table, row, OP_UNSEEN, "an operation or range");
	step_kinds_set_least(table, row, OP_LEAST, fold->times, &group->seen);
}

static void add_rows(struct table *table, const struct op_fold *fold)
{
	static const int not_of_rest[] = {OP_SHAPE,      OP_THREAD, OP_PHASE, OP_CALLS, OP_TOTAL,     OP_MEAN,
	                                  OP_MIN,        OP_MAX,    OP_FLOPS, OP_BYTES, OP_FLOP_RATE, OP_PROFILER_FLOPS,
	                                  OP_INCOMPLETE, OP_LEAST};
	int row;

	table_bound(table, OP_SELF);
	for (uint32_t i = FIRST_GROUP; i < fold->group_count; i++)
		if (!fold->groups[i].key.is_sampled)
			add_group_row(table, fold, i);
	row = table_add_more(table, OP_NAME);
	if (row >= 0)
		table_set_text(table, row, OP_KIND, "rest");
	row = table_row(table);
	table_set_text(table, row, OP_NAME, "(in no operation or range)");
	table_set_text(table, row, OP_KIND, "rest");
	set_self(table, row, fold->groups[REST].self_ns);
	set_step_self(table, row, fold, fold->groups[REST].step_self_ns);
	set_unseen(table, row, fold);
	set_memory(table, row, fold, &fold->groups[REST]);
	set_device(table, row, fold, &fold->groups[REST]);
	table_set_missing(table, row, OP_MEMORY, "not an operation");
	table_set_missing(table, row, OP_DEVICE, "not an operation");
	for (size_t i = 0; i < sizeof(not_of_rest) / sizeof(not_of_rest[0]); i++)
		table_set_missing(table, row, not_of_rest[i], "not an operation");
	if (fold->unlaunched)
		add_unlaunched(table, fold);
	/* ties by name, so that the order does not depend on the order of threads in the file */
	table_sort(table, OP_NAME, true);
	table_sort(table, OP_SELF, false);
	table_sort(table, OP_STEP_SELF, false);
}

static void add_note(struct table *table, const struct op_fold *fold)
{
	step_kinds_note_sums(table, fold->times, OP_LEAST);
	if (!fold->times->count)
		table->note = "no steps were marked: all recorded spans are counted";
	if (fold->outside)
		table->note = arena_printf(
			&table->arena,
			"%s%s%" PRId64 " of %" PRId64 " calls lie outside of the measured steps and are "
			"not counted",
			table->note ? table->note : "", table->note ? "; " : "", fold->outside, fold->calls);
	if (fold->group_count > FIRST_GROUP)
		return;
	table->empty = step_times_no_operations(
		fold->model, fold->options, &table->arena,
		fold->outside ? "all recorded operations and ranges lie outside of the measured steps"
			      : "the program marked no operations and no ranges: stepscope_op_begin(), "
				"stepscope_range_push()");
}

static uint8_t classify_launching(const char *name)
{
	return is_launching_call(name);
}

static uint8_t classify_rare(const char *name)
{
	return pytorch_is_rare(name, strlen(name));
}

/* Which processes use a device without a launch of its work in the recording: what a call of theirs did there is not known. */
static bool *find_unseen(const struct op_fold *fold)
{
	const struct model *model = fold->model;
	bool *is_unseen = memory_resize(NULL, model->processes_count + (size_t)1, sizeof(*is_unseen));
	bool has_nccl = false; /* which exchanges what devices have */

	for (uint32_t string = 0; string < model->strings.count && !has_nccl; string++)
		has_nccl = !strncmp(model_text(model, string), "nccl:", strlen("nccl:"));
	for (uint32_t process = 0; process < model->processes_count; process++)
		is_unseen[process] = has_nccl || model_meta(model, process, "device.0.name");
	for (uint32_t i = 0; i < model->memory_count; i++)
		is_unseen[model->memory[i].process] |= model->memory[i].device >= 0;
	for (uint32_t number = 0; number < fold->launches->track_count; number++)
		if (fold->launches->by_track[number])
			is_unseen[model->tracks[number]->process] = true;
	for (size_t i = 0; i < fold->launched_time.count; i++)
		is_unseen[model->tracks[fold->launched_time.calls[i].track]->process] = false;
	return is_unseen;
}

static enum status run(const struct model *model, const struct analysis_options *options, struct table *table,
                       struct error *err)
{
	struct step_times own = {0}, with_inputs = {0};
	struct launches own_launches = {0};
	struct flop_likeness own_likeness = {0};
	struct op_fold fold = {.model = model, .options = options};
	bool *step_tracks = step_times_tracks(model);

	fold.times = step_times_get(&own, model, options);
	if (options->by & BY_SHAPE)
		fold.times = input_steps_only(&with_inputs, fold.times, model);
	fold.steps = step_kinds_sum_steps(fold.times);
	fold.flop_counts = (struct flop_counts){.flops = {.model = model},
	                                        .walk = {.likeness = flop_likeness_get(&own_likeness, model, options)},
	                                        .use = use_flops,
	                                        .context = &fold};
	fold.flops_key = intern_find(&model->strings, "flops");
	fold.bytes_key = intern_find(&model->strings, "bytes");
	span_memory_init(&fold.span_memory, model);
	fold.launches = launches_get(&own_launches, model, options);
	launched_time_init(&fold.launched_time, model, fold.launches);
	fold.launching.classify = classify_launching;
	fold.rare.classify = classify_rare;
	fold.counts_rare = fold.times->factor != 1 && fold.times->knows_rare;
	fold.is_unseen = find_unseen(&fold);
	add_group(&fold, &(struct op_key){0});
	add_group(&fold, &(struct op_key){.is_sampled = true});
	fold.by_name = storage_resize(model->storage, NULL, model->strings.count + (size_t)1, sizeof(*fold.by_name));
	memset(fold.by_name, 0, (model->strings.count + (size_t)1) * sizeof(*fold.by_name));
	for (uint32_t track = 0; track < model->tracks_count; track++) {
		if (model->tracks[track]->kind == TRACK_OTHER)
			continue; /* no thread */
		leave(&fold, 0);
		fold.is_step_track = step_tracks[first_lane(model, track)];
		fold.is_unseen_track = fold.is_unseen[model->tracks[track]->process];
		model_visit_spans(model, track, visit, &fold);
	}
	leave(&fold, 0);
	span_memory_release(&fold.span_memory);
	table_init(table, "ops", "Top operations by self time",
	           "operations and ranges that start in steps with operator detail, by name and kind");
	add_columns(table, &fold);
	if (fold.group_count > FIRST_GROUP)
		add_rows(table, &fold);
	add_note(table, &fold);
	free(step_tracks);
	free(fold.is_unseen);
	name_classes_release(&fold.launching);
	name_classes_release(&fold.rare);
	storage_release(fold.model->storage, fold.groups);
	storage_release(fold.model->storage, fold.slots);
	storage_release(fold.model->storage, fold.by_name);
	free(fold.stack);
	flop_counts_release(&fold.flop_counts);
	flop_likeness_release(&own_likeness);
	launched_time_release(&fold.launched_time);
	launches_release(&own_launches);
	input_steps_release(&with_inputs);
	step_times_release(&own);
	return STATUS_OK;
}

const struct analysis analysis_ops = {
	.name = "ops",
	.question = "which operations take the time?",
	.run = run,
	.splits = BY_SHAPE | BY_THREAD | BY_PHASE,
	.is_of_operators = true,
};
