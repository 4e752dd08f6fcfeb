/* SPDX-License-Identifier: Apache-2.0
 *
 * export_perfetto_parts.c: clock, descriptors, and everything except spans. These packets share one sequence with
 * absolute times and uninterned names, so they need no state.
 */
#include "base/hash.h"
#include "base/text.h"
#include "output/export/export_perfetto.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LONGEST_NAME ((size_t)2048)

/* ---- identities ---- */

static uint64_t perfetto_parts_mix(uint64_t hash, uint64_t value)
{
	return hash_scatter(hash ^ (value + HASH_FACTOR + (hash << 6) + (hash >> 2)));
}

/* Returns an id that is the same in every export of the run and different in other runs, so that files of several ranks
 * can be merged. */
uint64_t perfetto_uuid(const struct perfetto *perfetto, const char *what, uint32_t process, uint64_t number)
{
	uint64_t hash = perfetto_parts_mix(0, (uint64_t)perfetto->window.realtime_offset_ns);

	if (process < perfetto->model->processes_count) {
		hash = perfetto_parts_mix(hash, (uint64_t)perfetto->model->processes[process].pid);
		hash = perfetto_parts_mix(hash, perfetto->model->processes[process].start_time);
	}
	for (; *what; what++)
		hash = perfetto_parts_mix(hash, (unsigned char)*what);
	hash = perfetto_parts_mix(perfetto_parts_mix(hash, process), number) & INT64_MAX;
	return hash ? hash : 1;
}

uint64_t perfetto_track_uuid(const struct perfetto *perfetto, uint32_t track)
{
	return perfetto_uuid(perfetto, "track", perfetto->model->tracks[track]->process, track);
}

/* ---- packets of the common sequence ---- */

static void put_clock(struct proto *snapshot, uint64_t id, uint64_t now)
{
	struct proto clock;

	proto_clear(&clock);
	proto_varint(&clock, 1, id);
	proto_varint(&clock, 2, now);
	proto_message(snapshot, 1, &clock);
}

void perfetto_clock(struct perfetto *perfetto)
{
	uint64_t now = (uint64_t)(perfetto->window.first_ns + perfetto->shift_ns);
	int64_t wall = perfetto->window.first_ns + perfetto->window.realtime_offset_ns;
	struct proto packet, snapshot;

	proto_clear(&packet);
	proto_clear(&snapshot);
	put_clock(&snapshot, CLOCK_ID_BOOTTIME, now);
	put_clock(&snapshot, CLOCK_ID_MONOTONIC, now);
	if (wall > 0)
		put_clock(&snapshot, CLOCK_ID_REALTIME, (uint64_t)wall);
	proto_varint(&snapshot, 2, CLOCK_ID_BOOTTIME);
	proto_varint(&packet, PACKET_SEQUENCE_ID, MISC_SEQUENCE);
	proto_varint(&packet, PACKET_FIRST_ON_SEQUENCE, 1);
	proto_message(&packet, PACKET_CLOCK_SNAPSHOT, &snapshot);
	perfetto_packet(perfetto, &packet);
}

static void put_descriptor(struct perfetto *perfetto, const struct proto *descriptor)
{
	struct proto packet;

	proto_clear(&packet);
	proto_varint(&packet, PACKET_SEQUENCE_ID, MISC_SEQUENCE);
	proto_message(&packet, PACKET_TRACK_DESCRIPTOR, descriptor);
	perfetto_packet(perfetto, &packet);
}

static void put_event(struct perfetto *perfetto, int64_t time_ns, const struct proto *event)
{
	struct proto packet;

	proto_clear(&packet);
	proto_varint(&packet, PACKET_TIMESTAMP, (uint64_t)(time_ns + perfetto->shift_ns));
	proto_varint(&packet, PACKET_SEQUENCE_ID, MISC_SEQUENCE);
	proto_message(&packet, PACKET_TRACK_EVENT, event);
	perfetto_packet(perfetto, &packet);
}

/* Cuts a long name at a character, because it must fit into a small message. */
static void put_name(struct proto *message, uint32_t field, const char *name)
{
	size_t length = strlen(name);

	if (length > LONGEST_NAME) {
		length = LONGEST_NAME;
		while (length && ((unsigned char)name[length] & 0xc0) == 0x80)
			length--;
	}
	proto_bytes(message, field, name, length);
}

/* ---- descriptors ---- */

static uint64_t process_uuid(const struct perfetto *perfetto, uint32_t process)
{
	return perfetto_uuid(perfetto, "process", process, 0);
}

void perfetto_describe_process(struct perfetto *perfetto, uint32_t number)
{
	const struct process *process = &perfetto->model->processes[number];
	struct proto descriptor, inner;
	char name[LONGEST_NAME + 64];

	proto_clear(&descriptor);
	proto_clear(&inner);
	if (process->rank >= 0 && perfetto_has_many(perfetto))
		snprintf(name, sizeof(name), "rank %d: %.*s", process->rank, (int)LONGEST_NAME,
		         model_text(perfetto->model, process->name));
	else
		snprintf(name, sizeof(name), "%.*s", (int)LONGEST_NAME, model_text(perfetto->model, process->name));
	proto_varint(&inner, 1, (uint64_t)perfetto->ids.process_pid[number]);
	put_name(&inner, 6, name);
	proto_varint(&descriptor, TRACK_UUID, process_uuid(perfetto, number));
	proto_message(&descriptor, TRACK_PROCESS, &inner);
	put_descriptor(perfetto, &descriptor);
}

static void describe_plain(struct perfetto *perfetto, uint64_t uuid, uint64_t parent, const char *name)
{
	struct proto descriptor;

	proto_clear(&descriptor);
	proto_varint(&descriptor, TRACK_UUID, uuid);
	if (parent)
		proto_varint(&descriptor, TRACK_PARENT, parent);
	put_name(&descriptor, TRACK_NAME, name);
	put_descriptor(perfetto, &descriptor);
}

static uint64_t describe_device(struct perfetto *perfetto, const struct track *track)
{
	uint64_t uuid = perfetto_uuid(perfetto, "device", track->process, (uint64_t)track->device);
	const struct process *process = &perfetto->model->processes[track->process];
	char name[64];

	if (process->rank >= 0 && perfetto_has_many(perfetto))
		snprintf(name, sizeof(name), "rank %d: GPU %d", process->rank, track->device);
	else
		snprintf(name, sizeof(name), "GPU %d", track->device);
	describe_plain(perfetto, uuid, 0, name);
	return uuid;
}

static void describe_thread(struct perfetto *perfetto, uint32_t number, uint64_t uuid)
{
	const struct track *track = perfetto->model->tracks[number];
	struct track_ids ids = perfetto->ids.tracks[number];
	struct proto descriptor, inner;

	proto_clear(&descriptor);
	proto_clear(&inner);
	proto_varint(&inner, 1, (uint64_t)ids.pid);
	proto_varint(&inner, 2, (uint64_t)ids.tid);
	if (track->name)
		put_name(&inner, 5, model_text(perfetto->model, track->name));
	else if (track->kind == TRACK_SIGNAL)
		put_name(&inner, 5, "signal handlers");
	proto_varint(&descriptor, TRACK_UUID, uuid);
	proto_message(&descriptor, TRACK_IS_THREAD, &inner);
	put_descriptor(perfetto, &descriptor);
}

void perfetto_describe_track(struct perfetto *perfetto, uint32_t number, uint64_t uuid, unsigned lane)
{
	const struct track *track = perfetto->model->tracks[number];
	const char *given = track->name ? model_text(perfetto->model, track->name) : "";
	char name[LONGEST_NAME + 128];
	uint64_t parent;

	if (!export_is_device(track) && lane == 1) {
		describe_thread(perfetto, number, uuid);
		return;
	}
	if (export_is_device(track)) {
		parent = describe_device(perfetto, track);
		snprintf(name, sizeof(name), "stream %" PRId64 "%s%.*s", perfetto->ids.tracks[number].tid,
		         *given ? " " : "", (int)LONGEST_NAME, given);
	} else {
		parent = process_uuid(perfetto, track->process);
		perfetto_describe_process(perfetto, track->process);
		snprintf(name, sizeof(name), "%.*s %" PRId64, (int)LONGEST_NAME, *given ? given : "thread", track->tid);
	}
	if (lane > 1)
		snprintf(name + strlen(name), 32, " (lane %u)", lane);
	describe_plain(perfetto, uuid, parent, name);
}

/* ---- steps ---- */

static bool is_step_written(const struct perfetto *perfetto, const struct model_step *step)
{
	return perfetto_has_process(perfetto, step->process) &&
	       (!perfetto->selection.intervals ||
	        (step->number >= perfetto->selection.first_step && step->number <= perfetto->selection.last_step));
}

static void put_step(struct perfetto *perfetto, const struct model_step *step, uint64_t uuid)
{
	struct proto event;
	char name[64];

	proto_clear(&event);
	snprintf(name, sizeof(name), "step %" PRId64, step->number);
	proto_varint(&event, PERFETTO_EVENT_TYPE, PERFETTO_EVENT_BEGIN);
	proto_varint(&event, PERFETTO_EVENT_TRACK, uuid);
	proto_text(&event, PERFETTO_EVENT_CATEGORIES, "step");
	proto_text(&event, PERFETTO_EVENT_NAME, name);
	put_event(perfetto, step->start_ns, &event);
	proto_clear(&event);
	proto_varint(&event, PERFETTO_EVENT_TYPE, PERFETTO_EVENT_END);
	proto_varint(&event, PERFETTO_EVENT_TRACK, uuid);
	put_event(perfetto, step->end_ns, &event);
}

/* Writes one row of steps per process, including steps whose events were removed by rotation. */
void perfetto_steps(struct perfetto *perfetto)
{
	uint32_t described = MODEL_NONE;

	for (uint32_t i = 0; i < perfetto->model->steps_count; i++) {
		const struct model_step *step = &perfetto->model->steps[i];
		uint64_t uuid = perfetto_uuid(perfetto, "steps", step->process, 0);

		if (!is_step_written(perfetto, step))
			continue;
		if (described != step->process)
			describe_plain(perfetto, uuid, process_uuid(perfetto, step->process), "Steps");
		described = step->process;
		put_step(perfetto, step, uuid);
	}
}

/* ---- values, memory, marks ---- */

enum {
	UNIT_NONE = 0,
	UNIT_TIME_NS = 1,
	UNIT_COUNT = 2,
	UNIT_BYTES = 3
};

static void put_unit(struct proto *counter, const char *name)
{
	if (text_ends_with(name, "bytes"))
		proto_varint(counter, 3, UNIT_BYTES);
	else if (text_ends_with(name, "_ns"))
		proto_varint(counter, 3, UNIT_TIME_NS);
	else if (text_ends_with(name, "_ratio"))
		proto_text(counter, 6, "ratio");
	else if (text_ends_with(name, "_percent"))
		proto_text(counter, 6, "%");
}

static void describe_counter(struct perfetto *perfetto, uint64_t uuid, uint32_t process, const char *name,
                             const char *unit_of)
{
	struct proto descriptor, counter;

	proto_clear(&descriptor);
	proto_clear(&counter);
	put_unit(&counter, unit_of);
	proto_varint(&descriptor, TRACK_UUID, uuid);
	proto_varint(&descriptor, TRACK_PARENT, process_uuid(perfetto, process));
	put_name(&descriptor, TRACK_NAME, name);
	proto_message(&descriptor, TRACK_COUNTER, &counter);
	put_descriptor(perfetto, &descriptor);
}

static void account(struct perfetto *perfetto, uint32_t process, int64_t time_ns, uint64_t before)
{
	if (perfetto->account)
		step_bytes_add(perfetto->account, process, time_ns, writer_count(&perfetto->w) - before);
}

static void perfetto_parts_put_series(struct perfetto *perfetto, const struct value_series *series, uint64_t uuid)
{
	for (uint32_t i = 0; i < series->count; i++) {
		struct proto event;
		uint64_t before = writer_count(&perfetto->w);

		proto_clear(&event);
		if (!isfinite(series->value[i]) ||
		    !selection_has(&perfetto->selection, series->process, series->time_ns[i]))
			continue;
		proto_varint(&event, PERFETTO_EVENT_TYPE, PERFETTO_EVENT_COUNTER);
		proto_varint(&event, PERFETTO_EVENT_TRACK, uuid);
		proto_double(&event, PERFETTO_EVENT_COUNTER_DOUBLE, series->value[i]);
		put_event(perfetto, series->time_ns[i], &event);
		perfetto->result->counters++;
		account(perfetto, series->process, series->time_ns[i], before);
	}
}

/* Describes a counter. The name of a GPU comes first, because otherwise the counters of two GPUs would look alike. */
static void describe_series(struct perfetto *perfetto, uint64_t uuid, const struct value_series *series)
{
	const char *name = model_text(perfetto->model, series->name);
	struct buffer full;

	buffer_init(&full, LONGEST_NAME + 1);
	if (series->subject)
		buffer_printf(&full, "%s: %s", model_text(perfetto->model, series->subject), name);
	describe_counter(perfetto, uuid, series->process, full.length ? full.data : name, name);
	buffer_release(&full);
}

void perfetto_values(struct perfetto *perfetto)
{
	for (uint32_t i = 0; i < perfetto->model->series_count; i++) {
		const struct value_series *series = perfetto->model->series[i];
		uint64_t uuid = perfetto_uuid(perfetto, "series", series->process, i);

		if (!perfetto_has_process(perfetto, series->process))
			continue;
		describe_series(perfetto, uuid, series);
		perfetto_parts_put_series(perfetto, series, uuid);
	}
}

void perfetto_marks(struct perfetto *perfetto)
{
	const struct model *model = perfetto->model;

	for (uint32_t i = 0; i < model->marks_count; i++) {
		const struct mark *mark = &model->marks[i];
		uint32_t process = model->tracks[mark->track]->process;
		uint64_t before = writer_count(&perfetto->w);
		struct proto event;

		proto_clear(&event);
		if (!perfetto_has_process(perfetto, process) ||
		    !selection_has(&perfetto->selection, process, mark->time_ns))
			continue;
		proto_varint(&event, PERFETTO_EVENT_TYPE, PERFETTO_EVENT_INSTANT);
		proto_varint(&event, PERFETTO_EVENT_TRACK, perfetto_track_uuid(perfetto, mark->track));
		proto_text(&event, PERFETTO_EVENT_CATEGORIES, "mark");
		put_name(&event, PERFETTO_EVENT_NAME, model_text(model, mark->name));
		put_event(perfetto, mark->time_ns, &event);
		perfetto->result->instants++;
		account(perfetto, process, mark->time_ns, before);
	}
}

static void put_total(struct perfetto *perfetto, const struct memory_event *event, int64_t total)
{
	uint64_t uuid = perfetto_uuid(perfetto, "memory", event->process, (uint64_t)(event->device + 1));
	uint64_t before = writer_count(&perfetto->w);
	struct proto message;

	proto_clear(&message);
	proto_varint(&message, PERFETTO_EVENT_TYPE, PERFETTO_EVENT_COUNTER);
	proto_varint(&message, PERFETTO_EVENT_TRACK, uuid);
	proto_varint(&message, PERFETTO_EVENT_COUNTER_INT, (uint64_t)total);
	put_event(perfetto, event->time_ns, &message);
	perfetto->result->counters++;
	account(perfetto, event->process, event->time_ns, before);
}

static void describe_memory(struct perfetto *perfetto, uint32_t process, int32_t device)
{
	char name[64];

	if (device < 0)
		snprintf(name, sizeof(name), "memory allocated, host");
	else
		snprintf(name, sizeof(name), "memory allocated, GPU %d", device);
	describe_counter(perfetto, perfetto_uuid(perfetto, "memory", process, (uint64_t)device + 1), process, name,
	                 "bytes");
}

/* Writes a counter of the bytes allocated per process and device. */
void perfetto_memory(struct perfetto *perfetto)
{
	const struct model *model = perfetto->model;
	struct memory_totals totals = {0};

	for (uint32_t i = 0; i < model->memory_count; i++) {
		const struct memory_event *event = &model->memory[i];
		uint32_t known = totals.count;
		int64_t total = memory_totals_add(&totals, model, event);

		if (!perfetto_has_process(perfetto, event->process))
			continue;
		if (totals.count > known)
			describe_memory(perfetto, event->process, event->device);
		if (export_knows_total(model, event) &&
		    selection_has(&perfetto->selection, event->process, event->time_ns))
			put_total(perfetto, event, total);
	}
	memory_totals_release(&totals);
}
