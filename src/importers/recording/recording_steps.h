/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_steps.h: the capture state of each step, and the time windows that a filter loads.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_STEPS_H
#define IMPORTERS_RECORDING_RECORDING_STEPS_H

#include "importers/recording/recording.h"

/* First pass: finds the captures, or under a filter the time windows to load. Returns STATUS_INPUT if no step has such
 * a number. */
void recording_find_captures(struct recording *recording);
enum status recording_find_windows(struct recording *recording, struct error *err) MUST_CHECK;
/* Like recording_find_windows(), for the window of a profiler in the program (filter->window). */
enum status recording_find_profiled(struct recording *recording, struct error *err) MUST_CHECK;
/* Fills in the capture state of each step, from the CAPTURE events. */
void recording_finish_steps(struct recording *recording);
void recording_add_to_step(struct model_step *step, bool is_tokens, uint64_t count);
void recording_note_capture(struct recorded_process *process, int64_t time_ns, const struct segment_event *event);

#endif
