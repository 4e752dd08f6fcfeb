/* SPDX-License-Identifier: Apache-2.0
 *
 * run_captured.c: looks at the recordings of all processes, then groups those to speak for by what there is to say of them.
 */
#include "run/run_captured.h"

#include "base/memory.h"
#include "format/place.h"
#include "run/run_segment.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS_LOOKED_AT 1000000 /* about a second */
#define SENTENCE_BYTES 4096
#define GROUPS_SAID 3
#define NAMED_IN_GROUP 8

/* ---- one process ---- */

static void scan_process(struct run_captured *captured, struct run_scan *scan, const struct run *run,
                         const struct watched *process)
{
	char name[512];

	*scan = (struct run_scan){.blocks_left = captured->blocks_left, .pid_namespace = process->pid_namespace};
	for (uint32_t back = 0; back <= process->newest; back++) {
		snprintf(name, sizeof(name), "%s.%" PRIu32 ".ssr", process->stem, process->newest - back);
		run_scan_add(scan, run->directory.fd, name);
	}
	run_scan_finish(scan);
	captured->blocks_left = scan->blocks_left;
	captured->dropped += scan->dropped;
	captured->dropped_coarse += scan->dropped_coarse;
}

/* Steps that were counted, in a process that did not live to say it. */
static void add_counted(struct buffer *out, const struct fold_result *place)
{
	buffer_printf(out, ", after %" PRIu64 " step%s (counted: the program marks none)", place->steps_counted,
	              place->steps_counted == 1 ? "" : "s");
	if (!place->has_schedule)
		return;
	if (!place->steps_detailed)
		buffer_add_text(out, ", none of them with operators");
	else if (place->steps_detailed == place->steps_counted)
		buffer_add_text(out, ", with operators");
	else if (place->last_detailed - place->first_detailed + 1 == (int64_t)place->steps_detailed)
		buffer_printf(out, ", those from %" PRId64 " to %" PRId64 " with operators", place->first_detailed,
		              place->last_detailed);
	else
		buffer_printf(out, ", %" PRIu64 " of them from %" PRId64 " to %" PRId64 " with operators",
		              place->steps_detailed, place->first_detailed, place->last_detailed);
}

static struct fold_result find_place(const struct run *run, const struct watched *process, const struct run_scan *scan)
{
	struct fold_result place = {.has_step = false};
	char path[PATH_MAX + 512];

	if (process->rescue)
		return *process->rescue;
	snprintf(path, sizeof(path), "%s/%s.%" PRIu32 ".ssr", run->directory.path, process->stem, scan->newest);
	place_find(path, &place);
	return place;
}

static enum captured outcome_of(const struct fold_result *place)
{
	return place->has_step || place->steps_counted ? CAPTURED_STEPS
	       : place->last_op[0]                     ? CAPTURED_DETAIL
	                                               : CAPTURED_NOTHING;
}

/* A recording that says nothing about itself: what is known of its end. */
static enum captured add_end(struct buffer *out, const struct run *run, const struct watched *process,
                             const struct run_scan *scan)
{
	struct fold_result place;

	if (process->is_alive) {
		buffer_add_text(out, "its process still records");
		return CAPTURED_DETAIL;
	}
	if (!scan->is_closed && !process->rescue && (!scan->is_rescued || run_watch_has_pool(process))) {
		buffer_add_text(out, "the end of the recording is missing, its buffers are gone");
		return CAPTURED_DETAIL;
	}
	buffer_add_text(out, "recorded up to its end");
	place = find_place(run, process, scan);
	if (place.has_step)
		buffer_printf(out, " at step %" PRId64, place.last_step);
	else if (place.steps_counted)
		add_counted(out, &place);
	return outcome_of(&place);
}

/* What the process said of itself. An older recorder said it in a sentence only. */
static enum captured add_said(struct buffer *out, const struct run *run, const struct watched *process,
                              const struct run_scan *scan)
{
	struct fold_result place;

	buffer_add_text(out, scan->capture);
	if (scan->own.captured)
		return scan->own.captured;
	place = find_place(run, process, scan);
	return outcome_of(&place);
}

static void run_captured_describe(struct captured_process *trainer, const struct run *run, const struct run_scan *scan)
{
	const struct watched *process = trainer->watched;
	struct buffer out;

	buffer_init(&out, SENTENCE_BYTES);
	trainer->outcome = CAPTURED_STEPS; /* of one whose end cannot be written, as far as is known */
	if (scan->capture[0])
		trainer->outcome = add_said(&out, run, process, scan);
	else if (!trainer->is_unwritten)
		trainer->outcome = add_end(&out, run, process, scan);
	if (trainer->is_unwritten)
		buffer_printf(
			&out,
			"%sthe end of the recording could not be written: %s; it waits in memory: make room, then run "
			"stepscope report",
			scan->capture[0] ? "; " : "", process->rescue_problem);
	if (scan->own.trains)
		trainer->outcome = CAPTURED_STEPS;
	trainer->sentence = buffer_take(&out);
	if (!trainer->sentence)
		memory_exhausted(SENTENCE_BYTES);
}

static void run_captured_look_at(struct run_captured *captured, const struct run *run, const struct watched *process)
{
	bool is_unwritten;
	struct run_scan scan;

	scan_process(captured, &scan, run, process);
	is_unwritten = process->rescue_problem && !scan.is_closed;
	if (is_unwritten)
		captured->problem = process->rescue_problem;
	if (process->role == STEPSCOPE_ROLE_WORKER && !scan.own.trains) {
		captured->workers++;
		captured->unwritten_workers += is_unwritten;
		return;
	}
	captured->trainers = memory_resize(captured->trainers, (size_t)captured->trainer_count + 1,
	                                   sizeof(*captured->trainers));
	struct captured_process *trainer = &captured->trainers[captured->trainer_count++];
	*trainer = (struct captured_process){
		.watched = process,
		.rank = scan.own.has_rank ? scan.own.rank : process->rank,
		.is_unwritten = is_unwritten,
	};
	run_captured_describe(trainer, run, &scan);
}

static int run_captured_compare_ranks(const void *left, const void *right)
{
	const struct captured_process *a = left, *b = right;

	if (a->rank != b->rank)
		return (uint32_t)a->rank < (uint32_t)b->rank ? -1 : 1; /* -1 is last */
	return (a->watched > b->watched) - (a->watched < b->watched);
}

void run_captured_find(struct run_captured *captured, const struct run *run)
{
	*captured = (struct run_captured){.blocks_left = BLOCKS_LOOKED_AT};
	for (uint32_t i = 0; i < run->watch.count; i++) {
		const struct watched *process = &run->watch.items[i];

		if (!process->is_ours || process->role == STEPSCOPE_ROLE_HOST)
			continue;
		if (process->ids.here == run->child.pid)
			captured->program = process;
		run_captured_look_at(captured, run, process);
	}
	if (captured->trainer_count)
		qsort(captured->trainers, (size_t)captured->trainer_count, sizeof(*captured->trainers),
		      run_captured_compare_ranks);
}

bool run_captured_is_empty(const struct run_captured *captured)
{
	return !captured->trainer_count && !captured->workers;
}

void run_captured_release(struct run_captured *captured)
{
	for (int i = 0; i < captured->trainer_count; i++)
		free(captured->trainers[i].sentence);
	free(captured->trainers);
	*captured = (struct run_captured){0};
}

/* ---- the sentence ---- */

struct spoken_for {
	const struct run_captured *captured;
	enum captured outcome; /* of those to speak for */
	int count;
};

static struct spoken_for run_captured_choose(const struct run_captured *captured)
{
	struct spoken_for spoken = {.captured = captured};

	for (int i = 0; i < captured->trainer_count; i++) {
		if (captured->trainers[i].outcome > spoken.outcome)
			spoken.outcome = captured->trainers[i].outcome;
	}
	for (int i = 0; i < captured->trainer_count; i++)
		spoken.count += captured->trainers[i].outcome == spoken.outcome;
	return spoken;
}

/* Of one group: those of which there is the same to say as of the first. */
static bool run_captured_is_in(const struct spoken_for *spoken, int i, int first)
{
	const struct captured_process *trainer = &spoken->captured->trainers[i];

	return trainer->outcome == spoken->outcome &&
	       !strcmp(trainer->sentence, spoken->captured->trainers[first].sentence);
}

/* Several processes have its rank: a job that was started again, or two jobs in one run. */
static bool is_rank_shared(const struct spoken_for *spoken, int i)
{
	const struct captured_process *trainers = spoken->captured->trainers;
	int first = i, count = 0;

	while (first > 0 && trainers[first - 1].rank == trainers[i].rank)
		first--;
	for (int j = first; j < spoken->captured->trainer_count && trainers[j].rank == trainers[i].rank; j++)
		count += trainers[j].outcome == spoken->outcome;
	return count > 1;
}

/* The last of the group that follow each other from `i` on. */
static int end_of_ranks(const struct spoken_for *spoken, int i, int first)
{
	const struct captured_process *trainers = spoken->captured->trainers;

	while (i + 1 < spoken->captured->trainer_count && trainers[i + 1].rank == trainers[i].rank + 1 &&
	       run_captured_is_in(spoken, i + 1, first) && !is_rank_shared(spoken, i + 1))
		i++;
	return i;
}

/* "ranks 0-3", "rank 2, rank 5 (pid 4242), pid 4711 and 3 more" */
static void add_names(struct buffer *out, const struct spoken_for *spoken, int first)
{
	const struct captured_process *trainers = spoken->captured->trainers;
	int named = 0, more = 0;

	for (int i = first; i < spoken->captured->trainer_count; i++) {
		int32_t rank = trainers[i].rank;

		if (!run_captured_is_in(spoken, i, first))
			continue;
		if (named++ >= NAMED_IN_GROUP) {
			more++;
			continue;
		}
		buffer_add_text(out, named > 1 ? ", " : "");
		if (rank < 0) {
			buffer_printf(out, "pid %d", (int)trainers[i].watched->pid);
		} else if (is_rank_shared(spoken, i)) {
			buffer_printf(out, "rank %" PRId32 " (pid %d)", rank, (int)trainers[i].watched->pid);
		} else {
			i = end_of_ranks(spoken, i, first);
			buffer_printf(out, trainers[i].rank > rank ? "ranks %" PRId32 "-%" PRId32 : "rank %" PRId32,
			              rank, trainers[i].rank);
		}
	}
	if (more)
		buffer_printf(out, " and %d more", more);
}

static void add_groups(struct buffer *out, const struct spoken_for *spoken)
{
	const struct run_captured *captured = spoken->captured;
	int groups = 0;

	for (int i = 0; i < captured->trainer_count; i++) {
		bool is_new = captured->trainers[i].outcome == spoken->outcome;

		for (int j = 0; j < i && is_new; j++)
			is_new = !run_captured_is_in(spoken, j, i);
		if (!is_new)
			continue;
		if (++groups > GROUPS_SAID) {
			buffer_add_text(out, "; the others differ, see the report");
			return;
		}
		buffer_add_text(out, groups > 1 ? "; " : ", ");
		add_names(out, spoken, i);
		buffer_printf(out, ": %s", captured->trainers[i].sentence);
	}
}

static void add_trainers(struct buffer *out, const struct run_captured *captured)
{
	struct spoken_for spoken = run_captured_choose(captured);

	if (captured->trainer_count == 1) {
		buffer_add_text(out, captured->trainers[0].sentence);
		return;
	}
	if (spoken.count == captured->trainer_count)
		buffer_printf(out, "%d processes", spoken.count);
	else
		buffer_printf(out, "%d of %d processes %s", spoken.count, captured->trainer_count,
		              spoken.outcome == CAPTURED_STEPS ? "trained" : "ran operators or ranges");
	add_groups(out, &spoken);
}

/* What is missing, of all processes. */
static void add_losses(struct buffer *out, const struct run_captured *captured)
{
	struct spoken_for spoken = run_captured_choose(captured);
	int unwritten = captured->unwritten_workers;

	for (int i = 0; i < captured->trainer_count; i++)
		unwritten += captured->trainers[i].is_unwritten && captured->trainers[i].outcome != spoken.outcome;
	if (unwritten)
		buffer_printf(out, "; the end of %d more recording%s could not be written: %s", unwritten,
		              unwritten == 1 ? "" : "s", captured->problem);
	if (!captured->dropped)
		return;
	buffer_printf(out, "; %s%" PRIu64 " event%s dropped", captured->blocks_left ? "" : "at least ",
	              captured->dropped, captured->dropped == 1 ? " was" : "s were");
	buffer_printf(out, " (%" PRIu64 " of steps and phases), see --pool", captured->dropped_coarse);
}

void run_captured_say(const struct run_captured *captured, struct buffer *out)
{
	if (captured->trainer_count)
		add_trainers(out, captured);
	if (captured->workers)
		buffer_printf(out, "%s%d worker process%s", captured->trainer_count ? ", and " : "captured ",
		              captured->workers, captured->workers == 1 ? "" : "es");
	add_losses(out, captured);
}
