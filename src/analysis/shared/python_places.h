/* SPDX-License-Identifier: Apache-2.0
 *
 * python_places.h: frames of Python for people: which ones are the user's own, and how they are written.
 */
#ifndef ANALYSIS_SHARED_PYTHON_PLACES_H
#define ANALYSIS_SHARED_PYTHON_PLACES_H

#include "base/buffer.h"
#include "model/model.h"

/* The folder that the program was started in; NULL: not known. */
const char *python_folder(const struct model *model);
/* The file without that folder, and without the one that packages and Python's own library lie in: "torch/nn/modules/module.py"; part
 * of `file`. */
const char *python_short_file(const char *file, const char *folder);
/* "train.py(41): forward"; "(more frames)" for those that are not known. */
void python_frame_text(const struct model *model, const struct stack_node *frame, const char *folder,
                       struct buffer *out);
/* All of a stack, outermost first, with semicolons between; at most 4096 frames, the innermost. */
const char *python_stack_text(const struct model *model, uint32_t stack, struct arena *arena);

/* For each of model->stacks, the innermost frame in it that is the user's own; 0: there is none. To be freed. */
uint32_t *python_user_frames(const struct model *model);

#endif
