/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_text.h: a comparison as text for people: the verdict first, then what it rests on.
 */
#ifndef OUTPUT_COMPARE_COMPARISON_TEXT_H
#define OUTPUT_COMPARE_COMPARISON_TEXT_H

#include "compare/comparison.h"
#include "output/text/text.h"

/* is_long: all rows of what the difference is made of. */
void comparison_text(struct buffer *out, const struct comparison *comparison, const struct table *limits, bool is_long,
                     const struct text_style *style);

/* A number of the table `metrics` in its unit: "412.3 ms", "31.2 GiB"; "-" when it was not measured. */
void comparison_value(struct buffer *out, const struct table *metrics, int row, int column);

#endif
