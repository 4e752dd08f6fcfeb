/* SPDX-License-Identifier: Apache-2.0
 *
 * report_metrics.h: `stepscope report` for a metrics.json of rlhf-canary. The file has no events, so the report has
 * only the file's own numbers, as text or as one JSON document.
 */
#ifndef OUTPUT_TEXT_REPORT_METRICS_H
#define OUTPUT_TEXT_REPORT_METRICS_H

#include "base/buffer.h"
#include "base/error.h"
#include "output/text/text.h"

#include <stdbool.h>

enum status report_metrics_write(struct buffer *out, const char *path, const struct text_style *style, bool is_json,
                                 bool is_explained, struct error *err) MUST_CHECK;

#endif
