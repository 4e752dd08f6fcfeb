/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_frames.h: stacks of Python.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_FRAMES_H
#define IMPORTERS_RECORDING_RECORDING_FRAMES_H

#include "importers/recording/recording.h"

/* Adds a frame from the text of a symbol of kind FRAME. Returns its index in the session's frames, and its name as a
 * string in *name. */
uint32_t recording_add_frame(struct recording *recording, const char *text, uint32_t length, uint32_t *name);
/* Sets the stack of a span for which BEGIN named that frame. 0: no frame; the span gets the stack of the span around
 * it, because one caller began both. */
void recording_set_stack(struct recording *recording, uint32_t track, uint32_t row, uint32_t frame);

#endif
