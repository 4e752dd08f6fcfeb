/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_categories.c: finds the category of each allocation of a PyTorch program, by these rules:
 *
 * 1. Reported by an owner while it was alive: the owner's category (parameter, buffer, gradient, optimizer state).
 *    Memory into which FSDP gathers parameters of all ranks for a call is a parameter, too.
 * 2. Freed within the innermost operator that made it: temporary. If an operator hands memory to its parent operator,
 *    this rule does not apply.
 * 3. The result of an operator that takes part in an autograd graph: activation.
 *
 * 4. Allocated in the wait for data, or made by the training step without input tensors or before its graph starts:
 *    input.
 * 5. From a backward: a gradient if it lives until the optimizer and its like are gradients where owners were asked;
 *    otherwise autograd detail. From an optimizer: state by the same rule, or temporary if it is freed within the
 *    optimizer.
 *
 * 6. Any other allocation is an input if a model was called with it, or if a loader's data set holds it. If it was made
 *    before the first step, its like are inputs, too, unless an owner reported any of them (batches in a list).
 * 7. The rest is "other": made before the first step without an owner, or kept for several steps.
 *
 * "Its like": allocated by the same operator in the same part of a step, with the same size. The time between a
 * backward and the optimizer is a separate part: there, the operator that converts data before the forward makes
 * gradients in another precision.
 */
#include "model/memory_categories.h"

#include "base/compare_numbers.h"
#include "base/hash.h"
#include "base/lower_bound.h"
#include "base/memory.h"
#include "model/memory_births.h"
#include "model/model_finish.h"
#include "model/number_map.h"

#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

struct site {            /* allocations that are like each other */
	uint32_t owned;  /* reported by an owner */
	uint32_t others; /* alive when owners reported, but not reported */
	uint32_t data;   /* known to be data; of allocations put aside */
	bool is_kept;    /* made in a step and kept for several */
	bool is_held;    /* an owner reported one that was put aside */
};

struct category_times {
	int64_t *list;
	uint32_t count, capacity;
};

struct categories {
	struct model *model;
	struct births births;
	struct birth *list; /* of the allocations of one process, by index - first */
	uint32_t first, end;
	struct number_map site_map;
	struct site *sites;
	uint32_t site_count, site_capacity;
	struct category_times calls;                      /* ends of calls of optimizers in the process, ascending */
	struct category_times told_gradients, told_state; /* times at which owners reported some */
	uint64_t *tracks;                                 /* all tracks, process << 32 | track, in order */
	uint32_t next_track, next_owner;                  /* first one of the next processes */
	uint32_t next_call;                               /* next call of an optimizer */
	int64_t first_step_ns;                            /* INT64_MAX: there is none */
	bool is_behind_backward;                          /* after a backward and before the optimizer */
	bool has_graph;                                   /* in this step, before any other region started */
	int32_t graph_step;
	struct step_cursor cursor;
};

/* ---- times of optimizer calls and of owners' reports ------------------------------------------------------------- */

static void categories_add_time(struct category_times *times, int64_t time_ns)
{
	MEMORY_GROW(times->list, times->count, times->capacity, 64);
	times->list[times->count++] = time_ns;
}

static void order_tracks(struct categories *work)
{
	const struct model *model = work->model;
	work->tracks = memory_resize(NULL, (size_t)model->tracks_count + 1, sizeof *work->tracks);
	for (uint32_t t = 0; t < model->tracks_count; t++)
		work->tracks[t] = (uint64_t)model->tracks[t]->process << 32 | t;
	qsort(work->tracks, model->tracks_count, sizeof *work->tracks, compare_uint64);
}

static void find_calls_of_track(struct categories *work, const struct track *track)
{
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];
		for (uint32_t i = 0; i < chunk->count; i++)
			if (birth_is_optimizer(&work->births, chunk, i))
				categories_add_time(&work->calls, chunk->start_ns[i] + chunk->dur_ns[i]);
		model_chunk_done(work->model, chunk);
	}
}

/* Processes must come in ascending order. */
static void categories_find_calls(struct categories *work, uint32_t process)
{
	const struct model *model = work->model;
	work->calls.count = 0;
	for (; work->next_track < model->tracks_count; work->next_track++) {
		uint64_t key = work->tracks[work->next_track];
		if (key >> 32 > process)
			break;
		if (key >> 32 == process)
			find_calls_of_track(work, model->tracks[(uint32_t)key]);
	}
	if (work->calls.count)
		qsort(work->calls.list, work->calls.count, sizeof *work->calls.list, compare_int64);
}

static void find_told(struct categories *work, uint32_t process)
{
	const struct model *model = work->model;
	work->told_gradients.count = work->told_state.count = 0;
	for (; work->next_owner < model->owners_count; work->next_owner++) {
		const struct memory_owner *owner = &model->owners[work->next_owner];
		if (owner->process > process)
			break;
		if (owner->process != process)
			continue;
		if (owner->category == STEPSCOPE_MEMORY_GRADIENT)
			categories_add_time(&work->told_gradients, owner->time_ns);
		else if (owner->category == STEPSCOPE_MEMORY_OPTIMIZER)
			categories_add_time(&work->told_state, owner->time_ns);
	}
}

/* Returns true if an allocation lives at one of these times. */
static bool sees(const struct category_times *times, int64_t birth_ns, int64_t death_ns)
{
	uint32_t low = LOWER_BOUND(times->list, times->count, item, *item < birth_ns);
	return low < times->count && times->list[low] < death_ns;
}

/* ---- allocations and their like ---------------------------------------------------------------------------------- */

static int64_t death_of(const struct model *model, const struct memory_event *allocation)
{
	return allocation->partner == MODEL_NONE ? INT64_MAX : model->memory[allocation->partner].time_ns;
}

static struct site *site_of(struct categories *work, const struct birth *birth, uint64_t bytes)
{
	uint64_t place = (uint64_t)birth->op << 8 | (uint64_t)birth->is_behind_backward << 7 | birth->region;
	uint32_t found = number_map_add(&work->site_map, hash_two(bytes, place), work->site_count);
	if (found == work->site_count) {
		MEMORY_GROW(work->sites, work->site_count, work->site_capacity, 256);
		work->sites[work->site_count++] = (struct site){0};
	}
	return &work->sites[found];
}

/* Returns the category an owner would give to allocations like this one; OTHER: none. Gradients come not only from
 * backwards: hooks that run after backwards make some. */
static uint8_t owned_category(const struct birth *birth)
{
	return birth->region == REGION_OPTIMIZER ? STEPSCOPE_MEMORY_OPTIMIZER
	       : birth->region == REGION_DATA    ? STEPSCOPE_MEMORY_OTHER
	                                         : STEPSCOPE_MEMORY_GRADIENT;
}

/* Allocations must come in order of time. */
static void follow_backward(struct categories *work, int64_t time_ns, struct birth *birth)
{
	for (; work->next_call < work->calls.count && work->calls.list[work->next_call] <= time_ns; work->next_call++)
		work->is_behind_backward = false;
	if (birth->region == REGION_BACKWARD)
		work->is_behind_backward = true;
	else if (birth->region == REGION_DATA || birth->region == REGION_OPTIMIZER || birth->has_node)
		work->is_behind_backward = false;
	birth->is_behind_backward = work->is_behind_backward;
}

static void count_like(struct categories *work, const struct memory_event *allocation, const struct birth *birth)
{
	uint8_t owned = owned_category(birth);
	if (owned == STEPSCOPE_MEMORY_OTHER)
		return;
	if (allocation->category == owned)
		site_of(work, birth, allocation->bytes)->owned++;
	else if (allocation->category == STEPSCOPE_MEMORY_UNKNOWN &&
	         sees(owned == STEPSCOPE_MEMORY_GRADIENT ? &work->told_gradients : &work->told_state,
	              allocation->time_ns, death_of(work->model, allocation)))
		site_of(work, birth, allocation->bytes)->others++;
}

/* Returns true if an operator made it before the first step. */
static bool is_put_aside(const struct categories *work, const struct memory_event *allocation,
                         const struct birth *birth)
{
	return birth->op && allocation->time_ns < work->first_step_ns;
}

static void count_data(struct categories *work, const struct memory_event *allocation, const struct birth *birth)
{
	if (!is_put_aside(work, allocation, birth))
		return;
	if (allocation->category != STEPSCOPE_MEMORY_UNKNOWN)
		site_of(work, birth, allocation->bytes)->is_held = true;
	else if (allocation->is_data)
		site_of(work, birth, allocation->bytes)->data++;
}

/* A single match may be chance, so two are needed. */
static bool is_data(struct categories *work, const struct memory_event *allocation, const struct birth *birth,
                    int64_t death_ns)
{
	if (allocation->is_data || !is_put_aside(work, allocation, birth) || death_ns < work->first_step_ns)
		return allocation->is_data;
	const struct site *site = site_of(work, birth, allocation->bytes);
	return site->data > 1 && !site->is_held;
}

static bool is_like_owned(struct categories *work, const struct memory_event *allocation, const struct birth *birth,
                          int64_t death_ns)
{
	if (owned_category(birth) == STEPSCOPE_MEMORY_OTHER)
		return false;
	const struct site *site = site_of(work, birth, allocation->bytes);
	bool is_seen = work->calls.count ? sees(&work->calls, allocation->time_ns, death_ns)
	                                 : death_ns > birth->phase_end_ns; /* the program's own optimizer is unknown */
	/* only one of several optimizers reports at a time; memory of the others is alive then, too */
	return 4 * (uint64_t)site->owned > site->others && is_seen;
}

/* ---- the rules --------------------------------------------------------------------------------------------------- */

/* The script frees data, not a module. Memory that a module frees was the module's, such as the first buckets of
 * DistributedDataParallel. */
static bool is_freed_by_module(const struct model *model, const struct memory_event *release)
{
	const struct track *track = model->tracks[release->track];
	for (uint32_t row = release->row; row < track->span_count;) {
		uint32_t index;
		const struct span_chunk *chunk = track_chunk(track, row, &index);
		if (chunk->kind[index] == SPAN_MODULE)
			return true;
		row = chunk->parent[index];
	}
	return false;
}

/* Returns true if an allocation made outside all steps is data for the next step. It must not outlive the step after
 * that, in which the script has other data. Memory is not data if a thread without spans frees it, as gloo's threads do
 * after sending. */
static bool is_for_next_step(const struct categories *work, const struct memory_event *allocation, int64_t death_ns)
{
	const struct model *model = work->model;
	const struct step_cursor *cursor = &work->cursor;
	int32_t next = cursor->next;
	int32_t behind = next + 1 < cursor->end ? next + 1 : next;
	if (next >= cursor->end || death_ns <= cursor->steps[next].start_ns || death_ns > cursor->steps[behind].end_ns)
		return false;
	const struct memory_event *end = allocation->partner == MODEL_NONE ? NULL : &model->memory[allocation->partner];
	if (!end || !end->is_free || end->track >= model->tracks_count)
		return true;
	if (end->track != allocation->track && end->row == MODEL_NONE)
		return false;
	return death_ns <= cursor->steps[next].end_ns || !is_freed_by_module(model, end);
}

/* Returns true if the allocation is not the data of one step: it outlives two more steps. If memory is not recorded
 * that long, its like decide. */
static bool is_kept(struct categories *work, const struct memory_event *allocation, const struct birth *birth,
                    int32_t step, int64_t death_ns)
{
	const struct step_cursor *cursor = &work->cursor;
	int32_t last = step;
	if (step < 0)
		return !is_for_next_step(work, allocation, death_ns);
	while (last < step + 2 && last + 1 < cursor->end && cursor->steps[last + 1].has_memory)
		last++;
	if (death_ns <= cursor->steps[last].end_ns)
		return false;
	struct site *site = site_of(work, birth, allocation->bytes);
	site->is_kept |= last == step + 2;
	return site->is_kept;
}

static uint8_t category_of_training(struct categories *work, const struct memory_event *allocation,
                                    const struct birth *birth, int32_t step, int64_t death_ns)
{
	bool has_graph = work->has_graph && work->graph_step == step;
	if (!birth->is_factory && (has_graph || birth->region == REGION_MODULE))
		return STEPSCOPE_MEMORY_ACTIVATION;
	if (!birth->is_factory && !birth->has_sequence) /* without gradients: an update by hand, or anything */
		return STEPSCOPE_MEMORY_OTHER;
	return is_kept(work, allocation, birth, step, death_ns) ? STEPSCOPE_MEMORY_OTHER : STEPSCOPE_MEMORY_INPUT;
}

static uint8_t category_of_backward(const struct categories *work, const struct birth *birth, int64_t death_ns)
{
	/* owners were not asked, and it may be a gradient */
	if (!work->told_gradients.count && death_ns > birth->phase_end_ns)
		return STEPSCOPE_MEMORY_OTHER;
	return STEPSCOPE_MEMORY_AUTOGRAD;
}

static uint8_t category_of_optimizer(const struct birth *birth, int64_t death_ns)
{
	return death_ns <= birth->region_end_ns ? STEPSCOPE_MEMORY_TEMPORARY : STEPSCOPE_MEMORY_OTHER;
}

static uint8_t category_by_birth(struct categories *work, const struct memory_event *allocation,
                                 const struct birth *birth, int32_t step, int64_t death_ns)
{
	if (birth->op && death_ns <= birth->op_end_ns)
		return STEPSCOPE_MEMORY_TEMPORARY;
	if (birth->is_gathered)
		return STEPSCOPE_MEMORY_PARAMETER;
	if (is_like_owned(work, allocation, birth, death_ns))
		return owned_category(birth);
	if (birth->has_node)
		return STEPSCOPE_MEMORY_ACTIVATION;
	switch (birth->region) {
	case REGION_DATA:
		return death_ns <= birth->region_end_ns ? STEPSCOPE_MEMORY_TEMPORARY : STEPSCOPE_MEMORY_INPUT;
	case REGION_BACKWARD:
		return category_of_backward(work, birth, death_ns);
	case REGION_OPTIMIZER:
		return category_of_optimizer(birth, death_ns);
	case REGION_EVALUATION:
		return birth->is_factory ? STEPSCOPE_MEMORY_INPUT : STEPSCOPE_MEMORY_ACTIVATION;
	case REGION_FORWARD:
	case REGION_MODULE:
		return category_of_training(work, allocation, birth, step, death_ns);
	case REGION_NONE:
		if (step >= 0 && birth->op)
			return category_of_training(work, allocation, birth, step, death_ns);
		return birth->op && is_for_next_step(work, allocation, death_ns) ? STEPSCOPE_MEMORY_INPUT
		                                                                 : STEPSCOPE_MEMORY_OTHER;
	default:
		return STEPSCOPE_MEMORY_OTHER;
	}
}

static uint8_t categories_category_of(struct categories *work, const struct memory_event *allocation,
                                      const struct birth *birth, int32_t step)
{
	int64_t death_ns = death_of(work->model, allocation);
	uint8_t category = category_by_birth(work, allocation, birth, step, death_ns);
	bool is_input = category == STEPSCOPE_MEMORY_OTHER && is_data(work, allocation, birth, death_ns);
	return is_input ? STEPSCOPE_MEMORY_INPUT : category;
}

/* Notes whether the graph of this step's forward has started: allocations before it are data. */
static void follow_graph(struct categories *work, const struct birth *birth, int32_t step)
{
	if (birth->has_node) {
		work->has_graph = true;
		work->graph_step = step;
	} else if (birth->region == REGION_BACKWARD || birth->region == REGION_OPTIMIZER ||
	           birth->region == REGION_DATA) {
		work->has_graph = false;
	}
}

/* ---- one process ------------------------------------------------------------------------------------------------- */

static void infer_process(struct categories *work)
{
	struct model *model = work->model;
	uint32_t process = model->memory[work->first].process;
	categories_find_calls(work, process);
	find_told(work, process);
	work->cursor = step_cursor_of(model, process);
	work->first_step_ns = work->cursor.next < work->cursor.end ? work->cursor.steps[work->cursor.next].start_ns
	                                                           : INT64_MAX;
	work->has_graph = work->is_behind_backward = false;
	work->next_call = 0;
	work->list = memory_resize(work->list, work->end - work->first, sizeof *work->list);
	for (uint32_t i = work->first; i < work->end; i++) {
		const struct memory_event *event = &model->memory[i];
		if (event->is_free || event->is_found)
			continue;
		work->list[i - work->first] = birth_of(&work->births, event);
		follow_backward(work, event->time_ns, &work->list[i - work->first]);
		count_like(work, event, &work->list[i - work->first]);
		count_data(work, event, &work->list[i - work->first]);
	}
	for (uint32_t i = work->first; i < work->end; i++) {
		struct memory_event *event = &model->memory[i];
		bool is_at_end;
		int32_t step = step_cursor_at(&work->cursor, event->time_ns, &is_at_end);
		if (event->is_free || event->is_found)
			continue;
		if (event->category == STEPSCOPE_MEMORY_UNKNOWN)
			event->category = categories_category_of(work, event, &work->list[i - work->first], step);
		follow_graph(work, &work->list[i - work->first], step);
	}
	work->site_count = 0;
	number_map_release(&work->site_map);
}

static bool has_unknown(const struct model *model, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		if (!model->memory[i].is_free && model->memory[i].category == STEPSCOPE_MEMORY_UNKNOWN)
			return true;
	return false;
}

void finish_categories(struct model *model)
{
	struct categories work = {.model = model, .births = {.model = model}};
	order_tracks(&work);
	for (work.first = 0; work.first < model->memory_count; work.first = work.end) {
		for (work.end = work.first; work.end < model->memory_count &&
		                            model->memory[work.end].process == model->memory[work.first].process;)
			work.end++;
		if (has_unknown(model, work.first, work.end))
			infer_process(&work);
	}
	births_release(&work.births);
	free(work.tracks);
	free(work.list);
	free(work.sites);
	free(work.calls.list);
	free(work.told_gradients.list);
	free(work.told_state.list);
}
