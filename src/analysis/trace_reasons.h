/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_reasons.h: why something was not measured, where another tool wrote the input: what our recorder should have been told is then no
 * advice. Applied to every table of such a model, after its analysis. format: what the input is, the fact trace.format.
 */
#ifndef ANALYSIS_TRACE_REASONS_H
#define ANALYSIS_TRACE_REASONS_H

#include "table/table.h"

void trace_reasons_apply(struct table *table, const char *format);
/* The same of one reason. */
const char *trace_reason(const char *reason, const char *format);

#endif
