/* SPDX-License-Identifier: Apache-2.0
 *
 * threads.c: see threads.h.
 */
#include "replay/threads.h"

#include "base/memory.h"
#include "base/merge_sort.h"
#include "base/storage.h"
#include "model/lanes.h"
#include "pytorch/names.h"

#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

#define TOUCHING_NS 10.0 /* rows that overlap by less follow each other: traces are rounded */

/* ---- rows ---- */

static bool is_operator(uint8_t kind)
{
	return kind == SPAN_OP || kind == SPAN_COLLECTIVE;
}

/* Names with a meaning of their own. */
enum row_class {
	ROW_OTHER,
	ROW_LOAD,
	ROW_OPTIMIZER,
	ROW_ON_DEVICE, /* a collective that a backend executes: "nccl:all_reduce" */
	ROW_ON_HOST,   /* "gloo:all_reduce" */
	ROW_GARBAGE,
	ROW_COMPILE,
	ROW_SAVE,
};

uint8_t replay_classify_row(const char *name)
{
	if (pytorch_is_work(name))
		return strstr(name, "ccl:") ? ROW_ON_DEVICE : ROW_ON_HOST;
	return pytorch_begins(name, PYTORCH_LOADER)           ? ROW_LOAD
	       : pytorch_begins(name, PYTORCH_OPTIMIZER_STEP) ? ROW_OPTIMIZER
	       : pytorch_begins(name, PYTORCH_GARBAGE)        ? ROW_GARBAGE
	       : !strcmp(name, PYTORCH_COMPILE)               ? ROW_COMPILE
	       : !strcmp(name, PYTORCH_SAVE)                  ? ROW_SAVE
	                                                      : ROW_OTHER;
}

static enum row_class row_class_of(struct replay_graph *graph, const struct span_chunk *chunk, uint32_t i)
{
	return (enum row_class)name_class(&graph->rows, graph->model, chunk->name[i]);
}

static bool is_range(uint8_t kind)
{
	return kind == SPAN_RANGE || kind == SPAN_ANNOTATION;
}

static bool is_row_of_phase(const struct replay_graph *graph, const struct span_chunk *chunk, uint32_t i,
                            enum stepscope_phase phase)
{
	return graph->is_recorded && chunk->kind[i] == SPAN_PHASE && chunk->phase[i] == phase;
}

/* In our own recordings the phase is known in all steps. PyTorch before 1.11 records the fetch of a batch as an
 * operator. */
bool replay_is_load(struct replay_graph *graph, const struct span_chunk *chunk, uint32_t i)
{
	if (graph->is_recorded)
		return is_row_of_phase(graph, chunk, i, STEPSCOPE_PHASE_DATA);
	return (is_range(chunk->kind[i]) || chunk->kind[i] == SPAN_OP) && row_class_of(graph, chunk, i) == ROW_LOAD;
}

/* NCCL runs on the device, if one was recorded: it needs no kernel if there is one rank. */
static void note_collective(struct replay_graph *graph, const struct span_chunk *chunk, uint32_t i)
{
	if (chunk->kind[i] != SPAN_ANNOTATION)
		return;
	graph->has_device_backend |= row_class_of(graph, chunk, i) == ROW_ON_DEVICE;
	graph->has_host_collectives |= row_class_of(graph, chunk, i) == ROW_ON_HOST;
}

/* Returns REPLAY_CAUSES if the row is none. */
static enum replay_cause cause_of(struct replay_graph *graph, const struct span_chunk *chunk, uint32_t i)
{
	if (chunk->kind[i] == SPAN_PHASE)
		return chunk->phase[i] == STEPSCOPE_PHASE_CHECKPOINT   ? REPLAY_CHECKPOINT
		       : chunk->phase[i] == STEPSCOPE_PHASE_EVALUATION ? REPLAY_EVALUATION
		                                                       : REPLAY_CAUSES;
	if (!is_range(chunk->kind[i]))
		return REPLAY_CAUSES;
	switch (row_class_of(graph, chunk, i)) {
	case ROW_GARBAGE:
		return REPLAY_GARBAGE;
	case ROW_COMPILE:
		return REPLAY_COMPILE;
	case ROW_SAVE:
		return REPLAY_CHECKPOINT;
	default:
		return REPLAY_CAUSES;
	}
}

/* Our own recordings have the phase. Of a trace, calls in calls of the same lane do not count. */
static bool is_optimizer(struct replay_graph *graph, const struct replay_thread *thread, const struct span_chunk *chunk,
                         uint32_t i)
{
	const struct replay_stretches *calls = &thread->optimizers;
	const struct replay_stretch *last = calls->count ? &calls->list[calls->count - 1] : NULL;
	double start_ns = replay_since_origin(graph, chunk->start_ns[i]);

	if (graph->is_recorded)
		return is_row_of_phase(graph, chunk, i, STEPSCOPE_PHASE_OPTIMIZER);
	return (is_range(chunk->kind[i]) || chunk->kind[i] == SPAN_OP) &&
	       row_class_of(graph, chunk, i) == ROW_OPTIMIZER &&
	       !(last && start_ns >= last->start_ns && start_ns < last->end_ns);
}

/* ---- threads ---- */

/* Adds an outermost operator, unless it lies within the one before (in another lane). */
static void add_outermost(struct replay_graph *graph, struct replay_thread *thread,
                          const struct replay_operator *outermost)
{
	STORAGE_GROW(graph->model->storage, thread->operators, thread->operator_count, thread->operator_capacity, 64);
	thread->operators[thread->operator_count++] = *outermost;
}

static void note_stretch(struct replay_graph *graph, struct replay_stretches *stretches, double start_ns, double end_ns)
{
	STORAGE_GROW(graph->model->storage, stretches->list, stretches->count, stretches->capacity, 16);
	stretches->list[stretches->count++] = (struct replay_stretch){start_ns, end_ns};
}

/* A call of an optimizer with a closure in it is more than the optimizer. */
static void drop_optimizer_around(struct replay_thread *thread, double start_ns)
{
	struct replay_stretches *calls = &thread->optimizers;

	if (calls->count && calls->list[calls->count - 1].end_ns > start_ns)
		calls->count--;
}

static void scan_row(struct replay_graph *graph, struct replay_thread *thread, const struct span_chunk *chunk,
                     uint32_t i)
{
	double start_ns = replay_since_origin(graph, chunk->start_ns[i]), end_ns = start_ns + (double)chunk->dur_ns[i];
	enum replay_cause cause = cause_of(graph, chunk, i);

	if (replay_is_in_window(graph, start_ns))
		note_collective(graph, chunk, i);
	if (cause < REPLAY_CAUSES)
		note_stretch(graph, &thread->causes[cause], start_ns, end_ns);
	if (is_optimizer(graph, thread, chunk, i))
		note_stretch(graph, &thread->optimizers, start_ns, end_ns);
	else if (graph->is_recorded && chunk->kind[i] == SPAN_PHASE)
		drop_optimizer_around(thread, start_ns);
	if (replay_is_load(graph, chunk, i))
		note_stretch(graph, &thread->loads, start_ns, end_ns);
	if (is_row_of_phase(graph, chunk, i,
	                    STEPSCOPE_PHASE_COMMUNICATION)) /* marked by programs that are not of PyTorch */
		note_stretch(graph, &thread->waits, start_ns, end_ns);
}

static void scan_rows(struct replay_graph *graph, struct replay_thread *thread, uint32_t number)
{
	const struct track *track = graph->model->tracks[number];
	int outer = -1; /* depth of the open outermost operator */

	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			double start_ns = replay_since_origin(graph, chunk->start_ns[i]);
			double end_ns = start_ns + (double)chunk->dur_ns[i];

			if (outer >= 0 && chunk->depth[i] <= outer)
				outer = -1;
			scan_row(graph, thread, chunk, i);
			if (outer >= 0 || !is_operator(chunk->kind[i]) || replay_is_load(graph, chunk, i))
				continue;
			outer = chunk->depth[i];
			add_outermost(graph, thread,
			              &(struct replay_operator){start_ns, end_ns, number, chunk->first_row + i,
			                                        chunk->name[i]});
		}
		model_chunk_done(graph->model, chunk);
	}
}

static int compare_operators(const void *left, const void *right)
{
	const struct replay_operator *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->end_ns < b->end_ns) - (a->end_ns > b->end_ns);
}

static int compare_stretches(const void *left, const void *right)
{
	const struct replay_stretch *a = left, *b = right;

	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static void sort_stretches(struct replay_graph *graph, struct replay_stretches *stretches)
{
	merge_sort_in(graph->model->storage, stretches->list, stretches->count, sizeof(*stretches->list),
	              compare_stretches);
}

/* Operators of several lanes may lie within each other. */
static void keep_outermost(struct replay_thread *thread)
{
	double until_ns = -1e300;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < thread->operator_count; i++)
		if (thread->operators[i].start_ns >= until_ns - TOUCHING_NS) {
			until_ns = thread->operators[i].end_ns;
			thread->operators[kept++] = thread->operators[i];
		}
	thread->operator_count = kept;
}

static void add_thread(struct replay_graph *graph, uint32_t first)
{
	struct replay_thread thread = {.first_track = first};
	const struct model *model = graph->model;

	while (first + thread.tracks < model->tracks_count &&
	       (!thread.tracks || is_further_lane(model, first + thread.tracks))) {
		scan_rows(graph, &thread, first + thread.tracks);
		thread.tracks++;
	}
	merge_sort_in(model->storage, thread.operators, thread.operator_count, sizeof(*thread.operators),
	              compare_operators);
	sort_stretches(graph, &thread.loads);
	sort_stretches(graph, &thread.optimizers);
	for (int cause = 0; cause < REPLAY_CAUSES; cause++)
		sort_stretches(graph, &thread.causes[cause]);
	keep_outermost(&thread);
	graph->threads = memory_resize(graph->threads, graph->thread_count + 1, sizeof(*graph->threads));
	graph->threads[graph->thread_count++] = thread;
}

/* Returns the thread of each track; REPLAY_NONE: of another process. The caller frees it. */
static uint32_t *threads_of_tracks(const struct replay_graph *graph)
{
	uint32_t *threads = memory_resize(NULL, graph->model->tracks_count, sizeof(*threads));

	for (uint32_t i = 0; i < graph->model->tracks_count; i++)
		threads[i] = REPLAY_NONE;
	for (uint32_t t = 0; t < graph->thread_count; t++)
		for (uint32_t k = 0; k < graph->threads[t].tracks; k++)
			threads[graph->threads[t].first_track + k] = t;
	return threads;
}

static void note_launching(struct replay_graph *graph, const struct launches *launches, const uint32_t *threads)
{
	const struct model *model = graph->model;

	for (uint32_t t = 0; t < launches->track_count; t++) {
		if (!launches->by_track[t] || model->tracks[t]->process != graph->process)
			continue;
		for (uint32_t row = 0; row < model->tracks[t]->span_count; row++) {
			uint32_t track = launches->by_track[t][row].track;

			if (track != MODEL_NONE && threads[track] != REPLAY_NONE)
				graph->threads[threads[track]].launches = true;
		}
	}
}

void replay_add_threads(struct replay_graph *graph, const struct launches *launches)
{
	const struct model *model = graph->model;
	uint32_t *threads;

	for (uint32_t track = 0; track < model->tracks_count; track++)
		if (model->tracks[track]->process == graph->process && model->tracks[track]->kind == TRACK_THREAD &&
		    !is_further_lane(model, track))
			add_thread(graph, track);
	threads = threads_of_tracks(graph);
	note_launching(graph, launches, threads);
	graph->main_thread = threads[model->steps[graph->steps[0].model_step].track];
	free(threads);
}

/* ---- waits ---- */

/* Marked and observed waits may overlap. */
void replay_add_waits(struct replay_graph *graph, const struct replay_window *window)
{
	struct replay_stretches *waits = &graph->threads[graph->main_thread].waits;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < window->wait_count; i++)
		note_stretch(graph, waits, replay_since_origin(graph, window->waits[i].start_ns),
		             replay_since_origin(graph, window->waits[i].end_ns));
	sort_stretches(graph, waits);
	for (uint32_t i = 1; i < waits->count; i++) {
		struct replay_stretch *last = &waits->list[kept], *wait = &waits->list[i];

		if (wait->start_ns >= last->end_ns)
			waits->list[++kept] = *wait;
		else if (wait->end_ns > last->end_ns)
			last->end_ns = wait->end_ns;
	}
	waits->count = waits->count ? kept + 1 : 0;
	graph->recording.has_meetings = waits->count > 0;
}
