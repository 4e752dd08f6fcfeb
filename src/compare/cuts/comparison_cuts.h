/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_cuts.h: the table `explained_by` of a comparison. Private to compare/.
 */
#ifndef COMPARE_CUTS_COMPARISON_CUTS_H
#define COMPARE_CUTS_COMPARISON_CUTS_H

#include "compare/comparison_build.h"

/* Fills the table and comparison->cuts from the replays of all runs. */
void comparison_add_cuts(struct comparison *comparison, const struct compared_sides *sides);

#endif
