/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.h: the graph of a process that a replay runs again: items of host threads, works of devices, and what each of
 * them waits for.
 *
 * An item is a point or a call on a host thread: the begin or end of a step, an outermost call of the runtime or driver,
 * or the wait for a batch that worker processes make. If no device works, outermost operators are items as well. Rows of
 * operators, ranges and Python are not items: they say where in a host stretch time lies.
 * In our own recordings only some steps may have operators, so operators are no items there: what they tell about these
 * steps is carried to the others, see plan.h.
 * A work is a kernel, copy or fill. All rows that one call launched (a CUDA graph) are one work.
 *
 *     struct replay_graph graph;
 *     if (replay_graph_make(&graph, model, launches, &window))
 *             ...
 *     replay_graph_release(&graph);
 *
 * Times are ns since the origin of the graph, the start of the first step. A lag or duration is a
 * float: it is rounded to a part in 16 million. The graph takes 96 bytes per item and 72 per work, in the storage of the
 * model; rows of operators cost nothing. The design and its measurements: docs/what-if.md.
 */
#ifndef REPLAY_GRAPH_H
#define REPLAY_GRAPH_H

#include "model/launches.h"
#include "model/model.h"
#include "model/name_classes.h"

#define REPLAY_NONE UINT32_MAX

struct free_time;
struct host_stretches;
struct replay_loading;
struct replay_places;

enum replay_kind {
	REPLAY_OTHER, /* it only takes time */
	REPLAY_MARK,  /* the begin or end of a step */
	REPLAY_LAUNCH,
	REPLAY_WAIT_ALL,    /* waits for all works of the process */
	REPLAY_WAIT_STREAM, /* for the works of a stream */
	REPLAY_WAIT_EVENT,  /* for one work */
	REPLAY_STREAM_WAIT, /* the next launch of the thread waits for works of other streams */
	REPLAY_BATCH,       /* waits for a batch that worker processes make */
	REPLAY_MEET, /* the thread goes on when all ranks have come there: they wait for each other on the host */
};

/* Known causes that hold up a host thread. */
enum replay_cause {
	REPLAY_GARBAGE,
	REPLAY_COMPILE,
	REPLAY_CHECKPOINT,
	REPLAY_EVALUATION,
	REPLAY_CAUSES,
};

struct replay_item {
	double start_ns, end_ns; /* measured */
	float gap_ns;            /* host time between the end of the item that it follows and its start */
	float own_ns;     /* its duration, without waiting. Of a meeting: time of the step in which the thread waits */
	float after_ns;   /* time from the end of what it waited for to its own end */
	float exposed_ns; /* of a late batch: time for which all devices had nothing to do, at its end */
	uint32_t follows; /* item; REPLAY_NONE: none */
	uint32_t work;    /* the work that it launched; REPLAY_NONE: none */
	uint32_t target;  /* of a wait: stream or work; of a batch: the item of an earlier batch; REPLAY_NONE: none */
	uint32_t thread;  /* index into threads */
	uint32_t track, row; /* its span; row MODEL_NONE: a mark */
	uint32_t name;       /* string */
	uint32_t around;     /* index into the thread's operators: the one around it; REPLAY_NONE: none */
	uint32_t nested;     /* correlation of the last call in it that launched, minus its own */
	int32_t step;        /* index into steps */
	float rows;          /* rows of operators in the gap; a begin or an end counts half */
	float triton;        /* launches of Triton kernels by compiled code in the gap */
	float hidden;        /* calls without a row in the gap */
	uint8_t kind;        /* enum replay_kind */
	bool is_end;         /* of a mark */
	bool is_full;        /* a launch that waited for room in the queue */
	bool is_allocation;  /* it takes memory of the device or gives it back */
	bool has_target;     /* it waits for something */
	bool is_late;        /* a batch that was waited for */
};

struct replay_dependency {
	uint32_t work; /* of another stream */
	double lag_ns; /* from its end */
};

struct replay_work {
	double start_ns, end_ns; /* measured */
	float dur_ns;            /* of a collective: without waiting for other ranks */
	float launch_ns;         /* lag after its launch: after the end of the call, or after its start */
	float stream_ns;         /* lag after the work before it on its stream */
	uint32_t stream;         /* index into streams */
	uint32_t item;           /* that launched it; REPLAY_NONE: launched before the window */
	uint32_t place;          /* number among the works of its stream */
	uint32_t first_dependency, dependency_count;
	uint32_t name; /* string, of its first row */
	uint32_t rows;
	uint32_t collective; /* number among the collectives of its process; REPLAY_NONE: none */
	uint8_t kind;        /* enum span_kind */
	uint8_t copy;        /* enum copy_direction */
	uint8_t product;     /* enum product_type */
	bool is_pageable;
	bool is_from_end; /* launch_ns counts from the end of the call */
	bool is_blocking; /* the call returns when the work is done */
};

struct replay_operator { /* an outermost one */
	double start_ns, end_ns;
	uint32_t track, row, name;
};

struct replay_stretch { /* of a host thread */
	double start_ns, end_ns;
};

struct replay_stretches {
	struct replay_stretch *list; /* in order */
	uint32_t count, capacity;
};

struct replay_thread {
	uint32_t first_track, tracks; /* lanes of one thread, see model/lanes.h */
	struct replay_operator *operators;
	uint32_t operator_count, operator_capacity;
	struct replay_stretches loads; /* waits for batches, also of loaders without workers */
	struct replay_stretches waits; /* for collectives of the host, of our own recordings */
	struct replay_stretches causes[REPLAY_CAUSES];
	struct replay_stretches optimizers; /* outermost calls of optimizers. Recorded ones with closures are left out */
	uint32_t *items;                    /* of the thread, in order; a part of the graph's `by_thread` */
	uint32_t item_count;
	double unit_ns; /* work of the profiler for one row, see cost.h */
	bool launches;
};

struct replay_stream {
	uint32_t *works; /* in the order of their launches */
	uint32_t count, capacity, before;
	uint32_t track; /* first lane */
};

struct replay_step {
	double start_ns, end_ns;
	uint32_t model_step; /* index into model->steps */
	uint32_t mark;       /* item: its begin */
	bool has_operators;
	double delay_ns; /* for which its thread waited for a processor; below 0: unknown */
};

struct replay_recording {  /* what only our own recordings tell */
	bool is_of_torch;  /* a program of PyTorch: operators tell what a thread does */
	bool has_workers;  /* batches are made beside the thread that waits for them */
	bool has_meetings; /* ranks wait for each other on the host, once a step */
	double row_ns;     /* the recorder's cost of an operator */
};

struct replay_graph {
	const struct model *model;
	uint32_t process, main_thread;
	int64_t origin_ns;
	double offset_ns; /* of the clock against that of the first rank */
	bool is_recorded; /* our own recording */
	struct replay_recording recording;
	bool has_device;           /* items launched works */
	bool has_host_collectives; /* threads execute collectives, as gloo's */
	bool has_device_backend;   /* a backend executes collectives on a device, as NCCL */
	struct replay_thread *threads;
	uint32_t thread_count;
	struct replay_stream *streams;
	uint32_t stream_count;
	struct replay_step *steps;
	uint32_t step_count;
	struct replay_item *items; /* in the order of their starts */
	uint32_t *by_thread;       /* the same, by number, thread after thread */
	uint32_t item_count;
	struct replay_work *works;
	uint32_t work_count, work_capacity;
	struct replay_dependency *dependencies;
	uint32_t dependency_count, dependency_capacity;
	uint32_t collectives;
	/* usual values of the window, see bind.c */
	double launch_ns, stream_ns;           /* lag after a launch, and after the work before on the stream */
	double handover_ns;                    /* handing over a batch that is ready */
	double between_ns;                     /* from the end of a step to the begin of the next */
	uint32_t depth;                        /* of the launch queue */
	uint32_t waits, waits_against;         /* waits for works, and those that end before their work */
	uint32_t edges, against_order;         /* edges, and those that end before what they wait for */
	struct name_classes rows;              /* of names of host rows */
	struct name_classes call_kinds;        /* of names of calls */
	struct name_classes kernels;           /* of names of kernels: whether they are communication */
	struct name_classes products;          /* of names of kernels: enum product_type */
	struct replay_loading *loading;        /* NULL: no loader is known, see loading.h */
	struct replay_places *places;          /* the usual step, see places.h */
	struct free_time *free_time;           /* found at its first use, see free_time.h */
	struct host_stretches *host_stretches; /* likewise, see host_stretches.h */
};

struct replay_wait;
struct replay_loader;

/* The steps of one process that are replayed: model->steps[first, first + count), all complete. */
struct replay_window {
	uint32_t process;
	uint32_t first_step, step_count;
	bool is_recorded;                  /* our own recording; the rest is only for these */
	struct replay_recording recording; /* but for has_meetings */
	/* Waits of the steps' thread for collectives of the host, in order; they are known in the steps with operators. The
	 * caller keeps them until the graph is made. */
	const struct replay_wait *waits;
	uint32_t wait_count;
	const struct replay_loader *loader; /* of which most batches come; NULL: none is known. Likewise */
};

struct replay_wait {
	int64_t start_ns, end_ns;
};

struct replay_fetch { /* making a batch */
	uint32_t track;
	int64_t start_ns, end_ns;
};

struct replay_loader {
	const struct replay_fetch *fetches; /* in order */
	uint32_t fetch_count;
	uint32_t workers, prefetch; /* prefetch: batches asked for ahead, of each worker */
	double processors;          /* that the run may use */
	double pickle_ns, unpickle_ns;
};

/* Returns false if there is nothing to replay; then nothing needs to be released. */
bool replay_graph_make(struct replay_graph *graph, const struct model *model, const struct launches *launches,
                       const struct replay_window *window);
void replay_graph_release(struct replay_graph *graph);

#endif
