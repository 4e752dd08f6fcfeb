/* SPDX-License-Identifier: Apache-2.0
 *
 * finding_cut.h: the cut that a row of a rule names, and the saving of its replay. Private to diagnosis/.
 */
#ifndef DIAGNOSIS_FINDING_CUT_H
#define DIAGNOSIS_FINDING_CUT_H

#include "diagnosis/diagnosis.h"

/* Returns the cut that the row of a rule's SELECT names; CUT_COUNT: none, or the run has no replay. */
enum replay_cut finding_cut_called(const struct diagnosis *diagnosis, const struct table *rows, int row);
/* Returns the cut of a finding; CUT_COUNT: none. */
enum replay_cut finding_cut_of(const struct table *findings, int row);
/* Sets the cut of a finding, its saving and the interval. A small saving makes the finding a hint. */
void finding_cut_set(struct diagnosis *diagnosis, int row, enum replay_cut number);
/* Returns the confidence of a finding whose rule gives none: high if most of the saving is sure. */
double finding_cut_confidence(const struct table *findings, int row);
void finding_cut_set_none(struct table *findings, int row, const char *reason);

#endif
