/* SPDX-License-Identifier: Apache-2.0
 *
 * model_spans.c: fills tracks with spans. It keeps nesting valid for any input. Starts never decrease, a span never
 * ends before its children, and no span outlives a parent whose end is known.
 */
#include "model/model_spans.h"

#include "base/memory.h"
#include "base/storage.h"
#include "model/model_index.h"
#include "model/track_builder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MOVES 64u /* limit per row of a track */

static size_t aligned(size_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

/* Columns start on separate cache lines, in one piece of storage. */
static void lay_out_columns(struct storage *storage, struct span_chunk *chunk)
{
	size_t rows = chunk->capacity, total = 0;
	const size_t widths[] = {8, 8, 4, 4, 4, 4, 2, 1, 1, 1};
	char *columns[10];
	for (int i = 0; i < 10; i++)
		total += aligned(rows * widths[i]);
	char *next = storage_alloc(storage, total);
	for (int i = 0; i < 10; i++) {
		columns[i] = next;
		next += aligned(rows * widths[i]);
	}
	chunk->start_ns = (int64_t *)columns[0];
	chunk->dur_ns = (int64_t *)columns[1];
	chunk->name = (uint32_t *)columns[2];
	chunk->parent = (uint32_t *)columns[3];
	chunk->shape = (uint32_t *)columns[4];
	chunk->step = (int32_t *)columns[5];
	chunk->depth = (uint16_t *)columns[6];
	chunk->kind = (uint8_t *)columns[7];
	chunk->flags = (uint8_t *)columns[8];
	chunk->phase = (uint8_t *)columns[9];
}

static struct span_chunk *add_chunk(struct model *model, struct track_builder *builder)
{
	struct track *track = &builder->track;
	struct span_chunk *chunk = arena_alloc(&model->arena, sizeof *chunk);
	chunk->first_row = track->span_count;
	chunk->capacity = track->chunk_count < SMALL_CHUNKS ? FIRST_CHUNK_ROWS << track->chunk_count : CHUNK_ROWS;
	lay_out_columns(model->storage, chunk);
	MEMORY_GROW(track->chunks, track->chunk_count, builder->chunks_capacity, 4);
	if (builder->last)
		model_chunk_done(model, builder->last);
	track->chunks[track->chunk_count++] = chunk;
	builder->last = chunk;
	return chunk;
}

static struct open_span *push_open(struct track_builder *builder)
{
	MEMORY_GROW(builder->open, builder->open_count, builder->open_capacity, 4);
	return &builder->open[builder->open_count++];
}

static const struct open_span *top(const struct track_builder *builder)
{
	return builder->open_count ? &builder->open[builder->open_count - 1] : NULL;
}

static int64_t clamp_start(struct track_builder *builder, int64_t start_ns)
{
	if (!builder->has_times) {
		builder->has_times = true;
		builder->first_ns = builder->high_ns = start_ns;
	} else if (start_ns < builder->last_start_ns) {
		start_ns = builder->last_start_ns;
	}
	while (builder->open_count && top(builder)->is_complete && top(builder)->limit_ns <= start_ns)
		builder->open_count--;
	if (builder->open_count && top(builder)->limit_ns < start_ns)
		start_ns = top(builder)->limit_ns;
	builder->last_start_ns = start_ns;
	if (start_ns > builder->high_ns)
		builder->high_ns = start_ns;
	return start_ns;
}

/* Appends the row and makes it the top of the open spans. */
static uint32_t model_spans_append(struct model *model, struct track_builder *builder, int64_t start_ns,
                                   enum span_kind kind, uint32_t name)
{
	assert(builder->open_count < MODEL_MAX_DEPTH);
	struct span_chunk *chunk = builder->last;
	if (!chunk || chunk->count == chunk->capacity)
		chunk = add_chunk(model, builder);
	const struct open_span *parent = top(builder);
	uint32_t i = chunk->count++, row = builder->track.span_count++;
	uint8_t phase = kind == SPAN_PHASE ? phase_of_string(name) : parent ? parent->phase : 0;
	chunk->start_ns[i] = start_ns;
	chunk->name[i] = name;
	chunk->parent[i] = parent ? parent->row : MODEL_NONE;
	chunk->depth[i] = (uint16_t)builder->open_count;
	chunk->kind[i] = (uint8_t)kind;
	chunk->phase[i] = phase;
	uint32_t begun = parent ? parent->begun : 0;
	int64_t limit_ns = parent ? parent->limit_ns : INT64_MAX;
	*push_open(builder) = (struct open_span){.row = row,
	                                         .begun = begun,
	                                         .inner_ns = start_ns,
	                                         .limit_ns = limit_ns,
	                                         .kind = (uint8_t)kind,
	                                         .phase = phase};
	return row;
}

static bool is_full(const struct track_builder *builder)
{
	return builder->open_count >= MODEL_MAX_DEPTH || builder->track.span_count >= MODEL_NONE - 1;
}

uint32_t model_span_begin(struct model *model, uint32_t track, int64_t start_ns, enum span_kind kind, uint32_t name)
{
	assert(track < model->tracks_count && kind < SPAN_KIND_COUNT);
	struct track_builder *builder = track_builder_of(model, track);
	start_ns = clamp_start(builder, start_ns);
	if (builder->deeper || is_full(builder)) {
		builder->deeper++;
		builder->too_deep++;
		return MODEL_NONE;
	}
	uint32_t row = model_spans_append(model, builder, start_ns, kind, name);
	builder->open[builder->open_count - 1].begun = builder->open_count;
	return row;
}

/* Notes that a child of the innermost open span ended. */
static void note_end(struct track_builder *builder, int64_t end_ns)
{
	if (builder->open_count && builder->open[builder->open_count - 1].inner_ns < end_ns)
		builder->open[builder->open_count - 1].inner_ns = end_ns;
	if (end_ns > builder->high_ns)
		builder->high_ns = end_ns;
}

bool model_span_end(struct model *model, uint32_t track, int64_t end_ns, uint8_t flags)
{
	assert(track < model->tracks_count);
	struct track_builder *builder = track_builder_of(model, track);
	if (builder->deeper) {
		builder->deeper--;
		return true;
	}
	if (!builder->open_count || !top(builder)->begun)
		return false;
	builder->open_count = top(builder)->begun; /* complete spans above it end with it */
	struct open_span span = builder->open[--builder->open_count];
	if (end_ns < span.inner_ns)
		end_ns = span.inner_ns;
	if (end_ns > span.limit_ns) {
		end_ns = span.limit_ns;
		flags |= SPAN_IS_CLIPPED;
	}
	note_end(builder, end_ns);
	builder->last_start_ns = end_ns;
	uint32_t i;
	struct span_chunk *chunk = track_chunk(&builder->track, span.row, &i);
	chunk->dur_ns[i] = end_ns - chunk->start_ns[i];
	assert(chunk->dur_ns[i] >= 0);
	chunk->flags[i] |= flags;
	return true;
}

/* ---- spans that overlap ---- */

/* All rows from here on are nested in the span that ends, so they move up one level. */
static void lift(struct track_builder *builder, uint32_t row, uint32_t parent)
{
	uint32_t i;
	track_chunk(&builder->track, row, &i)->parent[i] = parent;
	while (row < builder->track.span_count) {
		struct span_chunk *chunk = track_chunk(&builder->track, row, &i);
		for (; i < chunk->count; i++)
			chunk->depth[i]--;
		row = chunk->first_row + chunk->count;
	}
}

static void forget_open(struct track_builder *builder, uint32_t index)
{
	assert(index < builder->open_count);
	struct open_span *open = builder->open;
	builder->open_count--;
	memmove(&open[index], &open[index + 1], (builder->open_count - index) * sizeof *open);
	for (uint32_t i = index; i < builder->open_count; i++)
		open[i].begun = !open[i].is_complete ? i + 1 : i ? open[i - 1].begun : 0;
}

/* Returns 1 + index of the open span in which `levels` open ones were begun; 0: none. */
static uint32_t level_beneath(const struct track_builder *builder, uint32_t levels)
{
	uint32_t level = top(builder) ? top(builder)->begun : 0;
	for (; level && levels; levels--)
		level = level > 1 ? builder->open[level - 2].begun : 0;
	return level;
}

/* Bounds the run time for hostile files: a real recording moves each row at most once per span around it. */
static bool may_move(struct track_builder *builder, uint32_t rows)
{
	uint64_t most = MAX_MOVES * ((uint64_t)builder->track.span_count + 1024);
	bool is_allowed = builder->moved + rows <= most;
	builder->moved += is_allowed ? rows : 0;
	return is_allowed;
}

uint32_t model_span_end_beneath(struct model *model, uint32_t track, uint32_t levels, int64_t *end_ns, uint8_t flags)
{
	assert(levels > 0);
	struct track_builder *builder = track_builder_of(model, track);
	uint32_t level = builder->deeper ? 0 : level_beneath(builder, levels), i;
	if (!level)
		return MODEL_NONE;
	const struct open_span span = builder->open[level - 1], next = builder->open[level];
	if (!may_move(builder, builder->track.span_count - next.row))
		return MODEL_NONE;
	int64_t begin_ns = track_chunk(&builder->track, next.row, &i)->start_ns[i];
	if (*end_ns < span.inner_ns)
		*end_ns = span.inner_ns;
	if (*end_ns > begin_ns) { /* complete spans in it ended before, or `next` is one */
		*end_ns = begin_ns;
		flags |= SPAN_IS_CLIPPED;
	}
	struct span_chunk *chunk = track_chunk(&builder->track, span.row, &i);
	chunk->dur_ns[i] = *end_ns - chunk->start_ns[i];
	chunk->flags[i] |= flags;
	lift(builder, next.row, chunk->parent[i]);
	forget_open(builder, level - 1);
	if (level > 1 && builder->open[level - 2].inner_ns < span.inner_ns)
		builder->open[level - 2].inner_ns = span.inner_ns;
	return span.row;
}

uint32_t model_span_innermost(const struct model *model, uint32_t track, enum span_kind *kind)
{
	const struct track_builder *builder = track_builder_of(model, track);
	const struct open_span *innermost = top(builder);
	if (!innermost || !innermost->begun)
		return MODEL_NONE;
	innermost = &builder->open[innermost->begun - 1];
	if (kind)
		*kind = innermost->kind;
	return innermost->row;
}

uint32_t model_span_complete(struct model *model, uint32_t track, int64_t start_ns, int64_t dur_ns, enum span_kind kind,
                             uint32_t name)
{
	assert(track < model->tracks_count && kind < SPAN_KIND_COUNT);
	struct track_builder *builder = track_builder_of(model, track);
	int64_t end_ns;
	if (dur_ns < 0 || __builtin_add_overflow(start_ns, dur_ns, &end_ns))
		end_ns = start_ns;
	start_ns = clamp_start(builder, start_ns);
	if (builder->deeper || is_full(builder)) {
		builder->too_deep++;
		return MODEL_NONE;
	}
	uint32_t row = model_spans_append(model, builder, start_ns, kind, name);
	struct open_span *span = &builder->open[builder->open_count - 1];
	uint8_t flags = 0;
	if (end_ns > span->limit_ns) {
		end_ns = span->limit_ns;
		flags = SPAN_IS_CLIPPED;
	}
	if (end_ns < start_ns)
		end_ns = start_ns;
	span->limit_ns = end_ns;
	span->is_complete = true;
	builder->open_count--;
	note_end(builder, end_ns);
	builder->open_count++;
	uint32_t i = row - builder->last->first_row;
	builder->last->dur_ns[i] = end_ns - start_ns;
	builder->last->flags[i] = flags;
	return row;
}

static struct span_chunk *chunk_of(const struct model *model, uint32_t track, uint32_t row, uint32_t *i)
{
	assert(row < model->tracks[track]->span_count);
	return track_chunk(model->tracks[track], row, i);
}

void model_span_set_shape(struct model *model, uint32_t track, uint32_t row, uint32_t shape)
{
	uint32_t i;
	chunk_of(model, track, row, &i)->shape[i] = shape;
}

/* Returns a column that few tracks have. It is created at its first value, with `nothing` in every byte. */
static void *rare_column(struct model *model, const struct span_chunk *chunk, void *column, size_t width, int nothing)
{
	if (column)
		return column;
	return memset(storage_alloc(model->storage, chunk->capacity * width), nothing, chunk->capacity * width);
}

void model_span_set_sequence(struct model *model, uint32_t track, uint32_t row, uint64_t sequence)
{
	uint32_t i;
	struct span_chunk *chunk = chunk_of(model, track, row, &i);
	chunk->sequence = rare_column(model, chunk, chunk->sequence, sizeof *chunk->sequence, 0xff);
	chunk->sequence[i] = sequence;
}

void model_span_set_inputs(struct model *model, uint32_t track, uint32_t row, uint32_t inputs)
{
	uint32_t i;
	struct span_chunk *chunk = chunk_of(model, track, row, &i);
	chunk->inputs = rare_column(model, chunk, chunk->inputs, sizeof *chunk->inputs, 0);
	chunk->inputs[i] = inputs;
}

void model_span_set_stack(struct model *model, uint32_t track, uint32_t row, uint32_t stack)
{
	uint32_t i;
	struct span_chunk *chunk = chunk_of(model, track, row, &i);
	chunk->stack = rare_column(model, chunk, chunk->stack, sizeof *chunk->stack, 0);
	chunk->stack[i] = stack;
}

void model_span_set_correlation(struct model *model, uint32_t track, uint32_t row, uint64_t correlation)
{
	uint32_t i;
	struct span_chunk *chunk = chunk_of(model, track, row, &i);
	chunk->correlation = rare_column(model, chunk, chunk->correlation, sizeof *chunk->correlation, 0);
	chunk->correlation[i] = correlation;
}

static void idle_column(const struct model *model, const struct span_chunk *chunk, const void *column, size_t width)
{
	if (column)
		storage_idle(model->storage, column, chunk->capacity * width);
}

void model_chunk_done(const struct model *model, const struct span_chunk *chunk)
{
	const char *end = (const char *)chunk->phase + aligned(chunk->capacity);
	storage_idle(model->storage, chunk->start_ns, (size_t)(end - (const char *)chunk->start_ns));
	idle_column(model, chunk, chunk->sequence, sizeof *chunk->sequence);
	idle_column(model, chunk, chunk->inputs, sizeof *chunk->inputs);
	idle_column(model, chunk, chunk->stack, sizeof *chunk->stack);
	idle_column(model, chunk, chunk->correlation, sizeof *chunk->correlation);
}

uint32_t track_builder_close(struct model *model, uint32_t track, int64_t end_ns, uint8_t flags)
{
	struct track_builder *builder = track_builder_of(model, track);
	uint32_t closed = builder->deeper;
	builder->deeper = 0;
	while (model_span_end(model, track, end_ns, flags))
		closed++;
	builder->open_count = 0;
	return closed;
}

void track_builder_release(struct track_builder *builder)
{
	free(builder->track.chunks);
	free(builder->open);
	free(builder->carries);
	free(builder);
}
