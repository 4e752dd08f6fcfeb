/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_stage.h: the spans of a trace before they are sorted. Events come in any order; the model wants the spans of a
 * track by start, parents before children. So rows wait here until the file is read, and go into the model track by
 * track.
 */
#ifndef IMPORTERS_KINETO_KINETO_STAGE_H
#define IMPORTERS_KINETO_KINETO_STAGE_H

#include "base/storage.h"
#include "model/model.h"
#include "model/number_map.h"

struct staged_span {
	int64_t start_ns;
	int64_t dur_ns; /* STAGED_IS_OPEN: unknown */
	uint64_t correlation;
	uint32_t name, shape, inputs; /* strings */
	uint32_t extra;               /* 1 + index of stage.extras, 0: none */
	/* for spans with equal times: the writer's number, a hash of the name, or the number of the event in the
	 * file */
	uint32_t order;
	uint8_t kind;  /* enum span_kind */
	uint8_t flags; /* enum span_flag */
	uint16_t tie;  /* hash of the name, for spans with equal times and numbers */
};

#define STAGED_IS_OPEN (-1)
#define STAGED_HAS_NUMBER                                                                                              \
	0x80 /* in flags: `order` or `correlation` is the writer's own, so an equal span is a duplicate */
#define STAGED_OF_DEVICE 0x40 /* in flags of an annotation: its category is one of devices */

#define KINETO_ROUNDING_NS 1000 /* rounding of thread times */

struct staged_extra { /* columns that few spans have */
	uint64_t sequence;
	uint32_t first_arg, arg_count; /* range in stage.args */
	uint32_t step;                 /* 1 + index of stage.steps, 0: none */
};

/* Returns true for a call of Python. */
static inline bool kineto_is_frame(const struct staged_span *span)
{
	return span->kind == SPAN_PYTHON || span->kind == SPAN_MODULE;
}

/* Identifies a process or thread as the file does: by a number or by a string. */
struct staged_place {
	int64_t number;
	uint32_t text; /* string, 0: it is a number */
};

struct staged_track {
	struct staged_place pid, tid;
	struct staged_span *spans;
	uint32_t count, capacity;
	int64_t bound_ns;               /* time of its latest begin or end so far */
	uint64_t offset;                /* offset of its first span in the file; 0: unknown */
	uint32_t name;                  /* string */
	int64_t sort, name_ns, sort_ns; /* the values with the latest time in the file */
	bool has_sort;
	bool is_device; /* it has work of a device */
	bool has_steps;
	bool is_sorted; /* since the last span was added */
	bool is_mixed;  /* its begins and ends are not in order of time */
	int32_t device; /* -1: unknown */
	/* process: own_pid is its pid; the file has another number, because two processes had one */
	bool has_own_pid;
	int64_t own_pid;
	bool has_events; /* process: `events` is the number of events in its recording */
	uint64_t events;
	bool has_extent; /* process: begin_ns and end_ns come from our own exporter */
	int64_t begin_ns, end_ns;
	bool has_lost_memory; /* process, from our own exporter; lost_memory_ns INT64_MIN: start unknown */
	int64_t lost_memory_ns;
	uint32_t lost_memory, removed_memory; /* strings */
	bool is_other;                        /* our own exporter says that it is not a thread */
	bool is_loose;                        /* asynchronous spans that belong to no thread and may cross each other */
	bool is_host;                         /* work of a host on the row of a device: kineto_finish.c */
	/* own_tid is its number; our own exporter wrote another one, because two rows had it */
	bool has_own_tid;
	int64_t own_tid;
	bool has_owner; /* device: owner_pid is its process's number in the file */
	int64_t owner_pid;
	uint32_t process;                  /* in the model */
	uint32_t first_track, track_count; /* lanes in the model; filled by kineto_deliver() */
};

static inline int64_t staged_tid(const struct staged_track *track)
{
	return track->has_own_tid ? track->own_tid : track->tid.number;
}

struct staged_flow {
	int64_t time_ns;
	uint64_t id;
	uint32_t track;   /* index in the stage */
	uint32_t process; /* process in the model that the flow does not leave; filled by kineto_flows.c */
	uint8_t kind;     /* enum stepscope_link */
	bool is_to;
};

/* Half of an asynchronous span: its start or its end. Of an end, only the time and the name are used. */
struct staged_async {
	struct staged_span span;
	uint64_t key; /* equal for both halves */
	uint32_t track;
	bool is_end;
};

struct staged_bound { /* begin (B) or end (E) event of a span; kineto_stage_pair() pairs them */
	int64_t time_ns;
	uint64_t offset; /* offset of the event in the file */
	uint32_t track;
	uint32_t row;  /* row in the track; STAGED_IS_END */
	uint32_t name; /* string; 0: an end may have none */
};

#define STAGED_IS_END UINT32_MAX

struct staged_mark {
	int64_t time_ns;
	uint32_t track, name;
};

struct staged_value {
	int64_t time_ns;
	double value;
	uint32_t track, name;
	bool is_metric;
};

enum staged_fact_source {
	FACT_OF_FILE,
	FACT_FOR_READERS, /* our own exporter writes them for other readers, some of them made up */
	/* our own exporter keeps the real facts there; in other files they get a prefix */
	FACT_OF_METADATA,
};

struct staged_fact {
	uint32_t key, value; /* strings */
	uint8_t source;      /* enum staged_fact_source */
};

#define STAGE_ARRAY(type, name)                                                                                        \
	type *name;                                                                                                    \
	uint32_t name##_count, name##_capacity

struct kineto_stage {
	struct storage *storage; /* the model's; NULL: malloc */
	STAGE_ARRAY(struct staged_track, tracks);
	STAGE_ARRAY(struct staged_extra, extras);
	STAGE_ARRAY(struct span_arg, args); /* track, row unused */
	/* facts of steps from args; track and row are of the model and filled by kineto_deliver() */
	STAGE_ARRAY(struct model_step, steps);
	STAGE_ARRAY(struct memory_event, memory); /* track: of the stage; partner: the writer's number, 0: none */
	STAGE_ARRAY(struct staged_flow, flows);
	STAGE_ARRAY(struct staged_async, asyncs);
	STAGE_ARRAY(struct staged_bound, bounds);
	STAGE_ARRAY(struct staged_mark, marks);
	STAGE_ARRAY(struct staged_value, values);
	STAGE_ARRAY(struct staged_fact, facts);
	struct number_map frames; /* Python frames, see stack_frames.h */
	struct staged_crossings { /* spans of threads that start inside another span and end after it */
		uint64_t count;
		uint32_t process, name, around; /* the first of them; strings */
		int64_t start_ns;
	} crossings;
	uint64_t duplicates; /* spans, allocations, marks and values left out as duplicates */
	int64_t end_ns;      /* end of everything recorded; set by kineto_stage_pair() */
	uint32_t *slots;     /* finds tracks: 1 + index */
	uint32_t slot_count;
	uint32_t last_track; /* events of one track often follow each other */
};

/* Makes room for one more element of a STAGE_ARRAY. */
#define STAGE_ARRAY_GROW(stage, name)                                                                                  \
	STORAGE_GROW((stage)->storage, (stage)->name, (stage)->name##_count, (stage)->name##_capacity, 64)

void kineto_stage_release(struct kineto_stage *stage);
/* Returns the track of that place, creating it if needed. */
uint32_t kineto_stage_track(struct kineto_stage *stage, struct staged_place pid, struct staged_place tid);
/* Moves the spans for which is_moved() is true to a new track with the same place, which kineto_stage_track() does not
 * find. */
uint32_t kineto_stage_split(struct kineto_stage *stage, uint32_t track,
                            bool (*is_moved)(const struct staged_span *span));
/* Returns NULL if there is no such track. */
const struct staged_track *kineto_stage_find(const struct kineto_stage *stage, struct staged_place pid,
                                             struct staged_place tid);
/* Adds a span; the pointer is valid until the next call. */
struct staged_span *kineto_stage_span(struct kineto_stage *stage, uint32_t track);
/* Notes that the last span of the track began (B). It is open until kineto_stage_pair(). */
void kineto_stage_begin(struct kineto_stage *stage, uint32_t track, uint64_t offset);
void kineto_stage_end(struct kineto_stage *stage, uint32_t track, int64_t time_ns, uint32_t name, uint64_t offset);

/* Number of begin and end events without the other; first_end: file offset of the first such end. */
struct staged_halves {
	uint64_t ends, begins;
	uint64_t first_end;
};
/* Pairs the begin and end events of each track by their times. An end event closes the span that began last; of several
 * that began at one time, the one with its name.
 *
 * Events of one time are taken in the order of the file. If the track is not in order of time, ends are taken first. If
 * no open span has the end's name, it closes a span without length: one with that name and time, wherever its begin
 * event is.
 *
 * Spans without an end are marked with SPAN_END_IS_LOST. Also fills end_ns. Call before tracks are sorted. */
struct staged_halves kineto_stage_pair(struct kineto_stage *stage);

struct kineto_spot {     /* a point in time on a track */
	int64_t time_ns; /* model time */
	uint32_t staged; /* track of the stage */
	uint32_t track;  /* in the model */
	uint32_t row;    /* MODEL_NONE: none */
};

#endif
