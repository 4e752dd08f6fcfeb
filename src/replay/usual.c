/* SPDX-License-Identifier: Apache-2.0
 *
 * usual.c: see usual.h. Where the host runs ahead most launches wait for room in the queue, so usual launches are those
 * with little queued.
 */
#include "replay/usual.h"

#include "base/merge_sort.h"
#include "base/statistics.h"
#include "base/storage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FEW_QUEUED 200u     /* with fewer works queued no launch waits for room */
#define MANY_QUEUED 256u    /* with more, one that took long did */
#define ENOUGH_FREE 10u     /* launches with few works queued, for a usual duration */
#define MOST_VALUES 131072u /* of which a quantile is taken; of more, each nth */
#define USUAL_DEPTH 1024u   /* of the launch queue: that of CUDA */
#define QUEUED_NS 5000.0    /* the work before ended that long after the call: the stream was busy */

struct doubles {
	double *values;
	size_t count, capacity;
	struct storage *storage;
};

static void add(struct doubles *doubles, double value)
{
	STORAGE_GROW(doubles->storage, doubles->values, doubles->count, doubles->capacity, 256);
	doubles->values[doubles->count++] = value;
}

/* Returns the quantile and releases the values. */
static double take_quantile(struct doubles *doubles, double share, double otherwise)
{
	double value = otherwise;

	if (doubles->count)
		value = quantile_within(doubles->values, doubles->count, share);
	storage_release(doubles->storage, doubles->values);
	*doubles = (struct doubles){.storage = doubles->storage};
	return value;
}

/* Each nth item counts. */
static uint32_t stride_of(const struct replay_graph *graph)
{
	return 1 + graph->item_count / MOST_VALUES;
}

/* ---- lags ---- */

/* The lags of a work that may wait for an event are not usual: they contain the wait. */
static void find_lags(struct replay_graph *graph)
{
	struct doubles launch = {.storage = graph->model->storage}, stream = launch;
	uint32_t *last = storage_resize(graph->model->storage, NULL, graph->stream_count + 1, sizeof(*last));
	bool *waits = memory_resize(NULL, graph->thread_count + 1, sizeof(*waits)); /* by thread */
	uint32_t stride = stride_of(graph);

	memset(waits, 0, graph->thread_count * sizeof(*waits));
	for (uint32_t s = 0; s < graph->stream_count; s++)
		last[s] = graph->streams[s].before ? graph->streams[s].works[graph->streams[s].before - 1]
		                                   : REPLAY_NONE;
	for (uint32_t i = 0; i < graph->item_count; i++) {
		const struct replay_item *item = &graph->items[i];
		const struct replay_work *work = item->work == REPLAY_NONE ? NULL : &graph->works[item->work];

		if (item->kind == REPLAY_STREAM_WAIT)
			waits[item->thread] = true;
		if (!work)
			continue;
		bool is_free = !waits[item->thread];
		waits[item->thread] = false;
		if (work->rows > 1 || work->is_pageable)
			continue;
		const struct replay_work *before = last[work->stream] == REPLAY_NONE
		                                           ? NULL
		                                           : &graph->works[last[work->stream]];
		bool counts = is_free && i % stride == 0;
		if (counts && before && before->end_ns < item->start_ns && before->item != REPLAY_NONE &&
		    work->collective == REPLAY_NONE)
			add(&launch, work->start_ns - item->end_ns);
		else if (counts && before && before->end_ns > item->end_ns + QUEUED_NS)
			add(&stream, work->start_ns - before->end_ns);
		last[work->stream] = item->work;
	}
	graph->launch_ns = take_quantile(&launch, 0.35, 2000);
	graph->stream_ns = take_quantile(&stream, 0.5, 1200);
	free(waits);
	storage_release(graph->model->storage, last);
}

/* ---- calls ---- */

struct call_time {
	uint32_t name;
	bool is_free; /* a launch with few works queued */
	double ns;
};

static int compare_calls(const void *left, const void *right)
{
	const struct call_time *a = left, *b = right;

	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return (a->ns > b->ns) - (a->ns < b->ns);
}

/* Returns the number of works of the stream, of the first `count`, that started by then. */
static uint32_t started_by(const struct replay_graph *graph, const struct replay_stream *stream, uint32_t count,
                           double time_ns)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (graph->works[stream->works[middle]].start_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint32_t queued_at(const struct replay_graph *graph, const struct replay_work *work, double time_ns)
{
	const struct replay_stream *stream = &graph->streams[work->stream];

	return work->place - started_by(graph, stream, work->place, time_ns);
}

/* Median of free launches; without enough of them the 10th percentile of all. The calls are sorted. */
static double usual_of(const struct call_time *calls, uint32_t count, struct storage *storage)
{
	struct doubles all = {.storage = storage}, free_ones = all;

	for (uint32_t i = 0; i < count; i++) {
		add(&all, calls[i].ns);
		if (calls[i].is_free)
			add(&free_ones, calls[i].ns);
	}
	bool is_known = free_ones.count >= ENOUGH_FREE;
	double of_free = take_quantile(&free_ones, 0.5, 0), of_all = take_quantile(&all, 0.1, 0);
	return is_known ? of_free : of_all;
}

static void find_calls(struct usual_times *usual, struct replay_graph *graph)
{
	struct storage *storage = graph->model->storage;
	struct call_time *calls = storage_resize(storage, NULL, graph->item_count + 1, sizeof(*calls));
	uint32_t count = 0;

	for (uint32_t i = 0; i < graph->item_count; i += stride_of(graph)) {
		const struct replay_item *item = &graph->items[i];

		if (item->kind == REPLAY_MARK)
			continue;
		calls[count++] = (struct call_time){
			.name = item->name,
			.ns = item->end_ns - item->start_ns,
			.is_free = item->work != REPLAY_NONE &&
		                   queued_at(graph, &graph->works[item->work], item->start_ns) < FEW_QUEUED};
	}
	merge_sort_in(storage, calls, count, sizeof(*calls), compare_calls);
	for (uint32_t i = 0, next; i < count; i = next) {
		for (next = i + 1; next < count && calls[next].name == calls[i].name;)
			next++;
		number_map_set(&usual->names, calls[i].name, usual->count);
		MEMORY_GROW(usual->calls_ns, usual->count, usual->capacity, 32);
		usual->calls_ns[usual->count++] = usual_of(calls + i, next - i, storage);
	}
	storage_release(storage, calls);
}

/* ---- queue ---- */

static void find_depth(const struct usual_times *usual, struct replay_graph *graph)
{
	struct doubles depths = {.storage = graph->model->storage};

	for (uint32_t i = 0; i < graph->item_count; i++) {
		const struct replay_item *item = &graph->items[i];
		const struct replay_work *work = item->work == REPLAY_NONE ? NULL : &graph->works[item->work];

		if (!work || work->place < MANY_QUEUED || work->rows > 1 ||
		    item->end_ns - item->start_ns <= fmax(50e3, 5 * usual_call_ns(usual, item->name)))
			continue;
		uint32_t queued = queued_at(graph, work, item->end_ns);
		if (queued >= MANY_QUEUED)
			add(&depths, queued + 1);
	}
	graph->depth = (uint32_t)take_quantile(&depths, 0.5, USUAL_DEPTH);
}

void usual_find(struct usual_times *usual, struct replay_graph *graph)
{
	*usual = (struct usual_times){0};
	find_lags(graph);
	find_calls(usual, graph);
	find_depth(usual, graph);
}

double usual_call_ns(const struct usual_times *usual, uint32_t name)
{
	uint32_t found = number_map_find(&usual->names, name);

	return found == NUMBER_MAP_NONE ? 0 : usual->calls_ns[found];
}

void usual_release(struct usual_times *usual)
{
	number_map_release(&usual->names);
	free(usual->calls_ns);
	*usual = (struct usual_times){0};
}
