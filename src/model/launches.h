/* SPDX-License-Identifier: Apache-2.0
 *
 * launches.h: who asked for what a device did: work on a device (kernel, copy, fill) -> the call of the runtime or driver that launched
 * it -> the innermost operator around that call on its thread (where there is none, the innermost range or annotation). Launch and work have the same correlation, in the same process;
 * of work that has none, a link of the model leads from its launch to it.
 *
 *     struct launches launches;
 *     launches_init(&launches, model); // a finished model
 *     const struct launch *launch = launches_of(&launches, track, row); // NULL: not a device's work
 *     if (launch->track == MODEL_NONE) ...its launch is not in the trace
 *     else if (launch->operation == MODEL_NONE) ...it was launched in no operator
 *     else ...row launch->operation of launch->track
 *     launches_release(&launches);
 *
 * Work of devices lies on tracks of kind TRACK_DEVICE; annotations and synchronisations there are no work. A number that several calls have (it wrapped, or two recordings are in one file) means
 * the last call that began before the work did; a single call is the launch also when the clocks put it behind its work. Takes 12 bytes
 * per span of these tracks. Never modified after launches_init().
 */
#ifndef MODEL_LAUNCHES_H
#define MODEL_LAUNCHES_H

#include "model/model.h"

struct launch {
	uint32_t track;     /* of the call, MODEL_NONE: not in the trace */
	uint32_t row;       /* of the call */
	uint32_t operation; /* row of the operator, or range, around it, MODEL_NONE: none */
};

struct workless {      /* calls that have a correlation, but no work */
	uint32_t name; /* string */
	uint64_t count;
};

struct launches {
	struct storage *storage; /* the model's */
	uint32_t track_count;
	struct launch **by_track;  /* by row; NULL: no track of a device */
	uint64_t work_count;       /* kernels, copies, fills */
	uint64_t unlaunched;       /* of these: without a launch */
	uint64_t out_of_order;     /* of these: that begin before their launch does */
	struct workless *workless; /* of processes whose devices worked; by name, launching or not */
	uint32_t workless_count, workless_capacity;
};

static inline bool span_is_device_work(uint8_t kind)
{
	return kind == SPAN_KERNEL || kind == SPAN_MEMCPY || kind == SPAN_MEMSET;
}

void launches_init(struct launches *launches, const struct model *model);
void launches_release(struct launches *launches); /* {0} is released */

/* NULL: no track of a device. Of other spans on such a track: no launch. */
static inline const struct launch *launches_of(const struct launches *launches, uint32_t track, uint32_t row)
{
	return track < launches->track_count && launches->by_track[track] ? &launches->by_track[track][row] : NULL;
}

#endif
