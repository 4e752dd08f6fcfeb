/* SPDX-License-Identifier: Apache-2.0
 *
 * row_points.c: see the header. Spans of a track nest, so the ends that are due lie on a stack, the next one on top.
 */
#include "replay/row_points.h"

#include "base/memory.h"
#include "model/name_classes.h"

#include <stdlib.h>
#include <string.h>

struct row_lane {
	const struct track *track;
	uint32_t row; /* next row to look at */
	double *ends; /* of open rows */
	uint32_t end_count, end_capacity;
	bool has_next;
	struct row_point next;
};

/* Advances to the next row of an operator. */
static const struct span_chunk *next_row(struct row_lane *lane, uint32_t *index)
{
	for (; lane->row < lane->track->span_count; lane->row++) {
		const struct span_chunk *chunk = track_chunk(lane->track, lane->row, index);

		if (chunk->kind[*index] == SPAN_OP || chunk->kind[*index] == SPAN_COLLECTIVE)
			return chunk;
	}
	return NULL;
}

static uint8_t is_triton_name(const char *name)
{
	return !strncmp(name, "triton_", 7);
}

/* At one time ends come first: a row that begins at the end of another one is not in it. */
static void find_next(struct row_points *points, struct row_lane *lane)
{
	const struct replay_graph *graph = points->graph;
	uint32_t i;
	const struct span_chunk *chunk = next_row(lane, &i);
	double start_ns = chunk ? (double)(chunk->start_ns[i] - graph->origin_ns) : 0;

	lane->has_next = chunk || lane->end_count;
	if (chunk && (!lane->end_count || start_ns < lane->ends[lane->end_count - 1]))
		lane->next = (struct row_point){start_ns, false,
		                                name_class(&points->names, graph->model, chunk->name[i])};
	else if (lane->end_count)
		lane->next = (struct row_point){lane->ends[lane->end_count - 1], true, false};
}

static void take(struct row_points *points, struct row_lane *lane)
{
	if (lane->next.is_end) {
		lane->end_count--;
	} else {
		uint32_t i;
		const struct span_chunk *chunk = track_chunk(lane->track, lane->row, &i);

		MEMORY_GROW(lane->ends, lane->end_count, lane->end_capacity, 32);
		lane->ends[lane->end_count++] = lane->next.time_ns + (double)chunk->dur_ns[i];
		lane->row++;
	}
	find_next(points, lane);
}

void row_points_init(struct row_points *points, const struct replay_graph *graph, const struct replay_thread *thread)
{
	*points = (struct row_points){
		.graph = graph,
		.lane_count = thread->tracks,
		.names = {.classify = is_triton_name},
	};
	points->lanes = memory_resize(NULL, thread->tracks, sizeof(*points->lanes));
	for (uint32_t i = 0; i < thread->tracks; i++) {
		points->lanes[i] = (struct row_lane){.track = graph->model->tracks[thread->first_track + i]};
		find_next(points, &points->lanes[i]);
	}
}

void row_points_release(struct row_points *points)
{
	for (uint32_t i = 0; i < points->lane_count; i++)
		free(points->lanes[i].ends);
	free(points->lanes);
	name_classes_release(&points->names);
	*points = (struct row_points){0};
}

static struct row_lane *first_of(struct row_points *points)
{
	struct row_lane *first = NULL;

	for (uint32_t i = 0; i < points->lane_count; i++) {
		struct row_lane *lane = &points->lanes[i];

		if (lane->has_next && (!first || lane->next.time_ns < first->next.time_ns))
			first = lane;
	}
	return first;
}

bool row_points_peek(struct row_points *points, struct row_point *point)
{
	const struct row_lane *lane = first_of(points);

	if (lane)
		*point = lane->next;
	return lane != NULL;
}

void row_points_take(struct row_points *points)
{
	take(points, first_of(points));
}

uint32_t row_points_until(struct row_points *points, double time_ns, uint32_t *triton)
{
	struct row_point point;
	uint32_t count = 0;

	while (row_points_peek(points, &point) && point.time_ns <= time_ns) {
		count++;
		*triton += point.is_triton;
		row_points_take(points);
	}
	return count;
}
