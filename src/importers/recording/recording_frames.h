/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_frames.h: stacks of Python.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_FRAMES_H
#define IMPORTERS_RECORDING_RECORDING_FRAMES_H

#include "importers/recording/recording.h"

/* The text of a symbol of kind FRAME; its index in the session's frames, and the name as a string in *name. */
uint32_t recording_add_frame(struct recording *recording, const char *text, uint32_t length, uint32_t *name);
/* The stack of a span whose BEGIN named that frame; 0: none, it was begun by what began the span around it. */
void recording_set_stack(struct recording *recording, uint32_t track, uint32_t row, uint32_t frame);

#endif
