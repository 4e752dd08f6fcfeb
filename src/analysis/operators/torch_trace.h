/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_trace.h: what torch.profiler makes of the events of a trace that it wrote itself. There spans may cross, because times are rounded
 * or Python's calls end late; torch then takes the one that begins later as no child, and gives memory to every event of any thread that
 * was open then.
 */
#ifndef ANALYSIS_OPERATORS_TORCH_TRACE_H
#define ANALYSIS_OPERATORS_TORCH_TRACE_H

#include "analysis/operators/torch_ops.h"

/* The model is of a trace, not of a recording of ours. */
bool torch_trace_is(const struct model *model);
/* The duration that the trace gave a span, also when it was cut to nest. */
int64_t torch_trace_dur_ns(const struct model *model, const struct span_view *span);
/* Parents by nothing but times, of each thread. Also puts the events in that order, so that parents come before their children. */
void torch_trace_find_parents(struct torch_ops *ops, const struct model *model);
/* Parents and, when wanted, bytes and lines of Python of all events. */
void torch_trace_arrange(struct torch_ops *ops, const struct model *model, int64_t base_ns,
                         const struct torch_ops_options *options);

#endif
