/* SPDX-License-Identifier: Apache-2.0
 *
 * critical_walk.h: the critical path through a time range of a process with devices. At each instant it has the one
 * activity that everything after it had to wait for. The path is found backwards, from the end. Work of a device waits
 * for its launch or for the work before it. A thread that synchronizes waits for the work that ended last. Otherwise a
 * thread does one thing after the other.
 *
 *     struct critical_walk walk = {0};
 *     critical_walk_begin(&walk, &context, process);
 *     critical_walk_run(&walk, main_thread, start_ns, end_ns, use, context);   // for each stretch
 *     critical_walk_release(&walk);
 *
 * Work waits for the work before it on its stream, if that ended after the launch. If its stream was empty for long,
 * it waits for the work that ended last on any stream before it started. Otherwise it waits for its launch. Most
 * traces lack the events that make streams wait for each other.
 *
 * If the thread that marks the steps only runs ranges and Python code, the path goes on with another thread: one that
 * launches work and is in an operator (a backward). The pieces are given from the last to the first and cover the
 * range without gaps or overlaps. Time per piece: the depth of the calls around it, plus the logarithm of the number
 * of spans.
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
	size_t *before;          /* by work: the last work on its stream to end before it, SIZE_MAX: none */
	size_t *waits_for; /* by work: work of another stream, SIZE_MAX: none; NULL: not in traces (stream_waits.h) */
	size_t *by_end;    /* work that takes time, sorted by its ends */
	size_t end_count;
	uint32_t threads[CRITICAL_THREADS]; /* threads that launch work, by their first lanes */
	uint32_t thread_count;
	struct name_classes names;
};

/* Replaces the contents. Returns false if the process has no work of a device. */
bool critical_walk_begin(struct critical_walk *walk, struct analysis_context *context, uint32_t process);

/* main_thread: the track on which the range starts and ends. */
void critical_walk_run(struct critical_walk *walk, uint32_t main_thread, int64_t start_ns, int64_t end_ns,
                       use_piece use, void *context);
void critical_walk_release(struct critical_walk *walk);

/* Returns the thread that launches most, for time ranges that no step marks. */
uint32_t critical_walk_main(const struct critical_walk *walk);

#endif
