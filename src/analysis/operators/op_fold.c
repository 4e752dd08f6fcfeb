/* SPDX-License-Identifier: Apache-2.0
 *
 * op_fold.c: visits spans in the order of their starts and keeps a stack of the calls around the current one. A call
 * adds its times to its group when the walk enters it, and the sums of everything inside it when the walk leaves it.
 */
#include "analysis/operators/op_fold.h"

#include "analysis/analysis_context.h"
#include "analysis/devices/device_work.h"
#include "analysis/memory/span_memory.h"
#include "analysis/operators/flop_counts.h"
#include "analysis/operators/launched_time.h"
#include "analysis/step_times/input_steps.h"
#include "base/clamped.h"
#include "base/memory.h"
#include "model/device_names.h"
#include "model/lanes.h"
#include "pytorch/names.h"

#include <assert.h>
#include <stdlib.h>
#include <stepscope/format.h>
#include <string.h>

struct open_op { /* a call, with everything inside it */
	uint32_t group;
	uint16_t depth;
	bool has_flops;
	int64_t dur_ns;
	double flops; /* as the program reported them */
	int64_t memory;
	int64_t device_ns, launched;
	int64_t lost; /* launches whose work, or its duration, is not in the recording */
};

struct op_walk {
	struct op_fold *fold;
	struct open_op *stack;
	uint32_t stack_depth, stack_capacity;
	struct open_op left; /* the call that the walk leaves */
	uint32_t flops_key, bytes_key;
	struct flop_counts flop_counts;
	uint32_t next_arg;
	struct span_memory span_memory;
	struct launched_time launched_time;
	struct name_classes launching; /* calls of the runtime that launch work */
	struct name_classes rare, actions;
	bool counts_rare;       /* rare ranges count in all steps */
	bool *is_unseen;        /* by process: it uses a device, and the recording has no launches of it */
	bool is_unseen_track;   /* the current track is of such a process */
	bool is_step_track;     /* the current track marks steps */
	int64_t unseen_left_ns; /* time of the current step that may still be outside its phases */
};

static struct op_group *op_group_at(const struct op_walk *walk, uint32_t number)
{
	return &walk->fold->groups.list[number];
}

/* ---- the group of a span ---- */

static bool op_is_structure(uint8_t kind)
{
	return kind == SPAN_STEP || kind == SPAN_PHASE || kind == SPAN_MICRO_BATCH || kind == SPAN_MODULE;
}

static bool op_is_rare(struct op_walk *walk, const struct span_view *span)
{
	return walk->counts_rare && span->kind == SPAN_RANGE && name_class(&walk->rare, walk->fold->model, span->name);
}

static bool op_is_action(struct op_walk *walk, const struct span_view *span)
{
	const struct step_times *times = walk->fold->times;

	if (!walk->fold->counts_actions || span->step < 0 || !times->steps[span->step].is_selected ||
	    !times->steps[span->step].is_complete)
		return false;
	return op_is_structure(span->kind) ||
	       (span->kind == SPAN_RANGE && name_class(&walk->actions, walk->fold->model, span->name));
}

static bool op_is_counted(struct op_walk *walk, const struct span_view *span)
{
	const struct step_times *times = walk->fold->times;

	return step_times_measures(times, span->step) ||
	       (op_is_rare(walk, span) && step_times_knows_rare(times, span->step)) || op_is_action(walk, span);
}

static uint32_t op_rest_group(const struct op_walk *walk, const struct span_view *span)
{
	return step_kinds_is_sampled(walk->fold->times, span->step) ? OP_GROUP_REST_SAMPLED : OP_GROUP_REST;
}

static uint32_t op_call_group(struct op_walk *walk, const struct span_view *span)
{
	unsigned by = walk->fold->context->options.by;
	struct op_key key = {.name = span->name,
	                     .shape = by & BY_SHAPE ? span->shape : 0,
	                     .track = by & BY_THREAD ? span->track_index : 0,
	                     .kind = span->kind,
	                     .phase = by & BY_PHASE ? span->phase : 0,
	                     .is_sampled = op_rest_group(walk, span) && !op_is_rare(walk, span)};

	return op_groups_find(&walk->fold->groups, &key);
}

/* Returns the group that gets the self time of structure. A module's is the one of the operation or range around it, so
 * that recording modules changes no row. */
static uint32_t op_structure_group(const struct op_walk *walk, const struct span_view *span)
{
	return span->kind == SPAN_MODULE && walk->stack_depth ? walk->stack[walk->stack_depth - 1].group
	                                                      : op_rest_group(walk, span);
}

/* ---- calls that end ---- */

/* Adds the operations of a call. If it launched work, its rate is over the time of that work, otherwise over its own
 * duration. The rate is unknown if the recording lacks some of its work. */
static void op_group_add_flops(const struct op_walk *walk, struct op_group *group, double flops)
{
	const struct open_op *call = &walk->left;

	group->flops += flops;
	group->flop_calls++;
	if (call->lost || (!call->launched && walk->is_unseen_track))
		return;
	group->rated_flops += flops;
	group->rated_calls++;
	clamped_add(&group->rated_ns, call->launched ? call->device_ns : call->dur_ns);
}

/* Counts a call of the runtime as lost if it should have launched work, but neither a call inside it nor the one
 * around it did. Then a graph was being captured, or the work was cut off. */
static void op_find_lost(struct op_walk *walk, struct open_op *call)
{
	const struct op_key *key = &op_group_at(walk, call->group)->key;
	const struct open_op *around = walk->stack_depth ? &walk->stack[walk->stack_depth - 1] : NULL;

	if (key->kind != SPAN_RUNTIME || !name_class(&walk->launching, walk->fold->model, key->name))
		return;
	call->lost += !call->launched && !(around && op_group_at(walk, around->group)->key.kind == SPAN_RUNTIME);
}

static void op_leave_call(struct op_walk *walk)
{
	struct open_op *call = &walk->left;
	struct op_group *group;

	assert(walk->stack_depth > 0);

	*call = walk->stack[--walk->stack_depth];
	group = op_group_at(walk, call->group);
	op_find_lost(walk, call);
	if (call->has_flops)
		op_group_add_flops(walk, group, call->flops);
	flop_counts_leave(&walk->flop_counts, call->depth); /* calls back with this call as walk->left */
	assert(group->open > 0);
	if (--group->open == 0) {
		clamped_add(&group->memory, call->memory);
		clamped_add(&group->device_ns, call->device_ns);
	}
	if (walk->stack_depth) {
		struct open_op *around = &walk->stack[walk->stack_depth - 1];

		clamped_add(&around->memory, call->memory);
		clamped_add(&around->device_ns, call->device_ns);
		around->launched += call->launched;
		around->lost += call->lost;
	}
}

/* Leaves the calls that are not around a span of this depth. */
static void op_leave_calls(struct op_walk *walk, uint32_t depth)
{
	while (walk->stack_depth && walk->stack[walk->stack_depth - 1].depth >= depth)
		op_leave_call(walk);
}

/* ---- floating point operations and bytes ---- */

static void op_use_flop_count(void *context, const struct flop_count *count)
{
	struct op_walk *walk = context;
	struct op_group *group = op_group_at(walk, count->tag);

	group->flops_result = count->result > group->flops_result ? count->result : group->flops_result;
	group->has_inner_flops |= count->is_outside;
	group->lacking_calls += count->lacks_inputs;
	if (count->is_counted)
		op_group_add_flops(walk, group, count->flops);
}

static void op_add_profiler_flops(struct op_walk *walk, struct op_group *group, const struct span_view *span,
                                  uint32_t inputs, bool is_timed)
{
	double count;
	enum flops_result result = flops_of(&walk->flop_counts.flops, FLOPS_PROFILER, span->name, inputs, &count);

	if (result == FLOPS_KNOWN && is_timed) {
		group->profiler_flops += count;
		group->profiler_calls++;
	}
	group->lacking_profiler_calls += result == FLOPS_NO_SIZES &&
	                                 flop_likeness_lacks(walk->flop_counts.walk.likeness, span->step);
}

/* Adds the floating point operations of an operator of PyTorch, by both definitions. */
static void op_add_operator_flops(struct op_walk *walk, uint32_t number, const struct span_view *span, bool is_timed)
{
	struct flop_counts *counts = &walk->flop_counts;
	bool has_one = !flops_has_none(&counts->flops, FLOPS_COUNTER, span->name);
	bool has_other = !flops_has_none(&counts->flops, FLOPS_PROFILER, span->name);
	uint32_t inputs = has_one || has_other ? flop_walk_inputs(&counts->walk, span) : 0;

	if (has_one)
		flop_counts_enter(counts, span, inputs, number);
	if (has_other)
		op_add_profiler_flops(walk, op_group_at(walk, number), span, inputs, is_timed);
}

static double op_arg_number(const struct span_arg *arg)
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

/* Adds the program's reports on the span. Arguments and spans have the same order, so one walk through both is enough.
 * call NULL: the span does not count. */
static void op_add_args(struct op_walk *walk, struct open_op *call, const struct span_view *span, bool is_timed)
{
	const struct model *model = walk->fold->model;

	for (; walk->next_arg < model->args_count; walk->next_arg++) {
		const struct span_arg *arg = &model->args[walk->next_arg];

		if (arg->track > span->track_index || (arg->track == span->track_index && arg->row > span->row))
			return;
		if (!call || arg->track != span->track_index || arg->row != span->row)
			continue;
		if (arg->key == walk->flops_key && is_timed) {
			call->flops += op_arg_number(arg);
			call->has_flops = true;
		} else if (arg->key == walk->bytes_key) {
			op_group_at(walk, call->group)->bytes += op_arg_number(arg);
			op_group_at(walk, call->group)->byte_calls++;
		}
	}
}

/* ---- work of devices ---- */

/* Returns the group of the innermost open operator. Outside of operators it is the group of the innermost range or
 * annotation, and outside of these `rest` (model/launches.h). */
static uint32_t op_innermost_group(const struct op_walk *walk, uint32_t rest)
{
	uint32_t range = 0;

	for (uint32_t i = walk->stack_depth; i-- > 0;) {
		uint32_t group = walk->stack[i].group;
		uint32_t kind = op_group_at(walk, group)->key.kind;

		if (kind == SPAN_OP || kind == SPAN_COLLECTIVE)
			return group;
		if (!range && (kind == SPAN_RANGE || kind == SPAN_ANNOTATION))
			range = group;
	}
	return range ? range : rest;
}

/* Adds the work that the span launched. The span's call must be on the stack. */
static void op_add_launched(struct op_walk *walk, const struct span_view *span)
{
	const struct launched_call *launched = launched_time_at(&walk->launched_time, span->track_index, span->row);
	struct op_group *group;
	struct open_op *call = &walk->stack[walk->stack_depth - 1];

	if (!launched)
		return;
	group = op_group_at(walk, op_innermost_group(walk, op_rest_group(walk, span)));
	clamped_add(&group->self_device_ns, launched->dur_ns);
	group->launched += launched->count;
	clamped_add(&call->device_ns, launched->dur_ns);
	call->launched += launched->count;
	call->lost += launched->untimed;
}

/* ---- spans ---- */

/* Puts the call on the stack and adds its duration to its group. */
static struct open_op *op_enter_call(struct op_walk *walk, uint32_t number, const struct span_view *span,
                                     int64_t memory)
{
	struct op_group *group = op_group_at(walk, number);

	MEMORY_GROW(walk->stack, walk->stack_depth, walk->stack_capacity, 64);
	walk->stack[walk->stack_depth] = (struct open_op){
		.group = number, .depth = span->depth, .dur_ns = span->dur_ns, .memory = memory};
	group->open++;
	return &walk->stack[walk->stack_depth++];
}

/* Returns true if the span is work of a device. Other spans on a device's track are of a host whose threads have the
 * numbers of streams. */
static bool op_is_of_device(const struct span_view *span)
{
	return span->track->kind == TRACK_DEVICE &&
	       (span_is_device_work(span->kind) || span->kind == SPAN_SYNC || span->kind == SPAN_ANNOTATION);
}

/* Sums up the time of steps that has no explanation. A wait for a collective has no span either, but it is the phase
 * communication: so of a step it is at most the time of the phase `other`. */
static void op_add_unseen(struct op_walk *walk, const struct span_view *span)
{
	struct op_fold *fold = walk->fold;
	const struct step_time *step = span->step < 0 ? NULL : &fold->times->steps[span->step];

	if (!walk->is_step_track || !step || span->phase || (span->kind != SPAN_STEP && span->kind != SPAN_MICRO_BATCH))
		return;
	if (span->kind == SPAN_STEP)
		walk->unseen_left_ns = step->has_phases ? step->phase_ns[PHASE_OTHER] : span->dur_ns;
	int64_t unseen_ns = span->self_ns < walk->unseen_left_ns ? span->self_ns : walk->unseen_left_ns;
	walk->unseen_left_ns -= unseen_ns;
	if (step_kinds_is_sampled(fold->times, span->step))
		fold->unseen_sampled_ns += (double)unseen_ns * step->weight;
	else
		clamped_add(&fold->unseen_ns, unseen_ns);
}

/* Structure has no calls: its part of the sampled rest is weighted by time. */
static void op_add_structure(struct op_walk *walk, uint32_t number, const struct span_view *span, int64_t memory)
{
	if (number == OP_GROUP_REST_SAMPLED)
		step_kinds_sight(&op_group_at(walk, number)->seen, walk->fold->times, span->step,
		                 (double)span->self_ns);
	if (walk->stack_depth)
		clamped_add(&walk->stack[walk->stack_depth - 1].memory, memory);
}

static void op_add_call(struct op_walk *walk, uint32_t number, const struct span_view *span, int64_t memory)
{
	bool is_timed = span_is_timed(span->flags);
	struct op_group *group = op_group_at(walk, number);

	op_group_add_call(group, span, is_timed);
	if (group->key.is_sampled)
		step_kinds_sight(&group->seen, walk->fold->times, span->step, 1);
	op_add_args(walk, op_enter_call(walk, number, span, memory), span, is_timed);
	if (span->kind == SPAN_OP)
		op_add_operator_flops(walk, number, span, is_timed);
	if (span->kind == SPAN_RUNTIME)
		op_add_launched(walk, span);
}

static bool op_visit(void *context, const struct span_view *span)
{
	struct op_walk *walk = context;
	struct op_fold *fold = walk->fold;
	bool is_structure = op_is_structure(span->kind);
	int64_t memory = span_memory_of(&walk->span_memory, span->track_index, span->row);
	uint32_t number;

	op_leave_calls(walk, span->depth);
	if (op_is_of_device(span))
		return true; /* the table of kernels has them */
	fold->calls += !is_structure;
	if (!op_is_counted(walk, span)) {
		fold->outside += !is_structure;
		op_add_args(walk, NULL, span, false);
		return true;
	}
	number = is_structure ? op_structure_group(walk, span) : op_call_group(walk, span);
	struct op_group *group = op_group_at(walk, number);
	clamped_add(&group->self_ns, span->self_ns);
	clamped_add(&group->step_self_ns, walk->is_step_track ? span->self_ns : 0);
	clamped_add(&group->step_outside_ns, walk->is_step_track && !span->phase ? span->self_ns : 0);
	clamped_add(&group->self_memory, memory);
	op_add_unseen(walk, span);
	if (is_structure)
		op_add_structure(walk, number, span, memory);
	else
		op_add_call(walk, number, span, memory);
	return true;
}

/* ---- the walk ---- */

static uint8_t op_classify_launching(const char *name)
{
	return is_launching_call(name);
}

static uint8_t op_classify_rare(const char *name)
{
	return pytorch_is_rare(name, strlen(name)) && !pytorch_is_action(name, strlen(name));
}

static uint8_t op_classify_action(const char *name)
{
	return pytorch_is_action(name, strlen(name));
}

/* Returns true if no step has operators, and the recording has actions of a framework. */
static bool op_has_actions_only(const struct op_fold *fold)
{
	const struct intern *strings = &fold->model->strings;
	bool has_actions = false;

	for (uint32_t i = 0; i < fold->times->count; i++)
		if (fold->times->steps[i].is_measured)
			return false;
	for (uint32_t string = 0; string < strings->count && !has_actions && fold->times->count; string++)
		has_actions = op_classify_action(model_text(fold->model, string));
	return has_actions;
}

/* Returns, by process, whether it uses a device without any launch in the recording: then the time of its calls on the
 * device is unknown. */
static bool *op_find_unseen(const struct op_walk *walk)
{
	const struct model *model = walk->fold->model;
	const struct launches *launches = walk->fold->launches;
	bool *is_unseen = memory_resize(NULL, model->processes_count + (size_t)1, sizeof(*is_unseen));
	bool has_nccl = false; /* NCCL exchanges data of devices */

	for (uint32_t string = 0; string < model->strings.count && !has_nccl; string++)
		has_nccl = !strncmp(model_text(model, string), "nccl:", strlen("nccl:"));
	for (uint32_t process = 0; process < model->processes_count; process++)
		is_unseen[process] = has_nccl || model_meta(model, process, "device.0.name");
	for (uint32_t i = 0; i < model->memory_count; i++)
		is_unseen[model->memory[i].process] |= model->memory[i].device >= 0;
	for (uint32_t number = 0; number < launches->track_count; number++)
		if (launches->by_track[number])
			is_unseen[model->tracks[number]->process] = true;
	for (size_t i = 0; i < walk->launched_time.count; i++)
		is_unseen[model->tracks[walk->launched_time.calls[i].track]->process] = false;
	return is_unseen;
}

static void op_walk_init(struct op_walk *walk, struct op_fold *fold, const struct flop_likeness *likeness)
{
	const struct model *model = fold->model;

	*walk = (struct op_walk){.fold = fold,
	                         .flops_key = intern_find(&model->strings, "flops"),
	                         .bytes_key = intern_find(&model->strings, "bytes"),
	                         .launching = {.classify = op_classify_launching},
	                         .rare = {.classify = op_classify_rare},
	                         .actions = {.classify = op_classify_action},
	                         .counts_rare = fold->times->scale.factor != 1 && fold->times->scale.knows_rare};
	walk->flop_counts = (struct flop_counts){
		.flops = {.model = model}, .walk = {.likeness = likeness}, .use = op_use_flop_count, .context = walk};
	span_memory_init(&walk->span_memory, model);
	launched_time_init(&walk->launched_time, model, fold->launches);
	walk->is_unseen = op_find_unseen(walk);
}

static void op_walk_release(struct op_walk *walk)
{
	free(walk->stack);
	free(walk->is_unseen);
	flop_counts_release(&walk->flop_counts);
	span_memory_release(&walk->span_memory);
	launched_time_release(&walk->launched_time);
	name_classes_release(&walk->launching);
	name_classes_release(&walk->rare);
	name_classes_release(&walk->actions);
}

static void op_walk_tracks(struct op_walk *walk)
{
	const struct model *model = walk->fold->model;
	bool *step_tracks = step_times_tracks(model);

	for (uint32_t track = 0; track < model->tracks_count; track++) {
		if (model->tracks[track]->kind == TRACK_OTHER)
			continue; /* not a thread */
		op_leave_calls(walk, 0);
		walk->is_step_track = step_tracks[first_lane(model, track)];
		walk->is_unseen_track = walk->is_unseen[model->tracks[track]->process];
		model_visit_spans(model, track, op_visit, walk);
	}
	op_leave_calls(walk, 0);
	free(step_tracks);
}

void op_fold_init(struct op_fold *fold, struct analysis_context *context)
{
	const struct model *model = context->model;
	struct op_walk walk;

	*fold = (struct op_fold){.context = context, .model = model};
	fold->times = analysis_context_step_times(context);
	fold->counts_actions = op_has_actions_only(fold);
	if (context->options.by & BY_SHAPE)
		fold->times = input_steps_only(&fold->input_times, fold->times, model);
	fold->launches = analysis_context_launches(context);
	op_groups_init(&fold->groups, model);
	op_walk_init(&walk, fold, analysis_context_flop_likeness(context));
	op_walk_tracks(&walk);
	op_walk_release(&walk);
}

void op_fold_release(struct op_fold *fold)
{
	op_groups_release(&fold->groups);
	input_steps_release(&fold->input_times);
}
