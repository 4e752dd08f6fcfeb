/* SPDX-License-Identifier: Apache-2.0
 *
 * run_captured_find.c: finds facts in the recordings of all processes.
 */
#include "base/memory.h"
#include "format/place.h"
#include "run/run_captured.h"
#include "run/run_segment.h"
#include "run/run_state.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define BLOCKS_LOOKED_AT 1000000 /* about a second */

static void captured_find_scan(struct run_scan *scan, const struct run *run, const struct watched *process,
                               uint64_t *blocks_left)
{
	char name[512];

	*scan = (struct run_scan){.blocks_left = *blocks_left, .pid_namespace = process->pid_namespace};
	for (uint32_t back = 0; back <= process->newest; back++) {
		snprintf(name, sizeof(name), "%s.%" PRIu32 ".ssr", process->stem, process->newest - back);
		run_scan_add(scan, run->directory.fd, name);
	}
	run_scan_finish(scan);
	*blocks_left = scan->blocks_left;
}

static struct fold_result captured_find_place(const struct run *run, const struct watched *process,
                                              const struct run_scan *scan)
{
	struct fold_result place = {.has_step = false};
	char path[PATH_MAX + 512];

	if (process->rescue)
		return *process->rescue;
	snprintf(path, sizeof(path), "%s/%s.%" PRIu32 ".ssr", run->directory.path, process->stem, scan->newest);
	place_find(path, &place);
	return place;
}

static enum captured captured_find_outcome(const struct fold_result *place)
{
	return place->has_step || place->steps_counted ? CAPTURED_STEPS
	       : place->last_op[0]                     ? CAPTURED_DETAIL
	                                               : CAPTURED_NOTHING;
}

static enum captured_end captured_find_end(const struct watched *process, const struct run_scan *scan,
                                           bool is_unwritten)
{
	if (scan->capture[0])
		return CAPTURED_END_TOLD;
	if (is_unwritten)
		return CAPTURED_END_UNWRITTEN;
	if (process->is_alive)
		return CAPTURED_END_OPEN;
	if (!scan->is_closed && !process->rescue && (!scan->is_rescued || run_watch_has_pool(process)))
		return CAPTURED_END_LOST;
	return CAPTURED_END_COMPLETE;
}

/* Older recorders wrote a sentence, but no outcome. */
static void captured_find_told(struct captured_process *trainer, const struct run *run, const struct watched *process,
                               const struct run_scan *scan)
{
	trainer->told = strdup(scan->capture);
	if (!trainer->told)
		memory_exhausted(strlen(scan->capture) + 1);
	trainer->outcome = scan->own.captured;
	if (!trainer->outcome) {
		struct fold_result place = captured_find_place(run, process, scan);

		trainer->outcome = captured_find_outcome(&place);
	}
}

static void captured_find_steps(struct captured_process *trainer, const struct run *run, const struct watched *process,
                                const struct run_scan *scan)
{
	struct fold_result place = captured_find_place(run, process, scan);

	trainer->outcome = captured_find_outcome(&place);
	trainer->steps = (struct captured_steps){
		.has_last = place.has_step,
		.last = place.last_step,
		.counted = place.steps_counted,
		.has_schedule = place.has_schedule,
		.detailed = place.steps_detailed,
		.first_detailed = place.first_detailed,
		.last_detailed = place.last_detailed,
	};
}

static void captured_find_trainer(struct captured_process *trainer, const struct run *run,
                                  const struct watched *process, const struct run_scan *scan)
{
	trainer->end = captured_find_end(process, scan, trainer->unwritten_reason != NULL);
	switch (trainer->end) {
	case CAPTURED_END_TOLD:
		captured_find_told(trainer, run, process, scan);
		break;
	case CAPTURED_END_COMPLETE:
		captured_find_steps(trainer, run, process, scan);
		break;
	case CAPTURED_END_OPEN:
	case CAPTURED_END_LOST:
		trainer->outcome = CAPTURED_DETAIL;
		break;
	case CAPTURED_END_UNWRITTEN:
		trainer->outcome = CAPTURED_STEPS; /* the last known outcome */
	}
	if (scan->own.trains)
		trainer->outcome = CAPTURED_STEPS;
}

static void captured_find_process(struct run_captured *captured, const struct run *run, const struct watched *process,
                                  uint64_t *blocks_left)
{
	const char *unwritten_reason;
	struct captured_process *trainer;
	struct run_scan scan;

	captured_find_scan(&scan, run, process, blocks_left);
	captured->dropped += scan.dropped;
	captured->dropped_coarse += scan.dropped_coarse;
	unwritten_reason = scan.is_closed ? NULL : process->rescue_problem;
	if (unwritten_reason)
		captured->unwritten_reason = unwritten_reason;
	if (process->role == STEPSCOPE_ROLE_WORKER && !scan.own.trains) {
		captured->workers++;
		captured->unwritten_workers += unwritten_reason != NULL;
		return;
	}
	captured->trainers = memory_resize(captured->trainers, (size_t)captured->trainer_count + 1,
	                                   sizeof(*captured->trainers));
	trainer = &captured->trainers[captured->trainer_count];
	*trainer = (struct captured_process){
		.pid = process->pid,
		.order = captured->trainer_count++,
		.rank = scan.own.has_rank ? scan.own.rank : process->rank,
		.unwritten_reason = unwritten_reason,
	};
	captured_find_trainer(trainer, run, process, &scan);
}

void run_captured_find(struct run_captured *captured, const struct run *run)
{
	uint64_t blocks_left = BLOCKS_LOOKED_AT;

	*captured = (struct run_captured){0};
	for (uint32_t i = 0; i < run->watch.count; i++) {
		const struct watched *process = &run->watch.items[i];

		if (process->is_ours && process->role != STEPSCOPE_ROLE_HOST)
			captured_find_process(captured, run, process, &blocks_left);
	}
	captured->is_dropped_least = !blocks_left;
	run_captured_settle(captured);
}
