/* SPDX-License-Identifier: Apache-2.0
 *
 * inputs_text.h: inputs of operators as text.
 */
#ifndef AGENTS_TORCH_INPUTS_TEXT_H
#define AGENTS_TORCH_INPUTS_TEXT_H

#include "agents/torch/inputs_layout.h"

/* Writes the text. If it does not fit, its end, or everything but the sizes, is left out. left_out: bit k leaves out
 * value k. Returns the number of bytes. */
size_t inputs_write(const void *record, uint32_t left_out, char *text, size_t bytes);
/* Reads the significant bits of the values, in the order of the text. Returns their number, at most VALUES_APART. */
unsigned inputs_values(const void *record, uint64_t values[VALUES_APART]);

#endif
