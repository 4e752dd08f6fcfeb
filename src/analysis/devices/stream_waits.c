/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_waits.c: see stream_waits.h.
 */
#include "analysis/devices/stream_waits.h"

#include "base/lower_bound.h"
#include "base/memory.h"
#include "base/merge_sort.h"
#include "model/lanes.h"
#include "model/number_map.h"

#include <stdlib.h>
#include <stepscope/format.h>
#include <string.h>

struct stream_wait {
	uint32_t track;        /* first lane of the stream that waits */
	uint32_t other;        /* the stream that is waited for */
	uint64_t call, record; /* correlations of both calls */
};

struct stream_waits_launched { /* work and the call that launched it */
	uint32_t track;        /* first lane */
	int64_t call_ns;
	size_t number;
};

struct stream_waits_search {
	const struct model *model;
	uint32_t process;
	struct stream_wait *waits;
	size_t count, capacity;
	struct stream_waits_launched *launched; /* sorted by track and call */
	size_t launched_count;
	struct number_map calls; /* correlation of a wait or record -> index into calls_ns */
	int64_t *calls_ns;
	uint32_t call_count;
};

/* ---- waits ---- */

/* Returns MODEL_NONE if the process has no such stream of the device. */
static uint32_t find_stream(const struct stream_waits_search *search, int32_t device, int64_t stream)
{
	for (uint32_t i = 0; i < search->model->tracks_count; i++) {
		const struct track *track = search->model->tracks[i];

		if (track->kind == TRACK_DEVICE && track->process == search->process && track->device == device &&
		    track->tid == stream)
			return i;
	}
	return MODEL_NONE;
}

static bool stream_waits_number_of(const struct span_arg *arg, uint64_t *number)
{
	*number = arg->u64;
	return (arg->type == STEPSCOPE_ARG_U64 || (arg->type == STEPSCOPE_ARG_I64 && arg->i64 >= 0)) &&
	       arg->u64 <= INT64_MAX;
}

/* The arguments [0, count) are those of one span. */
static void add_wait(struct stream_waits_search *search, const struct span_arg *args, size_t count)
{
	const struct track *track = search->model->tracks[args->track];
	uint32_t i;
	const struct span_chunk *chunk = track_chunk(track, args->row, &i);
	struct stream_wait wait = {.track = first_lane(search->model, args->track),
	                           .other = MODEL_NONE,
	                           .call = span_correlation(chunk, i)};

	if (chunk->kind[i] != SPAN_SYNC || track->process != search->process ||
	    strcmp(model_text(search->model, chunk->name[i]), "Stream Wait Event") != 0)
		return;
	for (size_t k = 0; k < count; k++) {
		const char *key = model_text(search->model, args[k].key);
		uint64_t number;

		if (!stream_waits_number_of(&args[k], &number))
			continue;
		if (!strcmp(key, "wait_on_cuda_event_record_corr_id"))
			wait.record = number;
		else if (!strcmp(key, "wait_on_stream"))
			wait.other = find_stream(search, track->device, (int64_t)number);
	}
	if (!wait.call || !wait.record || wait.other == MODEL_NONE || wait.other == wait.track)
		return;
	MEMORY_GROW(search->waits, search->count, search->capacity, 64);
	search->waits[search->count++] = wait;
}

static void stream_waits_find_waits(struct stream_waits_search *search)
{
	const struct model *model = search->model;

	for (size_t first = 0, end; first < model->args_count; first = end) {
		const struct span_arg *arg = &model->args[first];

		for (end = first + 1; end < model->args_count && model->args[end].track == arg->track &&
		                      model->args[end].row == arg->row;)
			end++;
		if (model->tracks[arg->track]->kind == TRACK_DEVICE)
			add_wait(search, arg, end - first);
	}
}

/* ---- times of both calls ---- */

static void want_call(struct stream_waits_search *search, uint64_t correlation)
{
	if (number_map_find(&search->calls, correlation) != NUMBER_MAP_NONE)
		return;
	number_map_set(&search->calls, correlation, search->call_count);
	search->calls_ns[search->call_count++] = INT64_MIN;
}

static void find_calls_of(struct stream_waits_search *search, const struct track *track)
{
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; chunk->correlation && i < chunk->count; i++) {
			uint32_t found = chunk->kind[i] == SPAN_RUNTIME && chunk->correlation[i]
			                         ? number_map_find(&search->calls, chunk->correlation[i])
			                         : NUMBER_MAP_NONE;

			if (found != NUMBER_MAP_NONE)
				search->calls_ns[found] = chunk->start_ns[i];
		}
		model_chunk_done(search->model, chunk);
	}
}

static void stream_waits_find_calls(struct stream_waits_search *search)
{
	search->calls_ns = memory_resize(NULL, 2 * search->count, sizeof(*search->calls_ns));
	for (size_t i = 0; i < search->count; i++) {
		want_call(search, search->waits[i].call);
		want_call(search, search->waits[i].record);
	}
	for (uint32_t i = 0; i < search->model->tracks_count; i++)
		if (search->model->tracks[i]->process == search->process &&
		    search->model->tracks[i]->kind != TRACK_DEVICE)
			find_calls_of(search, search->model->tracks[i]);
}

static int64_t called_ns(const struct stream_waits_search *search, uint64_t correlation)
{
	return search->calls_ns[number_map_find(&search->calls, correlation)];
}

/* ---- waiting work ---- */

static int compare_launched(const void *left, const void *right)
{
	const struct stream_waits_launched *a = left, *b = right;

	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	if (a->call_ns != b->call_ns)
		return a->call_ns < b->call_ns ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

static void find_launched(struct stream_waits_search *search, const struct launches *launches,
                          const struct device_work *work)
{
	search->launched = memory_resize(NULL, work->count + 1, sizeof(*search->launched));
	for (size_t n = 0; n < work->count; n++) {
		const struct launch *launch = launches_of(launches, work->items[n].track, work->items[n].row);
		const struct span_chunk *chunk;
		uint32_t i;

		if (!launch || launch->track == MODEL_NONE)
			continue;
		chunk = track_chunk(search->model->tracks[launch->track], launch->row, &i);
		search->launched[search->launched_count++] = (struct stream_waits_launched){
			first_lane(search->model, work->items[n].track), chunk->start_ns[i], n};
	}
	merge_sort(search->launched, search->launched_count, sizeof(*search->launched), compare_launched);
}

/* Returns the index of the first work of the stream that was launched at the instant or later. */
static size_t first_launched(const struct stream_waits_search *search, uint32_t track, int64_t time_ns)
{
	const struct stream_waits_launched wanted = {track, time_ns, 0};

	return LOWER_BOUND(search->launched, search->launched_count, item, compare_launched(item, &wanted) < 0);
}

static void use_wait(const struct stream_waits_search *search, const struct device_work *work,
                     const struct stream_wait *wait, size_t *waits_for)
{
	int64_t call_ns = called_ns(search, wait->call), record_ns = called_ns(search, wait->record);
	size_t next = first_launched(search, wait->track, call_ns);
	size_t last = first_launched(search, wait->other, record_ns), *mine;

	if (call_ns == INT64_MIN || record_ns == INT64_MIN || next == search->launched_count || !last ||
	    search->launched[next].track != wait->track || search->launched[--last].track != wait->other)
		return;
	mine = &waits_for[search->launched[next].number];
	last = search->launched[last].number;
	if (*mine == STREAM_WAITS_NONE || work->items[last].end_ns > work->items[*mine].end_ns)
		*mine = last;
}

size_t *stream_waits_find(const struct model *model, const struct launches *launches, const struct device_work *work,
                          uint32_t process)
{
	struct stream_waits_search search = {.model = model, .process = process};
	size_t *waits_for = NULL;

	stream_waits_find_waits(&search);
	if (search.count) {
		stream_waits_find_calls(&search);
		find_launched(&search, launches, work);
		waits_for = memory_resize(NULL, work->count + 1, sizeof(*waits_for));
		for (size_t i = 0; i < work->count; i++)
			waits_for[i] = STREAM_WAITS_NONE;
		for (size_t i = 0; i < search.count; i++)
			use_wait(&search, work, &search.waits[i], waits_for);
	}
	number_map_release(&search.calls);
	free(search.calls_ns);
	free(search.launched);
	free(search.waits);
	return waits_for;
}
