/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_stage.h: what is known of the spans of a trace before it is sorted. Events come in any order; the model wants a track's spans by
 * start, parents before children. So rows wait here until the file is read, and go into the model track by track.
 */
#ifndef IMPORTERS_KINETO_KINETO_STAGE_H
#define IMPORTERS_KINETO_KINETO_STAGE_H

#include "base/storage.h"
#include "model/model.h"
#include "model/number_map.h"

struct staged_span {
	int64_t start_ns;
	int64_t dur_ns; /* STAGED_IS_OPEN: not known */
	uint64_t correlation;
	uint32_t name, shape, inputs; /* strings */
	uint32_t extra;               /* 1 + index of stage.extras, 0: none */
	uint32_t order;               /* of spans with equal times: the writer's number, or what is in the name */
	uint8_t kind;                 /* enum span_kind */
	uint8_t flags;                /* enum span_flag */
	uint16_t tie;                 /* of the name: of spans with equal times and numbers */
};

#define STAGED_IS_OPEN (-1)
#define STAGED_HAS_NUMBER                                                                                              \
	0x80 /* in flags: `order` or `correlation` is the writer's own, so an equal span is the same one */

#define KINETO_ROUNDING_NS 1000 /* how times of threads are rounded */

struct staged_extra { /* what few spans have */
	uint64_t sequence;
	uint32_t first_arg, arg_count; /* of stage.args */
	uint32_t step;                 /* 1 + index of stage.steps, 0: none */
};

static inline bool kineto_is_frame(const struct staged_span *span) /* a call of Python */
{
	return span->kind == SPAN_PYTHON || span->kind == SPAN_MODULE;
}

struct staged_place { /* who a row belongs to, as the file says it: a number, or a string and then not a number */
	int64_t number;
	uint32_t text; /* string, 0: it is a number */
};

struct staged_track {
	struct staged_place pid, tid;
	struct staged_span *spans;
	uint32_t count, capacity;
	int64_t bound_ns;               /* of its latest begin or end so far */
	uint64_t offset;                /* of its first span in the file; 0: not known */
	uint32_t name;                  /* string */
	int64_t sort, name_ns, sort_ns; /* the latest that the file has, by time */
	bool has_sort;
	bool is_device; /* a device's work was seen on it */
	bool has_steps;
	bool is_sorted;   /* since the last span was added */
	bool is_mixed;    /* its begins and ends are not in the order of time */
	int32_t device;   /* -1: not known */
	bool has_own_pid; /* of a process: own_pid, where another one has it, too */
	int64_t own_pid;
	bool has_events; /* of a process: events, as many as its recording had */
	uint64_t events;
	bool has_extent; /* of a process: begin_ns and end_ns are what our own exporter says */
	int64_t begin_ns, end_ns;
	bool has_lost_memory; /* of a process: as our own exporter says; lost_memory_ns INT64_MIN: nobody knows since when */
	int64_t lost_memory_ns;
	uint32_t lost_memory, removed_memory; /* strings */
	bool is_other;                        /* no thread, as our own exporter says */
	bool is_loose;                        /* asynchronous spans of no thread, which may cross each other */
	bool is_host;                         /* what a host did on the row of a device: kineto_finish.c */
	bool has_own_tid; /* own_tid: what our own exporter gave another number, as two rows had one */
	int64_t own_tid;
	bool has_owner; /* of a device: owner_pid is its process's number in the file */
	int64_t owner_pid;
	uint32_t process;                  /* of the model */
	uint32_t first_track, track_count; /* of the model: its lanes; filled by kineto_deliver() */
};

static inline int64_t staged_tid(const struct staged_track *track)
{
	return track->has_own_tid ? track->own_tid : track->tid.number;
}

struct staged_flow {
	int64_t time_ns;
	uint64_t id;
	uint32_t track;   /* of the stage */
	uint32_t process; /* of the model, that it does not leave; filled by kineto_flows.c */
	uint8_t kind;     /* enum stepscope_link */
	bool is_to;
};

struct staged_async { /* half of an asynchronous span: its begin, or its end (then only the time and the name count) */
	struct staged_span span;
	uint64_t key; /* halves of one have one */
	uint32_t track;
	bool is_end;
};

struct staged_bound { /* a begin (B) or an end (E) of a span; what belongs together is known once the file is read */
	int64_t time_ns;
	uint64_t offset; /* of the event in the file */
	uint32_t track;
	uint32_t row;  /* of the track, STAGED_IS_END */
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
	FACT_FOR_READERS, /* our own exporter puts the like there for other readers, some of it made up */
	FACT_OF_METADATA, /* ... and keeps the facts themselves there: of others they are named as being the trace's */
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
	STAGE_ARRAY(struct model_step,
	            steps); /* what args say of them; track, row of the model, filled by kineto_deliver() */
	STAGE_ARRAY(struct memory_event, memory); /* track: of the stage; partner: the writer's number, 0: none */
	STAGE_ARRAY(struct staged_flow, flows);
	STAGE_ARRAY(struct staged_async, asyncs);
	STAGE_ARRAY(struct staged_bound, bounds);
	STAGE_ARRAY(struct staged_mark, marks);
	STAGE_ARRAY(struct staged_value, values);
	STAGE_ARRAY(struct staged_fact, facts);
	struct number_map frames; /* of Python: stack_frames.h */
	struct staged_crossings { /* spans of threads that begin in another one and end behind it */
		uint64_t count;
		uint32_t process, name, around; /* of the first; strings */
		int64_t start_ns;
	} crossings;
	uint64_t duplicates; /* spans, allocations, marks and values that are there twice, left out */
	int64_t end_ns;      /* of all that was recorded; kineto_stage_pair() */
	uint32_t *slots;     /* finds tracks: 1 + index */
	uint32_t slot_count;
	uint32_t last_track; /* events of one track often follow each other */
};

/* Room for one more element of a STAGE_ARRAY. */
#define STAGE_ARRAY_GROW(stage, name)                                                                                  \
	STORAGE_GROW((stage)->storage, (stage)->name, (stage)->name##_count, (stage)->name##_capacity, 64)

void kineto_stage_release(struct kineto_stage *stage);
/* The track of that place, made when it is new. */
uint32_t kineto_stage_track(struct kineto_stage *stage, struct staged_place pid, struct staged_place tid);
/* Moves the spans of these kinds (bits) to a track of their own with the same place, which kineto_stage_track() does not find. */
uint32_t kineto_stage_split(struct kineto_stage *stage, uint32_t track, uint64_t kinds);
/* NULL: there is none. */
const struct staged_track *kineto_stage_find(const struct kineto_stage *stage, struct staged_place pid,
                                             struct staged_place tid);
/* Adds a span; valid until the next call. */
struct staged_span *kineto_stage_span(struct kineto_stage *stage, uint32_t track);
/* The last span of the track began (B): it is open until kineto_stage_pair(). */
void kineto_stage_begin(struct kineto_stage *stage, uint32_t track, uint64_t offset);
void kineto_stage_end(struct kineto_stage *stage, uint32_t track, int64_t time_ns, uint32_t name, uint64_t offset);

struct staged_halves { /* ends without a begin, begins without an end; the first one's place in the file */
	uint64_t ends, begins;
	uint64_t first_end;
};
/* Begins and ends of each track in pairs, by their times: an end closes what began last, of what began at one time that of its name. Of one
 * time in the order of the file; where that is not the order of time, ends come first. But an end of a name that nothing open has belongs to a
 * begin of that name and time, wherever it stands: it has no length. What has no end is marked with SPAN_END_IS_LOST. Also fills end_ns.
 * Before tracks are sorted. */
struct staged_halves kineto_stage_pair(struct kineto_stage *stage);

struct kineto_spot {     /* a place in time on a track */
	int64_t time_ns; /* of the model */
	uint32_t staged; /* track of the stage */
	uint32_t track;  /* of the model */
	uint32_t row;    /* MODEL_NONE: none */
};

#endif
