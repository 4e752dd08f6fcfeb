/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_event.h: one event of a trace, `{"ph": "X", ...}`, parsed in place.
 *
 *     struct kineto_event event;
 *     switch (kineto_event_read(&event, at, end, 0)) ...
 *             case KINETO_COMPLETE: ...event.fields[KINETO_EVENT_NAME], event.end
 *
 * Known errors of real writers are repaired and noted in event.repairs. An event that does not follow the grammar can
 * be read again with KINETO_IS_LENIENT: then a quote ends a string only if the text after it continues the event.
 */
#ifndef IMPORTERS_KINETO_KINETO_EVENT_H
#define IMPORTERS_KINETO_KINETO_EVENT_H

#include "importers/kineto/kineto_gaps.h"
#include "importers/kineto/kineto_value.h"

#include <assert.h>

enum kineto_field {
	KINETO_EVENT_PH,
	KINETO_EVENT_CAT,
	KINETO_EVENT_NAME,
	KINETO_EVENT_ID,
	KINETO_EVENT_PID,
	KINETO_EVENT_TID,
	KINETO_EVENT_TS,
	KINETO_EVENT_DUR,
	KINETO_EVENT_ARGS,
	KINETO_EVENT_SCOPE, /* "s" */
	KINETO_EVENT_BP,
	KINETO_EVENT_FIELD_COUNT,
};

/* Args with a meaning for the model; their names are in kineto_keys.c. */
enum kineto_key {
	KINETO_ARG_OTHER, /* kept as a fact of the span */
	KINETO_ARG_EXTERNAL_ID,
	KINETO_ARG_EVENT_INDEX, /* "Ev Idx": enclosing events have smaller ones */
	KINETO_ARG_CORRELATION,
	KINETO_ARG_DEVICE,
	KINETO_ARG_STREAM,
	KINETO_ARG_INPUT_DIMS,
	KINETO_ARG_INPUT_TYPES,
	KINETO_ARG_INPUT_STRIDES,
	KINETO_ARG_INPUT_VALUES,
	KINETO_ARG_SEQUENCE,
	KINETO_ARG_FORWARD_THREAD,
	KINETO_ARG_BYTES,
	KINETO_ARG_ADDRESS,
	KINETO_ARG_DEVICE_ID,
	KINETO_ARG_DEVICE_TYPE,
	KINETO_ARG_TOTAL_ALLOCATED,
	KINETO_ARG_TOTAL_RESERVED,
	KINETO_ARG_CATEGORY, /* category of an allocation; our own exporter writes it */
	KINETO_ARG_CALL_STACK,
	KINETO_ARG_GRID,
	KINETO_ARG_BLOCK,
	KINETO_ARG_REGISTERS,
	KINETO_ARG_SHARED_MEMORY,
	KINETO_ARG_BLOCKS_PER_SM,
	KINETO_ARG_WARPS_PER_SM,
	KINETO_ARG_OCCUPANCY,
	KINETO_ARG_BANDWIDTH,
	KINETO_ARG_NAME, /* in metadata events */
	KINETO_ARG_LABELS,
	KINETO_ARG_SORT_INDEX,
	KINETO_ARG_OPEN,     /* our own exporter: the span never ended */
	KINETO_ARG_INFERRED, /* our own exporter: the program did not mark this step or phase */
	KINETO_ARG_SHAPE,    /* our own exporter: a shape that is not a list of sizes */
	KINETO_ARG_IGNORED,  /* numbers that only the writer's tools use, or that other columns contain */
	KINETO_ARG_KEY_COUNT,
};

enum kineto_repair {
	REPAIR_QUOTES,     /* quotes in a string are not escaped */
	REPAIR_CONTROL,    /* control characters in a string */
	REPAIR_ESCAPE,     /* bytes that are not UTF-8, backslashes that escape nothing */
	REPAIR_WORD,       /* inf, NaN, N/A in place of a number */
	REPAIR_COMMA,      /* a comma too many */
	REPAIR_TIME,       /* an event without a time */
	REPAIR_DURATION,   /* a missing or impossible duration */
	REPAIR_WORK,       /* like REPAIR_DURATION, for work of a device */
	REPAIR_STEP,       /* a ProfilerStep# without a valid number */
	REPAIR_UNREADABLE, /* an event that could not be read */
	REPAIR_GARBAGE,    /* bytes between events */
	REPAIR_LIST_END,   /* the list of events does not end */
	REPAIR_CUT,        /* the file ends within an event */
	REPAIR_DOCUMENTS,  /* another document follows the first one */
	REPAIR_METADATA,   /* a value outside the events could not be read */
	REPAIR_DAMAGED,    /* the compressed data ends or breaks, and no other member follows */
	REPAIR_MEMBER,     /* like REPAIR_DAMAGED, but another member follows */
	REPAIR_UTF16,      /* the text is UTF-16 */
	REPAIR_LOST_TIME,  /* work of a device with the time 0 */
	REPAIR_END,        /* an end without a start */
	REPAIR_BEGIN,      /* a start without an end */
	REPAIR_LARGE,      /* an event that is larger than the window */
	REPAIR_COUNT,
};

#define KINETO_ARGS_MAX 128

struct kineto_arg {
	struct kineto_value key, value;
};

#define EVENT_VALUES (KINETO_EVENT_FIELD_COUNT + KINETO_ARG_KEY_COUNT + 1)

struct kineto_event { /* zeroed at first */
	union {
		struct {
			struct kineto_value fields[KINETO_EVENT_FIELD_COUNT];
			struct kineto_value known[KINETO_ARG_KEY_COUNT]; /* by enum kineto_key */
			struct kineto_value unused;                      /* for values that are not read */
		};
		struct kineto_value values[EVENT_VALUES];
	};
	uint64_t set;                            /* bits of values that may be set */
	struct kineto_arg args[KINETO_ARGS_MAX]; /* args with other keys */
	uint32_t arg_count;
	struct kineto_gaps gaps; /* learned from earlier events */
	uint32_t args_left_out;
	uint32_t repairs; /* bits by enum kineto_repair */
	const char *end;  /* the byte after the event */
	bool is_document; /* BROKEN: this is the start of a file, not an event */
};

enum kineto_read {
	KINETO_COMPLETE,
	KINETO_PARTIAL, /* the text ends before the event does */
	KINETO_BROKEN,
};

static_assert(EVENT_VALUES <= 64, "bits of kineto_event.set");

#define KINETO_IS_LENIENT 1u

/* Reads the event whose bracket is at `at`; *end is a NUL. */
enum kineto_read kineto_event_read(struct kineto_event *event, const char *at, const char *end, unsigned flags);

/* Iterates over the values of a list or an object (then with keys) that is completely in memory:
 *
 *     struct kineto_walk walk = kineto_walk_begin(&value);
 *     while (kineto_walk_next(&walk)) ...walk.key, walk.value */
struct kineto_walk {
	const char *at, *end;
	struct kineto_value key, value;
	bool is_object;
};
struct kineto_walk kineto_walk_begin(const struct kineto_value *value);
bool kineto_walk_next(struct kineto_walk *walk);

#endif
