/* SPDX-License-Identifier: Apache-2.0
 *
 * stack_frames.h: texts that stand for frames in other profilers' files, as the frames of stacks: function, file and line.
 */
#ifndef IMPORTERS_STACKS_STACK_FRAMES_H
#define IMPORTERS_STACKS_STACK_FRAMES_H

#include "model/model.h"
#include "model/number_map.h"

/* A frame in the stack `parent` (0: none) by its text, a string of the model. Equal frames of a stack are one. Known are
 *     train.py(12): main      Kineto; with _ in place of blanks export_stacks()
 *     main (train.py:12)      py-spy, also without a line
 *     train.py:main:12        austin
 * and everything else is a function of no file. */
uint32_t stack_frame(struct model *model, struct number_map *frames, uint32_t parent, uint32_t name);
/* A file's name as a string of the model: that of a package's file, or of Python's own, in their folder, which profilers leave out. */
uint32_t stack_frame_file(struct model *model, const char *file, size_t length);

#endif
