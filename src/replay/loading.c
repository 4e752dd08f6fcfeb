/* SPDX-License-Identifier: Apache-2.0
 *
 * loading.c: see loading.h.
 */
#include "replay/loading.h"

#include "base/memory.h"
#include "model/readings.h"

#include <math.h>
#include <stdlib.h>

#define NEAR_RATIO 0.02 /* a reading is that near to an instant, as share of the time that it is read for */
#define NEAR_NS 50e3
#define LEAST_BATCHES 8u
#define MOST_BATCHES 2048u /* the first of more stand for all */
#define MOST_ERROR 0.1     /* of the model. If it is further off, the run had fewer processors than it may use */
#define LEAST_PROCESSORS 0.05
#define MOST_UNEXPLAINED 0.2 /* of the measured time */
#define ROUNDS 24            /* of the search for them */
#define MOST_WORKERS 16u     /* that are tried */
#define ENOUGH 1.02          /* times the shortest step */

struct thread_work {
	double cpu_ns, sleep_ns;
};

/* Without readings it worked all the time. */
static struct thread_work work_between(const struct replay_graph *graph, uint32_t track, int64_t start_ns,
                                       int64_t end_ns)
{
	int64_t near_ns = (int64_t)fmax(NEAR_NS, NEAR_RATIO * (double)(end_ns - start_ns));
	struct thread_activity use = readings_between(graph->model, track, start_ns, end_ns, near_ns);

	if (!use.is_known)
		return (struct thread_work){fmax(0, (double)(end_ns - start_ns)), 0};
	return (struct thread_work){(double)use.cpu_ns, (double)use.sleep_ns};
}

/* The loop's work from the end of each wait to the next one. *sum_ns: the time from the end of each wait to that of the
 * next one. */
static uint32_t fill_loop(const struct replay_graph *graph, struct loader_batch *batches, double *sum_ns)
{
	const struct replay_thread *thread = &graph->threads[graph->main_thread];
	uint32_t track = thread->first_track, count = 0;

	for (uint32_t i = 0; i + 1 < thread->loads.count && count < MOST_BATCHES; i++) {
		double start_ns = thread->loads.list[i].end_ns, end_ns = thread->loads.list[i + 1].start_ns;

		if (start_ns < 0 || end_ns > graph->steps[graph->step_count - 1].end_ns)
			continue;
		struct thread_work work = work_between(graph, track, graph->origin_ns + (int64_t)start_ns,
		                                       graph->origin_ns + (int64_t)end_ns);
		*sum_ns += thread->loads.list[i + 1].end_ns - start_ns;
		batches[count++] = (struct loader_batch){.loop_cpu_ns = work.cpu_ns, .loop_sleep_ns = work.sleep_ns};
	}
	return count;
}

static void fill_fetches(const struct replay_graph *graph, const struct replay_loader *loader,
                         struct loader_batch *batches, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct replay_fetch *fetch = &loader->fetches[i % loader->fetch_count];
		struct thread_work work = work_between(graph, fetch->track, fetch->start_ns, fetch->end_ns);

		batches[i].fetch_cpu_ns = work.cpu_ns;
		batches[i].fetch_sleep_ns = work.sleep_ns;
	}
}

/* Other programs may take processors: fits how many the run had. More of them never make a step longer. */
static void fit_processors(struct replay_loading *loading)
{
	/* without a known number each thread may have had one */
	double low = LEAST_PROCESSORS, high = fmin(loading->processors, loading->loader.workers + 1);

	loading->step_ns = loader_model_step(&loading->loader);
	if (loading->step_ns >= (1 - MOST_ERROR) * loading->batch_ns)
		return;
	for (int round = 0; round < ROUNDS; round++) {
		loading->loader.processors = (low + high) / 2;
		loading->step_ns = loader_model_step(&loading->loader);
		if (loading->step_ns < loading->batch_ns)
			high = loading->loader.processors;
		else
			low = loading->loader.processors;
	}
}

static double step_with(const struct replay_loading *loading, uint32_t workers)
{
	struct loader_case loader = loading->loader;

	loader.workers = workers;
	if (!loading->loader.workers)
		loader.pickle_ns = loader.unpickle_ns = LOADING_HANDOVER_NS;
	return loader_model_step(&loader);
}

static void find_enough(struct replay_loading *loading)
{
	uint32_t own = loading->loader.workers, count = own < MOST_WORKERS ? MOST_WORKERS - own : 0;
	double steps_ns[MOST_WORKERS], least_ns = loading->step_ns; /* of one worker more, of two more, ... */

	loading->enough = own;
	loading->enough_ns = loading->step_ns;
	for (uint32_t i = 0; i < count; i++) {
		steps_ns[i] = step_with(loading, own + 1 + i);
		least_ns = fmin(least_ns, steps_ns[i]);
	}
	for (uint32_t i = 0; i < count && loading->enough_ns > ENOUGH * least_ns; i++) {
		loading->enough = own + 1 + i;
		loading->enough_ns = steps_ns[i];
	}
}

static double step_handed_over(const struct replay_loading *loading)
{
	struct loader_case loader = loading->loader;

	loader.pickle_ns = fmin(loader.pickle_ns, LOADING_HANDOVER_NS);
	loader.unpickle_ns = fmin(loader.unpickle_ns, LOADING_HANDOVER_NS);
	return fmin(loading->step_ns, loader_model_step(&loader));
}

void replay_loading_find(struct replay_graph *graph, const struct replay_loader *loader)
{
	const struct replay_thread *thread = &graph->threads[graph->main_thread];
	struct loader_batch *batches;
	double sum_ns = 0;
	uint32_t count;

	if (!loader || !loader->fetch_count || loader->workers > LOADER_MOST_WORKERS)
		return;
	batches = memory_resize(NULL, thread->loads.count + 1, sizeof(*batches));
	count = fill_loop(graph, batches, &sum_ns);
	if (count < LEAST_BATCHES) {
		free(batches);
		return;
	}
	fill_fetches(graph, loader, batches, count);
	graph->loading = memory_resize(NULL, 1, sizeof(*graph->loading));
	*graph->loading = (struct replay_loading){
		.loader = {.batches = batches,
	                   .count = count,
	                   .workers = loader->workers,
	                   .prefetch = loader->prefetch,
	                   .processors = loader->processors,
	                   .pickle_ns = loader->pickle_ns,
	                   .unpickle_ns = loader->unpickle_ns},
		.processors = loader->processors,
		.batch_ns = sum_ns / count,
	};
	fit_processors(graph->loading);
	if (fabs(graph->loading->step_ns / graph->loading->batch_ns - 1) > MOST_UNEXPLAINED) {
		replay_loading_release(graph->loading);
		graph->loading = NULL;
		return;
	}
	find_enough(graph->loading);
	graph->loading->handed_ns = step_handed_over(graph->loading);
}

void replay_loading_release(struct replay_loading *loading)
{
	if (loading)
		free((void *)loading->loader.batches);
	free(loading);
}
