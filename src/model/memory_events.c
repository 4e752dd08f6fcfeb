/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_events.c: sorts allocations and frees, and pairs each free with its allocation. Adds memory that was alive
 * although its allocation was not recorded, and memory that may have been freed while memory was not recorded.
 * Addresses are reused, so all matching goes in order of time.
 */
#include "model/memory_events.h"

#include "base/memory.h"
#include "base/merge_sort.h"
#include "model/memory_categories.h"
#include "model/model_finish.h"
#include "model/model_index.h"
#include "model/number_map.h"

#include <assert.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>

static int compare_memory(const void *left, const void *right)
{
	const struct memory_event *a = left, *b = right;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static int compare_owners(const void *left, const void *right)
{
	const struct memory_owner *a = left, *b = right;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* Addresses have at most 57 bits, devices are few: no two live allocations of real programs share a key. */
static uint64_t memory_events_place_of(uint64_t address, int16_t device)
{
	return address ^ (uint64_t)(uint16_t)(device + 1) << 57;
}

/* ---- walking through events and owners by time ------------------------------------------------------------------- */

struct memory_walk {
	struct model *model;
	struct number_map live; /* place -> index of its allocation */
	uint32_t process;
	uint32_t event, owner; /* next event and next owner */
	uint32_t event_count;  /* events added during the walk are not walked through */
};

static struct memory_walk walk_of(struct model *model)
{
	return (struct memory_walk){.model = model, .process = MODEL_NONE, .event_count = model->memory_count};
}

/* Returns true if an event is next, false if an owner is. At the same time, an event comes before an owner's report. */
static bool is_event_next(struct memory_walk *walk)
{
	const struct model *model = walk->model;
	const struct memory_event *event = walk->event < walk->event_count ? &model->memory[walk->event] : NULL;
	const struct memory_owner *owner = walk->owner < model->owners_count ? &model->owners[walk->owner] : NULL;
	bool is_event = event && (!owner || event->process < owner->process ||
	                          (event->process == owner->process && event->time_ns <= owner->time_ns));
	assert(event || owner);
	uint32_t process = is_event ? event->process : owner->process;
	if (process != walk->process)
		number_map_release(&walk->live);
	walk->process = process;
	return is_event;
}

static bool has_next(const struct memory_walk *walk)
{
	return walk->event < walk->event_count || walk->owner < walk->model->owners_count;
}

/* The first owner sets the category of an allocation. A parameter's owner overrides gradient and buffer. An input of a
 * model may be any allocation, so it sets only `is_data`. */
static void own(struct memory_walk *walk, const struct memory_owner *owner)
{
	uint32_t found = number_map_find(&walk->live, memory_events_place_of(owner->address, owner->device));
	if (found >= walk->model->memory_count)
		return;
	struct memory_event *allocation = &walk->model->memory[found];
	if (owner->category == STEPSCOPE_MEMORY_INPUT) {
		allocation->is_data = true;
		return;
	}
	bool is_better = owner->category == STEPSCOPE_MEMORY_PARAMETER &&
	                 (allocation->category == STEPSCOPE_MEMORY_GRADIENT ||
	                  allocation->category == STEPSCOPE_MEMORY_BUFFER);
	if (allocation->category == STEPSCOPE_MEMORY_UNKNOWN || is_better)
		allocation->category = owner->category;
}

/* ---- stretches in which memory was not recorded ------------------------------------------------------------------ */

/* A stretch of steps without memory between steps with memory. */
struct memory_events_gap {
	int64_t start_ns;
	int64_t whole_ns; /* start of the last step with memory before the gap */
};

struct memory_events_gaps { /* gaps of one process */
	struct memory_events_gap *list;
	uint32_t count, capacity, next;
};

/* Returns the start of the gap. The first and last steps around it may be recorded in part, so the longest time without
 * events is the gap. */
static int64_t widest_hole(const struct model *model, const struct model_step *last, const struct model_step *next,
                           uint32_t *event)
{
	int64_t at_ns = last->end_ns, start_ns = at_ns, widest_ns = 0;
	for (bool is_over = false; !is_over;) {
		const struct memory_event *here = *event < model->memory_count ? &model->memory[*event] : NULL;
		is_over = !here || here->process != next->process || here->time_ns >= next->start_ns;
		int64_t end_ns = is_over ? next->start_ns : here->time_ns;
		if (end_ns - at_ns > widest_ns) {
			widest_ns = end_ns - at_ns;
			start_ns = at_ns;
		}
		at_ns = end_ns > at_ns ? end_ns : at_ns;
		*event += !is_over;
	}
	return start_ns + 1; /* after the step's end */
}

/* `event`: the first event of the process, or an earlier one. */
static void memory_events_find_gaps(struct memory_events_gaps *gaps, const struct model *model, uint32_t process,
                                    uint32_t event)
{
	struct step_cursor cursor = step_cursor_of(model, process);
	const struct model_step *last = NULL;
	bool is_gap = false;
	gaps->count = gaps->next = 0;
	for (int32_t i = cursor.first; i < cursor.end; i++) {
		const struct model_step *step = &cursor.steps[i];
		if (!step->has_memory) {
			is_gap = last != NULL;
			continue;
		}
		if (is_gap) {
			MEMORY_GROW(gaps->list, gaps->count, gaps->capacity, 16);
			gaps->list[gaps->count++] = (struct memory_events_gap){widest_hole(model, last, step, &event),
			                                                       last->start_ns};
		}
		last = step;
		is_gap = false;
	}
}

/* ---- memory that only an owner reported, and memory that may not be alive any more ------------------------------- */

#define GONE (NUMBER_MAP_NONE - 1) /* it was alive before, and is not now */

struct memory_events_unseen {
	struct memory_walk walk;
	struct memory_events_gaps gaps;
	uint32_t *alive; /* allocations since the last gap, and those that survived it */
	uint32_t alive_count, alive_capacity;
};

static void note_alive(struct memory_events_unseen *unseen, uint32_t allocation)
{
	const struct memory_event *event = &unseen->walk.model->memory[allocation];
	number_map_set(&unseen->walk.live, memory_events_place_of(event->address, event->device), allocation);
	if (unseen->gaps.next < unseen->gaps.count) {
		MEMORY_GROW(unseen->alive, unseen->alive_count, unseen->alive_capacity, 256);
		unseen->alive[unseen->alive_count++] = allocation;
	}
}

/* The allocation starts with the process if the address is new. Otherwise it starts when its owner reported it. */
static void memory_events_add_found(struct memory_events_unseen *unseen, const struct memory_owner *owner,
                                    bool was_known)
{
	struct model *model = unseen->walk.model;
	const struct process *process = &model->processes[owner->process];
	struct memory_event found = {
		.time_ns = was_known || !process->has_times ? owner->time_ns : process->first_ns,
		.address = owner->address,
		.bytes = owner->bytes,
		.process = owner->process,
		.track = owner->track,
		.row = MODEL_NONE,
		.device = owner->device,
		.category = owner->category == STEPSCOPE_MEMORY_INPUT ? (uint8_t)STEPSCOPE_MEMORY_UNKNOWN
	                                                              : owner->category,
		.has_bytes = true,
		.is_found = true,
	};
	model_add_memory(model, &found);
	note_alive(unseen, model->memory_count - 1);
}

/* Returns true if a program allocates such memory once and keeps it. That includes gradients, unless each step
 * allocates them again. */
static bool is_held(const struct memory_event *allocation, const struct memory_events_gap *gap)
{
	switch (allocation->category) {
	case STEPSCOPE_MEMORY_PARAMETER:
	case STEPSCOPE_MEMORY_BUFFER:
	case STEPSCOPE_MEMORY_OPTIMIZER:
		return true;
	case STEPSCOPE_MEMORY_GRADIENT:
		return allocation->time_ns <= gap->whole_ns;
	default:
		return false;
	}
}

static void free_unseen(struct memory_events_unseen *unseen, const struct memory_event *allocation, int64_t time_ns)
{
	struct memory_event release = *allocation;
	release.time_ns = time_ns;
	release.row = MODEL_NONE;
	release.is_free = release.is_found = true;
	number_map_set(&unseen->walk.live, memory_events_place_of(release.address, release.device), GONE);
	model_add_memory(unseen->walk.model, &release);
}

/* Memory that is not held may have been freed in the gap. It counts as freed until an owner reports it again. */
static void pass_gap(struct memory_events_unseen *unseen, const struct memory_events_gap *gap)
{
	const struct model *model = unseen->walk.model;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < unseen->alive_count; i++) {
		const struct memory_event *allocation = &model->memory[unseen->alive[i]];
		uint64_t place = memory_events_place_of(allocation->address, allocation->device);
		if (number_map_find(&unseen->walk.live, place) != unseen->alive[i])
			continue;
		if (is_held(allocation, gap))
			unseen->alive[kept++] = unseen->alive[i];
		else
			free_unseen(unseen, allocation, gap->start_ns);
	}
	unseen->alive_count = kept;
}

/* Passes the gaps that started by this time, before the next event or owner is handled. */
static void pass_gaps(struct memory_events_unseen *unseen, int64_t time_ns)
{
	struct memory_events_gaps *gaps = &unseen->gaps;
	while (gaps->next < gaps->count && gaps->list[gaps->next].start_ns <= time_ns)
		pass_gap(unseen, &gaps->list[gaps->next++]);
}

static void memory_events_take_event(struct memory_events_unseen *unseen, uint32_t number)
{
	const struct memory_event *event = &unseen->walk.model->memory[number];
	if (event->is_free)
		number_map_set(&unseen->walk.live, memory_events_place_of(event->address, event->device), GONE);
	else
		note_alive(unseen, number);
}

static void take_owner(struct memory_events_unseen *unseen, const struct memory_owner *owner)
{
	const struct model *model = unseen->walk.model;
	uint32_t known = number_map_find(&unseen->walk.live, memory_events_place_of(owner->address, owner->device));
	bool is_alive = known != NUMBER_MAP_NONE && known != GONE;
	if (is_alive)
		own(&unseen->walk, owner);
	else if (owner->bytes && owner->process < model->processes_count)
		memory_events_add_found(unseen, owner, known == GONE);
}

/* Returns true if only some steps have memory. */
static bool may_have_gaps(const struct model *model)
{
	uint32_t with = 0;
	for (uint32_t i = 0; i < model->steps_count; i++)
		with += model->steps[i].has_memory;
	return with && with < model->steps_count;
}

static void find_unseen(struct model *model)
{
	struct memory_events_unseen unseen = {.walk = walk_of(model)};
	struct memory_walk *walk = &unseen.walk;
	bool may_end_early = !may_have_gaps(model);
	uint32_t process = MODEL_NONE;
	while (has_next(walk) && !(may_end_early && walk->owner == model->owners_count)) {
		bool is_event = is_event_next(walk);
		if (walk->process != process) {
			unseen.alive_count = 0;
			memory_events_find_gaps(&unseen.gaps, model, process = walk->process, walk->event);
		}
		pass_gaps(&unseen, is_event ? model->memory[walk->event].time_ns : model->owners[walk->owner].time_ns);
		if (is_event)
			memory_events_take_event(&unseen, walk->event++);
		else
			take_owner(&unseen, &model->owners[walk->owner++]);
	}
	number_map_release(&walk->live);
	free(unseen.gaps.list);
	free(unseen.alive);
	if (model->memory_count > walk->event_count)
		merge_sort_in(model->storage, model->memory, model->memory_count, sizeof *model->memory,
		              compare_memory);
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

static void pair_free(struct memory_walk *walk, struct memory_event *release, uint32_t found)
{
	struct memory_event *allocation = &walk->model->memory[found];
	assert(release->is_free && !allocation->is_free);
	release->partner = found;
	allocation->partner = walk->event;
	if (!release->has_bytes && allocation->has_bytes) {
		release->bytes = allocation->bytes;
		release->has_bytes = true;
	}
}

static void pair_event(struct memory_walk *walk)
{
	struct memory_event *event = &walk->model->memory[walk->event];
	uint64_t place = memory_events_place_of(event->address, event->device);
	uint32_t found = number_map_find(&walk->live, place);
	event->partner = event->ends = MODEL_NONE;
	if (event->is_free) {
		if (found == NUMBER_MAP_NONE)
			return;
		pair_free(walk, event, found);
		number_map_remove(&walk->live, place);
		return;
	}
	if (found != NUMBER_MAP_NONE) { /* its free was dropped, or was not recorded */
		event->ends = found;
		walk->model->memory[found].partner = walk->event;
	}
	number_map_set(&walk->live, place, walk->event);
}

static void memory_events_pair_all(struct model *model)
{
	struct memory_walk walk = walk_of(model);
	while (has_next(&walk)) {
		if (is_event_next(&walk)) {
			pair_event(&walk);
			walk.event++;
		} else {
			own(&walk, &model->owners[walk.owner++]);
		}
	}
	number_map_release(&walk.live);
}

static void tell_frees(struct model *model)
{
	for (uint32_t i = 0; i < model->memory_count; i++) {
		struct memory_event *event = &model->memory[i];
		if (event->is_free && event->partner != MODEL_NONE)
			event->category = model->memory[event->partner].category;
		if (event->category > STEPSCOPE_MEMORY_BUFFER)
			event->category = event->is_data ? STEPSCOPE_MEMORY_INPUT : STEPSCOPE_MEMORY_OTHER;
	}
}

void finish_memory(struct model *model)
{
	merge_sort_in(model->storage, model->memory, model->memory_count, sizeof *model->memory, compare_memory);
	merge_sort_in(model->storage, model->owners, model->owners_count, sizeof *model->owners, compare_owners);
	find_unseen(model);
	memory_events_pair_all(model);
	finish_categories(model);
	tell_frees(model);
}
