/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_json.h: a comparison as one JSON document, schema stepscope.compare/1.
 */
#ifndef OUTPUT_COMPARE_COMPARISON_JSON_H
#define OUTPUT_COMPARE_COMPARISON_JSON_H

#include "compare/gate.h"

void comparison_json(struct buffer *out, const struct comparison *comparison, const struct gate *gate);

#endif
