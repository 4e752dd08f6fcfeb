/* SPDX-License-Identifier: Apache-2.0
 *
 * host_stretches.c: see host_stretches.h.
 */
#include "replay/host_stretches.h"

#include "base/memory.h"
#include "base/merge_sort.h"
#include "base/statistics.h"
#include "base/storage.h"
#include "pytorch/names.h"

#include <math.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>

#define LEAST_NS 30e3 /* shorter stretches are not looked at: calls of PyTorch lie 5 to 20 us apart */
/* Median of a place that counts: that share of a step, within limits. */
#define LONG_RATIO 0.05
#define LEAST_LONG_NS 100e3
#define MOST_LONG_NS 300e3

struct cover { /* time that is known to be something else */
	double start_ns, end_ns;
	uint32_t first, last; /* names of the events at its begin and end; 0: none */
	uint32_t track, row;  /* of the first */
};

struct host_covers {
	struct cover *list;
	uint32_t count, capacity;
};

/* ---- what is known ---- */

static bool is_known_row(const struct replay_graph *graph, const struct span_chunk *chunk, uint32_t i)
{
	if (pytorch_begins(model_text(graph->model, chunk->name[i]), PYTORCH_OPTIMIZER_ZERO_GRAD))
		return true;
	switch (chunk->kind[i]) {
	case SPAN_OP:
	case SPAN_COLLECTIVE: /* the engine's own row contains hooks and nodes written in Python */
		return !pytorch_begins(model_text(graph->model, chunk->name[i]), PYTORCH_ENGINE);
	case SPAN_PHASE:
	case SPAN_RANGE:
	case SPAN_MODULE:
		return !graph->recording.is_of_torch;
	default:
		return false;
	}
}

static void add_cover(const struct replay_graph *graph, struct host_covers *covers, const struct cover *cover)
{
	struct cover *last = covers->count ? &covers->list[covers->count - 1] : NULL;

	if (last && cover->start_ns >= last->start_ns && cover->start_ns < last->end_ns + LEAST_NS) {
		if (cover->end_ns >= last->end_ns) {
			last->end_ns = cover->end_ns;
			last->last = cover->last;
		}
		return;
	}
	STORAGE_GROW(graph->model->storage, covers->list, covers->count, covers->capacity, 256);
	covers->list[covers->count++] = *cover;
}

static void add_rows(const struct replay_graph *graph, struct host_covers *covers, uint32_t number)
{
	const struct track *track = graph->model->tracks[number];

	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			double start_ns = (double)(chunk->start_ns[i] - graph->origin_ns);

			if (is_known_row(graph, chunk, i))
				add_cover(graph, covers,
				          &(struct cover){start_ns, start_ns + (double)chunk->dur_ns[i], chunk->name[i],
				                          chunk->name[i], number, chunk->first_row + i});
		}
		model_chunk_done(graph->model, chunk);
	}
}

/* name: a phase, whose number is that of its string; HOST_STRETCH_CAUSE. */
static void add_stretches(const struct replay_graph *graph, struct host_covers *covers,
                          const struct replay_stretches *stretches, uint32_t name)
{
	for (uint32_t i = 0; i < stretches->count; i++)
		add_cover(graph, covers,
		          &(struct cover){stretches->list[i].start_ns, stretches->list[i].end_ns, name, name,
		                          MODEL_NONE, MODEL_NONE});
}

static int compare_covers(const void *left, const void *right)
{
	const struct cover *a = left, *b = right;

	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Joins what touches; `covers` is in the order of the starts. */
static void join_covers(struct host_covers *covers)
{
	uint32_t kept = 0;

	for (uint32_t i = 1; i < covers->count; i++) {
		struct cover *last = &covers->list[kept];
		const struct cover *cover = &covers->list[i];

		if (cover->start_ns >= last->end_ns + LEAST_NS) {
			covers->list[++kept] = *cover;
			continue;
		}
		if (cover->end_ns < last->end_ns)
			continue;
		last->end_ns = cover->end_ns;
		last->last = cover->last;
	}
	covers->count = covers->count ? kept + 1 : 0;
}

static void find_covers(const struct replay_graph *graph, struct host_covers *covers)
{
	const struct replay_thread *thread = &graph->threads[graph->main_thread];

	for (uint32_t k = 0; k < thread->tracks; k++)
		add_rows(graph, covers, thread->first_track + k);
	add_stretches(graph, covers, &thread->loads, STEPSCOPE_PHASE_DATA);
	add_stretches(graph, covers, &thread->waits, STEPSCOPE_PHASE_COMMUNICATION);
	add_stretches(graph, covers, &thread->optimizers, STEPSCOPE_PHASE_OPTIMIZER);
	add_stretches(graph, covers, &thread->causes[REPLAY_CHECKPOINT], STEPSCOPE_PHASE_CHECKPOINT);
	add_stretches(graph, covers, &thread->causes[REPLAY_EVALUATION], STEPSCOPE_PHASE_EVALUATION);
	add_stretches(graph, covers, &thread->causes[REPLAY_GARBAGE], HOST_STRETCH_CAUSE);
	add_stretches(graph, covers, &thread->causes[REPLAY_COMPILE], HOST_STRETCH_CAUSE);
	merge_sort_in(graph->model->storage, covers->list, covers->count, sizeof(*covers->list), compare_covers);
	join_covers(covers);
}

/* ---- what is left ---- */

static void add_host_stretch(const struct replay_graph *graph, struct host_stretches *stretches,
                             const struct host_stretch *stretch)
{
	if (stretch->end_ns - stretch->start_ns < LEAST_NS)
		return;
	STORAGE_GROW(graph->model->storage, stretches->list, stretches->count, stretches->capacity, 64);
	stretches->list[stretches->count++] = *stretch;
}

/* Adds the stretches between the covers in [from_ns, until_ns). *at: the first cover that ends behind from_ns. */
static void add_between(const struct replay_graph *graph, struct host_stretches *stretches,
                        const struct host_covers *covers, uint32_t *at, double from_ns, double until_ns,
                        bool is_between)
{
	uint32_t before = 0;

	while (*at < covers->count && covers->list[*at].end_ns <= from_ns)
		++*at;
	for (uint32_t i = *at; i < covers->count && covers->list[i].start_ns < until_ns; i++) {
		const struct cover *cover = &covers->list[i];

		add_host_stretch(graph, stretches,
		                 &(struct host_stretch){from_ns, cover->start_ns, before, cover->first, cover->row,
		                                        cover->track, is_between});
		from_ns = fmax(from_ns, cover->end_ns);
		before = cover->last;
	}
	add_host_stretch(graph, stretches,
	                 &(struct host_stretch){from_ns, until_ns, before, 0, MODEL_NONE, MODEL_NONE, is_between});
}

static void find_stretches(const struct replay_graph *graph, struct host_stretches *stretches,
                           const struct host_covers *covers)
{
	uint32_t at = 0;

	for (uint32_t s = 0; s < graph->step_count; s++) {
		const struct replay_step *step = &graph->steps[s];

		if (s > 0 && step->has_operators && step[-1].has_operators)
			add_between(graph, stretches, covers, &at, step[-1].end_ns, step->start_ns, true);
		if (step->has_operators)
			add_between(graph, stretches, covers, &at, step->start_ns, step->end_ns, false);
	}
}

/* ---- places ---- */

int host_stretches_compare_places(const void *left, const void *right)
{
	const struct host_stretch *a = left, *b = right;

	if (a->before != b->before)
		return a->before < b->before ? -1 : 1;
	if (a->after != b->after)
		return a->after < b->after ? -1 : 1;
	return a->is_between - b->is_between;
}

static int compare_host_starts(const void *left, const void *right)
{
	const struct host_stretch *a = left, *b = right;

	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static double median_stretch(const struct host_stretch *list, uint32_t count, double *values)
{
	for (uint32_t i = 0; i < count; i++)
		values[i] = list[i].end_ns - list[i].start_ns;
	return quantile_within(values, count, 0.5);
}

static void keep_long_places(const struct replay_graph *graph, struct host_stretches *stretches)
{
	struct storage *storage = graph->model->storage;
	double *values = memory_resize(NULL, stretches->count + 1, sizeof(*values));
	double step_ns = graph->steps[graph->step_count - 1].end_ns / graph->step_count;
	double long_ns = fmin(MOST_LONG_NS, fmax(LEAST_LONG_NS, LONG_RATIO * step_ns));
	uint32_t kept = 0, next;

	merge_sort_in(storage, stretches->list, stretches->count, sizeof(*stretches->list),
	              host_stretches_compare_places);
	for (uint32_t first = 0; first < stretches->count; first = next) {
		next = first + 1;
		while (next < stretches->count &&
		       !host_stretches_compare_places(&stretches->list[first], &stretches->list[next]))
			next++;
		if (median_stretch(&stretches->list[first], next - first, values) < long_ns)
			continue;
		for (uint32_t i = first; i < next; i++)
			stretches->list[kept++] = stretches->list[i];
	}
	stretches->count = kept;
	merge_sort_in(storage, stretches->list, stretches->count, sizeof(*stretches->list), compare_host_starts);
	free(values);
}

const struct host_stretches *host_stretches_of(const struct replay_graph *graph)
{
	struct host_stretches *stretches = graph->host_stretches;
	struct host_covers covers = {0};

	if (stretches->is_found)
		return stretches;
	find_covers(graph, &covers);
	find_stretches(graph, stretches, &covers);
	keep_long_places(graph, stretches);
	stretches->is_found = true;
	storage_release(graph->model->storage, covers.list);
	return stretches;
}

void host_stretches_release(const struct replay_graph *graph, struct host_stretches *stretches)
{
	if (stretches)
		storage_release(graph->model->storage, stretches->list);
	free(stretches);
}
