/* SPDX-License-Identifier: Apache-2.0
 *
 * launched_time.h: the time of devices by the call that launched it, for walks over the spans of threads in order of track and row.
 */
#ifndef ANALYSIS_OPERATORS_LAUNCHED_TIME_H
#define ANALYSIS_OPERATORS_LAUNCHED_TIME_H

#include "model/launches.h"

struct launched_call {
	uint32_t track, row; /* of the call */
	uint32_t count;      /* kernels, copies and fills */
	uint32_t untimed;    /* of these: how long they took is not known */
	int64_t dur_ns;      /* sum of their durations */
};

struct launched_time {
	struct storage *storage;     /* the model's */
	struct launched_call *calls; /* by track, row */
	size_t count, capacity, next;
};

void launched_time_init(struct launched_time *time, const struct model *model, const struct launches *launches);
void launched_time_release(struct launched_time *time);

/* What the span launched, NULL: nothing. Ask for spans in order of track and row. */
const struct launched_call *launched_time_at(struct launched_time *time, uint32_t track, uint32_t row);

#endif
