/* SPDX-License-Identifier: Apache-2.0
 *
 * compared_pair.h: runs made by hand, with steps of nearly one length, and comparisons of two of them.
 *
 *     struct pair pair;
 *
 *     make_run(&pair.base, 10, 0);
 *     make_run(&pair.new, 11, 0);
 *     compare(&pair);
 *     assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "regression");
 *     release(&pair);
 */
#ifndef UNIT_COMPARED_PAIR_H
#define UNIT_COMPARED_PAIR_H

#include "compare/comparison.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define STEPS 50

struct pair {
	struct compared_run base, new;
	struct comparison comparison;
};

/* Makes a run of STEPS steps of `ms`, each a little different. `tokens` is 0 if steps do not count them. compared_run_release() releases
 * the run. */
void make_run(struct compared_run *run, double ms, double tokens);

/* Sets the mean step time of a run to that of its steps as they are now. */
void set_mean(struct compared_run *run);

/* Adds a row of `ms` per step to this level, with one call per step. */
void add_part(struct compared_run *run, const char *level, const char *name, const char *family, double ms);

/* Compares the two runs; release() releases them and the comparison. */
void compare(struct pair *pair);
void release(struct pair *pair);

/* Returns the text in this column of the verdict; NULL if it has none. */
const char *verdict_text(const struct pair *pair, int column);

/* Returns the result of the metric. */
const char *result_of(const struct pair *pair, const char *metric);

#endif
