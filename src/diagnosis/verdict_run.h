/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict_run.h: the part of the verdict that is about the whole run, besides the step.
 */
#ifndef DIAGNOSIS_VERDICT_RUN_H
#define DIAGNOSIS_VERDICT_RUN_H

#include "diagnosis/diagnosis.h"

/* Sets the run's parts. If a part outside of steps takes more than a fifth of the wall time, the sentence of the verdict
 * names the largest one, and what to do about it. Call it when the verdict has its sentence. Private to diagnosis/. */
void verdict_run_set(struct diagnosis *diagnosis);

#endif
