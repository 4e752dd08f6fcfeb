/* SPDX-License-Identifier: Apache-2.0
 *
 * key_numbers.h: the numbers of a run that its history shows, picked from the tables of its report. Nothing is computed here that a
 * table does not hold; what was not measured has the reason that its table gives.
 */
#ifndef STORE_KEY_NUMBERS_H
#define STORE_KEY_NUMBERS_H

#include "analysis/report.h"
#include "compare/compared_run.h"

/* Adds a column for each to a table without rows. */
void key_numbers_columns(struct table *table);

/* Initialises the table, one row with a column for each, and fills it. On failure nothing needs to be released. */
enum status key_numbers_pick(struct table *numbers, struct report *report, struct error *err) MUST_CHECK;

/* The same of a run that is no recording: what is known of it, the rest with a reason. */
void key_numbers_of_run(struct table *numbers, const struct compared_run *run);

/* What tells one recording from another, so that it is not kept twice; in the arena of the report. */
const char *key_numbers_identity(struct report *report);

/* The series a run belongs to unless its user says another: its program, of Python the script; in the arena of the report. */
const char *key_numbers_series(struct report *report);

#endif
