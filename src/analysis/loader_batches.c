/* SPDX-License-Identifier: Apache-2.0
 *
 * loader_batches.c: see loader_batches.h.
 */
#include "analysis/loader_batches.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_BACK 8u /* operators that PyTorch's own entry into the record may be */

/* The argument is of what began last; the wait holds it or stands right before it. */
static uint32_t row_of_wait(const struct model *model, const struct span_arg *arg)
{
	static const char prefix[] = "enumerate(DataLoader)#";

	for (uint32_t back = 0; back <= ROWS_BACK && back <= arg->row; back++) {
		uint32_t index;
		const struct span_chunk *chunk = track_chunk(model->tracks[arg->track], arg->row - back, &index);

		if (!strncmp(model_text(model, chunk->name[index]), prefix, sizeof(prefix) - 1))
			return arg->row - back;
	}
	return arg->row;
}

static struct loader_wait *add_wait(struct loader_batches *batches, const struct model *model,
                                    const struct span_arg *arg)
{
	const struct track *track = model->tracks[arg->track];
	uint32_t index, row = row_of_wait(model, arg);
	const struct span_chunk *chunk = track_chunk(track, row, &index);

	struct loader_wait *wait = &batches->waits[batches->wait_count++];

	*wait = (struct loader_wait){.process = track->process,
	                             .track = arg->track,
	                             .row = row,
	                             .loop = arg->u64,
	                             .start_ns = chunk->start_ns[index],
	                             .end_ns = chunk->start_ns[index] + chunk->dur_ns[index]};
	return wait;
}

static int64_t start_of(const struct model *model, const struct span_arg *arg)
{
	uint32_t index;
	const struct span_chunk *chunk = track_chunk(model->tracks[arg->track], arg->row, &index);

	return chunk->start_ns[index];
}

static void find_waits(struct loader_batches *batches, const struct model *model)
{
	uint32_t key = intern_find(&model->strings, "torch.loader");
	uint32_t end_key = intern_find(&model->strings, "torch.loader_end");
	struct loader_wait *last = NULL;
	uint32_t count = 0;

	for (uint32_t i = 0; i < model->args_count && key; i++)
		count += model->args[i].key == key;
	batches->waits = memory_resize(NULL, (size_t)count + 1, sizeof(*batches->waits));
	for (uint32_t i = 0; i < model->args_count && count; i++) {
		const struct span_arg *arg = &model->args[i];

		if (arg->key == key)
			last = add_wait(batches, model, arg);
		else if (arg->key == end_key && end_key && last && last->track == arg->track &&
		         start_of(model, arg) <= last->end_ns) /* of the wait, or of what came last in it */
			last->is_end = true;
	}
}

/* The wait that holds what began then on the track, NULL. */
static const struct loader_wait *wait_around(const struct loader_batches *batches, uint32_t track, uint32_t row,
                                             int64_t start_ns)
{
	uint32_t low = 0, high = batches->wait_count;

	while (low < high) { /* how many began before */
		uint32_t middle = low + (high - low) / 2;
		const struct loader_wait *wait = &batches->waits[middle];

		if (wait->track < track || (wait->track == track && wait->row < row))
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || batches->waits[low - 1].track != track || batches->waits[low - 1].end_ns < start_ns)
		return NULL;
	return &batches->waits[low - 1];
}

bool loader_worker_number(const struct model *model, uint32_t process, int64_t *number)
{
	const char *text = model_meta(model, process, "data_loader.worker");

	if (text)
		*number = strtoll(text, NULL, 10);
	return text != NULL;
}

/* Which loop the worker is of: its seed says it. Not always is that process its parent. */
static bool loop_of_worker(const struct model *model, uint32_t worker, uint32_t *process, uint64_t *loop)
{
	const char *seed = model_meta(model, worker, "data_loader.seed");
	char key[80];

	if (!seed)
		return false;
	snprintf(key, sizeof(key), "data_loader.seed.%.40s", seed);
	for (uint32_t i = 0; i < model->processes_count; i++) {
		const char *text = model_meta(model, i, key);

		if (!text || model->processes[i].host != model->processes[worker].host)
			continue;
		*process = i;
		*loop = strtoull(text, NULL, 10);
		return true;
	}
	return false;
}

struct fetch_search {
	struct loader_batches *batches;
	const struct model *model;
	uint32_t fetch, collate; /* strings */
	uint32_t capacity;
	/* of the track */
	uint32_t track;
	bool is_worker;
	uint32_t process, last_row; /* last_row: of the newest fetch */
	uint64_t loop;
};

static void add_fetch(struct fetch_search *search, const struct span_chunk *chunk, uint32_t index)
{
	struct loader_batches *batches = search->batches;
	int64_t start_ns = chunk->start_ns[index];
	struct loader_fetch fetch = {.process = search->process,
	                             .worker = search->is_worker ? search->model->tracks[search->track]->process
	                                                         : MODEL_NONE,
	                             .loop = search->loop,
	                             .start_ns = start_ns,
	                             .end_ns = start_ns + chunk->dur_ns[index]};

	search->last_row = MODEL_NONE;
	if (!search->is_worker) {
		const struct loader_wait *wait = wait_around(batches, search->track, chunk->first_row + index,
		                                             start_ns);

		if (!wait)
			return;
		fetch.process = wait->process;
		fetch.loop = wait->loop;
	}
	if (batches->fetch_count == search->capacity) {
		search->capacity = search->capacity ? 2 * search->capacity : 256;
		batches->fetches = memory_resize(batches->fetches, search->capacity, sizeof(*batches->fetches));
	}
	batches->fetches[batches->fetch_count++] = fetch;
	search->last_row = chunk->first_row + index;
}

static void search_track(struct fetch_search *search)
{
	const struct track *track = search->model->tracks[search->track];

	search->is_worker = loop_of_worker(search->model, track->process, &search->process, &search->loop);
	search->last_row = MODEL_NONE;
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			if (chunk->name[i] == search->fetch) {
				add_fetch(search, chunk, i);
			} else if (chunk->name[i] == search->collate && chunk->parent[i] == search->last_row &&
			           search->last_row != MODEL_NONE) {
				struct loader_fetch *last = &search->batches->fetches[search->batches->fetch_count - 1];

				last->collate_ns += chunk->dur_ns[i];
				last->is_batch = true;
			}
		}
		model_chunk_done(search->model, chunk);
	}
}

void loader_batches_find(struct loader_batches *batches, const struct model *model)
{
	struct fetch_search search = {.batches = batches,
	                              .model = model,
	                              .fetch = intern_find(&model->strings, "DataLoader.fetch"),
	                              .collate = intern_find(&model->strings, "DataLoader.collate")};

	memset(batches, 0, sizeof(*batches));
	find_waits(batches, model);
	for (search.track = 0; search.track < model->tracks_count && search.fetch; search.track++)
		search_track(&search);
}

void loader_batches_release(struct loader_batches *batches)
{
	free(batches->waits);
	free(batches->fetches);
	memset(batches, 0, sizeof(*batches));
}
