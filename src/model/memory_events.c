/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory: the order of allocations and frees, and which free belongs to which allocation.
 */
#include "model/finish.h"
#include "model/merge_sort.h"
#include "model/number_map.h"

static int compare_memory(const void *left, const void *right)
{
	const struct memory_event *a = left, *b = right;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* Addresses have at most 57 bits, devices are few: no two live allocations of real programs share a key. */
static uint64_t place_of(const struct memory_event *event)
{
	return event->address ^ (uint64_t)(uint16_t)(event->device + 1) << 57;
}

static void match_free(struct memory_event *release, const struct memory_event *allocation)
{
	release->category = allocation->category;
	if (!release->has_bytes && allocation->has_bytes) {
		release->bytes = allocation->bytes;
		release->has_bytes = true;
	}
}

void finish_memory(struct model *model)
{
	merge_sort(model->memory, model->memory_count, sizeof *model->memory, compare_memory);
	struct number_map live = {0};
	for (uint32_t i = 0; i < model->memory_count; i++) {
		struct memory_event *event = &model->memory[i];
		if (i > 0 && event->process != event[-1].process)
			number_map_release(&live);
		if (!event->is_free) {
			number_map_set(&live, place_of(event), i);
			continue;
		}
		uint32_t found = number_map_find(&live, place_of(event));
		if (found == NUMBER_MAP_NONE)
			continue;
		match_free(event, &model->memory[found]);
		number_map_remove(&live, place_of(event));
	}
	number_map_release(&live);
}
