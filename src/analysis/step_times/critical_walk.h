/* SPDX-License-Identifier: Apache-2.0
 *
 * critical_walk.h: the critical path through a stretch of a process with devices: for each instant, the one thing that everything behind
 * it had to wait for. Found backwards, from the end: work of a device waits for its launch, or for the work before it; a thread that
 * synchronizes waits for the work that ended last; else a thread does one thing after the other.
 *
 *     struct critical_walk walk = {0};
 *     critical_walk_begin(&walk, &context, process);
 *     critical_walk_run(&walk, main_thread, start_ns, end_ns, use, context);   // for each stretch
 *     critical_walk_release(&walk);
 *
 * Work waits for what ran before it on its stream, when that ended behind the launch; where its stream was empty for long, for what ended
 * last on any stream before it began; else for its launch. Events that make streams wait for each other are not in most
 * traces. Where the thread that marks the steps is in nothing but ranges and Python, another thread that launches work and is in an
 * operator goes on (a backward). The pieces are given from the last to the first and cover the stretch without gaps or overlaps. Time:
 * for each piece the depth of the calls around it, and the logarithm of the number of spans.
 */
#ifndef ANALYSIS_STEP_TIMES_CRITICAL_WALK_H
#define ANALYSIS_STEP_TIMES_CRITICAL_WALK_H

#include "analysis/devices/device_work.h"

enum path_part {
	PATH_COMPUTE,
	PATH_COMMUNICATION,
	PATH_COPY,
	PATH_QUEUED,
	PATH_LAUNCH,
	PATH_SYNC,
	PATH_DATA,
	PATH_RUNTIME,
	PATH_OPERATOR,
	PATH_HOST,
	PATH_OTHER,
	PATH_PARTS,
};

struct path_piece {
	enum path_part part;
	uint32_t name; /* string; 0: nothing was recorded */
	int64_t start_ns, end_ns;
};

typedef void (*use_piece)(void *context, const struct path_piece *piece);

#define CRITICAL_THREADS 8

struct critical_walk {
	const struct model *model;
	const struct launches *launches;
	struct device_work work; /* of all devices of the process */
	size_t *before;          /* by work: the last to end before it on its stream, SIZE_MAX: none */
	size_t *waits_for; /* by work: that of another stream, SIZE_MAX: none; NULL: the trace has none (stream_waits.h) */
	size_t *by_end;    /* work that takes time, in order of its ends */
	size_t end_count;
	uint32_t threads[CRITICAL_THREADS]; /* that launch work, by their first lanes */
	uint32_t thread_count;
	struct name_classes names;
};

/* Replaces. False: the process has no work of a device. */
bool critical_walk_begin(struct critical_walk *walk, struct analysis_context *context, uint32_t process);

/* main_thread: the track that the stretch begins and ends on. */
void critical_walk_run(struct critical_walk *walk, uint32_t main_thread, int64_t start_ns, int64_t end_ns,
                       use_piece use, void *context);
void critical_walk_release(struct critical_walk *walk);

/* The thread that launches most, for stretches that no step marks. */
uint32_t critical_walk_main(const struct critical_walk *walk);

#endif
