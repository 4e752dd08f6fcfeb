/* SPDX-License-Identifier: Apache-2.0
 *
 * launches.h: finds the launch of each device work (kernel, copy, fill). A launch is the call of the runtime or driver,
 * and the innermost operator around it on its thread. If no operator is around the call, the innermost range or
 * annotation counts. Launch and work have the same correlation and process. If work has no correlation, a link of the
 * model leads from its launch to it.
 *
 *     struct launches launches;
 *     launches_init(&launches, model); // a finished model
 *     const struct launch *launch = launches_of(&launches, track, row); // NULL: not a device's work
 *     if (launch->track == MODEL_NONE) ...its launch is not in the trace
 *     else if (launch->operation == MODEL_NONE) ...it was launched outside every operator
 *     else ...row launch->operation of launch->track
 *     launches_release(&launches);
 *
 * Device work is on tracks of kind TRACK_DEVICE; annotations and synchronisations on them are not work. Several calls
 * may share a correlation, because it wrapped or because a file holds two recordings. Then the launch is the last call
 * that started before the work. A single call is the launch even if the clocks put it after its work. The table takes
 * 12 bytes per span of these tracks and is not modified after launches_init().
 */
#ifndef MODEL_LAUNCHES_H
#define MODEL_LAUNCHES_H

#include "model/model.h"

struct launch {
	uint32_t track;     /* of the call; MODEL_NONE: not in the trace */
	uint32_t row;       /* of the call */
	uint32_t operation; /* row of the operator or range around the call; MODEL_NONE: none */
};

struct workless {      /* calls that have a correlation but no work */
	uint32_t name; /* string */
	uint64_t count;
};

struct launches {
	struct storage *storage; /* the model's */
	uint32_t track_count;
	struct launch **by_track;  /* by row; NULL: not a device's track */
	uint64_t work_count;       /* kernels, copies, fills */
	uint64_t unlaunched;       /* number of these without a launch */
	uint64_t out_of_order;     /* number of these that start before their launch */
	struct workless *workless; /* of processes with device work; per name of a call, whether it can launch or not */
	uint32_t workless_count, workless_capacity;
};

static inline bool span_is_device_work(uint8_t kind)
{
	return kind == SPAN_KERNEL || kind == SPAN_MEMCPY || kind == SPAN_MEMSET;
}

void launches_init(struct launches *launches, const struct model *model);
void launches_release(struct launches *launches); /* accepts {0} */

/* Returns NULL if the track is not a device's. The entry of a span that is not work has no launch. */
static inline const struct launch *launches_of(const struct launches *launches, uint32_t track, uint32_t row)
{
	return track < launches->track_count && launches->by_track[track] ? &launches->by_track[track][row] : NULL;
}

#endif
