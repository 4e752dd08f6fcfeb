/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_build.h: private to compare/: comparison_init() makes the tables one after the other, each in its own file.
 */
#ifndef COMPARE_COMPARISON_BUILD_H
#define COMPARE_COMPARISON_BUILD_H

#include "compare/comparison.h"
#include "compare/estimate.h"
#include "compare/step_level.h"

enum side {
	SIDE_BASE,
	SIDE_NEW,
	SIDES
};

struct compared_sides {
	const struct compared_run *runs[SIDES];
	size_t count[SIDES];
	const struct comparison_options *options;
	struct step_level *levels[SIDES]; /* of the steps, like runs; only where `has_level` */
	bool *has_level[SIDES];
	bool is_running; /* step_level_is_running() of all runs: the fastest steps are without waits for a processor */
	/* by comparison_add_differences() */
	bool is_comparable;       /* nothing that matters is different */
	bool is_same_work;        /* a step has the same to do */
	bool wants_amount;        /* ... and would be compared if it were known how much */
	enum step_amount amount;  /* what the first metric is per */
	const char *work_changes; /* in words; NULL: none. Lives in comparison.differences */
	/* by comparison_add_metrics() */
	bool is_fastest;       /* the first metric is of the fastest steps */
	struct estimate first; /* of the first metric */
	bool has_first;
};

void comparison_add_runs(struct table *table, struct compared_sides *sides);
void comparison_add_differences(struct table *table, struct compared_sides *sides);
void comparison_add_metrics(struct table *table, struct compared_sides *sides);
void comparison_add_contributions(struct table *table, struct compared_sides *sides, bool is_whole);
void comparison_add_functions(struct table *table, struct compared_sides *sides);
void comparison_add_verdict(struct comparison *comparison, struct compared_sides *sides);

#define SURE 0.05
#define LEAST_RUNS 4 /* on both sides together, to know the noise */

/* Chance of two means that far apart when only noise from run to run makes them differ; of LEAST_RUNS or more. */
double outside_of_noise(double *const values[SIDES], const size_t count[SIDES]);

/* "+3.1 %" */
const char *percent_text(struct arena *arena, double ratio);

#endif
