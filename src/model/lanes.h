/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes.h: spans of a thread or stream that cross are in several tracks with the same number and name, one after the
 * other. The first of these lanes stands for all of them.
 */
#ifndef MODEL_LANES_H
#define MODEL_LANES_H

#include "model/model.h"

/* Returns true if the track is of the same thread or stream as the track before it. */
static inline bool is_further_lane(const struct model *model, uint32_t number)
{
	const struct track *track = model->tracks[number], *before = number ? model->tracks[number - 1] : NULL;

	return before && before->process == track->process && before->kind == track->kind &&
	       before->tid == track->tid && before->device == track->device && before->name == track->name;
}

static inline uint32_t first_lane(const struct model *model, uint32_t number)
{
	while (is_further_lane(model, number))
		number--;
	return number;
}

#endif
