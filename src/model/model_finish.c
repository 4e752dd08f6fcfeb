/* SPDX-License-Identifier: Apache-2.0
 *
 * model_finish.c: the work after the last row: times of the processes, steps, columns that need steps, and the order of
 * the small arrays.
 */
#include "model/model_finish.h"

#include "base/lower_bound.h"
#include "base/memory.h"
#include "base/merge_sort.h"
#include "base/storage.h"
#include "model/carries.h"
#include "model/memory_events.h"
#include "model/model_spans.h"
#include "model/readings.h"
#include "model/track_builder.h"

#include <stdlib.h>
#include <string.h>

static int order(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static void model_finish_widen(struct process *process, int64_t first_ns, int64_t last_ns)
{
	if (process->first_ns == 0 && process->last_ns == 0) {
		process->first_ns = first_ns;
		process->last_ns = last_ns;
	}
	if (first_ns < process->first_ns)
		process->first_ns = first_ns;
	if (last_ns > process->last_ns)
		process->last_ns = last_ns;
}

struct finish_numbered {
	const struct process *process;
	uint32_t index;
};

static bool are_twins(const struct process *a, const struct process *b)
{
	return a->pid == b->pid && a->rank == b->rank;
}

static int compare_twins(const void *left, const void *right)
{
	const struct finish_numbered *a = left, *b = right;
	if (a->process->pid != b->process->pid)
		return order(a->process->pid, b->process->pid);
	if (a->process->rank != b->process->rank)
		return order(a->process->rank, b->process->rank);
	return a->process->host != b->process->host ? order(a->process->host, b->process->host)
	                                            : order(a->index, b->index);
}

static void number_twins(struct model *model)
{
	uint32_t count = model->processes_count;
	struct finish_numbered *list = memory_resize(NULL, (size_t)count + 1, sizeof *list);
	for (uint32_t i = 0; i < count; i++)
		list[i] = (struct finish_numbered){&model->processes[i], i};
	qsort(list, count, sizeof *list, compare_twins);
	for (uint32_t i = 1; i < count; i++) {
		struct process *one = &model->processes[list[i - 1].index], *next = &model->processes[list[i].index];
		if (!are_twins(one, next))
			continue;
		one->twin += !one->twin;
		next->twin = one->twin + 1;
		if (one->host == next->host)
			one->is_twin_of_host = next->is_twin_of_host = true;
	}
	free(list);
}

static void finish_processes(struct model *model)
{
	number_twins(model);
	for (uint32_t i = 0; i < model->tracks_count; i++) {
		const struct track_builder *builder = track_builder_of(model, i);
		if (builder->has_times)
			model_finish_widen(&model->processes[builder->track.process], builder->first_ns,
			                   builder->high_ns);
	}
	for (uint32_t i = 0; i < model->steps_count; i++) {
		const struct model_step *step = &model->steps[i];
		model_finish_widen(&model->processes[step->process], step->start_ns,
		                   step->is_open ? step->start_ns : step->end_ns);
	}
	for (uint32_t i = 0; i < model->processes_count; i++) {
		struct process *process = &model->processes[i];
		process->has_times = process->first_ns != 0 || process->last_ns != 0;
		if (!process->has_origin || process->origin_ns > process->first_ns)
			process->origin_ns = process->first_ns;
	}
}

/* ---- steps ---- */

static int model_finish_compare_steps(const void *left, const void *right)
{
	const struct model_step *a = left, *b = right;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return a->start_ns != b->start_ns ? order(a->start_ns, b->start_ns) : order(a->number, b->number);
}

static void finish_steps(struct model *model)
{
	merge_sort(model->steps, model->steps_count, sizeof *model->steps, model_finish_compare_steps);
	for (uint32_t i = 0; i < model->steps_count; i++) {
		struct model_step *step = &model->steps[i];
		if (step->is_open && step->end_ns <= step->start_ns) /* an importer may have set the end of its trace */
			step->end_ns = model->processes[step->process].last_ns;
	}
}

/* Returns the index of the first step of this process or a later one. */
static uint32_t first_step_of(const struct model *model, uint64_t process)
{
	return LOWER_BOUND(model->steps, model->steps_count, item, item->process < process);
}

struct step_cursor step_cursor_of(const struct model *model, uint32_t process)
{
	int32_t first = (int32_t)first_step_of(model, process),
		end = (int32_t)first_step_of(model, (uint64_t)process + 1);
	return (struct step_cursor){model->steps, first, first, end};
}

int32_t step_cursor_at(struct step_cursor *cursor, int64_t time_ns, bool *is_at_end)
{
	while (cursor->next < cursor->end && cursor->steps[cursor->next].start_ns <= time_ns)
		cursor->next++;
	*is_at_end = false;
	if (cursor->next == cursor->first)
		return -1;
	const struct model_step *step = &cursor->steps[cursor->next - 1];
	if (time_ns > step->end_ns)
		return -1;
	*is_at_end = time_ns == step->end_ns && !step->is_open && step->start_ns < step->end_ns;
	return cursor->next - 1;
}

/* ---- tracks ---- */

static int32_t step_of_row(const struct track *track, uint32_t row)
{
	uint32_t i;
	const struct span_chunk *chunk = track_chunk(track, row, &i);
	return chunk->step[i];
}

static void finish_chunk(const struct track *track, struct span_chunk *chunk, struct step_cursor *cursor)
{
	chunk->min_start_ns = chunk->count ? chunk->start_ns[0] : 0;
	chunk->max_end_ns = chunk->min_start_ns;
	for (uint32_t i = 0; i < chunk->count; i++) {
		int64_t end_ns = chunk->start_ns[i] + chunk->dur_ns[i];
		if (end_ns > chunk->max_end_ns)
			chunk->max_end_ns = end_ns;
		bool is_at_end;
		int32_t step = step_cursor_at(cursor, chunk->start_ns[i], &is_at_end);
		/* a span that starts at the step's end is part of the step only if its parent is */
		if (is_at_end && (chunk->parent[i] == MODEL_NONE || step_of_row(track, chunk->parent[i]) != step))
			step = -1;
		chunk->step[i] = step;
	}
}

static void finish_track(struct model *model, uint32_t number, struct step_cursor *cursor)
{
	struct track_builder *builder = track_builder_of(model, number);
	struct track *track = &builder->track;
	cursor->next = cursor->first;
	builder->carry_count = 0;
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		finish_chunk(track, track->chunks[c], cursor);
		carries_collect(builder, track->chunks[c]);
		model_chunk_done(model, track->chunks[c]);
	}
}

static const char *track_title(const struct model *model, const struct track *track, char *out, size_t bytes)
{
	if (track->name)
		return model_text(model, track->name);
	snprintf(out, bytes, "thread %lld", (long long)track->tid);
	return out;
}

static void finish_tracks(struct model *model)
{
	struct step_cursor cursor = {0};
	uint32_t process = MODEL_NONE;
	for (uint32_t i = 0; i < model->tracks_count; i++) {
		struct track_builder *builder = track_builder_of(model, i);
		const struct track *track = &builder->track;
		uint32_t closed = track_builder_close(model, i, model->processes[track->process].last_ns, SPAN_IS_OPEN);
		char title[40];
		if (closed)
			model_add_ledger(model, LEDGER_OPEN_SPANS, track->process,
			                 track_title(model, track, title, sizeof title), closed,
			                 "spans were open when the recording stopped; they end at that time");
		if (builder->too_deep)
			model_add_ledger(model, LEDGER_OTHER, track->process,
			                 track_title(model, track, title, sizeof title), builder->too_deep,
			                 "spans nested deeper than 10 000 were left out");
		builder->too_deep = 0;
		if (track->process != process)
			cursor = step_cursor_of(model, process = track->process);
		finish_track(model, i, &cursor);
	}
}

/* ---- values ---- */

struct timed_value {
	int64_t time_ns;
	double value;
};

static int model_finish_compare_values(const void *left, const void *right)
{
	const struct timed_value *a = left, *b = right;
	return order(a->time_ns, b->time_ns);
}

static void sort_series(struct storage *storage, struct value_series *series)
{
	uint32_t i = 1;
	while (i < series->count && series->time_ns[i - 1] <= series->time_ns[i])
		i++;
	if (i >= series->count)
		return;
	struct timed_value *pairs = storage_resize(storage, NULL, series->count, sizeof *pairs);
	for (i = 0; i < series->count; i++)
		pairs[i] = (struct timed_value){series->time_ns[i], series->value[i]};
	merge_sort_in(storage, pairs, series->count, sizeof *pairs, model_finish_compare_values);
	for (i = 0; i < series->count; i++) {
		series->time_ns[i] = pairs[i].time_ns;
		series->value[i] = pairs[i].value;
	}
	storage_release(storage, pairs);
}

void model_finish_series(struct model *model)
{
	struct step_cursor cursor = {0};
	uint32_t process = MODEL_NONE;
	for (uint32_t s = 0; s < model->series_count; s++) {
		struct value_series *series = model->series[s];
		sort_series(model->storage, series);
		if (series->process != process)
			cursor = step_cursor_of(model, process = series->process);
		cursor.next = cursor.first;
		series->step = storage_resize(model->storage, series->step, series->count, sizeof *series->step);
		bool is_at_end;
		for (uint32_t i = 0; i < series->count; i++)
			series->step[i] = step_cursor_at(&cursor, series->time_ns[i], &is_at_end);
	}
}

/* ---- order of the rest ---- */

static int compare_args(const void *left, const void *right)
{
	const struct span_arg *a = left, *b = right;
	return a->track != b->track ? order(a->track, b->track) : order(a->row, b->row);
}

static int compare_samples(const void *left, const void *right)
{
	const struct sample *a = left, *b = right;
	return a->track != b->track ? order(a->track, b->track) : order(a->time_ns, b->time_ns);
}

static int compare_marks(const void *left, const void *right)
{
	const struct mark *a = left, *b = right;
	return a->time_ns != b->time_ns ? order(a->time_ns, b->time_ns) : order(a->track, b->track);
}

void model_finish(struct model *model)
{
	finish_processes(model);
	finish_steps(model);
	finish_tracks(model);
	carries_finish(model);
	model_finish_series(model);
	finish_memory(model);
	readings_finish(model);
	merge_sort_in(model->storage, model->args, model->args_count, sizeof *model->args, compare_args);
	merge_sort_in(model->storage, model->samples, model->samples_count, sizeof *model->samples, compare_samples);
	merge_sort_in(model->storage, model->marks, model->marks_count, sizeof *model->marks, compare_marks);
}
