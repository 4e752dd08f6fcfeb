/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_reasons.h: why something was not measured, where the input is a trace of another profiler: what our recorder should have been
 * told is then no advice. Applied to every table of such a model, after its analysis.
 */
#ifndef ANALYSIS_TRACE_REASONS_H
#define ANALYSIS_TRACE_REASONS_H

#include "table/table.h"

void trace_reasons_apply(struct table *table);
/* The same of one reason. */
const char *trace_reason(const char *reason);

#endif
