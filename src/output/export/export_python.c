/* SPDX-License-Identifier: Apache-2.0
 *
 * export_python.c: see the header. Only operators and modules carry stacks that count (a module's stack is its
 * caller's). Any other span between two of them (a step, a phase, a range) ends all frames at its level, so that no
 * frame crosses it. Inside an operator or a module only the frames below its own stack are new.
 */
#include "output/export/export_python.h"

#include "base/memory.h"
#include "base/merge_sort.h"

#include <stdlib.h>
#include <string.h>

#define DEEPEST 4096u /* most frames of a stack */

struct python_level {    /* nesting level of spans, by depth */
	uint32_t stack;  /* of the operator around them, 0: there is none */
	uint32_t parent; /* row of the span around them */
	uint32_t first;  /* index in `open` of their first open frame */
	uint64_t around; /* id of the frame or module around them, 0: there is none */
};

struct python_track {
	const struct model *model;
	uint32_t track;
	struct python_slice *slices; /* not passed on yet */
	uint32_t count, capacity;
	uint32_t *open; /* indices of slices, outermost first */
	uint32_t open_count, open_capacity;
	struct python_level *levels;
	uint32_t level_capacity, level_count;
	struct python_out *out;
};

static int compare_slices(const void *left, const void *right)
{
	const struct python_slice *a = left, *b = right;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

static void give_out(struct python_track *track)
{
	merge_sort(track->slices, track->count, sizeof *track->slices, compare_slices);
	for (uint32_t i = 0; i < track->count; i++)
		track->out->put(track->out->context, &track->slices[i]);
	track->count = 0;
}

static void close_frames(struct python_track *track, uint32_t first)
{
	if (track->open_count > first)
		track->open_count = first;
	if (!track->open_count && track->count > 65536)
		give_out(track);
}

/* Returns the innermost frame or module around a span that starts now. */
static uint64_t export_python_innermost(const struct python_track *track, const struct python_level *level)
{
	if (track->open_count > level->first)
		return track->slices[track->open[track->open_count - 1]].id;
	return level->around;
}

static void open_frame(struct python_track *track, const struct python_level *level, uint32_t frame, int64_t start_ns,
                       int64_t end_ns)
{
	MEMORY_GROW(track->slices, track->count, track->capacity, 1024);
	MEMORY_GROW(track->open, track->open_count, track->open_capacity, 64);
	track->slices[track->count] = (struct python_slice){frame, ++track->out->last_id,
	                                                    export_python_innermost(track, level), start_ns, end_ns};
	track->open[track->open_count++] = track->count++;
}

/* Returns the level of a span's siblings, and closes deeper levels. */
static struct python_level *level_of(struct python_track *track, const struct span_chunk *chunk, uint32_t index)
{
	uint32_t depth = chunk->depth[index];
	if (depth + 2u > track->level_capacity) {
		track->level_capacity = depth + 64u;
		track->levels = memory_resize(track->levels, track->level_capacity, sizeof *track->levels);
	}
	if (track->level_count > depth && track->levels[depth].parent == chunk->parent[index]) {
		if (track->level_count > depth + 1)
			close_frames(track, track->levels[depth + 1].first);
		track->level_count = depth + 1;
		return &track->levels[depth];
	}
	if (track->level_count > depth) {
		close_frames(track, track->levels[depth].first);
		track->level_count = depth;
	}
	for (; track->level_count <= depth; track->level_count++) /* rows of the levels in between were not selected */
		track->levels[track->level_count] = (struct python_level){
			.stack = track->level_count ? track->levels[track->level_count - 1].stack : 0,
			.parent = chunk->parent[index],
			.first = track->open_count,
			.around = track->level_count ? track->levels[track->level_count - 1].around : 0};
	return &track->levels[depth];
}

/* Follows the operator's stack below the level's own stack: frames that are open already continue, the others start
 * here. */
static void follow_stack(struct python_track *track, const struct python_level *level, uint32_t stack, int64_t start_ns,
                         int64_t end_ns)
{
	uint32_t path[DEEPEST], count = 0;
	for (; stack && stack != level->stack && count < DEEPEST; stack = track->model->stacks[stack].parent)
		path[count++] = stack;
	uint32_t same = level->first;
	for (; same < track->open_count && count; same++, count--) {
		struct python_slice *slice = &track->slices[track->open[same]];
		if (slice->frame != path[count - 1])
			break;
		slice->end_ns = end_ns > slice->end_ns ? end_ns : slice->end_ns;
	}
	track->open_count = same;
	while (count--)
		open_frame(track, level, path[count], start_ns, end_ns);
}

static void export_python_add_row(struct python_track *track, const struct span_chunk *chunk, uint32_t index)
{
	int64_t start_ns = chunk->start_ns[index], end_ns = start_ns + chunk->dur_ns[index];
	bool has_stack = chunk->kind[index] == SPAN_OP || chunk->kind[index] == SPAN_MODULE;
	uint32_t stack = has_stack ? span_stack(chunk, index) : 0;
	struct python_level *level = level_of(track, chunk, index);
	uint32_t inside = stack ? stack : level->stack;
	if (!stack)
		close_frames(track, level->first);
	else
		follow_stack(track, level, stack, start_ns, end_ns);
	uint32_t row = chunk->first_row + index;
	uint64_t around = export_python_innermost(track, level);
	if (chunk->kind[index] == SPAN_MODULE) {
		track->out->put_parent(track->out->context, row, around);
		around = track->out->first_id + row;
	}
	track->levels[track->level_count++] = (struct python_level){inside, row, track->open_count, around};
}

/* Returns true for a trace of another profiler, which has the calls themselves. */
static bool has_calls(const struct track *track)
{
	for (uint32_t c = 0; c < track->chunk_count; c++)
		if (memchr(track->chunks[c]->kind, SPAN_PYTHON, track->chunks[c]->count))
			return true;
	return false;
}

void python_slices(const struct model *model, uint32_t number, const struct selection *selection,
                   struct python_out *out)
{
	const struct track *columns = model->tracks[number];
	struct python_track track = {.model = model, .track = number, .out = out};
	if (has_calls(columns))
		return;
	for (uint32_t c = 0; c < columns->chunk_count; c++) {
		const struct span_chunk *chunk = columns->chunks[c];
		for (uint32_t i = 0; chunk->stack && i < chunk->count; i++)
			if (!selection->intervals || selection_has_span(selection, model, columns->process, chunk, i))
				export_python_add_row(&track, chunk, i);
		if (!chunk->stack) { /* Python started nothing in this chunk */
			close_frames(&track, 0);
			track.level_count = 0;
		}
		model_chunk_done(model, chunk);
	}
	close_frames(&track, 0);
	if (track.count)
		give_out(&track);
	free(track.slices);
	free(track.open);
	free(track.levels);
}
