/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_steps.h: what was captured in each step, and the stretches of time that a filter loads.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_STEPS_H
#define IMPORTERS_RECORDING_RECORDING_STEPS_H

#include "importers/recording/recording.h"

/* First pass under a filter: which stretches of time to load. STATUS_INPUT when no step has such a number. */
void recording_find_captures(struct recording *recording);
enum status recording_find_windows(struct recording *recording, struct error *err) MUST_CHECK;
/* The same for the window of a profiler in the program (filter->window). */
enum status recording_find_profiled(struct recording *recording, struct error *err) MUST_CHECK;
/* What was captured in each step, from the CAPTURE events. */
void recording_finish_steps(struct recording *recording);
void recording_add_to_step(struct model_step *step, bool is_tokens, uint64_t count);
void recording_note_capture(struct recorded_process *process, int64_t time_ns, const struct segment_event *event);

#endif
