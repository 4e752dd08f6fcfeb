/* SPDX-License-Identifier: Apache-2.0
 *
 * snapshot_events.c: replays the allocator's events of each device as allocations and frees of the model. Memory is
 * freed when the program returns it (free_requested), as torch.cuda.memory_allocated() counts. The device may use it
 * until free_completed, which changes nothing.
 *
 * The events are the last ones of a ring, so memory may be older than they are. Memory that is freed without an
 * allocation, or is alive in the segments without one, existed before. It is added as found, at the first instant of
 * all.
 */
#include "base/memory.h"
#include "importers/snapshot/snapshot.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

#define IS_ALIVE 1u
#define IS_PENDING 2u /* returned by the program; the device may still use it */

struct replay { /* replay of one device */
	struct snapshot *snapshot;
	uint32_t device;
	const struct snapshot_event *events;
	uint32_t count;
	struct number_map state;       /* state of each address */
	uint64_t forgotten;            /* live blocks allocated during the recording, but before the first event */
	uint64_t unseen;               /* alive at the end by the events, but not in the segments */
	bool is_cut;                   /* the device's last events are missing from the file */
	uint64_t unplaced;             /* if is_cut: live blocks that may be older or newer than the events */
	wide_bytes allocated, pending; /* pending: returned by the program, but still in use by the device */
	wide_bytes reserved, reserved_peak;
	uint32_t oom_track;
	uint64_t ooms;
	/* annotations */
	const struct snapshot_note *notes, *notes_end;
	struct open_note {
		uint32_t row;
		int64_t end_ns;
	} * open;
	uint32_t open_count, open_capacity;
};

/* Without times, the index in the list stands for the time. */
static int64_t snapshot_events_time_of(const struct replay *replay, uint32_t index, int64_t *last_ns)
{
	const struct snapshot_event *event = &replay->events[index];
	int64_t time_ns = event->has_time ? 1000 * event->time_us : replay->snapshot->has_times ? *last_ns : index;
	if (time_ns < *last_ns) {
		snapshot_repair(replay->snapshot, SNAPSHOT_ORDER, 1);
		time_ns = *last_ns;
	}
	return *last_ns = time_ns;
}

/* ---- annotations around an event -------------------------------------------------------------------------------- */

static void open_note(struct replay *replay, const struct snapshot_note *note)
{
	int64_t end_ns = note->time_ns + note->dur_ns;
	if (note->row == MODEL_NONE)
		return;
	assert(!replay->open_count || replay->open[replay->open_count - 1].end_ns > note->time_ns);
	MEMORY_GROW(replay->open, replay->open_count, replay->open_capacity, 16);
	if (replay->open_count && replay->open[replay->open_count - 1].end_ns < end_ns)
		end_ns = replay->open[replay->open_count - 1].end_ns;
	replay->open[replay->open_count++] = (struct open_note){note->row, end_ns};
}

static uint32_t row_at(struct replay *replay, int64_t time_ns)
{
	for (; replay->notes < replay->notes_end && replay->notes->time_ns <= time_ns; replay->notes++) {
		while (replay->open_count && replay->open[replay->open_count - 1].end_ns <= replay->notes->time_ns)
			replay->open_count--;
		open_note(replay, replay->notes);
	}
	while (replay->open_count && replay->open[replay->open_count - 1].end_ns <= time_ns)
		replay->open_count--;
	return replay->open_count ? replay->open[replay->open_count - 1].row : MODEL_NONE;
}

/* ---- memory from before ----------------------------------------------------------------------------------------- */

static void snapshot_events_add_found(struct replay *replay, uint64_t address, uint64_t bytes, uint32_t stack,
                                      uint8_t category)
{
	struct snapshot *snapshot = replay->snapshot;
	model_add_memory(snapshot->model, &(struct memory_event){
						  .time_ns = snapshot->first_ns,
						  .address = address,
						  .bytes = bytes,
						  .process = snapshot->process,
						  .track = snapshot_track(snapshot, replay->device),
						  .row = MODEL_NONE,
						  .stack = stack,
						  .device = (int16_t)replay->device,
						  .category = category,
						  .has_bytes = true,
						  .is_found = true,
					  });
	replay->allocated += bytes;
}

/* Returns true if the event frees live memory; also updates its state. *was_seen: its allocation was seen. */
static bool is_free(struct replay *replay, const struct snapshot_event *event, bool *was_seen)
{
	uint32_t state = number_map_find(&replay->state, event->address);
	*was_seen = state == IS_ALIVE;
	if (event->action == ACTION_FREE_REQUESTED) {
		number_map_set(&replay->state, event->address, IS_PENDING);
		return true;
	}
	if (event->action == ACTION_FREE_COMPLETED && state != NUMBER_MAP_NONE) {
		number_map_remove(&replay->state, event->address);
		return state == IS_ALIVE; /* its request is missing */
	}
	return false;
}

static void find_freed(struct replay *replay)
{
	bool was_seen;
	for (uint32_t i = 0; i < replay->count; i++) {
		const struct snapshot_event *event = &replay->events[i];
		if (event->action == ACTION_ALLOC)
			number_map_set(&replay->state, event->address, IS_ALIVE);
		else if (is_free(replay, event, &was_seen) && !was_seen)
			snapshot_events_add_found(replay, event->address, event->bytes, 0, event->category);
	}
}

static void find_alive(struct replay *replay)
{
	struct snapshot *snapshot = replay->snapshot;
	uint64_t matched = 0, alive = 0;
	for (uint32_t i = 0; i < replay->state.capacity; i++)
		alive += replay->state.slots[i].value == IS_ALIVE;
	for (uint32_t i = 0; i < snapshot->segments_count; i++) {
		const struct snapshot_segment *segment = &snapshot->segments[i];
		for (uint32_t k = 0; k < segment->block_count && segment->row.device == (int16_t)replay->device; k++) {
			const struct snapshot_block *block = &snapshot->blocks[segment->first_block + k];
			if (block->state != BLOCK_ACTIVE)
				continue;
			if (number_map_find(&replay->state, block->address) == IS_ALIVE) {
				matched++;
				continue;
			}
			if (replay->is_cut) {
				replay->unplaced++;
				continue;
			}
			snapshot_events_add_found(replay, block->address, block->requested_bytes, block->stack,
			                          block->category);
			replay->forgotten += block->has_frames && replay->count;
		}
	}
	replay->unseen = snapshot->segments_count && !replay->is_cut && alive > matched ? alive - matched : 0;
	number_map_release(&replay->state);
}

/* ---- reserved memory -------------------------------------------------------------------------------------------- */

static int sign_of(uint8_t action)
{
	return action == ACTION_SEGMENT_ALLOC || action == ACTION_SEGMENT_MAP    ? 1
	       : action == ACTION_SEGMENT_FREE || action == ACTION_SEGMENT_UNMAP ? -1
	                                                                         : 0;
}

/* Finds the bytes reserved before the first event: those at the end, less those added since; without segments, the
 * least possible number. */
static void find_reserved(struct replay *replay)
{
	const struct snapshot *snapshot = replay->snapshot;
	wide_bytes at_end = 0, added = 0, least = 0;
	for (uint32_t i = 0; i < snapshot->segments_count; i++)
		if (snapshot->segments[i].row.device == (int16_t)replay->device)
			at_end += snapshot->segments[i].row.bytes;
	for (uint32_t i = 0; i < replay->count; i++) {
		added += sign_of(replay->events[i].action) * (wide_bytes)replay->events[i].bytes;
		least = added < least ? added : least;
	}
	replay->reserved = !replay->is_cut && at_end - added > -least ? at_end - added : -least;
	replay->reserved_peak = replay->reserved;
}

static void add_reserved(struct replay *replay, int64_t time_ns)
{
	struct model *model = replay->snapshot->model;
	char name[64];
	if (replay->reserved > replay->reserved_peak)
		replay->reserved_peak = replay->reserved;
	if (!replay->snapshot->has_times || replay->is_cut)
		return;
	snprintf(name, sizeof name, "device%" PRIu32 ".reserved_bytes", replay->device);
	model_add_value(model, replay->snapshot->process, intern_add(&model->strings, name), false, time_ns,
	                (double)replay->reserved);
}

static void tell_reserved(const struct replay *replay)
{
	char key[64], value[32];
	if (replay->reserved_peak <= 0 || replay->is_cut)
		return;
	snprintf(key, sizeof key, "memory.%" PRIu32 ".reserved_peak_bytes", replay->device);
	snprintf(value, sizeof value, "%" PRId64, bytes_that_fit(replay->reserved_peak));
	model_add_meta(replay->snapshot->model, replay->snapshot->process, key, value);
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

static void add_oom(struct replay *replay, const struct snapshot_event *event, int64_t time_ns)
{
	struct model *model = replay->snapshot->model;
	const struct {
		const char *key;
		int64_t bytes;
	} args[] = {
		{"asked_bytes", bytes_that_fit(event->bytes)},
		{"device_free_bytes", bytes_that_fit(event->address)},
		{"allocated_bytes", bytes_that_fit(replay->allocated)},
		{"reserved_bytes", bytes_that_fit(replay->reserved)},
		{"pending_bytes", bytes_that_fit(replay->pending)},
	};
	if (!replay->ooms++) {
		char name[64];
		snprintf(name, sizeof name, "out of memory on device %" PRIu32, replay->device);
		replay->oom_track = model_add_track(model, replay->snapshot->process, TRACK_OTHER);
		model->tracks[replay->oom_track]->name = intern_add(&model->strings, name);
		model->tracks[replay->oom_track]->device = (int32_t)replay->device;
	}
	uint32_t row = model_span_complete(model, replay->oom_track, time_ns, 0, SPAN_OTHER,
	                                   intern_add(&model->strings, "out of memory"));
	if (row == MODEL_NONE)
		return;
	if (event->stack)
		model_span_set_stack(model, replay->oom_track, row, event->stack);
	for (size_t i = 0; i < sizeof args / sizeof args[0]; i++)
		model_span_arg(model, &(struct span_arg){.track = replay->oom_track,
		                                         .row = row,
		                                         .key = intern_add(&model->strings, args[i].key),
		                                         .type = STEPSCOPE_ARG_I64,
		                                         .i64 = args[i].bytes});
}

static void add_event(struct replay *replay, const struct snapshot_event *event, int64_t time_ns)
{
	struct snapshot *snapshot = replay->snapshot;
	bool is_alloc = event->action == ACTION_ALLOC, was_seen;
	if (event->action == ACTION_FREE_REQUESTED)
		replay->pending += event->bytes;
	else if (event->action == ACTION_FREE_COMPLETED &&
	         number_map_find(&replay->state, event->address) == IS_PENDING)
		replay->pending -= event->bytes;
	if (is_alloc)
		number_map_set(&replay->state, event->address, IS_ALIVE);
	else if (!is_free(replay, event, &was_seen))
		return;
	replay->allocated += is_alloc ? (wide_bytes)event->bytes : -(wide_bytes)event->bytes;
	model_add_memory(snapshot->model, &(struct memory_event){
						  .time_ns = time_ns,
						  .address = event->address,
						  .bytes = event->bytes,
						  .process = snapshot->process,
						  .track = snapshot_track(snapshot, replay->device),
						  .row = row_at(replay, time_ns),
						  .stack = event->stack,
						  .device = (int16_t)replay->device,
						  .category = event->category,
						  .is_free = !is_alloc,
						  .has_bytes = true,
					  });
}

static void snapshot_events_add_mark(struct replay *replay, const char *name, int64_t time_ns)
{
	struct snapshot *snapshot = replay->snapshot;
	model_add_mark(snapshot->model, snapshot_track(snapshot, replay->device), time_ns,
	               intern_add(&snapshot->model->strings, name));
}

static void add_events(struct replay *replay)
{
	int64_t last_ns = replay->snapshot->first_ns;
	for (uint32_t i = 0; i < replay->count; i++) {
		const struct snapshot_event *event = &replay->events[i];
		int64_t time_ns = snapshot_events_time_of(replay, i, &last_ns);
		int sign = sign_of(event->action);
		replay->reserved += sign * (wide_bytes)event->bytes;
		if (sign || i == 0)
			add_reserved(replay, time_ns);
		else if (event->action == ACTION_OOM)
			add_oom(replay, event, time_ns);
		else if (event->action == ACTION_SNAPSHOT)
			snapshot_events_add_mark(replay, "snapshot", time_ns);
		else if (event->action == ACTION_USER_DEFINED)
			snapshot_events_add_mark(replay, "user defined", time_ns);
		if (!sign)
			add_event(replay, event, time_ns);
	}
	number_map_release(&replay->state);
}

/* ---- one device ------------------------------------------------------------------------------------------------- */

static void snapshot_events_tell(const struct replay *replay)
{
	struct model *model = replay->snapshot->model;
	char where[64];
	snprintf(where, sizeof where, "device %" PRIu32, replay->device);
	if (replay->forgotten)
		model_add_ledger(
			model, LEDGER_DROPPED, replay->snapshot->process, where, replay->forgotten,
			"live blocks were allocated during the recording, but before its first kept event: the ring of "
			"events (max_entries) was full. Blocks freed before are unknown");
	if (replay->unplaced)
		model_add_ledger(
			model, LEDGER_OTHER, replay->snapshot->process, where, replay->unplaced,
			"blocks alive at the end were allocated before the first event or in the cut-off part: they are "
			"in the segments, but not in the memory over time");
	if (replay->unseen)
		model_add_ledger(model, LEDGER_OTHER, replay->snapshot->process, where, replay->unseen,
		                 "allocations are alive according to the events, but are not in the segments");
	if (replay->ooms)
		model_add_ledger(model, LEDGER_OTHER, replay->snapshot->process, where, replay->ooms,
		                 "times the allocator ran out of memory: see --table memory_failures");
}

static void deliver_device(struct replay *replay)
{
	find_freed(replay);
	find_alive(replay);
	find_reserved(replay);
	add_events(replay);
	tell_reserved(replay);
	snapshot_events_tell(replay);
	free(replay->open);
}

void snapshot_find_times(struct snapshot *snapshot)
{
	for (uint32_t i = 0; i < snapshot->events_count; i++) {
		const struct snapshot_event *event = &snapshot->events[i];
		int64_t time_ns = 1000 * event->time_us;
		if (!event->has_time)
			continue;
		snapshot->first_ns = snapshot->has_times && snapshot->first_ns < time_ns ? snapshot->first_ns : time_ns;
		snapshot->last_ns = snapshot->has_times && snapshot->last_ns > time_ns ? snapshot->last_ns : time_ns;
		snapshot->has_times = true;
	}
}

static bool has_segments(const struct snapshot *snapshot, uint32_t device)
{
	for (uint32_t i = 0; i < snapshot->segments_count; i++)
		if (snapshot->segments[i].row.device == (int16_t)device)
			return true;
	return false;
}

/* Returns true if no later device has events. If the file is cut off, events of this device are then missing. */
static bool is_last(const struct snapshot *snapshot, const struct pickle_object *traces, uint32_t device)
{
	for (uint32_t i = device + 1; i < traces->count; i++)
		if (pickle_taken(&snapshot->pickle, &traces->items[i], SNAPSHOT_EVENT | SNAPSHOT_RUN))
			return false;
	return true;
}

/* Returns the events of the device; NULL: it has none, or its list is also that of an earlier device. */
static const struct pickle_object *events_of(struct snapshot *snapshot, const struct pickle_object *traces,
                                             uint32_t device, uint32_t *owned)
{
	const struct pickle_object *list = traces && device < traces->count
	                                           ? pickle_taken(&snapshot->pickle, &traces->items[device],
	                                                          SNAPSHOT_EVENT | SNAPSHOT_RUN)
	                                           : NULL;
	if (list && list->taken < *owned) {
		snapshot_repair(snapshot, SNAPSHOT_ITEMS, 1);
		return NULL;
	}
	if (list)
		*owned = list->taken + list->count;
	return list;
}

void snapshot_deliver_events(struct snapshot *snapshot, const struct pickle_object *traces,
                             const struct snapshot_notes *notes)
{
	uint32_t next = 0, owned = 0;
	for (uint32_t device = 0; device < SNAPSHOT_DEVICES; device++) {
		const struct pickle_object *list = events_of(snapshot, traces, device, &owned);
		struct replay replay = {.snapshot = snapshot, .device = device};
		if (list) {
			replay.events = snapshot->events + list->taken;
			replay.count = list->count;
		}
		replay.is_cut = list && snapshot->pickle.end != PICKLE_COMPLETE && is_last(snapshot, traces, device);
		replay.notes = notes->list + next;
		while (next < notes->count && notes->list[next].device == device)
			next++;
		replay.notes_end = notes->list + next;
		if (list || has_segments(snapshot, device))
			deliver_device(&replay);
	}
}
