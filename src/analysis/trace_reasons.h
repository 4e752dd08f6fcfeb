/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_reasons.h: reasons for missing cells if another tool wrote the input, because advice on our recorder's options
 * does not help then. Applied to every table of such a model, after its analysis. format: the fact trace.format.
 */
#ifndef ANALYSIS_TRACE_REASONS_H
#define ANALYSIS_TRACE_REASONS_H

#include "table/table.h"

void trace_reasons_apply(struct table *table, const char *format);
/* Returns the replacement for one reason. */
const char *trace_reason(const char *reason, const char *format);

#endif
