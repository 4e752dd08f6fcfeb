/* SPDX-License-Identifier: Apache-2.0
 *
 * inputs_text.h: inputs of operators as text.
 */
#ifndef AGENTS_TORCH_INPUTS_TEXT_H
#define AGENTS_TORCH_INPUTS_TEXT_H

#include "agents/torch/inputs_layout.h"

/* Writes the text, of which the end, or all but the sizes, is left out where it does not fit; left_out: bit k for the value k of those.
 * Returns how many bytes. */
size_t inputs_write(const void *record, uint32_t left_out, char *text, size_t bytes);
/* What counts of the values, in the order in which they are written. How many these are, at most VALUES_APART. */
unsigned inputs_values(const void *record, uint64_t values[VALUES_APART]);

#endif
