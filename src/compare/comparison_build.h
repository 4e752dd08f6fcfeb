/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_build.h: private to compare/: comparison_init() makes the tables one after the other, each in its own file.
 */
#ifndef COMPARE_COMPARISON_BUILD_H
#define COMPARE_COMPARISON_BUILD_H

#include "compare/comparison.h"
#include "compare/estimate.h"
#include "compare/step_level.h"

/* What operators cost a side that recorded them, if the steps of the other side are without. */
enum price_taken {
	PRICE_NONE, /* unknown, or the sides are alike */
	PRICE_OFF,  /* it was taken off the times */
	PRICE_IN,   /* it is in the times, because it is too small to matter */
};

struct taken_price {
	enum price_taken taken;
	double ratio; /* of a step. PRICE_OFF: the mean over the runs from which it was taken; PRICE_IN: more than it is */
	double doubt_ratio; /* PRICE_OFF: half its 95 % interval */
};

struct compared_sides {
	const struct compared_run *runs[SIDES];
	size_t count[SIDES];
	const struct comparison_options *options;
	struct step_level *levels[SIDES]; /* of the steps, like runs; only where `has_level` */
	bool *has_level[SIDES];
	/* by taken_prices_init() */
	bool is_unlike; /* operators were recorded in steps of one side only, and their cost is not known well enough */
	bool has_bound; /* ... but it is less than `bound_ratio` of a step */
	double bound_ratio;
	struct taken_price price[SIDES];
	double doubt;    /* of both prices: half an interval of the change, of logarithms */
	bool is_running; /* step_level_is_running() of all runs: the fastest steps are without waits for a processor */
	bool is_evened[STEP_AMOUNTS]; /* the median of a run lies in a gap: steps are evened out (compare/step_level.h) */
	bool is_cpu_evened;           /* ... their CPU times */
	/* by comparison_add_differences() */
	bool is_comparable;      /* nothing that matters is different */
	bool is_same_work;       /* a step has the same to do */
	bool wants_amount;       /* ... and would be compared if it were known how much */
	enum step_amount amount; /* what the first metric is per */
	bool is_work_unknown;    /* nothing on both sides says how much a step has to do */
	/* by kind of fact that could not be compared: the first that a side notes; NULL: it notes none, or all were compared */
	const struct compared_fact *unchecked[FACT_KINDS][SIDES];
	bool is_step_unchecked; /* a summary may mean something else by a step */
	/* by comparison_add_metrics() */
	bool is_memory;        /* nothing but memory is known of the runs: the first metric is its peak */
	bool is_fastest;       /* the first metric is of the fastest steps */
	struct estimate first; /* of the first metric */
	bool has_first;
	int deciding;            /* the row that the verdict is about: the first, or a mean that is certainly worse */
	struct estimate decided; /* of it */
};

void comparison_add_runs(struct table *table, struct compared_sides *sides);
void comparison_add_differences(struct comparison *comparison, struct compared_sides *sides);
void comparison_add_metrics(struct comparison *comparison, struct compared_sides *sides);
#define CONTRIBUTION_SHARE_COLUMN                                                                                                       \
	{                                                                                                                               \
		.name = "share_ratio", .title = "share", .type = TABLE_DOUBLE, .unit = UNIT_RATIO, .role = ROLE_SHARE,                  \
		.denominator = "sum of the level's differences",                                                                        \
		.definition =                                                                                                           \
			"part of the level's difference; above 1 or negative where rows go against it, not told where they cancel out " \
			"by more than half"                                                                                             \
	}
/* Rows of CONTRIBUTION_COLUMNS, none where a run does not have the level. */
void comparison_add_level(struct table *table, struct compared_sides *sides, const char *name);
void comparison_add_contributions(struct table *table, struct compared_sides *sides, bool is_whole);
void comparison_add_memory(struct table *table, struct compared_sides *sides);
void comparison_add_telemetry(struct comparison *comparison, struct compared_sides *sides);
void comparison_add_functions(struct table *table, struct compared_sides *sides);
void comparison_add_verdict(struct comparison *comparison, struct compared_sides *sides);

#define LEAST_RUNS 4 /* on both sides together, to know the noise */

#define TOO_FEW_RUNS "too few runs to know the noise"

/* LEAST_RUNS or more. */
bool has_repeats(const struct compared_sides *sides);

/* A number of each run whose noise only repeats tell (comparison_noise.c). */
struct run_values {
	double *of[SIDES]; /* in the arena */
	double outside; /* chance of such a change when only noise from run to run makes them differ; NAN: it is not known */
};

void run_values_init(struct run_values *values, const struct compared_sides *sides, struct arena *arena); /* zeros */
double run_values_mean(const struct run_values *values, const struct compared_sides *sides, int side);
double run_values_change(const struct run_values *values, const struct compared_sides *sides);
/* Interval of the change that is missed in the share `outside` of cases; of runs with has_repeats(). */
void run_values_interval(const struct run_values *values, const struct compared_sides *sides, double outside,
                         double *low, double *high);
/* Chance of such a change; of the same. */
double run_values_outside(const struct run_values *values, const struct compared_sides *sides);
/* Holm's, for the `outside` of `count` rows, `stride` bytes apart. */
void run_values_adjust(struct run_values *first, size_t stride, size_t count);
/* Both, of such rows, where there are repeats. */
void run_values_test(struct run_values *first, size_t stride, size_t count, const struct compared_sides *sides);
/* A column "certain". */
void run_values_set_certain(const struct run_values *values, struct table *table, int row, int column);

/* A change, in any unit. */
struct tested_change {
	double change, same_low, same_high; /* with its 90 % interval */
	double outside;                     /* p value of none */
};

/* RESULT_CHANGED, RESULT_SAME or RESULT_INCONCLUSIVE, by the rule of compare/comparison.h, with bounds of the change's unit. */
enum compare_result tested_result(const struct tested_change *tested, double smallest, double tolerance);

/* "+3.1 %" */
const char *percent_text(struct arena *arena, double ratio);
/* "-0.8 % to +1.9 %" */
const char *percent_range_text(struct arena *arena, double low, double high);

#endif
