/* SPDX-License-Identifier: Apache-2.0
 *
 * session_capture.h: what the session records at this moment. The schedule, the budget, the selection of ranks and the
 * windows of a profiler in the program decide that together; this file combines them into stepscope_active, the flag
 * that every emission tests.
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

/* The lock of steps: whoever changes the step or the capture holds it. False: it stayed taken for too long, as it does
 * for a signal handler that interrupted its holder; then the caller does nothing. */
bool session_lock_steps(void);
void session_unlock_steps(void);

/* Under the lock of steps: records what `capture` means from here on, with an event that says so. `is_first`: the event
 * is emitted even when nothing changes. */
void session_switch_capture(enum stepscope_capture capture, bool is_first);
/* Takes the lock and switches to the same capture again: asks the agent for its bits, see emit_at_switch(). */
void session_apply_capture(void);
/* Tells the agent which bits come, 0 at the end of the recording, and returns the bits that it adds. */
unsigned session_ask_agent(unsigned bits);

/* Which bits detail means in this process: by the options and the selection of ranks. */
void session_choose_detail(void);

/* What the closing line counts a step as that the schedule wants to capture as `asked`. */
enum stepscope_capture session_capture_of_step(enum stepscope_capture asked);
/* Returns true if such a step has the inputs of its operators. */
bool session_captures_inputs(enum stepscope_capture asked);

/* A stretch that a profiler in the program wants, beside the schedule; `with`: STEPSCOPE_ACTIVE_* bits beyond detail.
 * Returns its number, or 0 when nothing is recorded. Windows may overlap: while any is open, everything is recorded
 * that one of them wants. */
uint32_t session_window_begin(unsigned with);
void session_window_end(uint32_t number);

#endif
