/* SPDX-License-Identifier: Apache-2.0
 *
 * operator_inputs.h: splits the text of an operator's inputs (span_chunk.inputs; docs/file-format.md describes its
 * form).
 *
 *     struct operator_inputs inputs = operator_inputs_split(model_text(model, string));
 *     struct inputs_part part = {0};
 *     while (operator_inputs_next(&inputs.values, ';', &part))
 *             ...part.text, part.length: the value of the next input, "" if it has no value
 */
#ifndef MODEL_OPERATOR_INPUTS_H
#define MODEL_OPERATOR_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inputs_part {
	const char *text; /* not terminated; NULL: not recorded */
	size_t length;
};

struct operator_inputs { /* one line each */
	struct inputs_part sizes, types, strides, values;
};

struct operator_inputs operator_inputs_split(const char *text);

/* Moves to the next part of a line; start with part = {0}. Parts of types and values end at ';', those of sizes and
 * strides at a ' ' outside brackets. Returns false after the last part, or if the line was not recorded. */
bool operator_inputs_next(const struct inputs_part *line, char separator, struct inputs_part *part);

/* Converts "[2, 3, 5]" to numbers and returns their count. Returns -1 if the text has another form or more than `most`
 * numbers. */
int operator_inputs_numbers(const struct inputs_part *part, int64_t *numbers, int most);

#endif
