/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_frames.h: calls of Python functions, which a trace has as spans, as the stacks of what runs in them.
 */
#ifndef IMPORTERS_KINETO_FRAMES_H
#define IMPORTERS_KINETO_FRAMES_H

#include "model/model.h"
#include "model/number_map.h"

/* The frame of a call named "train.py(12): main" in the stack `parent` (0: none). Equal frames are one. */
uint32_t kineto_frame(struct model *model, struct number_map *frames, uint32_t parent, uint32_t name);

#endif
