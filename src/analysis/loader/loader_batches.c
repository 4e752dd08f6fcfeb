/* SPDX-License-Identifier: Apache-2.0
 *
 * loader_batches.c: see loader_batches.h.
 */
#include "analysis/loader/loader_batches.h"

#include "base/clamped.h"
#include "base/lower_bound.h"
#include "base/memory.h"
#include "base/merge_sort.h"
#include "model/number_map.h"
#include "pytorch/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_BACK 8u /* most operators that PyTorch's own entry in the recording consists of */

/* The argument belongs to the span that started last. The wait contains that span or is right before it. */
static uint32_t row_of_wait(const struct model *model, const struct span_arg *arg)
{
	for (uint32_t back = 0; back <= ROWS_BACK && back <= arg->row; back++) {
		uint32_t index;
		const struct span_chunk *chunk = track_chunk(model->tracks[arg->track], arg->row - back, &index);

		if (pytorch_begins(model_text(model, chunk->name[index]), PYTORCH_LOADER))
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

static int64_t loader_batches_start_of(const struct model *model, const struct span_arg *arg)
{
	uint32_t index;
	const struct span_chunk *chunk = track_chunk(model->tracks[arg->track], arg->row, &index);

	return chunk->start_ns[index];
}

/* The argument belongs to the range, or to an operator in it. */
static void add_start(struct loader_batches *batches, const struct model *model, const struct span_arg *arg)
{
	const struct track *track = model->tracks[arg->track];

	for (uint32_t row = arg->row, index; row != MODEL_NONE;) {
		const struct span_chunk *chunk = track_chunk(track, row, &index);

		const char *name = model_text(model, chunk->name[index]);
		bool is_again = strcmp(name, PYTORCH_LOADER_AGAIN) == 0;

		if (is_again || strcmp(name, PYTORCH_LOADER_START) == 0) {
			batches->starts[batches->start_count++] = (struct loader_start){.process = track->process,
			                                                                .track = arg->track,
			                                                                .row = row,
			                                                                .loop = arg->u64,
			                                                                .dur_ns = chunk->dur_ns[index],
			                                                                .is_again = is_again};
			return;
		}
		row = chunk->parent[index];
	}
}

static void find_starts(struct loader_batches *batches, const struct model *model)
{
	uint32_t key = intern_find(&model->strings, "torch.loader_start");
	uint32_t count = 0;

	for (uint32_t i = 0; i < model->args_count && key; i++)
		count += model->args[i].key == key;
	batches->starts = memory_resize(NULL, (size_t)count + 1, sizeof(*batches->starts));
	for (uint32_t i = 0; i < model->args_count && count; i++)
		if (model->args[i].key == key)
			add_start(batches, model, &model->args[i]);
}

static void loader_batches_find_waits(struct loader_batches *batches, const struct model *model)
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
		         loader_batches_start_of(model, arg) <= last->end_ns) /* it starts in the wait */
			last->is_end = true;
	}
}

/* Returns the wait around a span that starts then on the track; NULL: there is none. */
static struct loader_wait *wait_around(const struct loader_batches *batches, uint32_t track, uint32_t row,
                                       int64_t start_ns)
{
	uint32_t low = LOWER_BOUND(batches->waits, batches->wait_count, wait,
	                           wait->track < track || (wait->track == track && wait->row < row));

	if (!low || batches->waits[low - 1].track != track || batches->waits[low - 1].end_ns < start_ns)
		return NULL;
	return &batches->waits[low - 1];
}

/* Returns the start of a loop at this row; NULL: there is none. */
static struct loader_start *start_at(const struct loader_batches *batches, uint32_t track, uint32_t row)
{
	uint32_t low = LOWER_BOUND(batches->starts, batches->start_count, start,
	                           start->track < track || (start->track == track && start->row < row));

	return low < batches->start_count && batches->starts[low].track == track && batches->starts[low].row == row
	               ? &batches->starts[low]
	               : NULL;
}

static const char worker_key[] = "data_loader.worker";

bool loader_worker_number(const struct model *model, uint32_t process, int64_t *number)
{
	const char *text = model_meta(model, process, worker_key);

	if (text)
		*number = strtoll(text, NULL, 10);
	return text != NULL;
}

bool loader_has_workers(const struct model *model)
{
	for (uint32_t i = 0; i < model->meta_count; i++)
		if (!strcmp(model_text(model, model->meta[i].key), worker_key))
			return true;
	return false;
}

/* ---- loops of workers ---- */

static const char seed_key[] = "data_loader.seed.", pid_key[] = "data_loader.pid.";

static bool names_loop(const char *key)
{
	return !strncmp(key, seed_key, sizeof(seed_key) - 1) || !strncmp(key, pid_key, sizeof(pid_key) - 1);
}

/* Maps the seeds of loops, and the ids of their workers, to the loops: a process notes both for each of its loops. */
void loader_seeds_find(struct number_map *seeds, const struct model *model)
{
	for (uint32_t i = model->meta_count; i-- > 0;) { /* if several have the same seed, the first counts */
		const struct model_meta *meta = &model->meta[i];

		if (meta->process < model->processes_count && names_loop(model_text(model, meta->key)))
			number_map_set(seeds, (uint64_t)model->processes[meta->process].host << 32 | meta->key, i);
	}
}

/* Returns the index of the fact with this key on the worker's host; NUMBER_MAP_NONE: there is none. */
static uint32_t find_loop(const struct number_map *seeds, const struct model *model, uint32_t worker, const char *text)
{
	uint32_t key = intern_find(&model->strings, text);

	return key ? number_map_find(seeds, (uint64_t)model->processes[worker].host << 32 | key) : NUMBER_MAP_NONE;
}

/* The loop knows the ids of its workers. In older recordings the seed of a worker identifies its loop, if no other loop has
 * that seed. The process of the loop is not always its parent. */
bool loader_seeds_loop(const struct number_map *seeds, const struct model *model, uint32_t worker, uint32_t *process,
                       uint64_t *loop)
{
	const char *seed = model_meta(model, worker, "data_loader.seed");
	char text[80];

	if (!seed)
		return false;
	snprintf(text, sizeof(text), "%s%" PRId64, pid_key, model->processes[worker].pid);
	uint32_t found = find_loop(seeds, model, worker, text);
	snprintf(text, sizeof(text), "%s%.40s", seed_key, seed);
	if (found == NUMBER_MAP_NONE)
		found = find_loop(seeds, model, worker, text);
	if (found == NUMBER_MAP_NONE)
		return false;
	*process = model->meta[found].process;
	*loop = strtoull(model_text(model, model->meta[found].value), NULL, 10);
	return true;
}

struct fetch_search {
	struct loader_batches *batches;
	const struct model *model;
	uint32_t fetch, collate, sampler, pin, dispatch; /* strings */
	uint32_t capacity, pinning_capacity;
	struct number_map seeds;
	/* of the current track */
	uint32_t track;
	bool is_worker;
	struct loader_pinning pinning; /* of a thread that pins */
	int64_t pinning_ns;            /* when its first pinning started */
	uint32_t process, last_row;    /* last_row: of the newest fetch */
	uint64_t loop;
};

static void add_fetch(struct fetch_search *search, const struct span_chunk *chunk, uint32_t index)
{
	struct loader_batches *batches = search->batches;
	int64_t start_ns = chunk->start_ns[index];
	struct loader_fetch fetch = {.process = search->process,
	                             .worker = search->is_worker ? search->model->tracks[search->track]->process
	                                                         : MODEL_NONE,
	                             .track = search->track,
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
	MEMORY_GROW(batches->fetches, batches->fetch_count, search->capacity, 256);
	batches->fetches[batches->fetch_count++] = fetch;
	search->last_row = chunk->first_row + index;
}

static void add_collate(struct fetch_search *search, const struct span_chunk *chunk, uint32_t index)
{
	struct loader_fetch *last;

	if (search->last_row == MODEL_NONE || chunk->parent[index] != search->last_row)
		return;
	last = &search->batches->fetches[search->batches->fetch_count - 1];
	clamped_add(&last->collate_ns, chunk->dur_ns[index]);
	last->is_batch = true;
}

/* Returns the row around a span, without the call that sends the samples to a worker. */
static uint32_t row_around(const struct fetch_search *search, const struct span_chunk *chunk, uint32_t index)
{
	uint32_t row = chunk->parent[index], i;

	if (row == MODEL_NONE || !search->dispatch)
		return row;
	const struct span_chunk *around = track_chunk(search->model->tracks[search->track], row, &i);

	return around->name[i] == search->dispatch ? around->parent[i] : row;
}

/* The sampler runs in the process of the loop, even with workers: before the loop's first wait, or in a wait. */
static void add_sampler(struct fetch_search *search, const struct span_chunk *chunk, uint32_t index)
{
	struct loader_start *start = start_at(search->batches, search->track, row_around(search, chunk, index));
	struct loader_wait *wait = start ? NULL
	                                 : wait_around(search->batches, search->track, chunk->first_row + index,
	                                               chunk->start_ns[index]);

	search->batches->has_samplers = true;
	if (start)
		clamped_add(&start->sampler_ns, chunk->dur_ns[index]);
	else if (wait)
		clamped_add(&wait->sampler_ns, chunk->dur_ns[index]);
}

static void add_pin(struct fetch_search *search, const struct span_chunk *chunk, uint32_t index)
{
	int64_t start_ns = chunk->start_ns[index];
	struct loader_wait *wait = wait_around(search->batches, search->track, chunk->first_row + index, start_ns);

	if (wait) {
		clamped_add(&wait->pin_ns, chunk->dur_ns[index]);
		return;
	}
	if (!search->pinning.count++)
		search->pinning_ns = start_ns;
	clamped_add(&search->pinning.busy_ns, chunk->dur_ns[index]);
	search->pinning.window_ns = start_ns + chunk->dur_ns[index] - search->pinning_ns;
}

/* The process notes the loop of each thread that pins. */
static void add_pinning(struct fetch_search *search)
{
	struct loader_batches *batches = search->batches;
	const struct track *track = search->model->tracks[search->track];
	char key[80];
	const char *loop;

	snprintf(key, sizeof(key), "data_loader.pinning.%" PRId64, track->tid);
	loop = search->pinning.count ? model_meta(search->model, track->process, key) : NULL;
	if (!loop)
		return;
	MEMORY_GROW(batches->pinnings, batches->pinning_count, search->pinning_capacity, 8);
	search->pinning.process = track->process;
	search->pinning.loop = strtoull(loop, NULL, 10);
	batches->pinnings[batches->pinning_count++] = search->pinning;
}

static void search_track(struct fetch_search *search)
{
	const struct track *track = search->model->tracks[search->track];

	search->is_worker = loader_seeds_loop(&search->seeds, search->model, track->process, &search->process,
	                                      &search->loop);
	search->last_row = MODEL_NONE;
	search->pinning = (struct loader_pinning){0};
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			uint32_t name = chunk->name[i];

			if (!name)
				continue;
			if (name == search->fetch)
				add_fetch(search, chunk, i);
			else if (name == search->collate)
				add_collate(search, chunk, i);
			else if (name == search->sampler)
				add_sampler(search, chunk, i);
			else if (name == search->pin)
				add_pin(search, chunk, i);
		}
		model_chunk_done(search->model, chunk);
	}
	add_pinning(search);
}

/* ---- the time left by rotation ---- */

static void begin_later(int64_t *since_ns, const struct process *process)
{
	if (process->has_removed && *since_ns < process->removed_until_ns)
		*since_ns = process->removed_until_ns;
}

/* Returns, by waiting process, the time from which its operators and those of its workers are all left. */
static int64_t *find_since(const struct loader_batches *batches, const struct model *model)
{
	int64_t *since_ns = memory_resize(NULL, (size_t)model->processes_count + 1, sizeof(*since_ns));

	for (uint32_t i = 0; i < model->processes_count; i++) {
		since_ns[i] = INT64_MIN;
		begin_later(&since_ns[i], &model->processes[i]);
	}
	for (uint32_t i = 0; i < batches->fetch_count; i++)
		if (batches->fetches[i].worker != MODEL_NONE)
			begin_later(&since_ns[batches->fetches[i].process],
			            &model->processes[batches->fetches[i].worker]);
	return since_ns;
}

static bool has_start(const struct loader_batches *batches, const struct loader_wait *wait)
{
	for (uint32_t i = 0; i < batches->start_count; i++)
		if (batches->starts[i].process == wait->process && batches->starts[i].loop == wait->loop)
			return true;
	return false;
}

static int64_t start_ns_of(const struct model *model, const struct loader_start *start)
{
	uint32_t index;

	return track_chunk(model->tracks[start->track], start->row, &index)->start_ns[index];
}

/* Handles the starts first: loops with a remaining start are whole. */
static void leave_out_before(struct loader_batches *batches, const struct model *model, const int64_t *since_ns)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < batches->start_count; i++)
		if (start_ns_of(model, &batches->starts[i]) >= since_ns[batches->starts[i].process])
			batches->starts[kept++] = batches->starts[i];
	batches->start_count = kept;
	kept = 0;
	for (uint32_t i = 0; i < batches->wait_count; i++) {
		struct loader_wait *wait = &batches->waits[i];
		bool is_new = !kept || batches->waits[kept - 1].process != wait->process ||
		              batches->waits[kept - 1].loop != wait->loop;

		if (wait->start_ns < since_ns[wait->process])
			continue;
		wait->is_of_rest = !is_new                               ? batches->waits[kept - 1].is_of_rest
		                   : since_ns[wait->process] > INT64_MIN ? !has_start(batches, wait)
		                                                         : false;
		batches->waits[kept++] = *wait;
	}
	batches->wait_count = kept;
	kept = 0;
	for (uint32_t i = 0; i < batches->fetch_count; i++)
		if (batches->fetches[i].start_ns >= since_ns[batches->fetches[i].process])
			batches->fetches[kept++] = batches->fetches[i];
	batches->fetch_count = kept;
}

/* ---- order ---- */

static int loader_batches_compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_waits(const void *left, const void *right)
{
	const struct loader_wait *a = left, *b = right;

	return a->process != b->process ? loader_batches_compare(a->process, b->process)
	                                : loader_batches_compare(a->loop >> 32, b->loop >> 32);
}

static int compare_fetches(const void *left, const void *right)
{
	const struct loader_fetch *a = left, *b = right;

	if (a->process != b->process)
		return loader_batches_compare(a->process, b->process);
	if (a->loop != b->loop)
		return loader_batches_compare(a->loop, b->loop);
	if (a->worker != b->worker)
		return loader_batches_compare(a->worker, b->worker);
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

void loader_batches_find(struct loader_batches *batches, const struct model *model)
{
	struct fetch_search search = {.batches = batches,
	                              .model = model,
	                              .fetch = intern_find(&model->strings, PYTORCH_LOADER_FETCH),
	                              .collate = intern_find(&model->strings, PYTORCH_LOADER_COLLATE),
	                              .sampler = intern_find(&model->strings, "DataLoader.sampler"),
	                              .pin = intern_find(&model->strings, "DataLoader.pin_memory"),
	                              .dispatch = intern_find(&model->strings, PYTORCH_LOADER_DISPATCH)};
	int64_t *since_ns;

	memset(batches, 0, sizeof(*batches));
	search.capacity = 64;
	batches->fetches = memory_resize(NULL, search.capacity, sizeof(*batches->fetches));
	loader_batches_find_waits(batches, model);
	find_starts(batches, model);
	loader_seeds_find(&search.seeds, model);
	for (search.track = 0; search.track < model->tracks_count && (search.fetch || search.sampler); search.track++)
		search_track(&search);
	number_map_release(&search.seeds);
	since_ns = find_since(batches, model);
	leave_out_before(batches, model, since_ns);
	free(since_ns);
	merge_sort(batches->waits, batches->wait_count, sizeof(*batches->waits), compare_waits);
	merge_sort(batches->fetches, batches->fetch_count, sizeof(*batches->fetches), compare_fetches);
}

/* Returns -1 if the fetch is of an earlier loader than the wait, 0 if of the same, 1 if of a later one. */
static int compare_loaders(const struct loader_fetch *fetch, const struct loader_wait *wait)
{
	return fetch->process != wait->process ? loader_batches_compare(fetch->process, wait->process)
	                                       : loader_batches_compare(fetch->loop >> 32, wait->loop >> 32);
}

bool loader_batches_next(const struct loader_batches *batches, struct loader_batches *part)
{
	struct loader_wait *wait = part->waits ? part->waits + part->wait_count : batches->waits;
	struct loader_fetch *fetch = part->waits ? part->fetches + part->fetch_count : batches->fetches;
	const struct loader_wait *end_wait = batches->waits + batches->wait_count;
	const struct loader_fetch *end_fetch = batches->fetches + batches->fetch_count;

	if (wait == end_wait)
		return false;
	*part = *batches;
	part->waits = wait;
	part->wait_count = part->fetch_count = 0;
	while (wait + part->wait_count < end_wait && compare_waits(wait, wait + part->wait_count) == 0)
		part->wait_count++;
	while (fetch < end_fetch && compare_loaders(fetch, wait) < 0)
		fetch++;
	part->fetches = fetch;
	while (fetch + part->fetch_count < end_fetch && compare_loaders(fetch + part->fetch_count, wait) == 0)
		part->fetch_count++;
	return true;
}

uint32_t loader_batches_of_loop(const struct loader_batches *part, uint64_t loop)
{
	return LOWER_BOUND(part->fetches, part->fetch_count, item, item->loop < loop);
}

void loader_batches_release(struct loader_batches *batches)
{
	free(batches->waits);
	free(batches->fetches);
	free(batches->starts);
	free(batches->pinnings);
	memset(batches, 0, sizeof(*batches));
}
