/* SPDX-License-Identifier: Apache-2.0
 *
 * row_points.h: visits the begins and ends of all rows of operators of a host thread in the order of time, without
 * keeping them.
 *
 *     struct row_points points;
 *     row_points_init(&points, graph, thread);
 *     count = row_points_until(&points, time_ns); // begins and ends up to that time, since the last call
 *     row_points_release(&points);
 */
#ifndef REPLAY_ROW_POINTS_H
#define REPLAY_ROW_POINTS_H

#include "replay/graph.h"

struct row_point {
	double time_ns;
	bool is_end;
	bool is_triton; /* a begin of a row of compiled code that launches a Triton kernel */
};

struct row_lane; /* one track */

struct row_points {
	const struct replay_graph *graph;
	struct row_lane *lanes;
	uint32_t lane_count;
	struct name_classes names; /* whether they are of Triton */
};

void row_points_init(struct row_points *points, const struct replay_graph *graph, const struct replay_thread *thread);
void row_points_release(struct row_points *points);
/* Returns the next point without taking it; false: there is none. */
bool row_points_peek(struct row_points *points, struct row_point *point);
void row_points_take(struct row_points *points); /* after row_points_peek() */
/* Takes all points up to that time. Returns their number; adds the begins of Triton rows to *triton. */
uint32_t row_points_until(struct row_points *points, double time_ns, uint32_t *triton);

#endif
