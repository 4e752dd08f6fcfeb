/* SPDX-License-Identifier: Apache-2.0
 *
 * library.h: the recorder, as the Python extension calls it. libstepscope is opened at run time, because `stepscope
 * run` may bring another copy of it than the package, and a process must have only one.
 *
 *     if (!library_open(problem, sizeof(problem)))
 *             ...ImportError with problem...
 *     if (library_records(STEPSCOPE_ACTIVE_DETAIL))
 *             library.stepscope_emit_begin(symbol);
 *
 * To call another function, add a line to LIBRARY_FUNCTIONS.
 */
#ifndef AGENTS_PYTHON_LIBRARY_H
#define AGENTS_PYTHON_LIBRARY_H

#include "agents/torch/agent.h"
#include "recorder/emit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stepscope/stepscope.h>

#define LIBRARY_FUNCTIONS(F)                                                                                           \
	F(stepscope_init)                                                                                              \
	F(stepscope_error)                                                                                             \
	F(stepscope_shutdown)                                                                                          \
	F(stepscope_flush)                                                                                             \
	F(stepscope_session_number)                                                                                    \
	F(stepscope_step_abandon)                                                                                      \
	F(stepscope_window_begin)                                                                                      \
	F(stepscope_window_end)                                                                                        \
	F(stepscope_run_directory)                                                                                     \
	F(stepscope_name)                                                                                              \
	F(stepscope_emit_begin)                                                                                        \
	F(stepscope_emit_end)                                                                                          \
	F(stepscope_emit_phase_begin)                                                                                  \
	F(stepscope_emit_phase_end)                                                                                    \
	F(stepscope_emit_micro_batch_begin)                                                                            \
	F(stepscope_emit_step_begin)                                                                                   \
	F(stepscope_emit_step_end)                                                                                     \
	F(stepscope_emit_step_count)                                                                                   \
	F(stepscope_emit_value)                                                                                        \
	F(stepscope_emit_mark)                                                                                         \
	F(stepscope_emit_metadata)                                                                                     \
	F(stepscope_emit_thread_name)                                                                                  \
	F(stepscope_emit_alloc)                                                                                        \
	F(stepscope_emit_free)                                                                                         \
	F(stepscope_read_use)                                                                                          \
	F(stepscope_torch_find)                                                                                        \
	F(stepscope_torch_want_lean)                                                                                   \
	F(stepscope_torch_probe_begin)                                                                                 \
	F(stepscope_torch_probe_tensor)                                                                                \
	F(stepscope_torch_probe_value)                                                                                 \
	F(stepscope_torch_probe_inputs)                                                                                \
	F(stepscope_torch_probe_solve)                                                                                 \
	F(stepscope_torch_probe_check)                                                                                 \
	F(stepscope_torch_probe_end)                                                                                   \
	F(stepscope_torch_settled)                                                                                     \
	F(stepscope_torch_start)                                                                                       \
	F(stepscope_torch_want_inputs)                                                                                 \
	F(stepscope_torch_lines_find)                                                                                  \
	F(stepscope_torch_lines_check)                                                                                 \
	F(stepscope_torch_lines_stop)                                                                                  \
	F(stepscope_torch_want_lines)                                                                                  \
	F(stepscope_torch_stop)                                                                                        \
	F(stepscope_torch_follow)                                                                                      \
	F(stepscope_torch_unfollow)                                                                                    \
	F(stepscope_torch_optimizer)                                                                                   \
	F(stepscope_torch_compiled)                                                                                    \
	F(stepscope_torch_optimizer_done)                                                                              \
	F(stepscope_torch_optimizer_made)                                                                              \
	F(stepscope_torch_rank)                                                                                        \
	F(stepscope_torch_module)                                                                                      \
	F(stepscope_torch_range)                                                                                       \
	F(stepscope_torch_profiler_step)                                                                               \
	F(stepscope_torch_call_range)                                                                                  \
	F(stepscope_torch_call_backward)                                                                               \
	F(stepscope_torch_call_scaler)                                                                                 \
	F(stepscope_torch_call_module)                                                                                 \
	F(stepscope_torch_in_call)                                                                                     \
	F(stepscope_torch_wants_module)                                                                                \
	F(stepscope_torch_sees_calls)                                                                                  \
	F(stepscope_torch_range_end)                                                                                   \
	F(stepscope_torch_range_end_with)                                                                              \
	F(stepscope_torch_loader_fact)                                                                                 \
	F(stepscope_torch_range_end_elsewhere)                                                                         \
	F(stepscope_torch_loader)                                                                                      \
	F(stepscope_torch_loader_start)                                                                                \
	F(stepscope_torch_loader_end)                                                                                  \
	F(stepscope_torch_owners)                                                                                      \
	F(stepscope_torch_wants_owners)                                                                                \
	F(stepscope_torch_rotations)                                                                                   \
	F(stepscope_torch_may_want_owners)                                                                             \
	F(stepscope_torch_watch_backward)                                                                              \
	F(stepscope_torch_make_records)                                                                                \
	F(stepscope_torch_too_deep)                                                                                    \
	F(stepscope_torch_problem)

struct torch_library {
	const unsigned *active; /* stepscope_active */
	char path[4096];
#define LIBRARY_MEMBER(name) __typeof__(name) *name;
	LIBRARY_FUNCTIONS(LIBRARY_MEMBER)
#undef LIBRARY_MEMBER
};
extern struct torch_library library;

/* Opens the library once per process. It prefers the copy that is loaded already, then the one that STEPSCOPE_LIBRARY
 * names, the one beside this extension (built or installed), and the system's. Returns false if none is usable, with
 * the reason in `problem`. */
bool library_open(char *problem, size_t problem_bytes);

/* Returns true if any of these bits of stepscope_active is set. */
static inline bool library_records(unsigned bits)
{
	return __builtin_expect(__atomic_load_n(library.active, __ATOMIC_RELAXED) & bits, 0);
}

#endif
