/* SPDX-License-Identifier: Apache-2.0
 *
 * profiler_cost.h: the cost of the profiler that wrote the trace, in units that the trace carries. Between two begins of
 * nested rows without a call between lies at least the profiler's work for one begin, and between two ends that for one
 * end. The unit of a thread is the sum of both, at their 10th percentile. Coefficients, and how they were measured:
 * docs/what-if.md.
 */
#ifndef REPLAY_PROFILER_COST_H
#define REPLAY_PROFILER_COST_H

#include "replay/plan.h"

/* Sets unit_ns of all threads. */
void profiler_cost_measure(struct replay_graph *graph);
/* Removes the profiler's cost, times `factor`. Apply it after all other cuts: it applies to what they leave. */
void profiler_cost_remove(struct replay_plan *plan, double factor);

#endif
