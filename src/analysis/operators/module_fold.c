/* SPDX-License-Identifier: Apache-2.0
 *
 * module_fold.c: visits spans in the order of their starts and keeps the modules and the nodes of the autograd engine
 * around the current one. A module that is called inside a node recomputes the values that a checkpoint did not keep.
 */
#include "analysis/operators/module_fold.h"

#include "analysis/analysis_context.h"
#include "analysis/devices/device_work.h"
#include "base/clamped.h"
#include "base/memory.h"
#include "base/storage.h"
#include "pytorch/names.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct open_node {
	uint32_t row;
	uint16_t depth;
};

struct module_walk {
	struct module_fold *fold;
	uint32_t *group_of_name; /* by string */
	uint32_t *open;          /* groups of the open module spans, with flags */
	uint16_t *open_depth;
	uint32_t open_count, open_capacity;
	struct open_node *nodes; /* nodes of the engine around the current span */
	uint32_t node_count, node_capacity;
};

static bool module_is_node(const struct model *model, uint32_t name)
{
	return pytorch_begins(model_text(model, name), PYTORCH_ENGINE);
}

/* ---- groups ---- */

static uint32_t module_sum_kinds(const struct module_fold *fold)
{
	return fold->sums[1] ? 2 : 1;
}

struct module_sums *module_fold_sums_at(const struct module_fold *fold, uint32_t group, int32_t step)
{
	return &fold->sums[fold->sums[1] && step_kinds_is_sampled(fold->times, step)][group];
}

static void module_resize_groups(struct module_fold *fold, uint32_t capacity)
{
	struct storage *storage = fold->model->storage;

	fold->group_capacity = capacity;
	fold->groups = storage_resize(storage, fold->groups, capacity, sizeof(*fold->groups));
	fold->sums[0] = storage_resize(storage, fold->sums[0], capacity, sizeof(*fold->sums[0]));
	if (fold->times->scale.factor == 1)
		return;
	fold->sums[1] = storage_resize(storage, fold->sums[1], capacity, sizeof(*fold->sums[1]));
	fold->seen = storage_resize(storage, fold->seen, capacity, sizeof(*fold->seen));
}

static uint32_t module_new_group(struct module_fold *fold, const struct module_group *group)
{
	assert(fold->group_count < fold->group_capacity);
	uint32_t number = fold->group_count++;

	fold->groups[number] = *group;
	for (uint32_t kind = 0; kind < module_sum_kinds(fold); kind++)
		fold->sums[kind][number] = (struct module_sums){.allocated = 0};
	if (fold->seen)
		fold->seen[number] = (struct step_sightings){.amount = 0};
	return number;
}

static void module_note_parent(struct module_group *group, uint32_t parent)
{
	if (group->later == MODULE_NO_GROUP)
		group->later = parent;
	group->alone_calls += parent == MODULE_NO_GROUP;
	group->later_calls += parent != MODULE_NO_GROUP && parent == group->later;
}

/* Moves a module under its later parent. A constructor may call a part of the model alone first, to see how large its
 * results are. */
static void module_take_later_parent(struct module_fold *fold, uint32_t number)
{
	struct module_group *group = &fold->groups[number];
	uint32_t around = group->later;

	if (group->parent != MODULE_NO_GROUP || group->later_calls <= group->alone_calls)
		return;
	while (around != MODULE_NO_GROUP && around != number)
		around = fold->groups[around].parent;
	if (around == MODULE_NO_GROUP) /* no cycle */
		group->parent = group->later;
}

static uint32_t module_call_group(struct module_walk *walk, uint32_t name, uint32_t parent)
{
	struct module_fold *fold = walk->fold;
	uint32_t *group = &walk->group_of_name[name];

	if (*group)
		module_note_parent(&fold->groups[*group], parent);
	if (*group || fold->group_count >= MODULE_GROUPS_MAX)
		return *group;
	if (fold->group_count == fold->group_capacity)
		module_resize_groups(fold, 2 * fold->group_capacity);
	return *group = module_new_group(fold, &(struct module_group){.name = name,
	                                                              .parent = parent,
	                                                              .alone_calls = parent == MODULE_NO_GROUP});
}

/* ---- calls ---- */

static void module_leave_calls(struct module_walk *walk, uint32_t depth)
{
	while (walk->open_count && walk->open_depth[walk->open_count - 1] >= depth)
		walk->fold->groups[walk->open[--walk->open_count] & ~MODULE_ROW_FLAGS].open--;
}

static void module_enter_call(struct module_walk *walk, uint32_t value, uint16_t depth)
{
	assert((value & ~MODULE_ROW_FLAGS) < walk->fold->group_count);
	if (walk->open_count == walk->open_capacity) {
		walk->open_capacity = walk->open_capacity ? 2 * walk->open_capacity : 64;
		walk->open = memory_resize(walk->open, walk->open_capacity, sizeof(*walk->open));
		walk->open_depth = memory_resize(walk->open_depth, walk->open_capacity, sizeof(*walk->open_depth));
	}
	walk->open[walk->open_count] = value;
	walk->open_depth[walk->open_count++] = depth;
	walk->fold->groups[value & ~MODULE_ROW_FLAGS].open++;
}

/* Adds own time of the module. It is negative for the time of a module inside it. */
static void module_add_own(struct module_fold *fold, uint32_t group, bool is_again, const struct span_view *span,
                           int64_t ns)
{
	struct module_sums *mine = module_fold_sums_at(fold, group, span->step);

	clamped_add(is_again ? &mine->recompute_self_ns : &mine->forward_self_ns, ns);
	if (fold->step_tracks[span->track_index])
		clamped_add(&mine->step_self_ns, ns);
}

/* Adds the call's time, and subtracts it from the own time of the module around it. */
static void module_add_call(struct module_walk *walk, uint32_t group, bool is_again, const struct span_view *span)
{
	struct module_fold *fold = walk->fold;
	struct module_sums *mine = module_fold_sums_at(fold, group, span->step);
	uint32_t around = walk->open_count ? walk->open[walk->open_count - 1] : MODULE_NO_GROUP;
	bool is_around_again = around & MODULE_IS_IN_NODE;
	int64_t outermost_ns = fold->groups[group].open ? 0 : span->dur_ns;

	if (fold->seen)
		step_kinds_sight(&fold->seen[group], fold->times, span->step, 1);
	if (is_again) {
		mine->recompute_calls++;
		clamped_add(&mine->recompute_ns, outermost_ns);
	} else {
		mine->calls++;
		clamped_add(&mine->forward_ns, outermost_ns);
	}
	module_add_own(fold, group, is_again, span, span->dur_ns);
	around &= ~MODULE_ROW_FLAGS;
	if (around != MODULE_NO_GROUP && is_around_again)
		module_add_own(fold, around, true, span, -span->dur_ns);
	else if (around != MODULE_NO_GROUP && !is_again)
		module_add_own(fold, around, false, span, -span->dur_ns);
}

/* ---- nodes of the engine ---- */

/* Returns the innermost open module with its flags, or MODULE_NO_GROUP if a node is nested in it. */
static uint32_t module_innermost(const struct module_walk *walk)
{
	uint32_t top = walk->open_count - 1;
	bool is_in_node = walk->open_count && walk->node_count &&
	                  walk->open_depth[top] <= walk->nodes[walk->node_count - 1].depth;

	return walk->open_count && !is_in_node ? walk->open[top] : MODULE_NO_GROUP;
}

/* Adds the span to the time inside the innermost node, unless a module is nested between them. */
static void module_note_inside(struct module_walk *walk, const struct span_view *span)
{
	struct module_fold *fold = walk->fold;
	const struct open_node *node = walk->node_count ? &walk->nodes[walk->node_count - 1] : NULL;
	if (!node || module_innermost(walk) != MODULE_NO_GROUP)
		return;
	uint64_t key = (uint64_t)span->track_index << 32 | node->row;
	uint32_t index = number_map_add(&fold->inside, key, fold->inside_count);
	if (index == fold->inside_count) {
		fold->inside_count++;
		if (!(index & (index + 1)))
			fold->inside_ns = memory_resize(fold->inside_ns, 2 * (size_t)index + 2,
			                                sizeof(*fold->inside_ns));
		fold->inside_ns[index] = 0;
	}
	clamped_add(&fold->inside_ns[index], span->dur_ns);
}

static void module_enter_node(struct module_walk *walk, const struct span_view *span)
{
	uint32_t around = module_innermost(walk);

	module_note_inside(walk, span);
	if (around != MODULE_NO_GROUP && step_times_measures(walk->fold->times, span->step))
		module_add_own(walk->fold, around & ~MODULE_ROW_FLAGS, around & MODULE_IS_IN_NODE, span, -span->dur_ns);
	MEMORY_GROW(walk->nodes, walk->node_count, walk->node_capacity, 16);
	walk->nodes[walk->node_count++] = (struct open_node){span->row, span->depth};
}

int64_t module_fold_node_ns(const struct module_fold *fold, uint32_t track, uint32_t row)
{
	uint32_t index, parent_index;
	const struct span_chunk *chunk = track_chunk(fold->model->tracks[track], row, &index);
	uint32_t parent = chunk->parent[index];

	if (parent == MODEL_NONE)
		return chunk->dur_ns[index];
	const struct span_chunk *around = track_chunk(fold->model->tracks[track], parent, &parent_index);
	if (!module_is_node(fold->model, around->name[parent_index]))
		return chunk->dur_ns[index];
	uint32_t inside = number_map_find(&fold->inside, (uint64_t)track << 32 | parent);
	bool has_inside = fold->inside_ns && inside != NUMBER_MAP_NONE;
	return around->dur_ns[parent_index] - (has_inside ? fold->inside_ns[inside] : 0);
}

/* ---- spans ---- */

static bool module_is_in_operator(const struct span_view *span)
{
	uint32_t index;

	return span->parent != MODEL_NONE && track_chunk(span->track, span->parent, &index)->kind[index] == SPAN_OP;
}

static void module_note_operator(struct module_fold *fold, uint32_t number, const struct span_view *span)
{
	uint32_t *operators = fold->groups[number].operators;
	int i = 0;

	while (i < MODULE_OPERATOR_NAMES && operators[i] && operators[i] != span->name)
		i++;
	if (i < MODULE_OPERATOR_NAMES && !operators[i] && !module_is_in_operator(span))
		operators[i] = span->name;
}

static bool module_visit(void *context, const struct span_view *span)
{
	struct module_walk *walk = context;
	struct module_fold *fold = walk->fold;
	uint32_t *rows = fold->group_of_row[span->track_index];
	uint32_t around = span->parent == MODEL_NONE ? MODULE_NO_GROUP : rows[span->parent], group;

	module_leave_calls(walk, span->depth);
	while (walk->node_count && walk->nodes[walk->node_count - 1].depth >= span->depth)
		walk->node_count--;
	rows[span->row] = around;
	if (span->kind == SPAN_RANGE && !strcmp(model_text(fold->model, span->name), "torch.compile"))
		rows[span->row] |= MODULE_IS_TRACED;
	if (!(around & MODULE_IS_TRACED) && span->kind == SPAN_OP && module_is_node(fold->model, span->name)) {
		rows[span->row] |= MODULE_IS_IN_NODE;
		module_enter_node(walk, span);
	}
	if (span->kind == SPAN_OP && !(around & MODULE_ROW_FLAGS) && around != MODULE_NO_GROUP)
		module_note_operator(fold, around, span);
	if (span->kind != SPAN_MODULE || !step_times_measures(fold->times, span->step))
		return true;
	group = module_call_group(walk, span->name, around & ~MODULE_ROW_FLAGS);
	if (group == MODULE_NO_GROUP)
		return true;
	module_note_inside(walk, span);
	module_add_call(walk, group, around & MODULE_IS_IN_NODE, span);
	rows[span->row] = group | (around & MODULE_ROW_FLAGS);
	module_enter_call(walk, rows[span->row], span->depth);
	return true;
}

static void module_walk_tracks(struct module_fold *fold)
{
	const struct model *model = fold->model;
	size_t names = (size_t)model->strings.count + 1;
	struct module_walk walk = {.fold = fold};

	walk.group_of_name = storage_resize(model->storage, NULL, names, sizeof(*walk.group_of_name));
	memset(walk.group_of_name, 0, names * sizeof(*walk.group_of_name));
	for (uint32_t track = 0; track < model->tracks_count; track++) {
		module_leave_calls(&walk, 0);
		model_visit_spans(model, track, module_visit, &walk);
	}
	module_leave_calls(&walk, 0);
	storage_release(model->storage, walk.group_of_name);
	free(walk.open);
	free(walk.open_depth);
	free(walk.nodes);
}

/* ---- the tree ---- */

static void module_put_in_order(struct module_fold *fold)
{
	struct storage *storage = fold->model->storage;
	uint32_t *next = storage_resize(storage, NULL, 2 * (size_t)fold->group_count, sizeof(*next));
	uint32_t *first = next + fold->group_count, count = 0;

	for (uint32_t i = 1; i < fold->group_count; i++)
		module_take_later_parent(fold, i);
	memset(next, 0, 2 * (size_t)fold->group_count * sizeof(*next));
	for (uint32_t i = fold->group_count; i-- > 1;) {
		next[i] = first[fold->groups[i].parent];
		first[fold->groups[i].parent] = i;
	}
	fold->order = storage_resize(storage, NULL, fold->group_count, sizeof(*fold->order));
	for (uint32_t at = first[MODULE_NO_GROUP]; at != MODULE_NO_GROUP;) {
		struct module_group *group = &fold->groups[at];

		group->depth = group->parent == MODULE_NO_GROUP ? 0 : (uint16_t)(fold->groups[group->parent].depth + 1);
		fold->order[count++] = at;
		if (first[at]) {
			at = first[at];
			continue;
		}
		while (at != MODULE_NO_GROUP && !next[at])
			at = fold->groups[at].parent;
		at = next[at];
	}
	storage_release(storage, next);
}

void module_fold_add_up(struct module_fold *fold, void (*add_up)(struct module_sums *own, struct module_sums *around))
{
	for (uint32_t kind = 0; kind < module_sum_kinds(fold); kind++) {
		struct module_sums *sums = fold->sums[kind];

		for (uint32_t i = fold->group_count - 1; i-- > 0;) {
			uint32_t group = fold->order[i], parent = fold->groups[group].parent;

			add_up(&sums[group], parent ? &sums[parent] : NULL);
		}
	}
}

/* ---- both kinds of steps ---- */

static void module_join_flops(struct flop_sum *sum, const struct flop_sum *sampled, double factor)
{
	double flops = sum->flops + sampled->flops * factor;

	flop_sum_merge(sum, sampled);
	sum->flops = flops;
}

struct module_sums module_fold_sums(const struct module_fold *fold, uint32_t group)
{
	struct module_sums sums = fold->sums[0][group];
	const struct module_sums *sampled = fold->sums[1] ? &fold->sums[1][group] : NULL;

	if (!sampled)
		return sums;
	double factor = step_kinds_factor(fold->times, &fold->seen[group]);
	step_kinds_join(&sums.calls, sampled->calls, factor);
	step_kinds_join(&sums.recompute_calls, sampled->recompute_calls, factor);
	step_kinds_join(&sums.forward_ns, sampled->forward_ns, factor);
	step_kinds_join(&sums.forward_self_ns, sampled->forward_self_ns, factor);
	step_kinds_join(&sums.recompute_ns, sampled->recompute_ns, factor);
	step_kinds_join(&sums.recompute_self_ns, sampled->recompute_self_ns, factor);
	step_kinds_join(&sums.backward_ns, sampled->backward_ns, factor);
	step_kinds_join(&sums.backward_self_ns, sampled->backward_self_ns, factor);
	step_kinds_join(&sums.step_self_ns, sampled->step_self_ns, factor);
	sums.allocated += factor == 1 ? sampled->allocated : (wide_bytes)((double)sampled->allocated * factor);
	step_kinds_join(&sums.device_self_ns, sampled->device_self_ns, factor);
	step_kinds_join(&sums.device_ns, sampled->device_ns, factor);
	step_kinds_join(&sums.backward_device_self_ns, sampled->backward_device_self_ns, factor);
	step_kinds_join(&sums.backward_device_ns, sampled->backward_device_ns, factor);
	step_kinds_join(&sums.launched, sampled->launched, factor);
	module_join_flops(&sums.flops_self, &sampled->flops_self, factor);
	module_join_flops(&sums.flops, &sampled->flops, factor);
	module_join_flops(&sums.backward_flops_self, &sampled->backward_flops_self, factor);
	module_join_flops(&sums.backward_flops, &sampled->backward_flops, factor);
	return sums;
}

static double module_steps_ns(const struct step_times *times)
{
	double sum_ns = 0;

	for (uint32_t i = 0; i < times->count; i++) {
		if (step_times_measures(times, (int32_t)i))
			sum_ns += step_kinds_dur_ns(times, i);
	}
	return sum_ns;
}

void module_fold_init(struct module_fold *fold, struct analysis_context *context)
{
	const struct model *model = context->model;

	*fold = (struct module_fold){.model = model, .inside = {.storage = model->storage}};
	fold->times = analysis_context_step_times(context);
	fold->launches = analysis_context_launches(context);
	fold->step_tracks = step_times_tracks(model);
	fold->steps_ns = module_steps_ns(fold->times);
	module_resize_groups(fold, 64);
	module_new_group(fold, &(struct module_group){.name = 0});
	fold->group_of_row = memory_resize(NULL, (size_t)model->tracks_count + 1, sizeof(*fold->group_of_row));
	for (uint32_t i = 0; i < model->tracks_count; i++)
		fold->group_of_row[i] = storage_resize(model->storage, NULL, (size_t)model->tracks[i]->span_count + 1,
		                                       sizeof(uint32_t));
	module_walk_tracks(fold);
	module_put_in_order(fold);
}

void module_fold_forget_rows(struct module_fold *fold)
{
	for (uint32_t i = 0; i < fold->model->tracks_count && fold->group_of_row; i++)
		storage_release(fold->model->storage, fold->group_of_row[i]);
	free(fold->group_of_row);
	fold->group_of_row = NULL;
	free(fold->inside_ns);
	fold->inside_ns = NULL;
	number_map_release(&fold->inside);
}

void module_fold_release(struct module_fold *fold)
{
	struct storage *storage = fold->model->storage;

	module_fold_forget_rows(fold);
	free(fold->step_tracks);
	storage_release(storage, fold->groups);
	for (int kind = 0; kind < 2; kind++)
		storage_release(storage, fold->sums[kind]);
	storage_release(storage, fold->seen);
	storage_release(storage, fold->order);
}
