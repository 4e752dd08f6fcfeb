/* SPDX-License-Identifier: Apache-2.0
 *
 * fit_phases.h: phases among the ranges of a trace.
 */
#ifndef STEPS_FIT_PHASES_H
#define STEPS_FIT_PHASES_H

#include "steps/infer_steps.h"

/* Phases in pieces that nest with the ranges, and with the steps whose bounds are given, in order. One that a range begins or ends in the
 * middle of takes in the whole range, unless another phase or step is in that, too. Steps are left out. By start. */
void fit_phases(struct inference *phases, const struct train_range *ranges, uint32_t range_count, const int64_t *bounds,
                uint32_t bound_count);

#endif
