/* SPDX-License-Identifier: Apache-2.0
 *
 * drop_inferred.c: see drop_inferred.h. A track gets its other spans again, one after the other. Then every reference to a row of it gets
 * the row's new number.
 */
#include "model/drop_inferred.h"

#include "base/lower_bound.h"
#include "base/memory.h"
#include "model/join.h"
#include "model/model_spans.h"
#include "model/pieces.h"

#include <stdlib.h>
#include <string.h>

struct dropped_row {
	uint32_t row, parent; /* old numbers */
};

struct dropping {
	struct model *model;
	struct dropped_rows {
		struct dropped_row *list; /* by row */
		uint32_t count, capacity;
	} * tracks;
};

static bool is_inferred(const struct span_chunk *chunk, uint32_t i)
{
	return (chunk->kind[i] == SPAN_STEP || chunk->kind[i] == SPAN_PHASE) && chunk->flags[i] & SPAN_IS_INFERRED;
}

static void find_rows(struct dropping *dropping, uint32_t number)
{
	const struct track *track = dropping->model->tracks[number];
	struct dropped_rows *rows = &dropping->tracks[number];

	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];
		for (uint32_t i = 0; i < chunk->count; i++) {
			if (!is_inferred(chunk, i))
				continue;
			MEMORY_GROW(rows->list, rows->count, rows->capacity, 64);
			rows->list[rows->count++] = (struct dropped_row){chunk->first_row + i, chunk->parent[i]};
		}
		model_chunk_done(dropping->model, chunk);
	}
}

/* Makes a new track of the other spans, in the place of the old one. */
static void fill_again(struct model *model, uint32_t number)
{
	const struct track old = *model->tracks[number];
	uint32_t made = model_add_track(model, old.process, old.kind);

	for (uint32_t c = 0; c < old.chunk_count; c++) {
		const struct span_chunk *chunk = old.chunks[c];
		for (uint32_t i = 0; i < chunk->count; i++)
			if (!is_inferred(chunk, i))
				model_span_copy(model, made, chunk, i);
		model_chunk_done(model, chunk);
	}
	struct track *track = model->tracks[made];
	struct track whole = old;
	whole.span_count = track->span_count;
	whole.chunk_count = track->chunk_count;
	whole.chunks = track->chunks;
	track_builder_of(model, made)->too_deep += track_builder_of(model, number)->too_deep;
	*track = whole;
	track_builder_release(track_builder_of(model, number));
	model->tracks[number] = track;
	model->tracks_count--;
}

/* The new number of the row, or of the nearest row around it that stays. */
static void place_row(const struct dropping *dropping, uint32_t track, uint32_t *row)
{
	if (track == MODEL_NONE || !dropping->tracks[track].count)
		return;
	const struct dropped_rows *rows = &dropping->tracks[track];
	while (*row != MODEL_NONE) {
		uint32_t at = LOWER_BOUND(rows->list, rows->count, item, item->row < *row);
		if (at == rows->count || rows->list[at].row != *row) {
			*row -= at;
			return;
		}
		*row = rows->list[at].parent;
	}
}

static void place_rows(const struct dropping *dropping)
{
	struct model *model = dropping->model;

	for (uint32_t i = 0; i < model->memory_count; i++)
		place_row(dropping, model->memory[i].track, &model->memory[i].row);
	for (uint32_t i = 0; i < model->args_count; i++)
		place_row(dropping, model->args[i].track, &model->args[i].row);
	for (uint32_t i = 0; i < model->links_count; i++) {
		place_row(dropping, model->links[i].from_track, &model->links[i].from_row);
		place_row(dropping, model->links[i].to_track, &model->links[i].to_row);
	}
	for (uint32_t i = 0; i < model->steps_count; i++)
		place_row(dropping, model->steps[i].track, &model->steps[i].row);
}

static void drop_steps(struct model *model, const bool *is_of)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < model->steps_count; i++)
		if (!model->steps[i].is_inferred || !is_of[model->steps[i].process])
			model->steps[kept++] = model->steps[i];
	model->steps_count = kept;
}

/* A process that marks no steps has lines about inferred ones only. */
static void drop_lines(struct model *model, const bool *is_of)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < model->ledger_count; i++) {
		const struct ledger_entry *entry = &model->ledger[i];
		const char *where = model_text(model, entry->where);
		bool is_about = entry->kind == LEDGER_OTHER && entry->process != MODEL_NONE && is_of[entry->process] &&
		                (!strcmp(where, "steps") || !strcmp(where, "phases"));

		if (!is_about)
			model->ledger[kept++] = *entry;
	}
	model->ledger_count = kept;
}

static void drop_spans(struct model *model, const bool *is_of)
{
	uint32_t count = model->tracks_count;
	struct dropping dropping = {.model = model,
	                            .tracks = memory_resize(NULL, (size_t)count + 1, sizeof *dropping.tracks)};

	memset(dropping.tracks, 0, ((size_t)count + 1) * sizeof *dropping.tracks);
	for (uint32_t i = 0; i < count; i++) {
		if (!is_of[model->tracks[i]->process])
			continue;
		find_rows(&dropping, i);
		if (dropping.tracks[i].count)
			fill_again(model, i);
	}
	place_rows(&dropping);
	for (uint32_t i = 0; i < count; i++)
		free(dropping.tracks[i].list);
	free(dropping.tracks);
}

/* ---- workers ---- */

struct process_use {
	int64_t first_ns, last_ns; /* of its spans */
	bool has_spans, marks_steps;
};

static struct process_use *find_uses(const struct model *model)
{
	struct process_use *uses = memory_resize(NULL, (size_t)model->processes_count + 1, sizeof *uses);

	memset(uses, 0, ((size_t)model->processes_count + 1) * sizeof *uses);
	for (uint32_t i = 0; i < model->tracks_count; i++) {
		const struct track_builder *builder = track_builder_of(model, i);
		struct process_use *use = &uses[builder->track.process];

		if (!builder->has_times)
			continue;
		use->first_ns = !use->has_spans || builder->first_ns < use->first_ns ? builder->first_ns
		                                                                     : use->first_ns;
		use->last_ns = !use->has_spans || builder->high_ns > use->last_ns ? builder->high_ns : use->last_ns;
		use->has_spans = true;
	}
	for (uint32_t i = 0; i < model->steps_count; i++)
		uses[model->steps[i].process].marks_steps |= !model->steps[i].is_inferred;
	return uses;
}

static bool is_worker(const struct process_use *uses, uint32_t count, uint32_t process)
{
	const struct process_use *own = &uses[process];
	bool is_beside = false;

	for (uint32_t i = 0; i < count && !own->marks_steps && !is_beside; i++)
		is_beside = uses[i].marks_steps && own->has_spans && uses[i].first_ns <= own->last_ns &&
		            own->first_ns <= uses[i].last_ns;
	return is_beside;
}

void model_drop_inferred(struct model *model, const bool *keeps)
{
	uint32_t count = model->processes_count;
	struct process_use *uses = find_uses(model);
	bool *is_of = memory_resize(NULL, (size_t)count + 1, sizeof *is_of), has_any = false;

	for (uint32_t i = 0; i < count; i++) {
		is_of[i] = !keeps[i] && is_worker(uses, count, i);
		has_any |= is_of[i];
	}
	if (has_any) {
		drop_steps(model, is_of);
		drop_spans(model, is_of);
		drop_lines(model, is_of);
	}
	free(uses);
	free(is_of);
}
