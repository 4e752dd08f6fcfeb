/* SPDX-License-Identifier: Apache-2.0
 *
 * python_places.h: Python frames for display: which frames are the user's own, and their text.
 */
#ifndef ANALYSIS_SHARED_PYTHON_PLACES_H
#define ANALYSIS_SHARED_PYTHON_PLACES_H

#include "base/buffer.h"
#include "model/model.h"

/* Returns the folder that the program was started in; NULL: unknown. */
const char *python_folder(const struct model *model);
/* Returns the part of `file` after that folder, or after the folder of packages or of Python's own library:
 * "torch/nn/modules/module.py". */
const char *python_short_file(const char *file, const char *folder);
/* Appends "train.py(41): forward", or "(more frames)" for an unknown frame. */
void python_frame_text(const struct model *model, const struct stack_node *frame, const char *folder,
                       struct buffer *out);
/* Returns the frames of a stack, outermost first, separated by semicolons: at most the 4096 innermost ones. */
const char *python_stack_text(const struct model *model, uint32_t stack, struct arena *arena);

/* Returns, for each of model->stacks, its innermost frame of the user's own code; 0: there is none. The caller frees
 * it. */
uint32_t *python_user_frames(const struct model *model);

#endif
