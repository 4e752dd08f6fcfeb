/* SPDX-License-Identifier: Apache-2.0
 *
 * loader_sums.c: see the header.
 */
#include "analysis/loader/loader_sums.h"

#include "analysis/step_times/step_kinds.h"
#include "base/clamped.h"
#include "base/compare_numbers.h"
#include "base/memory.h"

#include <stdlib.h>

/* ---- waits ---- */

static bool loader_is_of(const struct loader_sums *sums, uint32_t process, uint64_t loop)
{
	return sums->process == process && sums->number == (uint32_t)(loop >> 32);
}

/* Returns the largest number of workers of one loop, at least 1. The same number of first batches comes from workers
 * that start. */
static uint32_t loader_most_workers(const struct loader_sums *sums, const struct loader_batches *part)
{
	uint32_t most = 1, workers = 0, last = MODEL_NONE;
	uint64_t loop = 0;

	for (uint32_t i = 0; i < part->fetch_count; i++) {
		const struct loader_fetch *fetch = &part->fetches[i];

		if (!loader_is_of(sums, fetch->process, fetch->loop) || fetch->worker == last)
			continue;
		workers = fetch->loop == loop ? workers + 1 : 1;
		most = workers > most ? workers : most;
		last = fetch->worker;
		loop = fetch->loop;
	}
	return most;
}

static void loader_add_batch(struct loader_sums *sums, const struct loader_wait *wait, bool is_first)
{
	int64_t dur_ns = wait->end_ns - wait->start_ns;

	sums->batches++;
	clamped_add(&sums->wait_ns, dur_ns);
	clamped_add(&sums->sampler_ns, wait->sampler_ns);
	clamped_add(&sums->pin_ns, wait->pin_ns);
	sums->pinned += wait->pin_ns > 0;
	if (!is_first)
		return;
	sums->first_batches++;
	clamped_add(&sums->first_wait_ns, dur_ns);
	clamped_add(&sums->first_sampler_ns, wait->sampler_ns);
}

/* Returns the time in [start, end) of steps that were recorded without waits. */
static int64_t loader_time_without(const struct model *model, uint32_t process, int64_t start_ns, int64_t end_ns)
{
	int64_t sum_ns = 0;

	for (uint32_t i = 0; i < model->steps_count; i++) {
		const struct model_step *step = &model->steps[i];
		int64_t from_ns = step->start_ns > start_ns ? step->start_ns : start_ns;
		int64_t to_ns = step->end_ns < end_ns ? step->end_ns : end_ns;

		if (step->process == process && !step->has_detail && to_ns > from_ns)
			clamped_add(&sum_ns, to_ns - from_ns);
	}
	return sum_ns;
}

/* Returns true if waits were recorded in all steps, and not only in those with operators. */
static bool loader_has_waits_without(const struct loader_sums *sums, const struct loader_batches *part,
                                     const struct model *model)
{
	for (uint32_t i = 0; i < part->wait_count; i++) {
		const struct loader_wait *wait = &part->waits[i];
		const struct model_step *step;

		if (!loader_is_of(sums, wait->process, wait->loop))
			continue;
		step = step_times_step_at(model, wait->process, wait->start_ns);
		if (step && step_is_plain(step) && wait->start_ns > step->start_ns && wait->end_ns < step->end_ns)
			return true;
	}
	return false;
}

static void loader_add_loop(struct loader_sums *sums, const struct model *model, int64_t start_ns, int64_t end_ns,
                            bool is_of_all)
{
	clamped_add(&sums->loop_ns, end_ns - start_ns);
	clamped_add(&sums->span_ns, end_ns - start_ns);
	if (!is_of_all)
		clamped_subtract(&sums->loop_ns, loader_time_without(model, sums->process, start_ns, end_ns));
}

static void loader_sum_waits(struct loader_sums *sums, const struct loader_batches *part, const struct model *model)
{
	double *values = memory_resize(NULL, (size_t)part->wait_count + 1, sizeof(*values));
	const struct loader_wait *first = NULL, *last = NULL;
	uint32_t in_loop = 0, starting = loader_most_workers(sums, part);
	bool is_of_all = loader_has_waits_without(sums, part, model);

	sums->has_sampler = part->has_samplers;
	for (uint32_t i = 0; i < part->wait_count; i++) {
		const struct loader_wait *wait = &part->waits[i];

		if (!loader_is_of(sums, wait->process, wait->loop))
			continue;
		if (first && (last->is_end || last->loop != wait->loop)) {
			loader_add_loop(sums, model, first->start_ns, last->end_ns, is_of_all);
			first = NULL;
		}
		if (!wait->is_end) {
			values[sums->batches] = (double)(wait->end_ns - wait->start_ns);
			in_loop = first ? in_loop + 1 : 0;
			loader_add_batch(sums, wait, in_loop < starting && !wait->is_of_rest);
			sums->loops += !first;
			sums->has_rest |= wait->is_of_rest;
		}
		first = first ? first : wait;
		last = wait;
	}
	if (first)
		loader_add_loop(sums, model, first->start_ns, last->end_ns, is_of_all);
	sums->loop_ns = sums->loop_ns > sums->wait_ns ? sums->loop_ns : sums->wait_ns;
	summary_compute(&sums->wait, values, (size_t)sums->batches);
	free(values);
}

static void loader_sum_starts(struct loader_sums *sums, const struct loader_batches *part)
{
	for (uint32_t i = 0; i < part->start_count; i++) {
		if (!loader_is_of(sums, part->starts[i].process, part->starts[i].loop))
			continue;
		const struct loader_start *start = &part->starts[i];

		clamped_add(&sums->starting_ns, start->dur_ns);
		clamped_add(&sums->starting_sampler_ns, start->sampler_ns);
		clamped_add(&sums->workers_ns, start->is_again ? 0 : start->dur_ns - start->sampler_ns);
		sums->starts += !start->is_again;
	}
}

static void loader_sum_pinning(struct loader_sums *sums, const struct loader_batches *part)
{
	for (uint32_t i = 0; i < part->pinning_count; i++) {
		const struct loader_pinning *pinning = &part->pinnings[i];

		if (!loader_is_of(sums, pinning->process, pinning->loop))
			continue;
		sums->pinned += pinning->count;
		clamped_add(&sums->pin_ns, pinning->busy_ns);
		clamped_add(&sums->pin_window_ns, pinning->window_ns);
	}
}

/* ---- work ---- */

static void loader_add_work(struct loader_work *work, const struct loader_fetch *fetch)
{
	work->count += fetch->is_batch;
	clamped_add(&work->collate_ns, fetch->collate_ns);
	clamped_add(&work->dataset_ns, fetch->end_ns - fetch->start_ns - fetch->collate_ns);
}

/* Sums up the worker that has its first fetch at this index. The fetches of a worker follow each other. */
static void loader_sum_worker(struct loader_work *work, const struct loader_batches *part, uint32_t first)
{
	const struct loader_fetch *begin = &part->fetches[first];
	int64_t last_ns = begin->end_ns;

	*work = (struct loader_work){.workers = 1};
	for (uint32_t i = first; i < part->fetch_count && part->fetches[i].worker == begin->worker; i++) {
		const struct loader_fetch *fetch = &part->fetches[i];

		last_ns = fetch->end_ns > last_ns ? fetch->end_ns : last_ns;
		loader_add_work(work, fetch);
	}
	work->window_ns = last_ns - begin->start_ns;
}

bool loader_sums_next_worker(const struct loader_sums *sums, const struct loader_batches *part,
                             struct loader_worker *worker)
{
	uint32_t last = worker->next_fetch ? worker->process : MODEL_NONE;

	for (uint32_t i = worker->next_fetch; i < part->fetch_count; i++) {
		const struct loader_fetch *fetch = &part->fetches[i];

		if (fetch->worker == MODEL_NONE || fetch->worker == last ||
		    !loader_is_of(sums, fetch->process, fetch->loop))
			continue;
		*worker = (struct loader_worker){
			.process = fetch->worker, .first_ns = fetch->start_ns, .next_fetch = i + 1};
		loader_sum_worker(&worker->work, part, i);
		return true;
	}
	return false;
}

static void loader_sum_workers(struct loader_sums *sums, const struct loader_batches *part)
{
	struct loader_worker worker = {0};

	while (loader_sums_next_worker(sums, part, &worker)) {
		sums->work.workers++;
		sums->work.count += worker.work.count;
		clamped_add(&sums->work.dataset_ns, worker.work.dataset_ns);
		clamped_add(&sums->work.collate_ns, worker.work.collate_ns);
		clamped_add(&sums->work.window_ns, worker.work.window_ns);
	}
}

/* Without workers the process of the loop makes the batches. */
static void loader_sum_here(struct loader_sums *sums, const struct loader_batches *part)
{
	for (uint32_t i = 0; i < part->fetch_count; i++) {
		const struct loader_fetch *fetch = &part->fetches[i];

		if (fetch->worker == MODEL_NONE && loader_is_of(sums, fetch->process, fetch->loop))
			loader_add_work(&sums->work, fetch);
	}
	sums->work.window_ns = sums->loop_ns;
}

/* ---- batches that are ready ---- */

/* Returns the sum, over the waits [first, end) of one loop, of the batches that were ready. */
static double loader_sum_ready(const struct loader_batches *part, uint32_t first, uint32_t end, int64_t *ends)
{
	const struct loader_wait *wait = &part->waits[first];
	uint32_t made = 0, done = 0;
	int64_t taken = 0;
	double sum = 0;

	for (uint32_t i = loader_batches_of_loop(part, wait->loop);
	     i < part->fetch_count && part->fetches[i].loop == wait->loop; i++) {
		if (part->fetches[i].is_batch)
			ends[made++] = part->fetches[i].end_ns;
	}
	if (made)
		qsort(ends, made, sizeof(*ends), compare_int64);
	for (uint32_t i = first; i < end; i++) {
		if (part->waits[i].is_end)
			continue;
		while (done < made && ends[done] <= part->waits[i].start_ns)
			done++;
		sum += done > taken ? (double)(done - taken) : 0;
		taken++;
	}
	return sum;
}

static void loader_find_ready(struct loader_sums *sums, const struct loader_batches *part)
{
	int64_t *ends = memory_resize(NULL, (size_t)part->fetch_count + 1, sizeof(*ends));
	double sum = 0;

	for (uint32_t first = 0, end; first < part->wait_count; first = end) {
		const struct loader_wait *wait = &part->waits[first];

		for (end = first + 1; end < part->wait_count && part->waits[end].loop == wait->loop &&
		                      part->waits[end].track == wait->track;
		     end++)
			;
		if (loader_is_of(sums, wait->process, wait->loop))
			sum += loader_sum_ready(part, first, end, ends);
	}
	sums->has_ready = sums->batches > 0 && !sums->has_rest;
	sums->ready = sums->batches ? sum / (double)sums->batches : 0;
	free(ends);
}

void loader_sums_compute(struct loader_sums *sums, const struct loader_batches *part, const struct model *model)
{
	*sums = (struct loader_sums){.process = part->waits[0].process,
	                             .number = (uint32_t)(part->waits[0].loop >> 32)};
	const char *processors = model_meta(model, sums->process, "processors");
	sums->processors = processors ? (int)strtol(processors, NULL, 10) : 0;
	loader_sum_waits(sums, part, model);
	loader_sum_starts(sums, part);
	loader_sum_pinning(sums, part);
	loader_sum_workers(sums, part);
	if (sums->work.workers)
		loader_find_ready(sums, part);
	else
		loader_sum_here(sums, part);
}
