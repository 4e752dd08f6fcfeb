/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory: the order of allocations and frees, which free belongs to which allocation, and what was alive without anybody having seen
 * it allocated. Addresses are used again and again, so all matching goes in order of time.
 */
#include "base/merge_sort.h"
#include "model/finish.h"
#include "model/model_index.h"
#include "model/number_map.h"

#include <assert.h>
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
static uint64_t place_of(uint64_t address, int16_t device)
{
	return address ^ (uint64_t)(uint16_t)(device + 1) << 57;
}

/* ---- walking through events and owners by time --------------------------------------------------------------------------- */

struct memory_walk {
	struct model *model;
	struct number_map live; /* place -> index of its allocation */
	uint32_t process;
	uint32_t event, owner; /* next ones */
};

/* The next one is an event (true) or an owner (false). What happens at the same time comes before what is told of it. */
static bool is_event_next(struct memory_walk *walk)
{
	const struct model *model = walk->model;
	const struct memory_event *event = walk->event < model->memory_count ? &model->memory[walk->event] : NULL;
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
	return walk->event < walk->model->memory_count || walk->owner < walk->model->owners_count;
}

/* ---- what only an owner told of --------------------------------------------------------------------------------------------- */

#define IS_KNOWN 0 /* in this walk a place is either alive, or was */
#define WAS_KNOWN 1

/* From the first instant of the process when nothing else is known of the address, else from when its owner told of it. */
static void add_found(struct model *model, const struct memory_owner *owner, bool was_known)
{
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
}

static void find_unseen(struct model *model)
{
	struct memory_walk walk = {.model = model, .process = MODEL_NONE};
	uint32_t event_count = model->memory_count;
	while (walk.owner < model->owners_count) {
		if (walk.event < event_count && is_event_next(&walk)) {
			const struct memory_event *event = &model->memory[walk.event++];
			number_map_set(&walk.live, place_of(event->address, event->device),
			               event->is_free ? WAS_KNOWN : IS_KNOWN);
			continue;
		}
		const struct memory_owner *owner = &model->owners[walk.owner++];
		if (owner->process != walk.process)
			number_map_release(&walk.live);
		walk.process = owner->process;
		uint32_t known = number_map_find(&walk.live, place_of(owner->address, owner->device));
		if (known == IS_KNOWN || !owner->bytes || owner->process >= model->processes_count)
			continue;
		add_found(model, owner, known == WAS_KNOWN);
		number_map_set(&walk.live, place_of(owner->address, owner->device), IS_KNOWN);
	}
	number_map_release(&walk.live);
	if (model->memory_count > event_count)
		merge_sort_in(model->storage, model->memory, model->memory_count, sizeof *model->memory,
		              compare_memory);
}

/* ---- pairs ------------------------------------------------------------------------------------------------------------------ */

static void pair_free(struct memory_walk *walk, struct memory_event *release, uint32_t found)
{
	struct memory_event *allocation = &walk->model->memory[found];
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
	uint64_t place = place_of(event->address, event->device);
	uint32_t found = number_map_find(&walk->live, place);
	event->partner = event->ends = MODEL_NONE;
	if (event->is_free) {
		if (found == NUMBER_MAP_NONE)
			return;
		pair_free(walk, event, found);
		number_map_remove(&walk->live, place);
		return;
	}
	if (found != NUMBER_MAP_NONE) { /* its free was dropped, or happened while memory was not recorded */
		event->ends = found;
		walk->model->memory[found].partner = walk->event;
	}
	number_map_set(&walk->live, place, walk->event);
}

/* An allocation is what its first owner says, a parameter's whoever else holds it. What a model is called with may be anything. */
static void own(struct memory_walk *walk, const struct memory_owner *owner)
{
	uint32_t found = number_map_find(&walk->live, place_of(owner->address, owner->device));
	if (found == NUMBER_MAP_NONE)
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

static void pair_all(struct model *model)
{
	struct memory_walk walk = {.model = model, .process = MODEL_NONE};
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
	pair_all(model);
	finish_categories(model);
	tell_frees(model);
}
