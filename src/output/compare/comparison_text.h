/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_text.h: a comparison as text for people: the verdict first, then its basis.
 */
#ifndef OUTPUT_COMPARE_COMPARISON_TEXT_H
#define OUTPUT_COMPARE_COMPARISON_TEXT_H

#include "compare/comparison.h"
#include "output/text/text.h"

/* is_long: lists all rows of contributions, functions and telemetry. */
void comparison_text(struct buffer *out, const struct comparison *comparison, const struct table *limits, bool is_long,
                     const struct text_style *style);

/* Writes a number of the table `metrics` in its unit: "412.3 ms", "31.2 GiB", or "-" if it is missing. */
void comparison_value(struct buffer *out, const struct table *metrics, int row, int column);

#endif
