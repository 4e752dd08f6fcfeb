/* SPDX-License-Identifier: Apache-2.0
 *
 * analyses.h: the list of analyses, in the order in which reports print their tables. An analysis is a line here, its
 * file, and its line in meson.build.
 */
#ifndef ANALYSIS_ANALYSES_H
#define ANALYSIS_ANALYSES_H

#define ANALYSES(X)                                                                                                    \
	X(run)                                                                                                         \
	X(run_time)                                                                                                    \
	X(step_time)                                                                                                   \
	X(phases)                                                                                                      \
	X(between_steps)                                                                                               \
	X(between_ranges)                                                                                              \
	X(steps)                                                                                                       \
	X(what_if)                                                                                                     \
	X(host_stretches)                                                                                              \
	X(step_breakdown)                                                                                              \
	X(step_parts)                                                                                                  \
	X(critical_path)                                                                                               \
	X(critical_steps)                                                                                              \
	X(device_busy)                                                                                                 \
	X(device_steps)                                                                                                \
	X(device_gaps)                                                                                                 \
	X(ops)                                                                                                         \
	X(mfu)                                                                                                         \
	X(kernels)                                                                                                     \
	X(copies)                                                                                                      \
	X(copy_waits)                                                                                                  \
	X(sync_waits)                                                                                                  \
	X(launches)                                                                                                    \
	X(queue_depth)                                                                                                 \
	X(runtime_calls)                                                                                               \
	X(communication)                                                                                               \
	X(modules)                                                                                                     \
	X(top_modules)                                                                                                 \
	X(lines)                                                                                                       \
	X(stacks)                                                                                                      \
	X(functions)                                                                                                   \
	X(sampled_stacks)                                                                                              \
	X(sampled_threads)                                                                                             \
	X(memory)                                                                                                      \
	X(memory_totals)                                                                                               \
	X(memory_peak)                                                                                                 \
	X(memory_modules)                                                                                              \
	X(memory_lines)                                                                                                \
	X(memory_largest)                                                                                              \
	X(memory_segments)                                                                                             \
	X(memory_failures)                                                                                             \
	X(out_of_memory)                                                                                               \
	X(memory_steps)                                                                                                \
	X(memory_growth)                                                                                               \
	X(operator_patterns)                                                                                           \
	X(data_loader)                                                                                                 \
	X(host_waits)                                                                                                  \
	X(collectives)                                                                                                 \
	X(ranks)                                                                                                       \
	X(rank_phases)                                                                                                 \
	X(rank_collectives)                                                                                            \
	X(collective_times)                                                                                            \
	X(processes)                                                                                                   \
	X(metrics)                                                                                                     \
	X(counters)                                                                                                    \
	X(telemetry)                                                                                                   \
	X(marks)                                                                                                       \
	X(threads)                                                                                                     \
	X(ledger)                                                                                                      \
	X(cost)                                                                                                        \
	X(facts)

#define ANALYSES_ONE(name) +1
enum {
	ANALYSIS_COUNT = 0 ANALYSES(ANALYSES_ONE)
};

#endif
