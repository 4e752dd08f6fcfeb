/* SPDX-License-Identifier: Apache-2.0
 *
 * phase_sweep.h: sweeps the phases of tracks, innermost phase first, and gives their time to the steps and to the time
 * between steps.
 */
#ifndef ANALYSIS_STEP_TIMES_PHASE_SWEEP_H
#define ANALYSIS_STEP_TIMES_PHASE_SWEEP_H

#include "analysis/step_times/step_times.h"

/* Fills phase_ns of all steps and spans of `times`. Their durations and waits are known. */
void phase_sweep_steps(struct step_times *times, const struct model *model);

/* Fills phase_ns of the span from the phases of a track without steps, between first_ns and last_ns. */
void phase_sweep_track(const struct model *model, uint32_t track, struct step_span *span);

#endif
