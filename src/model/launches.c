/* SPDX-License-Identifier: Apache-2.0
 *
 * launches.c: see launches.h. First, the links fill the rows of their work. Then, for each process, all calls with a
 * correlation are sorted by it. Each work looks up its call, or takes the one in its row.
 */
#include "model/launches.h"

#include "base/memory.h"
#include "base/merge_sort.h"
#include "base/storage.h"

#include <assert.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>

struct launches_call {
	uint64_t correlation;
	int64_t start_ns;
	uint32_t track;
	uint32_t row : 31, has_work : 1;
};

struct call_list {
	const struct model *model;
	struct launches_call *calls;
	size_t count, capacity;
	size_t found; /* index where the last search ended */
	struct { /* the last result of operation_around(): launches come in groups, perhaps deep in Python stacks */
		uint32_t track, parent, operation;
	} last;
};

static void launches_add_call(struct call_list *list, const struct launches_call *call)
{
	STORAGE_GROW(list->model->storage, list->calls, list->count, list->capacity, 1024);
	list->calls[list->count++] = *call;
}

static void add_calls_of(struct call_list *list, uint32_t number)
{
	const struct track *track = list->model->tracks[number];

	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; chunk->correlation && i < chunk->count; i++) {
			if (chunk->kind[i] == SPAN_RUNTIME && chunk->correlation[i])
				launches_add_call(list, &(struct launches_call){.correlation = chunk->correlation[i],
				                                                .start_ns = chunk->start_ns[i],
				                                                .track = number,
				                                                .row = chunk->first_row + i});
		}
		model_chunk_done(list->model, chunk);
	}
}

static int launches_compare_calls(const void *left, const void *right)
{
	const struct launches_call *a = left, *b = right;

	if (a->correlation != b->correlation)
		return a->correlation < b->correlation ? -1 : 1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* ---- looking up ---- */

static bool is_behind(const struct launches_call *call, uint64_t correlation, int64_t start_ns)
{
	return call->correlation > correlation || (call->correlation == correlation && call->start_ns > start_ns);
}

/* Returns the first call with a larger correlation, or with the same one and a later start. Work starts in about the
 * order of its launches, so the search starts at the last result. */
static size_t first_behind(const struct call_list *list, uint64_t correlation, int64_t start_ns)
{
	size_t low = 0, high = list->count, near = list->found;

	for (size_t step = 4; near < high; step *= 4) {
		if (is_behind(&list->calls[near], correlation, start_ns)) {
			high = near;
			near = near > step ? near - step : 0;
			if (near < low || near == high)
				break;
		} else {
			low = near + 1;
			near = high - near > step ? near + step : high;
		}
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (is_behind(&list->calls[middle], correlation, start_ns))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Returns, among the calls with that correlation, the last one that started at or before the work, otherwise the first
 * one. */
static struct launches_call *find_call(struct call_list *list, uint64_t correlation, int64_t start_ns)
{
	size_t low = list->found = first_behind(list, correlation, start_ns);

	if (!list->calls)
		return NULL;
	if (low > 0 && list->calls[low - 1].correlation == correlation)
		return &list->calls[low - 1];
	return low < list->count && list->calls[low].correlation == correlation ? &list->calls[low] : NULL;
}

/* Returns the innermost operator from this row outwards. If there is none, returns the innermost range or
 * annotation. */
static uint32_t operation_from(const struct model *model, uint32_t track, uint32_t row)
{
	uint32_t range = MODEL_NONE, i;

	for (; row != MODEL_NONE;) {
		const struct span_chunk *chunk = track_chunk(model->tracks[track], row, &i);

		if (range == MODEL_NONE && (chunk->kind[i] == SPAN_RANGE || chunk->kind[i] == SPAN_ANNOTATION))
			range = row;
		if (chunk->kind[i] == SPAN_OP || chunk->kind[i] == SPAN_COLLECTIVE)
			return row;
		row = chunk->parent[i];
	}
	return range;
}

static uint32_t operation_around(struct call_list *list, const struct launches_call *call)
{
	uint32_t i;
	const struct span_chunk *chunk = track_chunk(list->model->tracks[call->track], call->row, &i);

	if (list->last.track != call->track || list->last.parent != chunk->parent[i]) {
		list->last.track = call->track;
		list->last.parent = chunk->parent[i];
		list->last.operation = operation_from(list->model, call->track, chunk->parent[i]);
	}
	return list->last.operation;
}

/* Copies the links to the rows of work that has no correlation. */
static void take_links(struct launches *launches, const struct model *model)
{
	for (uint32_t n = 0; n < model->links_count; n++) {
		const struct model_link *link = &model->links[n];
		const struct span_chunk *call, *work;
		uint32_t c, w;

		if (link->kind != STEPSCOPE_LINK_LAUNCH || link->from_row == MODEL_NONE || link->to_row == MODEL_NONE ||
		    !launches->by_track[link->to_track] ||
		    model->tracks[link->from_track]->process != model->tracks[link->to_track]->process)
			continue;
		call = track_chunk(model->tracks[link->from_track], link->from_row, &c);
		work = track_chunk(model->tracks[link->to_track], link->to_row, &w);
		if (call->kind[c] == SPAN_RUNTIME && span_is_device_work(work->kind[w]) && !span_correlation(work, w))
			launches->by_track[link->to_track][link->to_row] = (struct launch){link->from_track,
			                                                                   link->from_row, MODEL_NONE};
	}
}

/* Returns the call that a link starts from: the one in the list if the call has a correlation. NULL: no link. */
static struct launches_call *linked_call(struct call_list *list, const struct launch *link, struct launches_call *own)
{
	const struct span_chunk *chunk;
	struct launches_call *listed;
	uint32_t i;

	assert(link->track == MODEL_NONE || link->track < list->model->tracks_count);

	if (link->track == MODEL_NONE)
		return NULL;
	chunk = track_chunk(list->model->tracks[link->track], link->row, &i);
	*own = (struct launches_call){.start_ns = chunk->start_ns[i], .track = link->track, .row = link->row};
	listed = span_correlation(chunk, i) ? find_call(list, chunk->correlation[i], own->start_ns) : NULL;
	return listed ? listed : own;
}

/* launch: the launch taken from a link, or none. */
static void find_launch(struct launches *launches, struct call_list *list, const struct span_chunk *chunk,
                        uint32_t index, struct launch *launch)
{
	struct launches_call own, *call;

	if (!span_is_device_work(chunk->kind[index]))
		return;
	launches->work_count++;
	call = span_correlation(chunk, index) ? find_call(list, chunk->correlation[index], chunk->start_ns[index])
	                                      : linked_call(list, launch, &own);
	if (!call) {
		launches->unlaunched++;
		return;
	}
	call->has_work = true;
	launches->out_of_order += call->start_ns > chunk->start_ns[index];
	*launch = (struct launch){call->track, call->row, operation_around(list, call)};
}

static void find_launches(struct launches *launches, struct call_list *list, uint32_t number)
{
	const struct track *track = list->model->tracks[number];

	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++)
			find_launch(launches, list, chunk, i, &launches->by_track[number][chunk->first_row + i]);
		model_chunk_done(list->model, chunk);
	}
}

static void note_workless(struct launches *launches, uint32_t name)
{
	for (uint32_t i = 0; i < launches->workless_count; i++)
		if (launches->workless[i].name == name) {
			launches->workless[i].count++;
			return;
		}
	MEMORY_GROW(launches->workless, launches->workless_count, launches->workless_capacity, 16);
	launches->workless[launches->workless_count++] = (struct workless){name, 1};
}

/* Calls that share a correlation count as one: if any of them has work, all have. */
static void note_calls_without_work(struct launches *launches, const struct call_list *list)
{
	for (size_t i = 0, next; i < list->count; i = next) {
		bool has_work = false;
		uint32_t index;

		for (next = i; next < list->count && list->calls[next].correlation == list->calls[i].correlation;
		     next++)
			has_work |= list->calls[next].has_work;
		if (has_work)
			continue;
		const struct span_chunk *chunk = track_chunk(list->model->tracks[list->calls[i].track],
		                                             list->calls[i].row, &index);
		note_workless(launches, chunk->name[index]);
	}
}

static bool has_work(const struct track *track)
{
	return track->kind == TRACK_DEVICE && track->span_count;
}

static bool has_device(const struct model *model)
{
	for (uint32_t track = 0; track < model->tracks_count; track++)
		if (has_work(model->tracks[track]))
			return true;
	return false;
}

/* Adds the rows, with no launch in each. */
static void launches_add_rows(struct launches *launches, const struct model *model)
{
	launches->track_count = model->tracks_count;
	launches->by_track = memory_resize(NULL, model->tracks_count, sizeof(*launches->by_track));
	for (uint32_t i = 0; i < model->tracks_count; i++) {
		uint32_t count = model->tracks[i]->span_count;

		launches->by_track[i] = NULL;
		if (!has_work(model->tracks[i]))
			continue;
		launches->by_track[i] = storage_resize(launches->storage, NULL, count, sizeof(struct launch));
		for (uint32_t row = 0; row < count; row++)
			launches->by_track[i][row] = (struct launch){MODEL_NONE, MODEL_NONE, MODEL_NONE};
	}
}

void launches_init(struct launches *launches, const struct model *model)
{
	struct call_list list = {.model = model, .last = {.track = MODEL_NONE}};

	*launches = (struct launches){.storage = model->storage};
	if (!has_device(model))
		return;
	launches_add_rows(launches, model);
	take_links(launches, model);
	for (uint32_t process = 0; process < model->processes_count; process++) {
		uint64_t before = launches->work_count;

		list.count = list.found = 0;
		for (uint32_t track = 0; track < model->tracks_count; track++)
			if (model->tracks[track]->process == process && model->tracks[track]->kind != TRACK_OTHER)
				add_calls_of(&list, track);
		merge_sort_in(model->storage, list.calls, list.count, sizeof(*list.calls), launches_compare_calls);
		for (uint32_t track = 0; track < model->tracks_count; track++)
			if (model->tracks[track]->process == process && has_work(model->tracks[track]))
				find_launches(launches, &list, track);
		if (launches->work_count > before)
			note_calls_without_work(launches, &list);
	}
	storage_release(model->storage, list.calls);
}

void launches_release(struct launches *launches)
{
	for (uint32_t track = 0; track < launches->track_count; track++)
		storage_release(launches->storage, launches->by_track[track]);
	free(launches->by_track);
	free(launches->workless);
	*launches = (struct launches){0};
}
