/* SPDX-License-Identifier: Apache-2.0
 *
 * input_steps.h: the steps that tell of inputs, where others were recorded with operators but without their inputs. Tables that are split by inputs are of
 * these alone, with a factor of their own: what has no inputs there had none.
 */
#ifndef ANALYSIS_STEP_TIMES_INPUT_STEPS_H
#define ANALYSIS_STEP_TIMES_INPUT_STEPS_H

#include "analysis/step_times/step_times.h"

/* Have some of the measured steps inputs, and others none? */
bool input_steps_are_part(const struct step_times *times, const struct model *model);
/* `times`, or, where these are a part, `own` with them alone as measured ones. Keep `times` as long; release `own` in any case; initialise it with {0}. */
const struct step_times *input_steps_only(struct step_times *own, const struct step_times *times,
                                          const struct model *model);
void input_steps_release(struct step_times *own);

#endif
