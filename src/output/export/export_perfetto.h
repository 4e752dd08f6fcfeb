/* SPDX-License-Identifier: Apache-2.0
 *
 * export_perfetto.h: shared by the files of the Perfetto exporter: export_perfetto.c (spans) and
 * export_perfetto_parts.c (clock, descriptors, steps, values, marks, memory).
 */
#ifndef OUTPUT_EXPORT_EXPORT_PERFETTO_H
#define OUTPUT_EXPORT_EXPORT_PERFETTO_H

#include "output/export/compress.h"
#include "output/export/export_common.h"
#include "output/export/protobuf.h"

/* Field numbers of Perfetto's messages. */
enum perfetto_field {
	TRACE_PACKET = 1,
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_TIMESTAMP_CLOCK = 58,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60,
	PACKET_FIRST_ON_SEQUENCE = 87,

	INTERNED_CATEGORIES = 1,
	INTERNED_NAMES = 2,
	INTERNED_ARG_NAMES = 3,
	INTERNED_ARG_TEXTS = 29,

	PERFETTO_EVENT_CATEGORY_IIDS = 3,
	PERFETTO_EVENT_ARGS = 4,
	PERFETTO_EVENT_TYPE = 9,
	PERFETTO_EVENT_NAME_IID = 10,
	PERFETTO_EVENT_TRACK = 11,
	PERFETTO_EVENT_CATEGORIES = 22,
	PERFETTO_EVENT_NAME = 23,
	PERFETTO_EVENT_COUNTER_INT = 30,
	PERFETTO_EVENT_COUNTER_DOUBLE = 44,
	PERFETTO_EVENT_FLOWS = 47,
	PERFETTO_EVENT_ENDING_FLOWS = 48,

	DEFAULTS_TRACK_EVENT = 11,
	DEFAULTS_TIMESTAMP_CLOCK = 58,
	DEFAULTS_EVENT_TRACK = 11,

	PERFETTO_ARG_NAME_IID = 1,
	PERFETTO_ARG_BOOL = 2,
	PERFETTO_ARG_UINT = 3,
	PERFETTO_ARG_INT = 4,
	PERFETTO_ARG_DOUBLE = 5,
	PERFETTO_ARG_POINTER = 7,
	PERFETTO_ARG_NAME = 10,
	PERFETTO_ARG_TEXT_IID = 17,

	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_IS_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
	TRACK_CHILD_ORDER = 11,
	TRACK_RANK = 12,
};

enum {
	PERFETTO_EVENT_BEGIN = 1,
	PERFETTO_EVENT_END = 2,
	PERFETTO_EVENT_INSTANT = 3,
	PERFETTO_EVENT_COUNTER = 4
};
enum {
	SEQUENCE_CLEARED = 1,
	SEQUENCE_NEEDS_STATE = 2
};
enum {
	CLOCK_ID_REALTIME = 1,
	CLOCK_ID_MONOTONIC = 3,
	CLOCK_ID_BOOTTIME = 6,
	CLOCK_ID_INCREMENTAL = 64
};
enum {
	MISC_SEQUENCE = 1,
	FIRST_SPAN_SEQUENCE = 2
};

/* Interned strings of one sequence: string -> iid, valid while its generation is the current one. */
struct iid_map {
	uint32_t field;             /* of InternedData */
	uint32_t *iid, *generation; /* per string */
	uint32_t next;
};

struct perfetto {
	const struct model *model;
	const struct export_options *options;
	struct export_result *result;
	struct selection selection;
	struct export_window window;
	struct id_map ids;
	struct link_index links;
	struct iid_map names, arg_names, arg_texts;
	uint32_t generation;
	uint32_t sequence;          /* the current one */
	uint64_t state_bytes;       /* writer_count() when the sequence's state was last cleared */
	int64_t shift_ns;           /* makes all times positive */
	uint64_t last_ns;           /* of the sequence's incremental clock */
	struct step_bytes *account; /* (optional) set in the first pass, which counts bytes */
	uint64_t done, total;
	struct writer w;
};

bool perfetto_has_process(const struct perfetto *perfetto, uint32_t process);
bool perfetto_has_many(const struct perfetto *perfetto); /* several processes */
void perfetto_packet(struct perfetto *perfetto, const struct proto *packet);

uint64_t perfetto_uuid(const struct perfetto *perfetto, const char *what, uint32_t process, uint64_t number);
uint64_t perfetto_track_uuid(const struct perfetto *perfetto, uint32_t track);

/* ---- export_perfetto_parts.c ---- */
void perfetto_clock(struct perfetto *perfetto);
void perfetto_describe_process(struct perfetto *perfetto, uint32_t process);
/* Also describes the track's parent. lane > 1: a further lane of the track. */
void perfetto_describe_track(struct perfetto *perfetto, uint32_t track, uint64_t uuid, unsigned lane);
void perfetto_steps(struct perfetto *perfetto);
void perfetto_values(struct perfetto *perfetto);
void perfetto_marks(struct perfetto *perfetto);
void perfetto_memory(struct perfetto *perfetto);

#endif
