/* SPDX-License-Identifier: Apache-2.0
 *
 * join.c: see join.h. First, spans move to the end of the track of the same thread. Then every reference to a process
 * or track gets its new number.
 */
#include "model/join.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/merge_sort.h"
#include "base/text.h"
#include "model/model_index.h"
#include "model/model_spans.h"
#include "model/pieces.h"
#include "model/track_builder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct joining {
	struct model *model;
	uint32_t *into;           /* by process: the process it becomes part of */
	uint32_t *processes;      /* by process: its new number */
	struct number_map places; /* of tracks: track_key() */
	uint32_t *nth;            /* by track: its number among tracks of the same thread or stream in its process */
	struct moved {
		uint32_t track, first_row; /* new position of its rows */
	} * moved;                         /* by track */
	uint32_t *tracks;                  /* by track: its new number */
};

/* ---- threads and streams ---- */

static uint64_t track_key(const struct track *track, uint32_t process, uint32_t nth)
{
	const uint64_t parts[] = {process, (uint64_t)track->tid, (uint64_t)(uint32_t)track->device, track->kind, nth};
	return hash_words(parts, sizeof parts / sizeof *parts);
}

static void find_tracks(struct joining *joining)
{
	const struct model *model = joining->model;
	for (uint32_t i = 0; i < model->tracks_count; i++) {
		const struct track *track = model->tracks[i];
		uint32_t nth = 0;
		while (number_map_find(&joining->places, track_key(track, track->process, nth)) != NUMBER_MAP_NONE)
			nth++;
		number_map_set(&joining->places, track_key(track, track->process, nth), i);
		joining->nth[i] = nth;
		joining->moved[i] = (struct moved){i, 0};
	}
}

static void copy_columns(struct model *model, uint32_t track, uint32_t row, const struct span_chunk *chunk, uint32_t i)
{
	uint32_t k;
	track_chunk(model->tracks[track], row, &k)->flags[k] |= chunk->flags[i];
	if (chunk->shape[i])
		model_span_set_shape(model, track, row, chunk->shape[i]);
	if (chunk->sequence && chunk->sequence[i] != STEPSCOPE_NO_SEQUENCE)
		model_span_set_sequence(model, track, row, chunk->sequence[i]);
	if (chunk->inputs && chunk->inputs[i])
		model_span_set_inputs(model, track, row, chunk->inputs[i]);
	if (chunk->stack && chunk->stack[i])
		model_span_set_stack(model, track, row, chunk->stack[i]);
	if (chunk->correlation && chunk->correlation[i])
		model_span_set_correlation(model, track, row, chunk->correlation[i]);
}

uint32_t model_span_copy(struct model *model, uint32_t track, const struct span_chunk *chunk, uint32_t i)
{
	uint32_t row = model_span_complete(model, track, chunk->start_ns[i], chunk->dur_ns[i],
	                                   (enum span_kind)chunk->kind[i], chunk->name[i]);
	if (row != MODEL_NONE)
		copy_columns(model, track, row, chunk, i);
	return row;
}

/* Appends all spans of `from` to those of `to`. */
static void join_append(struct model *model, uint32_t from, uint32_t to)
{
	const struct track *track = model->tracks[from];
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];
		for (uint32_t i = 0; i < chunk->count; i++)
			model_span_copy(model, to, chunk, i);
		model_chunk_done(model, chunk);
	}
	model->tracks[to]->is_main |= track->is_main;
	track_builder_of(model, to)->too_deep += track_builder_of(model, from)->too_deep;
}

static bool join_goes_on(const struct model *model, uint32_t from, uint32_t to)
{
	const struct track_builder *later = track_builder_of(model, from), *earlier = track_builder_of(model, to);
	bool is_behind = !later->has_times || !earlier->has_times || later->first_ns >= earlier->high_ns;
	return is_behind && earlier->track.span_count < MODEL_NONE - 1 - later->track.span_count;
}

static void move_tracks(struct joining *joining, const struct process_join *join)
{
	struct model *model = joining->model;
	for (uint32_t i = 0; i < model->tracks_count; i++) {
		struct track *track = model->tracks[i];
		if (track->process != join->from)
			continue;
		uint64_t key = track_key(track, join->to, joining->nth[i]);
		uint32_t found = number_map_find(&joining->places, key);
		track->process = join->to;
		if (found == NUMBER_MAP_NONE)
			number_map_set(&joining->places, key, i);
		else if (join_goes_on(model, i, found)) {
			joining->moved[i] = (struct moved){found, model->tracks[found]->span_count};
			join_append(model, i, found);
		}
	}
}

/* ---- new numbers ---- */

struct numbered_track {
	uint32_t process, track;
};

static int compare_tracks(const void *left, const void *right)
{
	const struct numbered_track *a = left, *b = right;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->track > b->track) - (a->track < b->track);
}

/* Puts the tracks of one process next to each other. */
static void renumber_tracks(struct joining *joining)
{
	struct model *model = joining->model;
	struct track **old = memory_resize(NULL, (size_t)model->tracks_count + 1, sizeof *old);
	struct numbered_track *kept = memory_resize(NULL, (size_t)model->tracks_count + 1, sizeof *kept);
	uint32_t count = 0;
	for (uint32_t i = 0; i < model->tracks_count; i++) {
		old[i] = model->tracks[i];
		old[i]->process = joining->processes[old[i]->process];
		if (joining->moved[i].track == i)
			kept[count++] = (struct numbered_track){old[i]->process, i};
		else
			track_builder_release(track_builder_of(model, i));
	}
	merge_sort(kept, count, sizeof *kept, compare_tracks);
	for (uint32_t i = 0; i < count; i++) {
		model->tracks[i] = old[kept[i].track];
		joining->tracks[kept[i].track] = i;
	}
	model->tracks_count = count;
	free(kept);
	free(old);
}

static void renumber_processes(struct joining *joining)
{
	struct model *model = joining->model;
	uint32_t count = 0;
	for (uint32_t i = 0; i < model->processes_count; i++)
		if (joining->into[i] == i) {
			model->processes[count] = model->processes[i];
			joining->processes[i] = count++;
		}
	for (uint32_t i = 0; i < model->processes_count; i++)
		joining->processes[i] = joining->processes[joining->into[i]];
	model->processes_count = count;
}

static void join_losses(struct process *process, const struct process *later)
{
	if (later->has_lost_memory && (!process->has_lost_memory || later->lost_memory_ns < process->lost_memory_ns)) {
		process->has_lost_memory = true;
		process->lost_memory_ns = later->lost_memory_ns;
		process->lost_memory = later->lost_memory;
		process->has_lost_end = later->has_lost_end;
	}
	if (!process->removed_memory)
		process->removed_memory = later->removed_memory;
}

static void join_process(struct process *process, const struct process *later)
{
	process->event_count += later->event_count;
	process->records_memory |= later->records_memory;
	join_losses(process, later);
	process->is_closed &= later->is_closed;
	if (later->last_ns > process->last_ns && (process->first_ns || process->last_ns))
		process->last_ns = later->last_ns;
}

static void place_process(const struct joining *joining, uint32_t *process)
{
	if (*process != MODEL_NONE)
		*process = joining->processes[*process];
	assert(*process == MODEL_NONE || *process < joining->model->processes_count);
}

/* row: NULL, or a row of the track. */
static void place_track(const struct joining *joining, uint32_t *track, uint32_t *row)
{
	if (*track == MODEL_NONE)
		return;
	const struct moved *moved = &joining->moved[*track];
	if (row && *row != MODEL_NONE)
		*row += moved->first_row;
	*track = joining->tracks[moved->track];
}

static void place_memory(const struct joining *joining)
{
	struct model *model = joining->model;
	for (uint32_t i = 0; i < model->memory_count; i++) {
		place_process(joining, &model->memory[i].process);
		place_track(joining, &model->memory[i].track, &model->memory[i].row);
	}
	for (uint32_t i = 0; i < model->owners_count; i++) {
		place_process(joining, &model->owners[i].process);
		place_track(joining, &model->owners[i].track, NULL);
	}
	for (uint32_t i = 0; i < model->segments_count; i++)
		place_process(joining, &model->segments[i].process);
}

static void place_rest(const struct joining *joining)
{
	struct model *model = joining->model;
	for (uint32_t i = 0; i < model->steps_count; i++) {
		place_process(joining, &model->steps[i].process);
		place_track(joining, &model->steps[i].track, &model->steps[i].row);
	}
	for (uint32_t i = 0; i < model->readings_count; i++)
		place_track(joining, &model->readings[i].track, NULL);
	for (uint32_t i = 0; i < model->marks_count; i++)
		place_track(joining, &model->marks[i].track, NULL);
	for (uint32_t i = 0; i < model->args_count; i++)
		place_track(joining, &model->args[i].track, &model->args[i].row);
	for (uint32_t i = 0; i < model->links_count; i++) {
		place_track(joining, &model->links[i].from_track, &model->links[i].from_row);
		place_track(joining, &model->links[i].to_track, &model->links[i].to_row);
	}
	for (uint32_t i = 0; i < model->samples_count; i++)
		place_track(joining, &model->samples[i].track, NULL);
}

/* Merges entries that both processes have into one line. */
static void join_ledger(const struct joining *joining)
{
	struct model *model = joining->model;
	uint32_t count = model->ledger_count;
	struct ledger_entry *old = memory_resize(NULL, (size_t)count + 1, sizeof *old);
	if (count)
		memcpy(old, model->ledger, count * sizeof *old);
	model->ledger_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		place_process(joining, &old[i].process);
		struct ledger_entry *entry = model_add_ledger(model, old[i].kind, old[i].process,
		                                              model_text(model, old[i].where), old[i].count,
		                                              model_text(model, old[i].text));
		if (!entry->has_first_offset) {
			entry->has_first_offset = old[i].has_first_offset;
			entry->first_offset = old[i].first_offset;
		}
	}
	free(old);
}

/* ---- values and facts ---- */

static bool is_gone(const struct joining *joining, uint32_t process)
{
	return process != MODEL_NONE && joining->into[process] != process;
}

/* If both have a peak, the higher one counts. */
static void join_fact(struct model *model, struct model_meta *fact, uint32_t to)
{
	uint64_t place = model_meta_key(to, fact->key);
	uint32_t found = number_map_find(&model->index->meta, place);
	if (found == NUMBER_MAP_NONE) {
		number_map_set(&model->index->meta, place, (uint32_t)(fact - model->meta));
		fact->process = to;
		return;
	}
	uint64_t own = strtoull(model_text(model, fact->value), NULL, 10);
	uint64_t other = strtoull(model_text(model, model->meta[found].value), NULL, 10);
	if (text_ends_with(model_text(model, fact->key), "_peak_bytes") && own > other)
		model->meta[found].value = fact->value;
}

static void join_facts(const struct joining *joining)
{
	struct model *model = joining->model;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < model->meta_count; i++)
		if (is_gone(joining, model->meta[i].process))
			join_fact(model, &model->meta[i], joining->into[model->meta[i].process]);
	for (uint32_t i = 0; i < model->meta_count; i++)
		if (!is_gone(joining, model->meta[i].process)) {
			model->meta[kept] = model->meta[i];
			place_process(joining, &model->meta[kept++].process);
		}
	model->meta_count = kept;
}

static void join_series(const struct joining *joining)
{
	struct model *model = joining->model;
	uint32_t count = model->series_count, kept = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct value_series *series = model->series[i];
		for (uint32_t k = 0; is_gone(joining, series->process) && k < series->count; k++)
			model_add_value(model, joining->into[series->process], series->name, series->is_metric,
			                series->time_ns[k], series->value[k]);
	}
	for (uint32_t i = 0; i < model->series_count; i++) {
		struct value_series *series = model->series[i];
		if (is_gone(joining, series->process)) {
			storage_release(model->storage, series->time_ns);
			storage_release(model->storage, series->value);
		} else {
			model->series[kept++] = series;
			place_process(joining, &series->process);
		}
	}
	model->series_count = kept;
}

bool model_process_extent(const struct model *model, uint32_t process, int64_t *first_ns, int64_t *last_ns)
{
	bool has_any = false;
	for (uint32_t i = 0; i < model->tracks_count; i++) {
		const struct track_builder *builder = track_builder_of(model, i);
		if (builder->track.process != process || !builder->has_times)
			continue;
		*first_ns = !has_any || builder->first_ns < *first_ns ? builder->first_ns : *first_ns;
		*last_ns = !has_any || builder->high_ns > *last_ns ? builder->high_ns : *last_ns;
		has_any = true;
	}
	return has_any;
}

static void joining_release(struct joining *joining)
{
	number_map_release(&joining->places);
	free(joining->into);
	free(joining->processes);
	free(joining->nth);
	free(joining->moved);
	free(joining->tracks);
}

void model_join_processes(struct model *model, const struct process_join *joins, uint32_t count)
{
	size_t processes = (size_t)model->processes_count + 1, tracks = (size_t)model->tracks_count + 1;
	struct joining joining = {.model = model,
	                          .into = memory_resize(NULL, processes, sizeof(uint32_t)),
	                          .processes = memory_resize(NULL, processes, sizeof(uint32_t)),
	                          .nth = memory_resize(NULL, tracks, sizeof(uint32_t)),
	                          .moved = memory_resize(NULL, tracks, sizeof(struct moved)),
	                          .tracks = memory_resize(NULL, tracks, sizeof(uint32_t))};
	for (uint32_t i = 0; i < model->processes_count; i++)
		joining.into[i] = i;
	find_tracks(&joining);
	for (uint32_t i = 0; i < count; i++) {
		joining.into[joins[i].from] = joins[i].to;
		join_process(&model->processes[joins[i].to], &model->processes[joins[i].from]);
		move_tracks(&joining, &joins[i]);
	}
	renumber_processes(&joining);
	renumber_tracks(&joining);
	place_memory(&joining);
	place_rest(&joining);
	join_ledger(&joining);
	join_facts(&joining);
	join_series(&joining);
	model_index_again(model);
	joining_release(&joining);
}
