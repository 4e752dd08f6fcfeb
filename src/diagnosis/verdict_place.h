/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict_place.h: the rank that a verdict is of. Private to diagnosis/.
 *
 *     place = verdict_rank_place(findings, "straggler-bound", ranks); // "rank 1, in data"
 */
#ifndef DIAGNOSIS_VERDICT_PLACE_H
#define DIAGNOSIS_VERDICT_PLACE_H

#include "table/table.h"

/* Returns the place of the finding that saves most of those with this verdict (NULL: none). NULL: its place names no rank,
 * or the run has only one. ranks: the table. */
const char *verdict_rank_place(const struct table *findings, const char *verdict, const struct table *ranks);

#endif
