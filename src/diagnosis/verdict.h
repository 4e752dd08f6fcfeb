/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict.h: the verdict of a diagnosis.
 */
#ifndef DIAGNOSIS_VERDICT_H
#define DIAGNOSIS_VERDICT_H

#include "diagnosis/diagnosis.h"

/* Fills `verdict` from the findings and checks; step_ns: the mean step, 0 when it is not known; whole_ns: what savings
 * are shares of; start_up, whole: what was left out.
 * Private to diagnosis/. */
void diagnosis_decide(struct diagnosis *diagnosis, struct report *report, const struct rule_set *rules, double step_ns,
                      double whole_ns, const struct start_up *start_up, const struct whole_steps *whole);

#endif
