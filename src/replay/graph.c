/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.c: see graph.h. This file makes steps and items, threads.c threads and works.c works; follow.c and bind.c find their
 * edges.
 */
#include "replay/graph.h"

#include "base/memory.h"
#include "base/merge_sort.h"
#include "base/storage.h"
#include "model/device_names.h"
#include "pytorch/names.h"
#include "replay/bind.h"
#include "replay/follow.h"
#include "replay/free_time.h"
#include "replay/host_stretches.h"
#include "replay/loading.h"
#include "replay/places.h"
#include "replay/threads.h"
#include "replay/works.h"

#include <stdlib.h>

#define BEFORE_END_NS 1.0 /* of a meeting, at least, before the end of its step */

/* ---- steps ---- */

/* A step whose end lies behind the begin of the next one, by rounding, ends there. */
static void take_steps(struct replay_graph *graph, const struct replay_window *window)
{
	const struct model_step *steps = graph->model->steps + window->first_step;

	graph->origin_ns = steps[0].start_ns;
	graph->step_count = window->step_count;
	graph->steps = memory_resize(NULL, window->step_count, sizeof(*graph->steps));
	for (uint32_t i = 0; i < window->step_count; i++) {
		int64_t end_ns = steps[i].end_ns;

		if (i + 1 < window->step_count && end_ns > steps[i + 1].start_ns)
			end_ns = steps[i + 1].start_ns;
		graph->steps[i] = (struct replay_step){
			.start_ns = replay_since_origin(graph, steps[i].start_ns),
			.end_ns = replay_since_origin(graph, end_ns),
			.model_step = window->first_step + i,
			.has_operators = steps[i].has_detail,
			.delay_ns = steps[i].readings & STEP_READ_WAIT ? (double)steps[i].processor_wait_ns : -1};
	}
}

/* Returns the step that the instant belongs to: the last one that began. */
static int32_t step_at(const struct replay_graph *graph, double time_ns)
{
	uint32_t low = 0, high = graph->step_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (graph->steps[middle].start_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? (int32_t)low - 1 : 0;
}

/* ---- items ---- */

/* An item to be: items are made in the order of their starts, and keys are smaller to sort. */
struct item_key {
	double start_ns;
	uint32_t thread, track, row;
	uint32_t step; /* of a mark */
	uint8_t kind;  /* enum replay_kind; calls are REPLAY_OTHER */
	bool is_end;
};

struct item_keys {
	struct item_key *keys;
	uint32_t count, capacity;
};

static void add_key(struct replay_graph *graph, struct item_keys *keys, const struct item_key *key)
{
	STORAGE_GROW(graph->model->storage, keys->keys, keys->count, keys->capacity, 1024);
	keys->keys[keys->count++] = *key;
}

static const struct replay_item no_item = {.follows = REPLAY_NONE,
                                           .work = REPLAY_NONE,
                                           .target = REPLAY_NONE,
                                           .around = REPLAY_NONE,
                                           .row = MODEL_NONE,
                                           .track = MODEL_NONE};

static void add_marks(struct replay_graph *graph, struct item_keys *keys)
{
	for (uint32_t i = 0; i < graph->step_count; i++)
		for (int is_end = 0; is_end < 2; is_end++)
			add_key(graph, keys,
			        &(struct item_key){.start_ns = is_end ? graph->steps[i].end_ns
			                                              : graph->steps[i].start_ns,
			                           .thread = graph->main_thread,
			                           .track = MODEL_NONE,
			                           .row = MODEL_NONE,
			                           .step = i,
			                           .kind = REPLAY_MARK,
			                           .is_end = is_end});
}

/* Returns, by step, how long before the end of the step its last wait for other ranks ends. In steps of which no wait is
 * known it is the mean of the others. The caller frees it. */
static double *times_behind_waits(const struct replay_graph *graph)
{
	const struct replay_stretches *waits = &graph->threads[graph->main_thread].waits;
	double *behind_ns = memory_resize(NULL, graph->step_count, sizeof(*behind_ns)), sum_ns = 0;
	uint32_t at = 0, known = 0;

	for (uint32_t s = 0; s < graph->step_count; s++) {
		const struct replay_step *step = &graph->steps[s];

		for (behind_ns[s] = -1; at < waits->count && waits->list[at].start_ns < step->end_ns; at++)
			if (waits->list[at].start_ns >= step->start_ns)
				behind_ns[s] = step->end_ns - waits->list[at].end_ns;
		if (behind_ns[s] < 0)
			continue;
		sum_ns += behind_ns[s];
		known++;
	}
	for (uint32_t s = 0; s < graph->step_count; s++)
		if (behind_ns[s] < 0)
			behind_ns[s] = known ? sum_ns / known : 0;
	return behind_ns;
}

/* Where the last wait of each step ends. */
static void add_meetings(struct replay_graph *graph, struct item_keys *keys)
{
	double *behind_ns = times_behind_waits(graph);

	for (uint32_t i = 0; i < graph->step_count; i++) {
		const struct replay_step *step = &graph->steps[i];
		double start_ns = step->end_ns - (behind_ns[i] > BEFORE_END_NS ? behind_ns[i] : BEFORE_END_NS);

		add_key(graph, keys,
		        &(struct item_key){.start_ns = start_ns > step->start_ns ? start_ns : step->start_ns,
		                           .thread = graph->main_thread,
		                           .track = MODEL_NONE,
		                           .row = MODEL_NONE,
		                           .step = i,
		                           .kind = REPLAY_MEET});
	}
	free(behind_ns);
}

static void classify_call(struct replay_graph *graph, struct replay_item *item)
{
	static const uint8_t kinds[] = {
		[CALL_OTHER] = REPLAY_OTHER,
		[CALL_WAITS_ALL] = REPLAY_WAIT_ALL,
		[CALL_WAITS_STREAM] = REPLAY_WAIT_STREAM,
		[CALL_WAITS_EVENT] = REPLAY_WAIT_EVENT,
		[CALL_COPIES] = REPLAY_OTHER,
		[CALL_STREAM_WAITS] = REPLAY_STREAM_WAIT,
		[CALL_ALLOCATES] = REPLAY_OTHER,
		[CALL_FREES] = REPLAY_WAIT_ALL,
	};
	uint8_t call = name_class(&graph->call_kinds, graph->model, item->name);

	item->kind = kinds[call];
	item->is_allocation = call == CALL_ALLOCATES || call == CALL_FREES;
}

static void add_row(struct replay_graph *graph, struct item_keys *keys, uint32_t thread, uint32_t track,
                    const struct span_chunk *chunk, uint32_t i, enum replay_kind kind)
{
	double start_ns = replay_since_origin(graph, chunk->start_ns[i]);

	if (replay_is_in_window(graph, start_ns))
		add_key(graph, keys,
		        &(struct item_key){.start_ns = start_ns,
		                           .thread = thread,
		                           .track = track,
		                           .row = chunk->first_row + i,
		                           .kind = (uint8_t)kind});
}

/* Adds outermost calls. A loader's wait that has calls in it is host time, else an item (see add_batches()). */
static void add_calls_of_track(struct replay_graph *graph, struct item_keys *keys, uint32_t thread, uint32_t number)
{
	const struct track *track = graph->model->tracks[number];
	int outer = -1;

	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			if (outer >= 0 && chunk->depth[i] <= outer)
				outer = -1;
			if (outer >= 0 || chunk->kind[i] != SPAN_RUNTIME)
				continue;
			outer = chunk->depth[i];
			add_row(graph, keys, thread, number, chunk, i, REPLAY_OTHER);
		}
		model_chunk_done(graph->model, chunk);
	}
}

static bool is_from_workers(struct replay_graph *graph, const struct span_chunk *chunk, uint32_t i)
{
	if (graph->is_recorded)
		return graph->recording.has_workers && replay_is_load(graph, chunk, i);
	return replay_is_load(graph, chunk, i) &&
	       !pytorch_begins(model_text(graph->model, chunk->name[i]), PYTORCH_LOADER_HERE);
}

/* A call whose span begins in the wait would be an item of its own: the wait is none then. */
static bool has_calls(const struct track *track, uint32_t row, uint16_t depth)
{
	for (row++; row < track->span_count; row++) {
		uint32_t i;
		const struct span_chunk *chunk = track_chunk(track, row, &i);

		if (chunk->depth[i] <= depth)
			return false;
		if (chunk->kind[i] == SPAN_RUNTIME)
			return true;
	}
	return false;
}

static void add_batches_of_track(struct replay_graph *graph, struct item_keys *keys, uint32_t thread, uint32_t number)
{
	const struct track *track = graph->model->tracks[number];

	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++)
			if (is_from_workers(graph, chunk, i) &&
			    !has_calls(track, chunk->first_row + i, chunk->depth[i]))
				add_row(graph, keys, thread, number, chunk, i, REPLAY_BATCH);
		model_chunk_done(graph->model, chunk);
	}
}

static int compare_keys(const void *left, const void *right)
{
	const struct item_key *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (b->kind == REPLAY_MARK) - (a->kind == REPLAY_MARK);
}

static void add_operators_as_items(struct replay_graph *graph, struct item_keys *keys)
{
	for (uint32_t t = 0; t < graph->thread_count; t++)
		for (uint32_t k = 0; k < graph->threads[t].operator_count; k++) {
			const struct replay_operator *outermost = &graph->threads[t].operators[k];

			if (replay_is_in_window(graph, outermost->start_ns))
				add_key(graph, keys,
				        &(struct item_key){.start_ns = outermost->start_ns,
				                           .thread = t,
				                           .track = outermost->track,
				                           .row = outermost->row,
				                           .kind = REPLAY_OTHER});
		}
}

static struct replay_item item_of_key(struct replay_graph *graph, const struct item_key *key)
{
	struct replay_item item = no_item;
	uint32_t i;

	item.start_ns = item.end_ns = key->start_ns;
	item.kind = key->kind;
	item.thread = key->thread;
	item.is_end = key->is_end;
	item.step = (int32_t)key->step;
	if (key->row == MODEL_NONE)
		return item;
	const struct span_chunk *chunk = track_chunk(graph->model->tracks[key->track], key->row, &i);
	item.end_ns += (double)chunk->dur_ns[i];
	item.track = key->track;
	item.row = key->row;
	item.name = chunk->name[i];
	item.step = step_at(graph, item.start_ns);
	if (chunk->kind[i] == SPAN_RUNTIME)
		classify_call(graph, &item);
	return item;
}

static bool any_launches(const struct replay_graph *graph)
{
	for (uint32_t t = 0; t < graph->thread_count; t++)
		if (graph->threads[t].launches)
			return true;
	return false;
}

static void sort_by_thread(struct replay_graph *graph)
{
	uint32_t *next = storage_resize(graph->model->storage, NULL, graph->item_count + 1, sizeof(*next));

	graph->by_thread = next;
	for (uint32_t i = 0; i < graph->item_count; i++)
		graph->threads[graph->items[i].thread].item_count++;
	for (uint32_t t = 0; t < graph->thread_count; t++) {
		graph->threads[t].items = next;
		next += graph->threads[t].item_count;
		graph->threads[t].item_count = 0;
	}
	for (uint32_t i = 0; i < graph->item_count; i++) {
		struct replay_thread *thread = &graph->threads[graph->items[i].thread];

		thread->items[thread->item_count++] = i;
	}
}

static void add_items(struct replay_graph *graph)
{
	struct item_keys keys = {0};

	for (uint32_t t = 0; t < graph->thread_count; t++) {
		const struct replay_thread *thread = &graph->threads[t];

		/* a thread that only asks whether the device is ready */
		bool polls = t != graph->main_thread && !thread->operator_count && !thread->launches;
		for (uint32_t k = 0; k < thread->tracks && !polls; k++)
			add_calls_of_track(graph, &keys, t, thread->first_track + k);
		for (uint32_t k = 0; k < thread->tracks; k++)
			add_batches_of_track(graph, &keys, t, thread->first_track + k);
	}
	add_marks(graph, &keys);
	if (!any_launches(graph) && !graph->is_recorded)
		add_operators_as_items(graph, &keys);
	if (graph->recording.has_meetings)
		add_meetings(graph, &keys);
	merge_sort_in(graph->model->storage, keys.keys, keys.count, sizeof(*keys.keys), compare_keys);
	graph->items = storage_resize(graph->model->storage, NULL, keys.count, sizeof(*graph->items));
	for (uint32_t i = 0; i < keys.count; i++) {
		graph->items[i] = item_of_key(graph, &keys.keys[i]);
		if (keys.keys[i].kind == REPLAY_MARK && !keys.keys[i].is_end)
			graph->steps[keys.keys[i].step].mark = i;
	}
	graph->item_count = keys.count;
	sort_by_thread(graph);
	storage_release(graph->model->storage, keys.keys);
}

/* ---- the whole ---- */

static uint8_t kernel_is_communication(const char *name)
{
	return is_communication_kernel(name);
}

static uint8_t kernel_product_type(const char *name)
{
	return (uint8_t)product_type_of_kernel(name);
}

bool replay_graph_make(struct replay_graph *graph, const struct model *model, const struct launches *launches,
                       const struct replay_window *window)
{
	*graph = (struct replay_graph){
		.model = model,
		.process = window->process,
		.is_recorded = window->is_recorded,
		.recording = window->recording,
		.rows = {.classify = replay_classify_row},
		.call_kinds = {.classify = device_call_kind},
		.kernels = {.classify = kernel_is_communication},
		.products = {.classify = kernel_product_type},
	};
	if (window->step_count < 2)
		return false;
	take_steps(graph, window);
	replay_add_threads(graph, launches);
	if (graph->main_thread == REPLAY_NONE) {
		replay_graph_release(graph);
		return false;
	}
	replay_add_waits(graph, window);
	add_items(graph);
	replay_add_works(graph, launches);
	replay_follow(graph);
	replay_bind(graph);
	replay_loading_find(graph, window->loader);
	graph->places = memory_resize(NULL, 1, sizeof(*graph->places));
	replay_places_find(graph->places, graph);
	graph->free_time = memory_resize(NULL, 1, sizeof(*graph->free_time));
	*graph->free_time = (struct free_time){0};
	graph->host_stretches = memory_resize(NULL, 1, sizeof(*graph->host_stretches));
	*graph->host_stretches = (struct host_stretches){0};
	return true;
}

void replay_graph_release(struct replay_graph *graph)
{
	struct storage *storage = graph->model->storage;

	for (uint32_t i = 0; i < graph->thread_count; i++) {
		storage_release(storage, graph->threads[i].operators);
		storage_release(storage, graph->threads[i].loads.list);
		storage_release(storage, graph->threads[i].waits.list);
		storage_release(storage, graph->threads[i].optimizers.list);
		for (int cause = 0; cause < REPLAY_CAUSES; cause++)
			storage_release(storage, graph->threads[i].causes[cause].list);
	}
	for (uint32_t i = 0; i < graph->stream_count; i++)
		storage_release(storage, graph->streams[i].works);
	if (graph->places)
		replay_places_release(graph->places);
	free(graph->places);
	free_time_release(graph->free_time);
	replay_loading_release(graph->loading);
	host_stretches_release(graph, graph->host_stretches);
	free(graph->threads);
	free(graph->streams);
	free(graph->steps);
	storage_release(storage, graph->items);
	storage_release(storage, graph->by_thread);
	storage_release(storage, graph->works);
	storage_release(storage, graph->dependencies);
	name_classes_release(&graph->rows);
	name_classes_release(&graph->call_kinds);
	name_classes_release(&graph->kernels);
	name_classes_release(&graph->products);
	*graph = (struct replay_graph){0};
}
