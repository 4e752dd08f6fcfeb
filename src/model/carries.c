/* SPDX-License-Identifier: Apache-2.0
 *
 * carries.c: time that a span's self time loses to spans outside its chunk. These are children in later chunks. If
 * spans of a thread cross and are in several lanes, spans of other lanes that started later count, too.
 */
#include "model/carries.h"

#include "base/memory.h"
#include "base/merge_sort.h"
#include "model/lanes.h"
#include "model/track_builder.h"

#include <stdlib.h>

#define LANES_MAX                                                                                                      \
	64u /* importers make at most this number; further tracks of the same number are not looked at together */

static void add_carry(struct track_builder *builder, uint32_t row, int64_t covered_ns)
{
	uint32_t count = builder->carry_count;
	if (count && builder->carries[count - 1].row == row) {
		builder->carries[count - 1].covered_ns += covered_ns;
		return;
	}
	MEMORY_GROW(builder->carries, builder->carry_count, builder->carry_capacity, 8);
	builder->carries[builder->carry_count++] = (struct carry){row, covered_ns};
}

/* Adds the time of children outside their parent's chunk. Within a chunk they come in runs of the same parent, in
 * ascending order. */
void carries_collect(struct track_builder *builder, const struct span_chunk *chunk)
{
	for (uint32_t i = 0; i < chunk->count; i++)
		if (chunk->parent[i] != MODEL_NONE && chunk->parent[i] < chunk->first_row)
			add_carry(builder, chunk->parent[i], chunk->dur_ns[i]);
}

static int compare_carries(const void *left, const void *right)
{
	const struct carry *a = left, *b = right;
	return (a->row > b->row) - (a->row < b->row);
}

static void merge_carries(struct track_builder *builder)
{
	merge_sort(builder->carries, builder->carry_count, sizeof *builder->carries, compare_carries);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < builder->carry_count; i++) {
		if (kept && builder->carries[kept - 1].row == builder->carries[i].row)
			builder->carries[kept - 1].covered_ns += builder->carries[i].covered_ns;
		else
			builder->carries[kept++] = builder->carries[i];
	}
	builder->carry_count = kept;
}

/* ---- lanes ---- */

struct carries_lane {
	struct track_builder *builder;
	uint32_t next; /* the first row that has not started */
	int64_t next_ns;
	uint32_t open, around; /* the innermost row that has not ended, and its parent; MODEL_NONE: none */
	int64_t start_ns, end_ns;
};

static void set_next(struct carries_lane *lane, uint32_t row)
{
	uint32_t i;
	bool is_end = row == lane->builder->track.span_count;
	lane->next = row;
	lane->next_ns = is_end ? INT64_MAX : track_chunk(&lane->builder->track, row, &i)->start_ns[i];
}

static void set_open(struct carries_lane *lane, uint32_t row)
{
	uint32_t i;
	lane->open = row;
	lane->end_ns = INT64_MAX;
	if (row == MODEL_NONE)
		return;
	const struct span_chunk *chunk = track_chunk(&lane->builder->track, row, &i);
	lane->around = chunk->parent[i];
	lane->start_ns = chunk->start_ns[i];
	lane->end_ns = chunk->start_ns[i] + chunk->dur_ns[i];
}

static void carries_leave(struct carries_lane *lane, int64_t now_ns)
{
	while (lane->open != MODEL_NONE && lane->end_ns <= now_ns)
		set_open(lane, lane->around);
}

static void go_to(struct carries_lane *lane, int64_t now_ns)
{
	carries_leave(lane, now_ns);
	while (lane->next < lane->builder->track.span_count && lane->next_ns <= now_ns) {
		set_open(lane, lane->next);
		set_next(lane, lane->next + 1);
		carries_leave(lane, now_ns);
	}
}

/* Returns the next time at which a span starts or ends. */
static int64_t next_change(const struct carries_lane *lanes, uint32_t count)
{
	int64_t next_ns = INT64_MAX;
	for (uint32_t i = 0; i < count; i++) {
		int64_t its_ns = lanes[i].next_ns < lanes[i].end_ns ? lanes[i].next_ns : lanes[i].end_ns;
		next_ns = its_ns < next_ns ? its_ns : next_ns;
	}
	return next_ns;
}

/* Of spans that start at the same time, the shorter one would be nested in the other. */
static bool is_further_in(const struct carries_lane *lane, const struct carries_lane *other)
{
	return lane->start_ns != other->start_ns ? lane->start_ns > other->start_ns : lane->end_ns < other->end_ns;
}

/* In this stretch no span starts or ends. It belongs to the span that started last, so it is not self time of spans in
 * other lanes. */
static void carries_take(const struct carries_lane *lanes, uint32_t count, int64_t start_ns, int64_t end_ns)
{
	const struct carries_lane *top = NULL;
	for (uint32_t i = 0; i < count; i++)
		if (lanes[i].open != MODEL_NONE && (!top || is_further_in(&lanes[i], top)))
			top = &lanes[i];
	for (uint32_t i = 0; i < count; i++)
		if (lanes[i].open != MODEL_NONE && &lanes[i] != top)
			add_carry(lanes[i].builder, lanes[i].open, end_ns - start_ns);
}

static void sweep_lanes(const struct model *model, uint32_t first, uint32_t count)
{
	struct carries_lane lanes[LANES_MAX];
	for (uint32_t i = 0; i < count; i++) {
		lanes[i].builder = track_builder_of(model, first + i);
		set_open(&lanes[i], MODEL_NONE);
		set_next(&lanes[i], 0);
	}
	for (int64_t now_ns = next_change(lanes, count), next_ns; now_ns < INT64_MAX; now_ns = next_ns) {
		for (uint32_t i = 0; i < count; i++)
			go_to(&lanes[i], now_ns);
		next_ns = next_change(lanes, count);
		if (next_ns < INT64_MAX)
			carries_take(lanes, count, now_ns, next_ns);
	}
}

void carries_finish(struct model *model)
{
	for (uint32_t first = 0, count; first < model->tracks_count; first += count) {
		for (count = 1; first + count < model->tracks_count && count < LANES_MAX; count++)
			if (!is_further_lane(model, first + count))
				break;
		if (count > 1 && model->tracks[first]->kind == TRACK_THREAD)
			sweep_lanes(model, first, count);
		for (uint32_t i = first; i < first + count; i++)
			merge_carries(track_builder_of(model, i));
	}
}
