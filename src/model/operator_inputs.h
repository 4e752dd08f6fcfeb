/* SPDX-License-Identifier: Apache-2.0
 *
 * operator_inputs.h: takes the text of an operator's inputs apart (span_chunk.inputs; its form is in docs/file-format.md).
 *
 *     struct operator_inputs inputs = operator_inputs_split(model_text(model, string));
 *     struct inputs_part part = {0};
 *     while (operator_inputs_next(&inputs.values, ';', &part))
 *             ...part.text, part.length: the value of the next input, "" when it has none
 */
#ifndef MODEL_OPERATOR_INPUTS_H
#define MODEL_OPERATOR_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inputs_part {
	const char *text; /* not terminated; NULL: this was not recorded */
	size_t length;
};

struct operator_inputs { /* a line each */
	struct inputs_part sizes, types, strides, values;
};

struct operator_inputs operator_inputs_split(const char *text);

/* The next part of a line, from part = {0} on: parts of types and values end at ';', those of sizes and strides at a ' ' outside of
 * brackets. False: no more; a line that was not recorded has none. */
bool operator_inputs_next(const struct inputs_part *line, char separator, struct inputs_part *part);

/* "[2, 3, 5]" to numbers; -1: it is something else, or more than `most`. */
int operator_inputs_numbers(const struct inputs_part *part, int64_t *numbers, int most);

#endif
