/* SPDX-License-Identifier: Apache-2.0
 *
 * module_work.c: each part first adds to the modules themselves, and then adds these sums up the tree.
 */
#include "analysis/operators/module_work.h"

#include "analysis/analysis_context.h"
#include "analysis/operators/launched_time.h"
#include "base/clamped.h"

#include <stepscope/format.h>

struct module_work {
	struct module_fold *fold;
	struct number_map forwards; /* track << 32 | row of a node -> group of the operator that made it */
};

/* ---- backward ---- */

static void module_add_up_backward(struct module_sums *own, struct module_sums *around)
{
	clamped_add(&own->backward_ns, own->backward_self_ns);
	if (around)
		clamped_add(&around->backward_ns, own->backward_ns);
}

static void module_add_link(struct module_work *work, const struct model_link *link)
{
	struct module_fold *fold = work->fold;
	uint32_t index;
	int32_t step = track_chunk(fold->model->tracks[link->to_track], link->to_row, &index)->step[index];
	int64_t dur_ns = module_fold_node_ns(fold, link->to_track, link->to_row);
	uint32_t group = fold->group_of_row[link->from_track][link->from_row] & ~MODULE_ROW_FLAGS;
	bool is_traced = fold->group_of_row[link->to_track][link->to_row] & MODULE_IS_TRACED;

	fold->linked++;
	number_map_set(&work->forwards, (uint64_t)link->to_track << 32 | link->to_row, group);
	if (group == MODULE_NO_GROUP || is_traced || !step_times_measures(fold->times, step))
		return;
	struct module_sums *sums = module_fold_sums_at(fold, group, step);
	clamped_add(&sums->backward_self_ns, dur_ns);
	/* the backward of a device runs on a separate thread, and the thread of the step waits for it */
	if (fold->step_tracks[link->to_track] || fold->step_tracks[link->from_track])
		clamped_add(&sums->step_self_ns, dur_ns);
}

static void module_add_backward(struct module_work *work)
{
	const struct model *model = work->fold->model;

	for (uint32_t i = 0; i < model->links_count; i++) {
		const struct model_link *link = &model->links[i];

		if (link->kind == STEPSCOPE_LINK_BACKWARD && link->from_track != MODEL_NONE &&
		    link->to_track != MODEL_NONE)
			module_add_link(work, link);
	}
	module_fold_add_up(work->fold, module_add_up_backward);
}

/* Returns the module that the operator works for, or MODULE_NO_GROUP. */
static uint32_t module_of_operator(const struct module_work *work, uint32_t track, uint32_t row, bool *is_backward)
{
	const struct module_fold *fold = work->fold;

	for (*is_backward = false; row != MODEL_NONE;) {
		uint32_t index, forward = number_map_find(&work->forwards, (uint64_t)track << 32 | row);
		const struct span_chunk *chunk = track_chunk(fold->model->tracks[track], row, &index);

		*is_backward = forward != NUMBER_MAP_NONE;
		if (*is_backward)
			return forward;
		if (chunk->kind[index] == SPAN_MODULE)
			return fold->group_of_row[track][row] & ~MODULE_ROW_FLAGS;
		row = chunk->parent[index];
	}
	return MODULE_NO_GROUP;
}

/* ---- memory ---- */

static void module_add_memory(struct module_fold *fold)
{
	const struct model *model = fold->model;

	for (uint32_t i = 0; i < model->memory_count; i++) {
		const struct memory_event *event = &model->memory[i];
		uint32_t index;

		if (event->is_free || !event->has_bytes || event->row == MODEL_NONE)
			continue;
		uint32_t row_group = fold->group_of_row[event->track][event->row];
		uint32_t group = row_group & ~MODULE_ROW_FLAGS;
		const struct span_chunk *chunk = track_chunk(model->tracks[event->track], event->row, &index);
		bool is_forward = group != MODULE_NO_GROUP && !(row_group & MODULE_IS_IN_NODE);
		if (is_forward && step_times_measures(fold->times, chunk->step[index]))
			module_fold_sums_at(fold, group, chunk->step[index])->allocated += event->bytes;
	}
}

/* ---- devices ---- */

static void module_add_up_device(struct module_sums *own, struct module_sums *around)
{
	clamped_add(&own->device_ns, own->device_self_ns);
	clamped_add(&own->backward_device_ns, own->backward_device_self_ns);
	if (!around)
		return;
	clamped_add(&around->device_ns, own->device_ns);
	clamped_add(&around->backward_device_ns, own->backward_device_ns);
}

static void module_add_device(struct module_work *work)
{
	struct module_fold *fold = work->fold;
	struct launched_time launched;

	launched_time_init(&launched, fold->model, fold->launches);
	for (size_t i = 0; i < launched.count; i++) {
		const struct launched_call *call = &launched.calls[i];
		bool is_backward;
		uint32_t index, group = module_of_operator(work, call->track, call->row, &is_backward);
		const struct span_chunk *chunk = track_chunk(fold->model->tracks[call->track], call->row, &index);
		struct module_sums *sums = module_fold_sums_at(fold, group, chunk->step[index]);

		if (group == MODULE_NO_GROUP || !step_times_measures(fold->times, chunk->step[index]))
			continue;
		sums->launched += call->count;
		clamped_add(&sums->device_self_ns, call->dur_ns);
		if (is_backward)
			clamped_add(&sums->backward_device_self_ns, call->dur_ns);
	}
	module_fold_add_up(fold, module_add_up_device);
	launched_time_release(&launched);
}

/* ---- floating point operations ---- */

static void module_use_flop_count(void *context, const struct flop_count *count)
{
	const struct module_work *work = context;
	struct module_fold *fold = work->fold;
	bool is_backward;
	uint32_t index, group = module_of_operator(work, count->track, count->row, &is_backward);
	const struct span_chunk *chunk = track_chunk(fold->model->tracks[count->track], count->row, &index);

	if (group == MODULE_NO_GROUP || !step_times_measures(fold->times, chunk->step[index]))
		return;
	struct module_sums *sums = module_fold_sums_at(fold, group, chunk->step[index]);
	flop_sum_add(&sums->flops_self, count);
	if (is_backward)
		flop_sum_add(&sums->backward_flops_self, count);
}

static void module_add_up_flops(struct module_sums *own, struct module_sums *around)
{
	flop_sum_merge(&own->flops, &own->flops_self);
	flop_sum_merge(&own->backward_flops, &own->backward_flops_self);
	if (!around)
		return;
	flop_sum_merge(&around->flops, &own->flops);
	flop_sum_merge(&around->backward_flops, &own->backward_flops);
}

static void module_add_flops(struct module_work *work, struct analysis_context *context)
{
	struct module_fold *fold = work->fold;
	const struct flop_likeness *likeness = analysis_context_flop_likeness(context);

	fold->flops_result = flop_counts_each(fold->model, likeness, module_use_flop_count, work);
	module_fold_add_up(fold, module_add_up_flops);
}

void module_work_add(struct module_fold *fold, struct analysis_context *context)
{
	struct module_work work = {.fold = fold, .forwards = {.storage = fold->model->storage}};

	module_add_backward(&work);
	module_add_memory(fold);
	module_add_device(&work);
	module_add_flops(&work, context);
	number_map_release(&work.forwards);
}
