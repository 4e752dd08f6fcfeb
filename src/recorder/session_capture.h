/* SPDX-License-Identifier: Apache-2.0
 *
 * session_capture.h: selects the events that the session records at this moment. The schedule, the budget, the
 * selection of ranks and the windows of a profiler in the program are combined into stepscope_active, the flag that
 * every emission tests.
 */
#ifndef RECORDER_SESSION_CAPTURE_H
#define RECORDER_SESSION_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stepscope/format.h>
#include <stepscope/stepscope.h>

#define SESSION_ALL_BITS                                                                                               \
	(STEPSCOPE_ACTIVE_STEPS | STEPSCOPE_ACTIVE_DETAIL | STEPSCOPE_ACTIVE_SHAPES | STEPSCOPE_ACTIVE_MEMORY)

/* Sets stepscope_active. */
void session_set_active(unsigned bits);

/* The lock of steps; code that changes the step or the capture holds it. Returns false if the lock stayed taken for too
 * long, as it does for a signal handler that interrupted its holder. The caller then does nothing. */
bool session_lock_steps(void);
void session_unlock_steps(void);

/* Switches to `capture` and emits an event that says so. `is_first`: emits the event even if nothing changes. The
 * caller holds the lock of steps. */
void session_switch_capture(enum stepscope_capture capture, bool is_first);
/* Takes the lock and switches to the current capture again, which asks the agent for its bits, see emit_at_switch(). */
void session_apply_capture(void);
/* Tells the agent the bits to come, 0 at the end of the recording. Returns the bits that the agent adds. */
unsigned session_ask_agent(unsigned bits);

/* Chooses the bits that detail means in this process, from the options and the selection of ranks. */
void session_choose_detail(void);

/* Returns the capture as which the closing line counts a step that the schedule wants to capture as `asked`. */
enum stepscope_capture session_capture_of_step(enum stepscope_capture asked);
/* Returns true if such a step has the inputs of its operators. */
bool session_captures_inputs(enum stepscope_capture asked);

/* Start and end of a window of a profiler in the program, which records detail beside the schedule. `with`:
 * STEPSCOPE_ACTIVE_* bits beyond detail. Returns the window's number, or 0 if nothing is recorded. Windows may overlap:
 * while any is open, the bits of all windows are recorded. */
uint32_t session_window_begin(unsigned with);
void session_window_end(uint32_t number);

#endif
