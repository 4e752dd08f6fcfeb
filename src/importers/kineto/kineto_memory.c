/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_memory.c: allocations of a trace. Those of 2021 and before have sizes but no addresses. For these, a release
 * is assumed to be of the newest live allocation of its size, and each allocation gets a unique address.
 */
#include "base/hash.h"
#include "base/merge_sort.h"
#include "importers/kineto/kineto_import.h"
#include "model/number_map.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST_ADDRESS (UINT64_C(1) << 62) /* not an address of real memory */

struct kineto_memory_alive { /* allocations of one size, the newest first */
	uint64_t address;
	uint32_t older; /* index, NUMBER_MAP_NONE: none */
};

struct addresses {
	struct number_map newest; /* by size and device: index in `list` */
	struct kineto_memory_alive *list;
	uint32_t count;
	uint64_t next;
};

/* Equal times are ordered by the writer's number (partner) and, without one, by the place in the file. */
static int compare_events(const void *left, const void *right)
{
	const struct memory_event *a = left, *b = right;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return (a->partner > b->partner) - (a->partner < b->partner);
}

/* Returns true if the file has the event twice: its writer numbered it, and everything else is equal. */
static bool is_duplicate(const struct memory_event *a, const struct memory_event *b)
{
	return a->partner && compare_events(a, b) == 0 && a->address == b->address && a->bytes == b->bytes &&
	       a->is_free == b->is_free && a->device == b->device && a->track == b->track;
}

static void leave_out_duplicates(struct kineto_stage *stage)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < stage->memory_count; i++) {
		if (kept && is_duplicate(&stage->memory[kept - 1], &stage->memory[i]))
			stage->duplicates++;
		else
			stage->memory[kept++] = stage->memory[i];
	}
	stage->memory_count = kept;
}

void kineto_sort_memory(struct kineto_stage *stage)
{
	uint32_t i = 1;
	while (i < stage->memory_count && compare_events(&stage->memory[i - 1], &stage->memory[i]) <= 0)
		i++;
	if (i < stage->memory_count)
		merge_sort_in(stage->storage, stage->memory, stage->memory_count, sizeof *stage->memory,
		              compare_events);
	leave_out_duplicates(stage);
}

static uint64_t address_of(struct addresses *addresses, const struct memory_event *event)
{
	uint64_t key = hash_two(event->bytes, (uint16_t)event->device);
	uint32_t newest = number_map_find(&addresses->newest, key);
	if (event->is_free && newest != NUMBER_MAP_NONE) {
		if (addresses->list[newest].older == NUMBER_MAP_NONE)
			number_map_remove(&addresses->newest, key);
		else
			number_map_set(&addresses->newest, key, addresses->list[newest].older);
		return addresses->list[newest].address;
	}
	uint64_t address = FIRST_ADDRESS + addresses->next++;
	if (!event->is_free) {
		addresses->list[addresses->count] = (struct kineto_memory_alive){address, newest};
		number_map_set(&addresses->newest, key, addresses->count++);
	}
	return address;
}

void kineto_find_addresses(struct kineto_import *import)
{
	struct kineto_stage *stage = &import->stage;
	struct addresses addresses = {0};
	if (!import->without_address)
		return;
	addresses.list = storage_resize(stage->storage, NULL, stage->memory_count + 1, sizeof *addresses.list);
	for (uint32_t i = 0; i < stage->memory_count; i++)
		if (!stage->memory[i].address)
			stage->memory[i].address = address_of(&addresses, &stage->memory[i]);
	number_map_release(&addresses.newest);
	storage_release(stage->storage, addresses.list);
	model_add_ledger(
		import->model, LEDGER_OTHER, import->main_process, "[memory]", import->without_address,
		"allocations have no address in the trace: each release is matched with the newest allocation of "
		"its size");
}

/* ---- totals ---- */

static void take_total(uint64_t *peak, const struct kineto_value *value)
{
	uint64_t bytes;
	if (kineto_unsigned(value, &bytes) && bytes <= INT64_MAX && bytes > *peak)
		*peak = bytes;
}

void kineto_take_totals(struct kineto_import *import, int device, const struct kineto_value *known)
{
	if (device >= KINETO_MEMORY_DEVICES)
		return;
	take_total(&import->allocated_peaks[1 + device], &known[KINETO_ARG_TOTAL_ALLOCATED]);
	take_total(&import->reserved_peaks[1 + device], &known[KINETO_ARG_TOTAL_RESERVED]);
}

static void deliver_total(struct kineto_import *import, int device, const char *what, uint64_t bytes)
{
	char key[64], value[32];
	if (!bytes)
		return;
	if (device < 0)
		snprintf(key, sizeof key, "memory.host.%s", what);
	else
		snprintf(key, sizeof key, "memory.%d.%s", device, what);
	snprintf(value, sizeof value, "%llu", (unsigned long long)bytes);
	model_add_meta(import->model, import->main_process, key, value);
}

void kineto_deliver_totals(struct kineto_import *import)
{
	for (int device = -1; device < KINETO_MEMORY_DEVICES && !import->is_ours; device++) {
		deliver_total(import, device, "allocated_peak_bytes", import->allocated_peaks[1 + device]);
		deliver_total(import, device, "reserved_peak_bytes", import->reserved_peaks[1 + device]);
	}
}
