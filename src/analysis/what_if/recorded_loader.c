/* SPDX-License-Identifier: Apache-2.0
 *
 * recorded_loader.c: see recorded_loader.h.
 */
#include "analysis/what_if/recorded_loader.h"

#include "base/memory.h"
#include "replay/loader_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_PREFETCH 2u /* prefetch_factor of PyTorch */

static const char *loader_fact(const struct model *model, uint32_t process, uint32_t number, const char *fact)
{
	char key[80];

	snprintf(key, sizeof(key), "data_loader.%u.%s", number, fact);
	return model_meta(model, process, key);
}

static bool is_fetch_in_window(const struct model *model, const struct replay_window *window,
                               const struct loader_fetch *fetch)
{
	const struct model_step *first = &model->steps[window->first_step];
	const struct model_step *last = &model->steps[window->first_step + window->step_count - 1];

	return fetch->process == window->process && fetch->is_batch && fetch->start_ns >= first->start_ns &&
	       fetch->end_ns <= last->end_ns;
}

/* Returns the number of the loader with most batches in the window. */
static uint32_t main_loader(const struct model *model, const struct replay_window *window,
                            const struct loader_batches *batches)
{
	uint32_t best = 0, most = 0, count = 0, counted = 0; /* counted: the loader of the newest fetch that counts */

	for (uint32_t i = 0; i < batches->fetch_count; i++) {
		uint32_t number = (uint32_t)(batches->fetches[i].loop >> 32);

		if (!is_fetch_in_window(model, window, &batches->fetches[i]))
			continue;
		count = count && number == counted ? count + 1 : 1; /* fetches are sorted by loader */
		counted = number;
		if (count > most) {
			most = count;
			best = number;
		}
	}
	return best;
}

static int compare_fetches(const void *left, const void *right)
{
	const struct replay_fetch *a = left, *b = right;

	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static void take_fetches(struct replay_loader *loader, const struct model *model, const struct replay_window *window,
                         const struct loader_batches *batches, uint32_t number)
{
	struct replay_fetch *fetches = memory_resize(NULL, batches->fetch_count + 1, sizeof(*fetches));

	for (uint32_t i = 0; i < batches->fetch_count; i++) {
		const struct loader_fetch *fetch = &batches->fetches[i];

		if (is_fetch_in_window(model, window, fetch) && fetch->loop >> 32 == number)
			fetches[loader->fetch_count++] = (struct replay_fetch){fetch->track, fetch->start_ns,
			                                                       fetch->end_ns};
	}
	qsort(fetches, loader->fetch_count, sizeof(*fetches), compare_fetches);
	loader->fetches = fetches;
}

static void take_handover(struct replay_loader *loader, const struct model *model, uint32_t process, uint32_t number,
                          const struct loader_handovers *handovers)
{
	struct loader_handover_sums sums = loader_handovers_sum(handovers, model, process, number, MODEL_NONE);

	if (sums.of[HANDOVER_PICKLE].count)
		loader->pickle_ns = (double)sums.of[HANDOVER_PICKLE].dur_ns / (double)sums.of[HANDOVER_PICKLE].count;
	if (sums.of[HANDOVER_UNPICKLE].count)
		loader->unpickle_ns = (double)sums.of[HANDOVER_UNPICKLE].dur_ns /
		                      (double)sums.of[HANDOVER_UNPICKLE].count;
}

static double processors_of(const struct model *model, uint32_t process)
{
	const char *processors = model_meta(model, process, "processors");
	const char *quota = model_meta(model, process, "processors.quota");
	double count = processors ? strtod(processors, NULL) : 0, limit = quota ? strtod(quota, NULL) : 0;

	if (count <= 0)
		return INFINITY;
	return limit > 0 ? fmin(count, limit) : count;
}

void recorded_batches_find(struct recorded_batches *recorded, const struct model *model)
{
	loader_batches_find(&recorded->batches, model);
	loader_handovers_find(&recorded->handovers, model);
}

void recorded_batches_release(struct recorded_batches *recorded)
{
	loader_batches_release(&recorded->batches);
	loader_handovers_release(&recorded->handovers);
}

bool recorded_loader_find(struct replay_loader *loader, const struct model *model, const struct replay_window *window,
                          const struct recorded_batches *recorded)
{
	uint32_t number = main_loader(model, window, &recorded->batches);

	*loader = (struct replay_loader){0};
	const char *kind = loader_fact(model, window->process, number, "dataset_kind");
	const char *in_order = loader_fact(model, window->process, number, "in_order");
	const char *workers = loader_fact(model, window->process, number, "num_workers");
	const char *prefetch = loader_fact(model, window->process, number, "prefetch_factor");
	bool is_known = kind && !strcmp(kind, "map") && workers && !(in_order && !strcmp(in_order, "false"));

	if (is_known) {
		take_fetches(loader, model, window, &recorded->batches, number);
		take_handover(loader, model, window->process, number, &recorded->handovers);
		loader->workers = (uint32_t)strtoul(workers, NULL, 10);
		loader->prefetch = prefetch ? (uint32_t)strtoul(prefetch, NULL, 10) : 0;
		loader->prefetch = loader->prefetch ? loader->prefetch : USUAL_PREFETCH;
		loader->prefetch = loader->prefetch < LOADER_MOST_PREFETCH ? loader->prefetch : LOADER_MOST_PREFETCH;
		loader->processors = processors_of(model, window->process);
	}
	return is_known;
}

void recorded_loader_release(struct replay_loader *loader)
{
	free((void *)loader->fetches);
}
