/* SPDX-License-Identifier: Apache-2.0
 *
 * key_numbers.h: the numbers of a run that its history shows, taken from the tables of its report. Nothing is computed
 * beyond those tables; a missing number has the reason that its table gives.
 */
#ifndef STORE_KEY_NUMBERS_H
#define STORE_KEY_NUMBERS_H

#include "analysis/report.h"
#include "compare/compared_run.h"

/* Adds a column for each key number to a table without rows. */
void key_numbers_columns(struct table *table);

/* Initialises the table and fills one row with a column for each key number. On failure nothing needs to be
 * released. */
enum status key_numbers_pick(struct table *numbers, struct report *report, struct error *err) MUST_CHECK;

/* Fills the table for a run that is not a recording: the known numbers, and a reason for each missing one. */
void key_numbers_of_run(struct table *numbers, const struct compared_run *run);

/* Returns the identity of a recording, so that it is not kept twice. The text is in the arena of the report. */
const char *key_numbers_identity(struct report *report);

/* Returns the default series of a run: the name of its program, or of its script for Python. The text is in the arena
 * of the report. */
const char *key_numbers_series(struct report *report);

#endif
