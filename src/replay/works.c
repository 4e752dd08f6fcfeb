/* SPDX-License-Identifier: Apache-2.0
 *
 * works.c: the works of the devices of a process, and their order on each stream.
 */
#include "replay/works.h"

#include "base/memory.h"
#include "base/merge_sort.h"
#include "base/storage.h"
#include "model/device_names.h"
#include "model/lanes.h"

#include <stdlib.h>
#include <string.h>

struct item_place { /* where the call of an item lies */
	uint32_t track, row, item;
};

struct work_row {
	double start_ns, end_ns;
	uint32_t item, track, row;
};

struct works_search {
	struct replay_graph *graph;
	struct item_place *places; /* sorted by track and row */
	uint32_t place_count;
	struct work_row *rows;
	uint32_t row_count, row_capacity;
	uint32_t *streams; /* by track: 1 + its stream */
};

/* ---- which item a call belongs to ---- */

static int compare_places(const void *left, const void *right)
{
	const struct item_place *a = left, *b = right;

	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	return (a->row > b->row) - (a->row < b->row);
}

static void find_calls_of_items(struct works_search *search)
{
	const struct replay_graph *graph = search->graph;

	search->places = storage_resize(graph->model->storage, NULL, graph->item_count + 1, sizeof(*search->places));
	for (uint32_t i = 0; i < graph->item_count; i++)
		if (graph->items[i].kind != REPLAY_MARK && graph->items[i].kind != REPLAY_BATCH)
			search->places[search->place_count++] = (struct item_place){graph->items[i].track,
			                                                            graph->items[i].row, i};
	merge_sort_in(graph->model->storage, search->places, search->place_count, sizeof(*search->places),
	              compare_places);
}

/* Returns the item whose call is this one, or has this one in it. */
static uint32_t item_of_call(const struct works_search *search, const struct launch *launch)
{
	const struct replay_graph *graph = search->graph;
	struct item_place wanted = {launch->track, launch->row, 0};
	uint32_t low = 0, high = search->place_count, i;

	if (launch->track == MODEL_NONE)
		return REPLAY_NONE;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (compare_places(&search->places[middle], &wanted) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || search->places[low - 1].track != launch->track)
		return REPLAY_NONE;
	const struct replay_item *item = &graph->items[search->places[low - 1].item];
	const struct span_chunk *chunk = track_chunk(graph->model->tracks[launch->track], launch->row, &i);
	double start_ns = (double)(chunk->start_ns[i] - graph->origin_ns);
	return item->row == launch->row || start_ns < item->end_ns ? search->places[low - 1].item : REPLAY_NONE;
}

/* ---- rows ---- */

static void add_rows_of_track(struct works_search *search, const struct launches *launches, uint32_t number)
{
	struct replay_graph *graph = search->graph;
	const struct track *track = graph->model->tracks[number];
	double end_ns = graph->steps[graph->step_count - 1].end_ns;

	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			struct work_row row = {.track = number, .row = chunk->first_row + i};

			if (!span_is_device_work(chunk->kind[i]))
				continue;
			row.start_ns = (double)(chunk->start_ns[i] - graph->origin_ns);
			row.end_ns = row.start_ns + (double)chunk->dur_ns[i];
			row.item = item_of_call(search, &launches->by_track[number][row.row]);
			if (row.item == REPLAY_NONE && row.start_ns >= end_ns)
				continue;
			STORAGE_GROW(graph->model->storage, search->rows, search->row_count, search->row_capacity,
			             1024);
			search->rows[search->row_count++] = row;
		}
		model_chunk_done(graph->model, chunk);
	}
}

/* Those launched before the window come first, by their start; then those of the items, in the order of the items. */
static int compare_rows(const void *left, const void *right)
{
	const struct work_row *a = left, *b = right;

	if (a->item != b->item)
		return a->item + 1 < b->item + 1 ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

/* ---- works ---- */

static uint32_t stream_of(struct works_search *search, uint32_t track)
{
	struct replay_graph *graph = search->graph;
	uint32_t first = first_lane(graph->model, track);

	if (!search->streams[first]) {
		graph->streams = memory_resize(graph->streams, graph->stream_count + 1, sizeof(*graph->streams));
		graph->streams[graph->stream_count++] = (struct replay_stream){.track = first};
		search->streams[first] = graph->stream_count;
	}
	return search->streams[first] - 1;
}

static void describe(struct replay_graph *graph, struct replay_work *work, const struct work_row *row)
{
	uint32_t i;
	const struct span_chunk *chunk = track_chunk(graph->model->tracks[row->track], row->row, &i);

	work->kind = chunk->kind[i];
	work->name = chunk->name[i];
	if (work->kind == SPAN_MEMCPY) {
		work->copy = (uint8_t)copy_direction(model_text(graph->model, work->name), "");
		work->is_pageable = is_pageable_copy(model_text(graph->model, work->name));
	}
	if (work->kind == SPAN_KERNEL)
		work->product = name_class(&graph->products, graph->model, work->name);
	if (work->kind == SPAN_KERNEL && name_class(&graph->kernels, graph->model, work->name))
		work->collective = graph->collectives++;
}

static uint64_t correlation_of(const struct replay_graph *graph, uint32_t track, uint32_t row)
{
	uint32_t i;
	const struct span_chunk *chunk = track_chunk(graph->model->tracks[track], row, &i);

	return span_correlation(chunk, i);
}

static void note_nested(struct replay_graph *graph, struct replay_item *item, const struct work_row *rows,
                        uint32_t count)
{
	uint64_t own = correlation_of(graph, item->track, item->row);

	for (uint32_t i = 0; i < count; i++) {
		uint64_t correlation = correlation_of(graph, rows[i].track, rows[i].row);

		if (correlation > own + item->nested && correlation - own < UINT32_MAX)
			item->nested = (uint32_t)(correlation - own);
	}
}

static void add_work(struct works_search *search, const struct work_row *rows, uint32_t count)
{
	struct replay_graph *graph = search->graph;
	struct replay_work work = {.start_ns = rows[0].start_ns,
	                           .end_ns = rows[0].end_ns,
	                           .item = rows[0].item,
	                           .rows = count,
	                           .collective = REPLAY_NONE};

	for (uint32_t i = 1; i < count; i++)
		if (rows[i].end_ns > work.end_ns)
			work.end_ns = rows[i].end_ns;
	work.dur_ns = work.end_ns - work.start_ns;
	work.stream = stream_of(search, rows[0].track);
	if (work.item != REPLAY_NONE)
		describe(graph, &work, rows);
	struct replay_stream *stream = &graph->streams[work.stream];
	work.place = stream->count;
	STORAGE_GROW(graph->model->storage, stream->works, stream->count, stream->capacity, 64);
	stream->works[stream->count++] = graph->work_count;
	stream->before += work.item == REPLAY_NONE;
	if (work.item != REPLAY_NONE) {
		note_nested(graph, &graph->items[work.item], rows, count);
		graph->items[work.item].work = graph->work_count;
		graph->items[work.item].kind = REPLAY_LAUNCH;
		graph->has_device = true;
	}
	STORAGE_GROW(graph->model->storage, graph->works, graph->work_count, graph->work_capacity, 1024);
	graph->works[graph->work_count++] = work;
}

void replay_add_works(struct replay_graph *graph, const struct launches *launches)
{
	const struct model *model = graph->model;
	struct works_search search = {.graph = graph};

	find_calls_of_items(&search);
	search.streams = memory_resize(NULL, model->tracks_count, sizeof(*search.streams));
	memset(search.streams, 0, model->tracks_count * sizeof(*search.streams));
	for (uint32_t track = 0; track < launches->track_count; track++)
		if (launches->by_track[track] && model->tracks[track]->process == graph->process)
			add_rows_of_track(&search, launches, track);
	merge_sort_in(model->storage, search.rows, search.row_count, sizeof(*search.rows), compare_rows);
	for (uint32_t i = 0, next; i < search.row_count; i = next) {
		for (next = i + 1; next < search.row_count && search.rows[i].item != REPLAY_NONE &&
		                   search.rows[next].item == search.rows[i].item;)
			next++;
		add_work(&search, &search.rows[i], next - i);
	}
	free(search.streams);
	storage_release(model->storage, search.rows);
	storage_release(model->storage, search.places);
}
