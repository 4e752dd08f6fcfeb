/* SPDX-License-Identifier: Apache-2.0
 *
 * stack_frames.h: converts texts that stand for frames in other profilers' files to frames of stacks: function, file
 * and line.
 */
#ifndef IMPORTERS_STACKS_STACK_FRAMES_H
#define IMPORTERS_STACKS_STACK_FRAMES_H

#include "model/model.h"
#include "model/number_map.h"

/* Returns the frame in the stack `parent` (0: none) for its text, a string of the model. Equal frames of a stack are
 * one. Known forms:
 *     train.py(12): main      Kineto; with _ in place of blanks export_stacks()
 *     main (train.py:12)      py-spy, also without a line
 *     train.py:main:12        austin
 * Any other text is a function without a file. */
uint32_t stack_frame(struct model *model, struct number_map *frames, uint32_t parent, uint32_t name);
/* Returns a file's name as a string of the model. Files of packages and of Python itself are put in a package folder,
 * which profilers leave out. */
uint32_t stack_frame_file(struct model *model, const char *file, size_t length);

#endif
