/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_build.h: private to compare/: comparison_init() fills the tables one after the other, each in its own
 * file.
 */
#ifndef COMPARE_COMPARISON_BUILD_H
#define COMPARE_COMPARISON_BUILD_H

#include "compare/comparison.h"
#include "compare/estimate.h"
#include "compare/step_level.h"

/* Cost of operators on a side that recorded them, if steps of the other side have none. */
enum price_taken {
	PRICE_NONE, /* unknown, or both sides recorded alike */
	PRICE_OFF,  /* the cost was subtracted from the times */
	PRICE_IN,   /* the cost is still in the times, because it is too small to matter */
};

struct taken_price {
	enum price_taken taken;
	double ratio; /* of a step. PRICE_OFF: mean over the runs from which it was subtracted; PRICE_IN: a bound */
	double doubt_ratio; /* PRICE_OFF: half its 95 % interval */
};

/* set by taken_prices_init(): */
struct side_prices {
	bool is_unlike; /* operators were recorded on one side only, and their cost is not known well enough */
	bool has_bound; /* ... but it is less than `bound_ratio` of a step */
	double bound_ratio;
	struct taken_price of[SIDES];
	double doubt; /* of both prices together: half an interval of the change, in logarithms */
};

/* How the times of steps are compared on both sides, set by comparison_init(): */
struct side_steps {
	bool is_running; /* step_level_is_running() for all runs: the fastest steps exclude waits for a CPU */
	bool is_evened[STEP_AMOUNTS]; /* the median of a run is in a gap: steps are evened out (compare/step_level.h) */
	bool is_cpu_evened;           /* ... and the same for their CPU times */
};

/* set by comparison_add_differences(): */
struct side_work {
	bool is_comparable;      /* nothing that matters differs */
	bool is_same;            /* a step has the same work on both sides */
	bool wants_amount;       /* the work differs, but steps could be compared if its amount were known */
	bool is_unknown;         /* no fact that both sides note says how much work a step has */
	bool is_step_unchecked;  /* the summary of one side may define a step differently */
	enum step_amount amount; /* the unit of work of the first metric */
	/* by kind of fact: if facts of this kind could not be compared, the first fact that a side notes; otherwise
	 * NULL */
	const struct compared_fact *unchecked[FACT_KINDS][SIDES];
};

/* set by comparison_add_metrics(): */
struct side_metrics {
	bool is_memory;        /* only memory is known of the runs: the first metric is the peak */
	bool is_fastest;       /* the first metric is of the fastest steps */
	struct estimate first; /* of the first metric */
	bool has_first;
	int deciding;            /* the row that the verdict is about: the first, or a mean that is certainly worse */
	struct estimate decided; /* of that row */
};

struct compared_sides {
	const struct compared_run *runs[SIDES];
	size_t count[SIDES];
	const struct comparison_options *options;
	struct step_level *levels[SIDES]; /* of the steps, indexed like `runs`; valid only if `has_level` */
	bool *has_level[SIDES];
	struct side_prices prices;
	struct side_steps steps;
	struct side_work work;
	struct side_metrics metrics;
};

void comparison_add_runs(struct table *table, struct compared_sides *sides);
void comparison_add_differences(struct comparison *comparison, struct compared_sides *sides);
void comparison_add_metrics(struct comparison *comparison, struct compared_sides *sides);
#define CONTRIBUTION_SHARE_COLUMN                                                                                                        \
	{                                                                                                                                \
		.name = "share_ratio", .title = "share", .type = TABLE_DOUBLE, .unit = UNIT_RATIO, .role = ROLE_SHARE,                   \
		.denominator = "sum of the level's differences",                                                                         \
		.definition =                                                                                                            \
			"share of the level's difference; above 1 or negative if rows offset each other, missing if they cancel out by " \
			"more than half"                                                                                                 \
	}
/* Adds rows of CONTRIBUTION_COLUMNS; adds no row if a run does not have the level. */
void comparison_add_level(struct table *table, struct compared_sides *sides, const char *name);
void comparison_add_contributions(struct table *table, struct compared_sides *sides, bool is_whole);
void comparison_add_memory(struct table *table, struct compared_sides *sides);
void comparison_add_telemetry(struct comparison *comparison, struct compared_sides *sides);
void comparison_add_functions(struct table *table, struct compared_sides *sides);
void comparison_add_verdict(struct comparison *comparison, struct compared_sides *sides);

#define LEAST_RUNS 4 /* on both sides together, to measure the noise */

#define TOO_FEW_RUNS "too few runs to know the noise"

/* Returns true for LEAST_RUNS or more runs. */
bool has_repeats(const struct compared_sides *sides);

/* One number per run. Only repeated runs tell its noise (comparison_noise.c). */
struct run_values {
	double *of[SIDES]; /* in the arena */
	double outside;    /* chance of such a change if only noise makes the runs differ; NAN: unknown */
};

void run_values_init(struct run_values *values, const struct compared_sides *sides, struct arena *arena); /* zeros */
double run_values_mean(const struct run_values *values, const struct compared_sides *sides, int side);
double run_values_change(const struct run_values *values, const struct compared_sides *sides);
/* Computes the interval that misses the change in the share `outside` of cases. Needs has_repeats(). */
void run_values_interval(const struct run_values *values, const struct compared_sides *sides, double outside,
                         double *low, double *high);
/* Returns the chance of such a change if there is none. Needs has_repeats(). */
double run_values_outside(const struct run_values *values, const struct compared_sides *sides);
/* Adjusts `outside` of `count` rows, `stride` bytes apart, by Holm's method. */
void run_values_adjust(struct run_values *first, size_t stride, size_t count);
/* Computes and adjusts `outside` of such rows if there are repeated runs. */
void run_values_test(struct run_values *first, size_t stride, size_t count, const struct compared_sides *sides);
/* Sets a column "certain": whether the change is not noise. */
void run_values_set_certain(const struct run_values *values, struct table *table, int row, int column);

/* A change, in any unit. */
struct tested_change {
	double change, same_low, same_high; /* the change with its 90 % interval */
	double outside;                     /* p value of no change */
};

/* Returns RESULT_CHANGED, RESULT_SAME or RESULT_INCONCLUSIVE by the rules of compare/comparison.h. The bounds have the
 * unit of the change. */
enum compare_result tested_result(const struct tested_change *tested, double smallest, double tolerance);

/* "+3.1 %" */
const char *percent_text(struct arena *arena, double ratio);
/* "-0.8 % to +1.9 %" */
const char *percent_range_text(struct arena *arena, double low, double high);

#endif
