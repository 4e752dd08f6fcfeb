/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_table_json.h: the rows or the events of torch.profiler's table as JSON, for python/stepscope/profiler.py
 * (schema stepscope.torch/1).
 */
#ifndef OUTPUT_TEXT_TORCH_TABLE_JSON_H
#define OUTPUT_TEXT_TORCH_TABLE_JSON_H

#include "output/text/torch_table.h"

/* Writes one document: the rows, or if has_events every event. */
void torch_table_json(struct buffer *out, const struct torch_ops *ops, const struct torch_table *table,
                      bool has_events);

#endif
