/* SPDX-License-Identifier: Apache-2.0
 *
 * launched_time.h: the time of devices by the launching call, for walks over the spans of threads in the order of
 * track and row.
 */
#ifndef ANALYSIS_OPERATORS_LAUNCHED_TIME_H
#define ANALYSIS_OPERATORS_LAUNCHED_TIME_H

#include "model/launches.h"

struct launched_call {
	uint32_t track, row; /* of the call */
	uint32_t count;      /* kernels, copies and fills */
	uint32_t untimed;    /* of these, with unknown duration */
	int64_t dur_ns;      /* sum of their durations */
};

struct launched_time {
	struct storage *storage;     /* of the model */
	struct launched_call *calls; /* sorted by track and row */
	size_t count, capacity, next;
};

void launched_time_init(struct launched_time *time, const struct model *model, const struct launches *launches);
void launched_time_release(struct launched_time *time);

/* Returns the work that the span launched, NULL: none. Ask for spans in the order of track and row. */
const struct launched_call *launched_time_at(struct launched_time *time, uint32_t track, uint32_t row);

#endif
