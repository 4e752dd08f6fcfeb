/* SPDX-License-Identifier: Apache-2.0
 *
 * validate_perfetto.c: walks the packets of a Perfetto trace and finds data that the trace processor would skip. It
 * checks wire types, interned names, states of sequences, descriptors and the nesting of slices. One packet is in
 * memory at a time.
 */
#include "base/hash.h"
#include "base/input_stream.h"
#include "base/memory.h"
#include "model/number_map.h"
#include "output/export/export_perfetto.h"
#include "output/validate/validate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIGGEST_PACKET ((size_t)64 << 20)

struct sequence {
	bool has_state;      /* cleared at least once */
	uint32_t generation; /* of the state; part of the keys of interned data */
	uint64_t default_track;
	uint64_t default_clock;
	bool has_own_clock;
	uint64_t clock_ns; /* of an incremental clock */
};

struct slice_track {
	uint32_t depth, capacity;
	uint64_t *begins; /* time of each open slice */
	uint64_t first_offset;
	bool is_described;
};

struct perfetto_check {
	struct validation *validation;
	struct number_map sequence_numbers, track_numbers, interned;
	struct sequence *sequences;
	uint32_t sequence_count, sequence_capacity;
	struct slice_track *tracks;
	uint32_t track_count, track_capacity;
	bool has_trace_clock;
	uint64_t trace_clock;
	uint64_t offset; /* of the current packet */
};

/* ---- fields ---- */

struct perfetto_span { /* part of a packet */
	const unsigned char *at, *end;
};

struct field {
	uint32_t number;
	unsigned wire;
	uint64_t value;             /* of varints and fixed numbers */
	struct perfetto_span bytes; /* of length-delimited fields */
};

static bool read_varint(struct perfetto_span *span, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; shift < 70 && span->at < span->end; shift += 7) {
		unsigned char byte = *span->at++;

		if (shift < 64)
			*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static bool read_fixed(struct perfetto_span *span, size_t bytes, uint64_t *value)
{
	if ((size_t)(span->end - span->at) < bytes)
		return false;
	*value = 0;
	memcpy(value, span->at, bytes);
	span->at += bytes;
	return true;
}

static bool read_field(struct perfetto_span *span, struct field *field)
{
	uint64_t tag;

	if (!read_varint(span, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX >> 3)
		return false;
	field->number = (uint32_t)(tag >> 3);
	field->wire = tag & 7;
	switch (field->wire) {
	case PROTO_VARINT:
		return read_varint(span, &field->value);
	case PROTO_FIXED64:
		return read_fixed(span, 8, &field->value);
	case PROTO_FIXED32:
		return read_fixed(span, 4, &field->value);
	case PROTO_BYTES:
		if (!read_varint(span, &field->value) || field->value > (uint64_t)(span->end - span->at))
			return false;
		field->bytes = (struct perfetto_span){span->at, span->at + field->value};
		span->at += field->value;
		return true;
	default:
		return false;
	}
}

static void broken(struct perfetto_check *check, enum validate_rule rule, const char *detail)
{
	validate_count(check->validation, rule, check->offset, detail);
}

/* Returns true if the field has the expected wire type; otherwise counts a breach. */
static bool is_wire(struct perfetto_check *check, const struct field *field, unsigned wire)
{
	char text[64];

	if (field->wire == wire)
		return true;
	snprintf(text, sizeof(text), "field %u", field->number);
	broken(check, VALIDATE_W2, text);
	return false;
}

/* A repeated number may be packed. */
static bool is_repeated_wire(struct perfetto_check *check, const struct field *field, unsigned wire)
{
	return field->wire == PROTO_BYTES || is_wire(check, field, wire);
}

/* ---- sequences and tracks ---- */

static struct sequence *perfetto_sequence_of(struct perfetto_check *check, uint64_t id)
{
	uint32_t number = number_map_add(&check->sequence_numbers, id, check->sequence_count);

	if (number == check->sequence_count) {
		MEMORY_GROW(check->sequences, check->sequence_count, check->sequence_capacity, 16);
		check->sequences[check->sequence_count++] = (struct sequence){0};
	}
	return &check->sequences[number];
}

static struct slice_track *perfetto_track_of(struct perfetto_check *check, uint64_t uuid)
{
	uint32_t number = number_map_add(&check->track_numbers, uuid, check->track_count);

	if (number == check->track_count) {
		MEMORY_GROW(check->tracks, check->track_count, check->track_capacity, 64);
		check->tracks[check->track_count++] = (struct slice_track){.first_offset = check->offset};
	}
	return &check->tracks[number];
}

static uint64_t interned_key(const struct perfetto_check *check, const struct sequence *sequence, uint32_t kind,
                             uint64_t iid)
{
	const uint64_t parts[] = {(uint64_t)(sequence - check->sequences), sequence->generation, kind, iid};

	return hash_words(parts, sizeof(parts) / sizeof(*parts));
}

/* ---- parts of a packet ---- */

struct packet {
	uint64_t sequence_id, flags, timestamp, timestamp_clock;
	bool has_timestamp, has_timestamp_clock, uses_state;
	struct perfetto_span event, interned, defaults, descriptor, clocks;
};

static void read_interned(struct perfetto_check *check, const struct sequence *sequence, struct perfetto_span span)
{
	struct field entry, inner;

	while (span.at < span.end && read_field(&span, &entry)) {
		struct perfetto_span bytes = entry.bytes;

		if (!is_wire(check, &entry, PROTO_BYTES))
			continue;
		while (bytes.at < bytes.end && read_field(&bytes, &inner))
			if (inner.number == 1 && inner.wire == PROTO_VARINT)
				number_map_set(&check->interned,
				               interned_key(check, sequence, entry.number, inner.value), 1);
	}
}

static void read_defaults(struct perfetto_check *check, struct sequence *sequence, struct perfetto_span span)
{
	struct field field, inner;

	while (span.at < span.end && read_field(&span, &field)) {
		struct perfetto_span bytes = field.bytes;

		if (field.number == DEFAULTS_TIMESTAMP_CLOCK && is_wire(check, &field, PROTO_VARINT))
			sequence->default_clock = field.value;
		if (field.number != DEFAULTS_TRACK_EVENT || !is_wire(check, &field, PROTO_BYTES))
			continue;
		while (bytes.at < bytes.end && read_field(&bytes, &inner))
			if (inner.number == DEFAULTS_EVENT_TRACK && is_wire(check, &inner, PROTO_VARINT))
				sequence->default_track = inner.value;
	}
}

static void read_descriptor(struct perfetto_check *check, struct perfetto_span span)
{
	struct field field;
	uint64_t uuid = 0;
	bool is_thread = false, has_parent = false;

	while (span.at < span.end && read_field(&span, &field)) {
		if (field.number == TRACK_UUID && is_wire(check, &field, PROTO_VARINT))
			uuid = field.value;
		is_thread |= field.number == TRACK_IS_THREAD;
		has_parent |= field.number == TRACK_PARENT && field.value != 0;
	}
	if (is_thread && has_parent)
		broken(check, VALIDATE_W9, NULL);
	perfetto_track_of(check, uuid)->is_described = true;
}

static void read_clock(struct perfetto_check *check, struct sequence *sequence, struct perfetto_span span)
{
	uint64_t id = 0, now = 0, is_incremental = 0;
	struct field field;

	while (span.at < span.end && read_field(&span, &field)) {
		if (field.number == 1)
			id = field.value;
		else if (field.number == 2)
			now = field.value;
		else if (field.number == 3)
			is_incremental = field.value;
	}
	if (id >= CLOCK_ID_INCREMENTAL && id < 128 && is_incremental) {
		sequence->has_own_clock = true;
		sequence->clock_ns = now;
	}
	if (id != CLOCK_ID_BOOTTIME)
		return;
	if (check->has_trace_clock && now < check->trace_clock)
		broken(check, VALIDATE_W12, NULL);
	check->has_trace_clock = true;
	check->trace_clock = now;
}

static void read_clocks(struct perfetto_check *check, struct sequence *sequence, struct perfetto_span span)
{
	struct field field;

	while (span.at < span.end && read_field(&span, &field))
		if (field.number == 1 && is_wire(check, &field, PROTO_BYTES))
			read_clock(check, sequence, field.bytes);
}

/* ---- events ---- */

struct event {
	uint64_t type, track;
	bool has_track;
};

static void use_iid(struct perfetto_check *check, const struct sequence *sequence, uint32_t kind, uint64_t iid,
                    struct packet *packet)
{
	char text[64];

	packet->uses_state = true;
	if (number_map_find(&check->interned, interned_key(check, sequence, kind, iid)) != NUMBER_MAP_NONE)
		return;
	snprintf(text, sizeof(text), "iid %" PRIu64, iid);
	broken(check, VALIDATE_W4, text);
}

static void perfetto_read_arg(struct perfetto_check *check, const struct sequence *sequence, struct perfetto_span span,
                              struct packet *packet)
{
	struct field field;

	while (span.at < span.end && read_field(&span, &field)) {
		if (field.number == PERFETTO_ARG_NAME_IID && is_wire(check, &field, PROTO_VARINT))
			use_iid(check, sequence, INTERNED_ARG_NAMES, field.value, packet);
		if (field.number == PERFETTO_ARG_TEXT_IID && is_wire(check, &field, PROTO_VARINT))
			use_iid(check, sequence, INTERNED_ARG_TEXTS, field.value, packet);
	}
}

static void read_event_field(struct perfetto_check *check, const struct sequence *sequence, const struct field *field,
                             struct event *event, struct packet *packet)
{
	switch (field->number) {
	case PERFETTO_EVENT_TYPE:
		if (is_wire(check, field, PROTO_VARINT))
			event->type = field->value;
		break;
	case PERFETTO_EVENT_TRACK:
		event->has_track = is_wire(check, field, PROTO_VARINT);
		event->track = field->value;
		break;
	case PERFETTO_EVENT_NAME_IID:
		if (is_wire(check, field, PROTO_VARINT))
			use_iid(check, sequence, INTERNED_NAMES, field->value, packet);
		break;
	case PERFETTO_EVENT_CATEGORY_IIDS:
		if (is_repeated_wire(check, field, PROTO_VARINT) && field->wire == PROTO_VARINT)
			use_iid(check, sequence, INTERNED_CATEGORIES, field->value, packet);
		break;
	case PERFETTO_EVENT_ARGS:
		if (is_wire(check, field, PROTO_BYTES))
			perfetto_read_arg(check, sequence, field->bytes, packet);
		break;
	case PERFETTO_EVENT_NAME:
	case PERFETTO_EVENT_CATEGORIES:
		is_wire(check, field, PROTO_BYTES);
		break;
	case PERFETTO_EVENT_FLOWS:
	case PERFETTO_EVENT_ENDING_FLOWS:
		is_repeated_wire(check, field, PROTO_FIXED64);
		check->validation->flows += field->number == PERFETTO_EVENT_ENDING_FLOWS;
		break;
	case PERFETTO_EVENT_COUNTER_DOUBLE:
		is_wire(check, field, PROTO_FIXED64);
		break;
	default:
		break;
	}
}

static void begin_slice(struct slice_track *track, uint64_t time)
{
	MEMORY_GROW(track->begins, track->depth, track->capacity, 16);
	track->begins[track->depth++] = time;
}

static void place_event(struct perfetto_check *check, const struct sequence *sequence, const struct event *event,
                        uint64_t time)
{
	uint64_t uuid = event->has_track ? event->track : sequence->default_track;
	struct slice_track *track = perfetto_track_of(check, uuid);

	if (!track->is_described && uuid != 0)
		broken(check, VALIDATE_W7, NULL);
	if (event->type == PERFETTO_EVENT_BEGIN) {
		check->validation->spans++;
		begin_slice(track, time);
		return;
	}
	if (event->type != PERFETTO_EVENT_END)
		return;
	if (track->depth == 0) {
		broken(check, VALIDATE_W8, NULL);
		return;
	}
	if (track->begins[--track->depth] > time)
		broken(check, VALIDATE_W13, NULL);
}

/* Returns the time of the packet. Differences of an incremental clock add up in the order of the file. */
static uint64_t packet_time(struct sequence *sequence, const struct packet *packet)
{
	uint64_t clock = packet->has_timestamp_clock ? packet->timestamp_clock : sequence->default_clock;

	if (!packet->has_timestamp)
		return 0;
	if (clock < CLOCK_ID_INCREMENTAL || clock >= 128 || !sequence->has_own_clock)
		return packet->timestamp;
	sequence->clock_ns += packet->timestamp;
	return sequence->clock_ns;
}

static void perfetto_read_event(struct perfetto_check *check, struct sequence *sequence, struct packet *packet)
{
	struct event event = {0};
	struct perfetto_span span = packet->event;
	struct field field;

	while (span.at < span.end) {
		if (!read_field(&span, &field)) {
			broken(check, VALIDATE_W1, "track event");
			return;
		}
		read_event_field(check, sequence, &field, &event, packet);
	}
	check->validation->events++;
	if (!packet->has_timestamp)
		broken(check, VALIDATE_W10, NULL);
	place_event(check, sequence, &event, packet_time(sequence, packet));
}

/* ---- packets ---- */

static void take_field(struct perfetto_check *check, const struct field *field, struct packet *packet)
{
	switch (field->number) {
	case PACKET_TIMESTAMP:
		packet->has_timestamp = is_wire(check, field, PROTO_VARINT);
		packet->timestamp = field->value;
		break;
	case PACKET_TIMESTAMP_CLOCK:
		packet->has_timestamp_clock = is_wire(check, field, PROTO_VARINT);
		packet->timestamp_clock = field->value;
		break;
	case PACKET_SEQUENCE_ID:
		if (is_wire(check, field, PROTO_VARINT))
			packet->sequence_id = field->value;
		break;
	case PACKET_SEQUENCE_FLAGS:
		if (is_wire(check, field, PROTO_VARINT))
			packet->flags = field->value;
		break;
	case PACKET_TRACK_EVENT:
		if (is_wire(check, field, PROTO_BYTES))
			packet->event = field->bytes;
		break;
	case PACKET_INTERNED_DATA:
		if (is_wire(check, field, PROTO_BYTES))
			packet->interned = field->bytes;
		break;
	case PACKET_DEFAULTS:
		if (is_wire(check, field, PROTO_BYTES))
			packet->defaults = field->bytes;
		break;
	case PACKET_TRACK_DESCRIPTOR:
		if (is_wire(check, field, PROTO_BYTES))
			packet->descriptor = field->bytes;
		break;
	case PACKET_CLOCK_SNAPSHOT:
		if (is_wire(check, field, PROTO_BYTES))
			packet->clocks = field->bytes;
		break;
	default:
		break;
	}
}

static void check_state(struct perfetto_check *check, const struct sequence *sequence, const struct packet *packet)
{
	if (!(packet->event.at || packet->interned.at))
		return;
	if (packet->sequence_id == 0)
		broken(check, VALIDATE_W3, NULL);
	if ((packet->flags & SEQUENCE_NEEDS_STATE) && !sequence->has_state)
		broken(check, VALIDATE_W6, NULL);
	if (packet->uses_state && !(packet->flags & SEQUENCE_NEEDS_STATE))
		broken(check, VALIDATE_W5, NULL);
}

static void read_packet(struct perfetto_check *check, struct perfetto_span span)
{
	struct packet packet = {0};
	struct sequence *sequence;
	struct field field;

	while (span.at < span.end) {
		if (!read_field(&span, &field)) {
			broken(check, VALIDATE_W1, "packet");
			return;
		}
		take_field(check, &field, &packet);
	}
	sequence = perfetto_sequence_of(check, packet.sequence_id);
	if (packet.flags & SEQUENCE_CLEARED) {
		sequence->has_state = true;
		sequence->generation++;
		sequence->default_track = sequence->default_clock = 0;
	}
	if (packet.defaults.at)
		read_defaults(check, sequence, packet.defaults);
	if (packet.clocks.at)
		read_clocks(check, sequence, packet.clocks);
	if (packet.interned.at)
		read_interned(check, sequence, packet.interned);
	if (packet.descriptor.at)
		read_descriptor(check, packet.descriptor);
	if (packet.event.at)
		perfetto_read_event(check, sequence, &packet);
	check_state(check, sequence, &packet);
}

/* ---- file ---- */

struct perfetto_window { /* holds at least the current packet */
	struct input_stream *input;
	char *bytes;
	size_t begin, end, capacity;
	uint64_t offset; /* of bytes[0] */
	bool is_at_end;
};

/* Makes `length` bytes available; `has` is false if the file has fewer. */
static enum status need(struct perfetto_window *window, size_t length, bool *has, struct error *err)
{
	while (window->end - window->begin < length && !window->is_at_end) {
		size_t n;
		enum status status;

		if (window->begin) {
			memmove(window->bytes, window->bytes + window->begin, window->end - window->begin);
			window->offset += window->begin;
			window->end -= window->begin;
			window->begin = 0;
		}
		if (window->capacity < length || window->end == window->capacity) {
			window->capacity = length * 2 > (size_t)1 << 20 ? length * 2 : (size_t)1 << 20;
			window->bytes = memory_resize(window->bytes, window->capacity, 1);
		}
		status = input_read(window->input, window->bytes + window->end, window->capacity - window->end, &n,
		                    err);
		if (status != STATUS_OK)
			return status;
		window->end += n;
		window->is_at_end = n == 0;
	}
	*has = window->end - window->begin >= length;
	return STATUS_OK;
}

static enum status cut_off(struct perfetto_check *check, const struct perfetto_window *window, const char *what,
                           struct error *err)
{
	check->offset = window->offset + window->begin;
	broken(check, VALIDATE_W1, what);
	return error_set(err, STATUS_INPUT, "%s at byte %" PRIu64, what, check->offset);
}

/* Finds the length of the packet at the start of the window, including its head; 0 at the end of the file. */
static enum status next_packet(struct perfetto_check *check, struct perfetto_window *window, size_t *head,
                               size_t *length, struct error *err)
{
	bool has;
	enum status status = need(window, 12, &has, err);
	struct perfetto_span span;
	uint64_t value;

	*length = 0;
	if (status != STATUS_OK || window->begin == window->end)
		return status;
	span.at = (unsigned char *)window->bytes + window->begin;
	span.end = (unsigned char *)window->bytes + window->end;
	if (*span.at++ != (TRACE_PACKET << 3 | PROTO_BYTES))
		return cut_off(check, window, "a packet was expected", err);
	if (!read_varint(&span, &value))
		return cut_off(check, window, "the file ends inside a packet", err);
	if (value > BIGGEST_PACKET)
		return cut_off(check, window, "a packet is larger than 64 MiB", err);
	*head = (size_t)(span.at - (unsigned char *)window->bytes) - window->begin;
	*length = *head + (size_t)value;
	status = need(window, *length, &has, err);
	if (status == STATUS_OK && !has)
		return cut_off(check, window, "the file ends inside a packet", err);
	return status;
}

static enum status read_packets(struct perfetto_check *check, struct perfetto_window *window, struct error *err)
{
	for (;;) {
		size_t head = 0, length;
		enum status status = next_packet(check, window, &head, &length, err);
		struct perfetto_span span;

		if (status != STATUS_OK || length == 0)
			return status;
		check->offset = window->offset + window->begin;
		span.at = (unsigned char *)window->bytes + window->begin + head;
		span.end = (unsigned char *)window->bytes + window->begin + length;
		read_packet(check, span);
		window->begin += length;
	}
}

static void perfetto_finish(struct perfetto_check *check)
{
	for (uint32_t i = 0; i < check->track_count; i++) {
		for (uint32_t k = 0; k < check->tracks[i].depth; k++)
			validate_count(check->validation, VALIDATE_W11, check->tracks[i].first_offset, NULL);
		free(check->tracks[i].begins);
	}
	free(check->tracks);
	free(check->sequences);
	number_map_release(&check->sequence_numbers);
	number_map_release(&check->track_numbers);
	number_map_release(&check->interned);
}

enum status validate_perfetto(struct input_stream *input, struct validation *validation, struct error *err)
{
	struct perfetto_check check = {.validation = validation};
	struct perfetto_window window = {.input = input};
	enum status status;

	validation->form = "packets";
	status = read_packets(&check, &window, err);
	validation->bytes = window.offset + window.begin;
	perfetto_finish(&check);
	free(window.bytes);
	return status;
}
