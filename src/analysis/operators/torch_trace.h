/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_trace.h: the events of a trace that torch.profiler wrote, as torch itself arranges them. In such a trace spans
 * may cross, because times are rounded or calls of Python end late. Then torch does not take the one that starts later
 * as a child. It gives memory to every event, of any thread, that was open at that time.
 */
#ifndef ANALYSIS_OPERATORS_TORCH_TRACE_H
#define ANALYSIS_OPERATORS_TORCH_TRACE_H

#include "analysis/operators/torch_ops.h"

/* Returns true if the model is of a trace, not of a recording. */
bool torch_trace_is(const struct model *model);
/* Returns the duration of the span in the trace, even if the span was cut to nest. */
int64_t torch_trace_dur_ns(const struct model *model, const struct span_view *span);
/* Finds parents by times alone, thread by thread. Also sorts the events, so that parents come before their children. */
void torch_trace_find_parents(struct torch_ops *ops, const struct model *model);
/* Finds parents and, if wanted, bytes and lines of Python of all events. */
void torch_trace_arrange(struct torch_ops *ops, const struct model *model, int64_t base_ns,
                         const struct torch_ops_options *options);

#endif
