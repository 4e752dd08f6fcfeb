/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes.h: spans of a thread or stream that cross lie in several tracks of the same number, one behind the other. The first of these lanes
 * stands for all of them.
 */
#ifndef MODEL_LANES_H
#define MODEL_LANES_H

#include "model/model.h"

static inline uint32_t first_lane(const struct model *model, uint32_t number)
{
	const struct track *track = model->tracks[number];

	while (number && model->tracks[number - 1]->process == track->process &&
	       model->tracks[number - 1]->kind == track->kind && model->tracks[number - 1]->tid == track->tid &&
	       model->tracks[number - 1]->device == track->device)
		number--;
	return number;
}

#endif
