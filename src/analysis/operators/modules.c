/* SPDX-License-Identifier: Apache-2.0
 *
 * modules.c: the tables `modules`, a tree in the order of the calls, and `top_modules`, the same rows by what they take themselves. An
 * operator belongs to the innermost module around it; a node of a backward to the module of the operator that made it, also where a module's
 * call runs the backward. A module that is called inside of a node computes again what a checkpoint did not keep.
 */
#include "analysis/devices/device_work.h"
#include "analysis/memory/memory_pool.h"
#include "analysis/operators/flop_counts.h"
#include "analysis/operators/launched_time.h"
#include "analysis/step_times/step_kinds.h"

#include "base/clamped.h"
#include "base/memory.h"
#include "base/storage.h"
#include "model/number_map.h"
#include "pytorch/names.h"
#include "table/bound.h"

#include <stdlib.h>
#include <stepscope/format.h>
#include <string.h>

#define NO_GROUP 0u         /* of what is in no module */
#define IN_NODE 0x80000000u /* flag of a row: inside of a node of a backward */
#define TRACED 0x40000000u  /* and: torch.compile only traces it; that is time of the call around it */
#define FLAGS (IN_NODE | TRACED)
#define GROUPS_MAX TRACED /* as the flags leave room for */

#define OPERATORS 6 /* names of operators that are kept of a module */

struct module_sums {
	int64_t calls, recompute_calls;
	int64_t forward_ns, forward_self_ns, recompute_ns, recompute_self_ns;
	int64_t backward_ns, backward_self_ns;
	int64_t step_self_ns; /* what it takes itself of the threads that carry steps */
	wide_bytes allocated;
	/* work of devices that was launched in them, by the same rule */
	int64_t device_self_ns, device_ns, backward_device_self_ns, backward_device_ns, launched;
	/* forward, computing again and backward together; with the modules inside once the tree is summed up */
	struct flop_sum flops_self, flops, backward_flops_self, backward_flops;
};

struct module_group {
	uint32_t name; /* string: path */
	uint32_t parent; /* group of the module that called it first; what is called alone at first, but mostly in one, is in that */
	uint32_t later, alone_calls, later_calls; /* the first module around it behind that */
	uint32_t open;                            /* calls of it around the current span */
	uint16_t depth;                           /* from put_in_order() on */
	uint32_t operators[OPERATORS];            /* names of those that it calls itself, in their order; 0: no more */
};

struct open_node {
	uint32_t row;
	uint16_t depth;
};

struct module_fold {
	const struct model *model;
	const struct step_times *times;
	const struct launches *launches;
	struct module_group *groups; /* [0]: in no module */
	struct module_sums *sums[2]; /* by group; [1]: in steps that stand for others, where there are such */
	struct step_sightings *seen; /* by group: its calls in those; NULL: there are none */
	uint32_t group_count, group_capacity;
	uint32_t *order;         /* all but [0], each behind its parent, children in the order of their first calls */
	uint32_t *group_of_name; /* by string */
	uint32_t **group_of_row; /* by track, with flags */
	uint32_t *open;          /* groups of the open module spans, with flags */
	uint16_t *open_depth;
	uint32_t open_count, open_capacity;
	/* Nodes of the engine around the current span, and of each the time that others have in it: nodes inside, and modules that
	 * compute again. */
	struct open_node *nodes;
	uint32_t node_count, node_capacity;
	struct number_map inside; /* track << 32 | row -> index into inside_ns */
	int64_t *inside_ns;
	uint32_t inside_count;
	struct number_map forwards; /* track << 32 | row of a node -> group of the operator that made it */
	bool *step_tracks;          /* by track: see step_times_tracks() */
	enum flops_result flops_result;
	int64_t linked; /* nodes that were linked to an operator */
	double steps_ns;
};

static struct module_sums *sums_of(const struct module_fold *fold, uint32_t group, int32_t step)
{
	return &fold->sums[fold->sums[1] && step_kinds_is_sampled(fold->times, step)][group];
}

static uint32_t sum_kinds(const struct module_fold *fold)
{
	return fold->sums[1] ? 2 : 1;
}

static void resize_groups(struct module_fold *fold, uint32_t capacity)
{
	struct storage *storage = fold->model->storage;

	fold->group_capacity = capacity;
	fold->groups = storage_resize(storage, fold->groups, capacity, sizeof(*fold->groups));
	fold->sums[0] = storage_resize(storage, fold->sums[0], capacity, sizeof(*fold->sums[0]));
	if (fold->times->factor == 1)
		return;
	fold->sums[1] = storage_resize(storage, fold->sums[1], capacity, sizeof(*fold->sums[1]));
	fold->seen = storage_resize(storage, fold->seen, capacity, sizeof(*fold->seen));
}

static uint32_t new_group(struct module_fold *fold, const struct module_group *group)
{
	uint32_t number = fold->group_count++;

	fold->groups[number] = *group;
	for (uint32_t kind = 0; kind < sum_kinds(fold); kind++)
		fold->sums[kind][number] = (struct module_sums){.allocated = 0};
	if (fold->seen)
		fold->seen[number] = (struct step_sightings){.amount = 0};
	return number;
}

static bool is_node(const struct model *model, uint32_t name)
{
	return pytorch_begins(model_text(model, name), PYTORCH_ENGINE);
}

/* ---- forward ---- */

static void note_parent(struct module_group *group, uint32_t parent)
{
	if (group->later == NO_GROUP)
		group->later = parent;
	group->alone_calls += parent == NO_GROUP;
	group->later_calls += parent != NO_GROUP && parent == group->later;
}

/* What a constructor called, to see how large its results are, is a part of the model all the same. */
static void take_later_parent(struct module_fold *fold, uint32_t number)
{
	struct module_group *group = &fold->groups[number];
	uint32_t around = group->later;

	if (group->parent != NO_GROUP || group->later_calls <= group->alone_calls)
		return;
	while (around != NO_GROUP && around != number)
		around = fold->groups[around].parent;
	if (around == NO_GROUP) /* no circle */
		group->parent = group->later;
}

static uint32_t group_of(struct module_fold *fold, uint32_t name, uint32_t parent)
{
	uint32_t *group = &fold->group_of_name[name];

	if (*group)
		note_parent(&fold->groups[*group], parent);
	if (*group || fold->group_count >= GROUPS_MAX)
		return *group;
	if (fold->group_count == fold->group_capacity)
		resize_groups(fold, 2 * fold->group_capacity);
	return *group = new_group(
		       fold, &(struct module_group){.name = name, .parent = parent, .alone_calls = parent == NO_GROUP});
}

static void leave(struct module_fold *fold, uint32_t depth)
{
	while (fold->open_count && fold->open_depth[fold->open_count - 1] >= depth)
		fold->groups[fold->open[--fold->open_count] & ~FLAGS].open--;
}

static void enter(struct module_fold *fold, uint32_t value, uint16_t depth)
{
	if (fold->open_count == fold->open_capacity) {
		fold->open_capacity = fold->open_capacity ? 2 * fold->open_capacity : 64;
		fold->open = memory_resize(fold->open, fold->open_capacity, sizeof(*fold->open));
		fold->open_depth = memory_resize(fold->open_depth, fold->open_capacity, sizeof(*fold->open_depth));
	}
	fold->open[fold->open_count] = value;
	fold->open_depth[fold->open_count++] = depth;
	fold->groups[value & ~FLAGS].open++;
}

/* Time that the module takes itself, or (less than 0) that another one in it does. */
static void add_own(struct module_fold *fold, uint32_t group, bool is_again, const struct span_view *span, int64_t ns)
{
	struct module_sums *mine = sums_of(fold, group, span->step);

	clamped_add(is_again ? &mine->recompute_self_ns : &mine->forward_self_ns, ns);
	if (fold->step_tracks[span->track_index])
		clamped_add(&mine->step_self_ns, ns);
}

/* The time of the call, and out of the self time of the module around it. */
static void add_call(struct module_fold *fold, uint32_t group, bool is_again, const struct span_view *span)
{
	struct module_sums *mine = sums_of(fold, group, span->step);
	uint32_t around = fold->open_count ? fold->open[fold->open_count - 1] : NO_GROUP;
	bool is_around_again = around & IN_NODE;
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
	add_own(fold, group, is_again, span, span->dur_ns);
	if ((around & ~FLAGS) != NO_GROUP && is_around_again)
		add_own(fold, around & ~FLAGS, true, span, -span->dur_ns);
	else if ((around & ~FLAGS) != NO_GROUP && !is_again)
		add_own(fold, around & ~FLAGS, false, span, -span->dur_ns);
}

/* With its flags; NO_GROUP: a node is further in, or nothing. */
static uint32_t innermost_module(const struct module_fold *fold)
{
	uint32_t top = fold->open_count - 1;
	bool is_in_node = fold->open_count && fold->node_count &&
	                  fold->open_depth[top] <= fold->nodes[fold->node_count - 1].depth;

	return fold->open_count && !is_in_node ? fold->open[top] : NO_GROUP;
}

/* The span is what the innermost node has in it, when no module around it has. */
static void note_inside(struct module_fold *fold, const struct span_view *span)
{
	const struct open_node *node = fold->node_count ? &fold->nodes[fold->node_count - 1] : NULL;
	if (!node || innermost_module(fold) != NO_GROUP)
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

static void enter_node(struct module_fold *fold, const struct span_view *span)
{
	uint32_t around = innermost_module(fold);

	note_inside(fold, span);
	if (around != NO_GROUP && step_times_measures(fold->times, span->step))
		add_own(fold, around & ~FLAGS, around & IN_NODE, span, -span->dur_ns);
	MEMORY_GROW(fold->nodes, fold->node_count, fold->node_capacity, 16);
	fold->nodes[fold->node_count++] = (struct open_node){span->row, span->depth};
}

static bool is_in_operator(const struct span_view *span)
{
	uint32_t index;

	return span->parent != MODEL_NONE && track_chunk(span->track, span->parent, &index)->kind[index] == SPAN_OP;
}

static void note_operator(struct module_fold *fold, uint32_t number, const struct span_view *span)
{
	uint32_t *operators = fold->groups[number].operators;
	int i = 0;

	while (i < OPERATORS && operators[i] && operators[i] != span->name)
		i++;
	if (i < OPERATORS && !operators[i] && !is_in_operator(span))
		operators[i] = span->name;
}

static bool visit(void *context, const struct span_view *span)
{
	struct module_fold *fold = context;
	uint32_t *rows = fold->group_of_row[span->track_index];
	uint32_t around = span->parent == MODEL_NONE ? NO_GROUP : rows[span->parent], group;

	leave(fold, span->depth);
	while (fold->node_count && fold->nodes[fold->node_count - 1].depth >= span->depth)
		fold->node_count--;
	rows[span->row] = around;
	if (span->kind == SPAN_RANGE && !strcmp(model_text(fold->model, span->name), "torch.compile"))
		rows[span->row] |= TRACED;
	if (!(around & TRACED) && span->kind == SPAN_OP && is_node(fold->model, span->name)) {
		rows[span->row] |= IN_NODE;
		enter_node(fold, span);
	}
	if (span->kind == SPAN_OP && !(around & FLAGS) && around != NO_GROUP)
		note_operator(fold, around, span);
	if (span->kind != SPAN_MODULE || !step_times_measures(fold->times, span->step))
		return true;
	group = group_of(fold, span->name, around & ~FLAGS);
	if (group == NO_GROUP)
		return true;
	note_inside(fold, span);
	add_call(fold, group, around & IN_NODE, span);
	rows[span->row] = group | (around & FLAGS);
	enter(fold, rows[span->row], span->depth);
	return true;
}

static void put_in_order(struct module_fold *fold)
{
	struct storage *storage = fold->model->storage;
	uint32_t *next = storage_resize(storage, NULL, 2 * (size_t)fold->group_count, sizeof(*next));
	uint32_t *first = next + fold->group_count, count = 0;

	for (uint32_t i = 1; i < fold->group_count; i++)
		take_later_parent(fold, i);
	memset(next, 0, 2 * (size_t)fold->group_count * sizeof(*next));
	for (uint32_t i = fold->group_count; i-- > 1;) {
		next[i] = first[fold->groups[i].parent];
		first[fold->groups[i].parent] = i;
	}
	fold->order = storage_resize(storage, NULL, fold->group_count, sizeof(*fold->order));
	for (uint32_t at = first[NO_GROUP]; at != NO_GROUP;) {
		struct module_group *group = &fold->groups[at];

		group->depth = group->parent == NO_GROUP ? 0 : (uint16_t)(fold->groups[group->parent].depth + 1);
		fold->order[count++] = at;
		if (first[at]) {
			at = first[at];
			continue;
		}
		while (at != NO_GROUP && !next[at])
			at = fold->groups[at].parent;
		at = next[at];
	}
	storage_release(storage, next);
}

/* ---- backward, memory ---- */

static int64_t node_ns(const struct module_fold *fold, const struct model_link *link, int32_t *step)
{
	const struct track *track = fold->model->tracks[link->to_track];
	uint32_t index, parent_index;
	const struct span_chunk *chunk = track_chunk(track, link->to_row, &index);
	uint32_t parent = chunk->parent[index];

	*step = chunk->step[index];
	if (parent == MODEL_NONE)
		return chunk->dur_ns[index];
	/* what the engine does for the node belongs to it, but for other nodes' work and what modules compute again */
	const struct span_chunk *around = track_chunk(track, parent, &parent_index);
	if (!is_node(fold->model, around->name[parent_index]))
		return chunk->dur_ns[index];
	uint32_t inside = number_map_find(&fold->inside, (uint64_t)link->to_track << 32 | parent);
	bool has_inside = fold->inside_ns && inside != NUMBER_MAP_NONE;
	return around->dur_ns[parent_index] - (has_inside ? fold->inside_ns[inside] : 0);
}

/* Sums of what is inside: children come before their parents, which are NULL for what no module calls. */
static void each_with_parent(struct module_fold *fold,
                             void (*add_up)(struct module_sums *own, struct module_sums *around))
{
	for (uint32_t kind = 0; kind < sum_kinds(fold); kind++) {
		struct module_sums *sums = fold->sums[kind];

		for (uint32_t i = fold->group_count - 1; i-- > 0;) {
			uint32_t group = fold->order[i], parent = fold->groups[group].parent;

			add_up(&sums[group], parent ? &sums[parent] : NULL);
		}
	}
}

static void add_up_backward(struct module_sums *own, struct module_sums *around)
{
	clamped_add(&own->backward_ns, own->backward_self_ns);
	if (around)
		clamped_add(&around->backward_ns, own->backward_ns);
}

static void add_up_flops(struct module_sums *own, struct module_sums *around)
{
	flop_sum_merge(&own->flops, &own->flops_self);
	flop_sum_merge(&own->backward_flops, &own->backward_flops_self);
	if (!around)
		return;
	flop_sum_merge(&around->flops, &own->flops);
	flop_sum_merge(&around->backward_flops, &own->backward_flops);
}

static void add_up_device(struct module_sums *own, struct module_sums *around)
{
	clamped_add(&own->device_ns, own->device_self_ns);
	clamped_add(&own->backward_device_ns, own->backward_device_self_ns);
	if (!around)
		return;
	clamped_add(&around->device_ns, own->device_ns);
	clamped_add(&around->backward_device_ns, own->backward_device_ns);
}

static void add_backward(struct module_fold *fold)
{
	const struct model *model = fold->model;
	int32_t step;

	for (uint32_t i = 0; i < model->links_count; i++) {
		const struct model_link *link = &model->links[i];

		if (link->kind != STEPSCOPE_LINK_BACKWARD || link->from_track == MODEL_NONE ||
		    link->to_track == MODEL_NONE)
			continue;
		int64_t dur_ns = node_ns(fold, link, &step);
		uint32_t group = fold->group_of_row[link->from_track][link->from_row] & ~FLAGS;
		fold->linked++;
		number_map_set(&fold->forwards, (uint64_t)link->to_track << 32 | link->to_row, group);
		bool is_traced = fold->group_of_row[link->to_track][link->to_row] & TRACED;
		if (group == NO_GROUP || is_traced || !step_times_measures(fold->times, step))
			continue;
		struct module_sums *sums = sums_of(fold, group, step);
		clamped_add(&sums->backward_self_ns, dur_ns);
		/* a device's backward has a thread of its own, which the other one waits for */
		if (fold->step_tracks[link->to_track] || fold->step_tracks[link->from_track])
			clamped_add(&sums->step_self_ns, dur_ns);
	}
	each_with_parent(fold, add_up_backward);
}

/* The module that the operator works for: the innermost one around it, or the one whose operator made the node that it lies in. */
static uint32_t works_for(const struct module_fold *fold, uint32_t track, uint32_t row, bool *is_backward)
{
	const struct model *model = fold->model;

	for (*is_backward = false; row != MODEL_NONE;) {
		uint32_t index, forward = number_map_find(&fold->forwards, (uint64_t)track << 32 | row);
		const struct span_chunk *chunk = track_chunk(model->tracks[track], row, &index);

		*is_backward = forward != NUMBER_MAP_NONE;
		if (*is_backward)
			return forward;
		if (chunk->kind[index] == SPAN_MODULE)
			return fold->group_of_row[track][row] & ~FLAGS;
		row = chunk->parent[index];
	}
	return NO_GROUP;
}

static void use_flops(void *context, const struct flop_count *count)
{
	struct module_fold *fold = context;
	bool is_backward;
	uint32_t index, number = works_for(fold, count->track, count->row, &is_backward);
	const struct span_chunk *chunk = track_chunk(fold->model->tracks[count->track], count->row, &index);

	if (number == NO_GROUP || !step_times_measures(fold->times, chunk->step[index]))
		return;
	struct module_sums *sums = sums_of(fold, number, chunk->step[index]);
	flop_sum_add(&sums->flops_self, count);
	if (is_backward)
		flop_sum_add(&sums->backward_flops_self, count);
}

static void add_flops(struct module_fold *fold, const struct flop_likeness *likeness)
{
	fold->flops_result = flop_counts_each(fold->model, likeness, use_flops, fold);
	each_with_parent(fold, add_up_flops);
}

/* What is launched counts for the module that the launching operator works for. */
static void add_device(struct module_fold *fold)
{
	struct launched_time launched;

	launched_time_init(&launched, fold->model, fold->launches);
	for (size_t i = 0; i < launched.count; i++) {
		const struct launched_call *call = &launched.calls[i];
		bool is_backward;
		uint32_t index, number = works_for(fold, call->track, call->row, &is_backward);
		const struct span_chunk *chunk = track_chunk(fold->model->tracks[call->track], call->row, &index);
		struct module_sums *sums = sums_of(fold, number, chunk->step[index]);

		if (number == NO_GROUP || !step_times_measures(fold->times, chunk->step[index]))
			continue;
		sums->launched += call->count;
		clamped_add(&sums->device_self_ns, call->dur_ns);
		if (is_backward)
			clamped_add(&sums->backward_device_self_ns, call->dur_ns);
	}
	each_with_parent(fold, add_up_device);
	launched_time_release(&launched);
}

static void add_memory(struct module_fold *fold)
{
	const struct model *model = fold->model;

	for (uint32_t i = 0; i < model->memory_count; i++) {
		const struct memory_event *event = &model->memory[i];
		uint32_t index;

		if (event->is_free || !event->has_bytes || event->row == MODEL_NONE)
			continue;
		uint32_t group = fold->group_of_row[event->track][event->row];
		const struct span_chunk *chunk = track_chunk(model->tracks[event->track], event->row, &index);
		bool is_forward = (group & ~FLAGS) != NO_GROUP && !(group & IN_NODE);
		if (is_forward && step_times_measures(fold->times, chunk->step[index]))
			sums_of(fold, group & ~FLAGS, chunk->step[index])->allocated += event->bytes;
	}
}

/* ---- of both kinds of steps ---- */

static void join_flops(struct flop_sum *sum, const struct flop_sum *sampled, double factor)
{
	double flops = sum->flops + sampled->flops * factor;

	flop_sum_merge(sum, sampled);
	sum->flops = flops;
}

static struct module_sums join(const struct module_fold *fold, uint32_t group)
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
	join_flops(&sums.flops_self, &sampled->flops_self, factor);
	join_flops(&sums.flops, &sampled->flops, factor);
	join_flops(&sums.backward_flops_self, &sampled->backward_flops_self, factor);
	join_flops(&sums.backward_flops, &sampled->backward_flops, factor);
	return sums;
}

/* ---- the table ---- */

enum {
	MODULE_PATH,
	MODULE_TREE,
	MODULE_DEPTH,
	MODULE_RATIO,
	MODULE_CALLS,
	MODULE_FORWARD,
	MODULE_FORWARD_SELF,
	MODULE_BACKWARD,
	MODULE_BACKWARD_SELF,
	MODULE_RECOMPUTE,
	MODULE_DEVICE,
	MODULE_SELF_DEVICE,
	MODULE_BACKWARD_DEVICE,
	MODULE_LAUNCHED,
	MODULE_ALLOCATED,
	MODULE_FLOPS,
	MODULE_FLOPS_SELF,
	MODULE_BACKWARD_FLOPS,
	MODULE_UNCOUNTED,
	MODULE_OPERATORS,
	MODULE_LEAST,
	MODULE_COLUMNS,
};

static const struct table_column columns[MODULE_COLUMNS] = {
	[MODULE_PATH] = {.name = "module",
                         .type = TABLE_TEXT,
                         .role = ROLE_KEY,
                         .definition = "path from the module that the program calls; that one has the name of its class",
                         .is_hidden = true,
                         .keeps_end = true},
	[MODULE_TREE] = {.name = "tree",
                         .title = "module",
                         .type = TABLE_TEXT,
                         .role = ROLE_KEY,
                         .definition = "the same, indented below the module that called it first",
                         .is_tree = true},
	[MODULE_DEPTH] = {.name = "depth",
                          .type = TABLE_INT,
                          .unit = UNIT_COUNT,
                          .role = ROLE_KEY,
                          .definition = "modules around it",
                          .is_hidden = true},
	[MODULE_RATIO] = {.name = "self_ratio",
                          .title = "% of steps",
                          .type = TABLE_DOUBLE,
                          .unit = UNIT_RATIO,
                          .role = ROLE_SHARE,
                          .definition = "share of its own time on the threads that carry steps: forward, backward "
                                        "and computing again, without the modules inside",
                          .denominator = "duration of the complete steps whose operations were recorded",
                          .rules = RULE_NOT_NEGATIVE,
                          .more = MORE_SUM},
	[MODULE_CALLS] = {.name = "calls",
                          .type = TABLE_INT,
                          .unit = UNIT_COUNT,
                          .definition = "times it was called, not counting those that compute again",
                          .rules = RULE_NOT_NEGATIVE,
                          .more = MORE_SUM},
	[MODULE_FORWARD] = {.name = "forward_ns",
                            .title = "forward",
                            .type = TABLE_INT,
                            .unit = UNIT_NS,
                            .definition = "time of its calls, with the modules inside",
                            .rules = RULE_NOT_NEGATIVE},
	[MODULE_FORWARD_SELF] = {.name = "forward_self_ns",
                                 .title = "forward self",
                                 .type = TABLE_INT,
                                 .unit = UNIT_NS,
                                 .definition = "time of its calls in no module, and no backward, inside it",
                                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                                 .other = "forward_ns",
                                 .more = MORE_SUM},
	[MODULE_BACKWARD] = {.name = "backward_ns",
                             .title = "backward",
                             .type = TABLE_INT,
                             .unit = UNIT_NS,
                             .definition = "time of the nodes of backwards that its operators made, and those of the "
                                           "modules inside",
                             .rules = RULE_NOT_NEGATIVE},
	[MODULE_BACKWARD_SELF] = {.name = "backward_self_ns",
                                  .title = "backward self",
                                  .type = TABLE_INT,
                                  .unit = UNIT_NS,
                                  .definition = "the same without the modules inside",
                                  .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                                  .other = "backward_ns",
                                  .is_hidden = true,
                                  .more = MORE_SUM},
	[MODULE_RECOMPUTE] = {.name = "recompute_ns",
                              .title = "computed again",
                              .type = TABLE_INT,
                              .unit = UNIT_NS,
                              .definition = "time of its calls inside of a backward, where a checkpoint computes again",
                              .rules = RULE_NOT_NEGATIVE},
	[MODULE_DEVICE] = {.name = "device_ns",
                           .title = "device",
                           .type = TABLE_INT,
                           .unit = UNIT_NS,
                           .definition = "time of kernels, copies and fills that were launched in its calls and in the "
                                         "nodes of backwards that its operators made, with the modules inside",
                           .rules = RULE_NOT_NEGATIVE},
	[MODULE_SELF_DEVICE] = {.name = "self_device_ns",
                                .title = "self device",
                                .type = TABLE_INT,
                                .unit = UNIT_NS,
                                .definition = "the same without the modules inside",
                                .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                                .other = "device_ns",
                                .more = MORE_SUM},
	[MODULE_BACKWARD_DEVICE] = {.name = "backward_device_ns",
                                    .title = "device backward",
                                    .type = TABLE_INT,
                                    .unit = UNIT_NS,
                                    .definition = "what the nodes of backwards launched of it, with the modules inside",
                                    .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                                    .other = "device_ns",
                                    .is_hidden = true},
	[MODULE_LAUNCHED] = {.name = "launched_count",
                             .title = "launched",
                             .type = TABLE_INT,
                             .unit = UNIT_COUNT,
                             .definition = "kernels, copies and fills behind self_device_ns",
                             .rules = RULE_NOT_NEGATIVE,
                             .more = MORE_SUM},
	[MODULE_ALLOCATED] = {.name = "allocated_bytes",
                              .title = "allocated",
                              .type = TABLE_INT,
                              .unit = UNIT_BYTES,
                              .definition = "bytes allocated in its calls and in no module inside it, whether they were "
                                            "kept or not",
                              .rules = RULE_NOT_NEGATIVE,
                              .more = MORE_SUM},
	[MODULE_FLOPS] =
		{.name = "flops",
                 .title = "FLOP",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_FLOP,
                 .definition = "floating point operations, as in the table steps, of its calls and of the nodes of "
                               "backwards that its operators made, with the modules inside",
                 .rules = RULE_NOT_NEGATIVE},
	[MODULE_FLOPS_SELF] = {.name = "self_flops",
                               .title = "FLOP self",
                               .type = TABLE_DOUBLE,
                               .unit = UNIT_FLOP,
                               .definition = "the same without the modules inside",
                               .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                               .other = "flops",
                               .more = MORE_SUM},
	[MODULE_BACKWARD_FLOPS] = {.name = "backward_flops",
                                   .title = "FLOP backward",
                                   .type = TABLE_DOUBLE,
                                   .unit = UNIT_FLOP,
                                   .definition = "those of the nodes of backwards, with the modules inside",
                                   .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                                   .other = "flops",
                                   .is_hidden = true},
	[MODULE_UNCOUNTED] = {.name = "uncounted_operators",
                              .title = "uncounted",
                              .type = TABLE_INT,
                              .unit = UNIT_COUNT,
                              .role = ROLE_EVIDENCE,
                              .definition = "operators that have a formula but whose inputs, or whose end, were not "
                                            "recorded: their work is not in flops; with the modules inside",
                              .rules = RULE_NOT_NEGATIVE,
                              .is_hidden = true},
	[MODULE_OPERATORS] = {.name = "operators",
                              .type = TABLE_TEXT,
                              .role = ROLE_EVIDENCE,
                              .definition = "operators that its forward calls itself, the first six names: what it is, "
                                            "whatever its name",
                              .is_hidden = true},
	[MODULE_LEAST] = STEP_KINDS_LEAST_COLUMN,
};

#define NO_BACKWARD "no backward was linked to its operators"

static void set_times(struct table *table, int row, const struct module_fold *fold, const struct module_sums *group)
{
	table_set_int(table, row, MODULE_CALLS, group->calls);
	table_set_int(table, row, MODULE_FORWARD, group->forward_ns);
	table_set_int(table, row, MODULE_FORWARD_SELF, group->forward_self_ns);
	if (fold->steps_ns > 0)
		table_set_double(table, row, MODULE_RATIO, (double)group->step_self_ns / fold->steps_ns);
	else
		table_set_missing(table, row, MODULE_RATIO, "there are no complete steps with operations");
	if (fold->linked) {
		table_set_int(table, row, MODULE_BACKWARD, group->backward_ns);
		table_set_int(table, row, MODULE_BACKWARD_SELF, group->backward_self_ns);
	} else {
		table_set_missing(table, row, MODULE_BACKWARD, NO_BACKWARD);
		table_set_missing(table, row, MODULE_BACKWARD_SELF, NO_BACKWARD);
	}
	if (group->recompute_calls)
		table_set_int(table, row, MODULE_RECOMPUTE, group->recompute_ns);
	else
		table_set_missing(table, row, MODULE_RECOMPUTE, "it was not called inside of a backward");
	if (memory_sums_unknown(fold->model))
		table_set_missing(table, row, MODULE_ALLOCATED, memory_sums_unknown(fold->model));
	else if (fold->model->memory_count)
		table_set_int(table, row, MODULE_ALLOCATED, bytes_that_fit(group->allocated));
	else
		table_set_missing(table, row, MODULE_ALLOCATED, "not recorded: --with memory");
}

static void set_device(struct table *table, int row, const struct module_fold *fold, const struct module_sums *group)
{
	if (!fold->launches->work_count) {
		for (int column = MODULE_DEVICE; column <= MODULE_LAUNCHED; column++)
			table_set_missing(table, row, column, DEVICE_NOTHING);
		return;
	}
	table_set_int(table, row, MODULE_DEVICE, group->device_ns);
	table_set_int(table, row, MODULE_SELF_DEVICE, group->device_self_ns);
	if (fold->linked)
		table_set_int(table, row, MODULE_BACKWARD_DEVICE, group->backward_device_ns);
	else
		table_set_missing(table, row, MODULE_BACKWARD_DEVICE, NO_BACKWARD);
	table_set_int(table, row, MODULE_LAUNCHED, group->launched);
}

static void set_flops(struct table *table, int row, const struct module_sums *group)
{
	const struct flop_sum *sums[] = {&group->flops, &group->flops_self, &group->backward_flops};

	for (int i = 0; i < 3; i++) {
		/* a part of it in which no operator has a formula took none */
		bool is_none = group->flops.counted && !sums[i]->uncounted;

		if (!sums[i]->lacking && (sums[i]->counted || is_none))
			table_set_double(table, row, MODULE_FLOPS + i, sums[i]->flops);
		else
			table_set_missing(table, row, MODULE_FLOPS + i,
			                  flop_sum_missing(sums[i]->uncounted ? sums[i] : &group->flops));
	}
	table_set_int(table, row, MODULE_UNCOUNTED, group->flops.uncounted);
}

static void set_operators(struct table *table, int row, const struct module_fold *fold,
                          const struct module_group *group)
{
	const char *list = NULL;

	for (int i = 0; i < OPERATORS && group->operators[i]; i++)
		list = arena_printf(&table->arena, "%s%s%s", list ? list : "", list ? ", " : "",
		                    model_text(fold->model, group->operators[i]));
	table_set_text_or(table, row, MODULE_OPERATORS, list, "it calls none itself");
}

static void add_row(struct table *table, const struct module_fold *fold, const struct module_group *group)
{
	const char *path = model_text(fold->model, group->name);
	const char *around = group->parent ? model_text(fold->model, fold->groups[group->parent].name) : "";
	size_t common = strlen(around);
	int row = table_row(table);
	/* below `layers.0` stands `fc`, not `layers.0.fc` */
	bool is_below = common && strncmp(path, around, common) == 0 && path[common] == '.';

	table_set_text(table, row, MODULE_PATH, path);
	table_set_text(
		table, row, MODULE_TREE,
		arena_printf(&table->arena, "%*s%s", 2 * (int)group->depth, "", path + (is_below ? common + 1 : 0)));
	table_set_int(table, row, MODULE_DEPTH, group->depth);
	const struct module_sums sums = join(fold, (uint32_t)(group - fold->groups));
	set_times(table, row, fold, &sums);
	set_device(table, row, fold, &sums);
	set_flops(table, row, &sums);
	set_operators(table, row, fold, group);
	step_kinds_set_least(table, row, MODULE_LEAST, fold->times,
	                     fold->seen ? &fold->seen[group - fold->groups] : &(struct step_sightings){.amount = 0});
}

static void open_fold(struct module_fold *fold)
{
	const struct model *model = fold->model;

	fold->step_tracks = step_times_tracks(model);
	resize_groups(fold, 64);
	new_group(fold, &(struct module_group){.name = 0});
	fold->group_of_name = storage_resize(model->storage, NULL, (size_t)model->strings.count + 1,
	                                     sizeof(*fold->group_of_name));
	memset(fold->group_of_name, 0, ((size_t)model->strings.count + 1) * sizeof(*fold->group_of_name));
	fold->group_of_row = memory_resize(NULL, (size_t)model->tracks_count + 1, sizeof(*fold->group_of_row));
	for (uint32_t i = 0; i < model->tracks_count; i++)
		fold->group_of_row[i] = storage_resize(model->storage, NULL, (size_t)model->tracks[i]->span_count + 1,
		                                       sizeof(uint32_t));
	for (uint32_t i = 0; i < fold->times->count; i++) {
		if (step_times_measures(fold->times, (int32_t)i))
			fold->steps_ns += step_kinds_dur_ns(fold->times, i);
	}
}

static void close_fold(struct module_fold *fold)
{
	struct storage *storage = fold->model->storage;

	for (uint32_t i = 0; i < fold->model->tracks_count; i++)
		storage_release(storage, fold->group_of_row[i]);
	free(fold->group_of_row);
	free(fold->step_tracks);
	storage_release(storage, fold->group_of_name);
	storage_release(storage, fold->groups);
	for (int kind = 0; kind < 2; kind++)
		storage_release(storage, fold->sums[kind]);
	storage_release(storage, fold->seen);
	storage_release(storage, fold->order);
	free(fold->open);
	free(fold->open_depth);
	free(fold->nodes);
	free(fold->inside_ns);
	number_map_release(&fold->inside);
	number_map_release(&fold->forwards);
}

/* bound: the column of which the largest rows stay. */
static void fill(const struct model *model, const struct analysis_options *options, struct table *table, int bound)
{
	struct step_times own = {0};
	struct launches own_launches = {0};
	struct flop_likeness likeness = {0};
	struct module_fold fold = {.model = model,
	                           .times = step_times_get(&own, model, options),
	                           .inside = {.storage = model->storage},
	                           .forwards = {.storage = model->storage}};

	fold.launches = launches_get(&own_launches, model, options);
	table_columns(table, columns, MODULE_COLUMNS);
	open_fold(&fold);
	for (uint32_t track = 0; track < model->tracks_count; track++) {
		leave(&fold, 0);
		model_visit_spans(model, track, visit, &fold);
	}
	leave(&fold, 0);
	put_in_order(&fold);
	add_backward(&fold);
	add_memory(&fold);
	add_device(&fold);
	add_flops(&fold, flop_likeness_get(&likeness, model, options));
	table_bound(table, bound);
	for (uint32_t i = 0; i + 1 < fold.group_count; i++)
		add_row(table, &fold, &fold.groups[fold.order[i]]);
	int more = table_add_more(table, MODULE_PATH);
	if (more >= 0) {
		table_set_text(table, more, MODULE_TREE, table_text(table, more, MODULE_PATH));
		table_set_int(table, more, MODULE_DEPTH, 0);
	}
	for (int column = MODULE_FLOPS; column <= MODULE_FLOPS_SELF; column++)
		table->columns[column].is_hidden = fold.flops_result != FLOPS_KNOWN;
	for (int column = MODULE_DEVICE; column <= MODULE_LAUNCHED; column++)
		table->columns[column].is_hidden |= !fold.launches->work_count;
	if (fold.group_count == 1)
		table->empty = step_times_no_operations(
			model, options, &table->arena,
			"no calls of modules were recorded: they are where PyTorch's operators are");
	step_kinds_note_sums(table, fold.times, MODULE_LEAST);
	close_fold(&fold);
	launches_release(&own_launches);
	flop_likeness_release(&likeness);
	step_times_release(&own);
}

static enum status run_tree(const struct model *model, const struct analysis_options *options, struct table *table,
                            struct error *err)
{
	table_init(table, "modules", "Modules", "what each module of the model takes, forward and backward");
	fill(model, options, table, MODULE_FORWARD); /* what a module is called by takes more than it */
	return STATUS_OK;
}

static enum status run_top(const struct model *model, const struct analysis_options *options, struct table *table,
                           struct error *err)
{
	table_init(table, "top_modules", "Modules by self time", "the table modules, largest first");
	fill(model, options, table, MODULE_FORWARD_SELF);
	table_sort(table, MODULE_FORWARD_SELF, false);
	table_sort(table, MODULE_RATIO, false);
	return STATUS_OK;
}

const struct analysis analysis_modules = {
	.name = "modules",
	.question = "which modules of the model take the time?",
	.run = run_tree,
	.is_of_operators = true,
};
const struct analysis analysis_top_modules = {
	.name = "top_modules",
	.question = "which modules take the time themselves?",
	.run = run_top,
	.is_of_operators = true,
};
