/* SPDX-License-Identifier: Apache-2.0
 *
 * session_steps.h: the steps of the process: those that the program marks, or those that an agent counts if the program
 * marks none. Each start and end of a step asks the schedule and the budget what to capture next.
 */
#ifndef RECORDER_SESSION_STEPS_H
#define RECORDER_SESSION_STEPS_H

#include <stdbool.h>
#include <stdint.h>

/* Begins a step with the program's number. If a step is open, it ends first. */
void session_step_begin(int64_t number);
/* Ends the open step. `is_abandoned`: it does not count as complete, see stepscope_step_abandon(). */
void session_step_end(bool is_abandoned);

/* Returns true if the capture changes with the steps, so that the agent must count them if the program marks none. */
bool session_wants_count(void);
/* Notes that `count` steps, which the program did not mark, have ended one after the other; see emit_count_steps(). */
void session_count_steps(unsigned count, const char *by);
/* Like session_count_steps(), if session_wants_count() is false: only the number is recorded. */
void session_note_steps(unsigned count);

#endif
