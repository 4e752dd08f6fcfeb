/* SPDX-License-Identifier: Apache-2.0
 *
 * input_steps.h: the steps with recorded inputs, if other steps have operators without their inputs. Tables that are
 * split by inputs cover only these steps, with a separate factor: here an operator without inputs really has none.
 */
#ifndef ANALYSIS_STEP_TIMES_INPUT_STEPS_H
#define ANALYSIS_STEP_TIMES_INPUT_STEPS_H

#include "analysis/step_times/step_times.h"

/* Returns true if some of the measured steps have inputs and others do not. */
bool input_steps_are_part(const struct step_times *times, const struct model *model);
/* Returns `times` or, if only some of the steps have inputs, `own`, in which only these are measured. `times` must
 * live as long as the result. Initialise `own` with {0} and release it in any case. */
const struct step_times *input_steps_only(struct step_times *own, const struct step_times *times,
                                          const struct model *model);
void input_steps_release(struct step_times *own);

#endif
