/* SPDX-License-Identifier: Apache-2.0
 *
 * savings.h: what all findings save together.
 */
#ifndef DIAGNOSIS_SAVINGS_H
#define DIAGNOSIS_SAVINGS_H

#include "diagnosis/diagnosis.h"

/* What all findings save together, each time counted once, and in `findings` which may be about the same time; false: none saves time.
 * Private to diagnosis/. */
bool diagnosis_savings(struct table *findings, double step_ns, double *together_ns);

#endif
