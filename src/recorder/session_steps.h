/* SPDX-License-Identifier: Apache-2.0
 *
 * session_steps.h: the steps of the process: those that the program marks, and those that an agent counts for a program
 * that marks none. Each start and end of a step asks the schedule and the budget what to capture next.
 */
#ifndef RECORDER_SESSION_STEPS_H
#define RECORDER_SESSION_STEPS_H

#include <stdbool.h>
#include <stdint.h>

/* A step with the program's own number; the open one, if any, ends before it. */
void session_step_begin(int64_t number);
/* `is_abandoned`: the step does not count as a complete one, see stepscope_step_abandon(). */
void session_step_end(bool is_abandoned);

/* Returns true if the capture changes with the steps, so that the agent has to count them where the program marks none.
 */
bool session_wants_count(void);
/* `count` steps have ended, one after the other, that the program did not mark; see emit_count_steps(). */
void session_count_steps(unsigned count, const char *by);
/* The same where session_wants_count() is false: only the number is recorded. */
void session_note_steps(unsigned count);

#endif
