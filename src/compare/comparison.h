/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison.h: what is different between the runs of two sides, as tables that every writer can print:
 *
 *     verdict        one row: the answer, in words and numbers
 *     runs           one row per run: what of it was used, how noisy it was
 *     differences    what was not the same: hardware, software, the work per step; one row per fact
 *     metrics        one row per quantity: both sides, the change with its interval, the result, what would settle it
 *     contributions  where the difference of a step comes from; the rows of one level sum to the whole
 *     memory         where the difference of the peak of memory comes from; the rows of one level sum to it
 *     telemetry      what GPUs did, seen from outside: medians over the run
 *     functions      of sampled stacks, which have no steps: which functions have another share of the samples
 *
 *     struct comparison comparison;
 *     comparison_init(&comparison, base, base_count, new, new_count, &options);
 *     enum compare_result result = comparison.metric_results[0].result;
 *     comparison_release(&comparison);
 *
 * The sides are read before (compare/compared_run.h); nothing is borrowed from them. Results (compare/compare_result.h):
 *
 *     regression, improvement   the 95 % interval of the change leaves out 0, and the change is at least `smallest`
 *     no difference             the 90 % interval lies within +-`tolerance` (two tests at 5 %, one for either direction:
 *                               compare/estimate.h), or the change is certain and below `smallest`
 *     inconclusive              neither; METRIC_NEEDED_RUNS or _STEPS says what would settle it
 *     not comparable            the work per step is not the same and nothing says how much of it there was
 *     changed                   as a regression or improvement, of what is neither better nor worse by itself
 *     not measured              on one side or both; METRIC_REASON says why
 *
 * The first row of `metrics` is the one that the verdict is about, unless the mean step, or the mean time from step to step, is a regression and the first row is
 * none: then it is about that. The first is tested at 95 % by itself; the others share 95 %
 * (Holm), so that looking at many quantities does not make one of them a regression by chance.
 */
#ifndef COMPARE_COMPARISON_H
#define COMPARE_COMPARISON_H

#include "compare/compare_metric.h"
#include "compare/compare_result.h"
#include "compare/compared_run.h"
#include "compare/result_reason.h"
#include "compare/verdict.h"
#include "table/table.h"

#define COMPARE_SMALLEST 0.01
#define COMPARE_TOLERANCE 0.03
#define COMPARE_ASSUMED_NOISE 0.01

struct comparison_options {
	double smallest;      /* changes below it are none */
	double tolerance;     /* what "no difference" must leave out */
	double assumed_noise; /* standard deviation from run to run, as a ratio, where no repeats tell it */
	bool is_noise_kept;   /* it is that of `best_of` earlier runs */
	size_t best_of;       /* the base is the fastest of so many runs; 0: it was not chosen for its speed */
};

enum comparison_verdict_column {
	COMPARISON_RESULT, /* of the first metric, or a mean that is certainly worse; what else changed is in `metrics` */
	COMPARISON_SENTENCE, /* the answer in words */
	COMPARISON_METRIC,   /* METRIC_NAME of the one it is about */
	COMPARISON_RATIO,    /* its change, new over base minus 1 */
	COMPARISON_LOW,      /* 95 % interval of the change */
	COMPARISON_HIGH,
	COMPARISON_IS_COMPARABLE, /* neither hardware, software nor the work per step are known to be different */
	COMPARISON_EXPLANATION,   /* what of `differences` explains the change; missing: nothing does */
	COMPARISON_CAUSE,         /* the largest of `contributions`, in words; missing: none stands out */
	COMPARISON_NEEDED,        /* what would settle it, in words; missing: it is settled */
	COMPARISON_DAMAGE,        /* what is missing from the inputs, run by run; missing: they are whole */
	COMPARISON_WORK,          /* why it is not known whether a step has the same to do; missing: it is */
	COMPARISON_UNCHECKED,     /* what could not be compared, since one side does not tell of it; missing: nothing */
	COMPARISON_NOISE,         /* where the noise from run to run is known from, in words */
	COMPARISON_METHOD,        /* how the intervals were computed, in words */
	COMPARISON_BASE_RUNS,
	COMPARISON_NEW_RUNS,
	COMPARISON_SMALLEST,
	COMPARISON_TOLERANCE,
	COMPARISON_COLUMNS,
};

enum compared_run_column {
	RUNS_SIDE, /* "base" or "new" */
	RUNS_RUN,
	RUNS_CREATED, /* wall clock, text; missing: the input has none */
	RUNS_STEPS,   /* used */
	RUNS_SKIPPED, /* at the begin, as warm-up */
	RUNS_MEDIAN,  /* ns */
	RUNS_ERROR,   /* standard error of it from its own steps, as a ratio */
	RUNS_TREND,   /* change of the step time over the run that was removed, as a ratio; missing: there was none */
	RUNS_DAMAGE,  /* what is missing from the input, in words; missing: it is whole */
	RUNS_BLOCK,   /* steps that depend on each other: length of the blocks of the bootstrap */
	RUNS_COLUMNS,
};

enum difference_column {
	DIFFERENCE_KIND, /* "work", "hardware", "software", "settings", "recording", "clock" */
	DIFFERENCE_FACT,
	DIFFERENCE_BASE,
	DIFFERENCE_NEW,
	DIFFERENCE_RATIO,   /* new over base, of numbers */
	DIFFERENCE_MATTERS, /* bool: step times cannot be compared without regard to it */
	DIFFERENCE_MEANING, /* in words */
	DIFFERENCE_COLUMNS,
};

enum metric_column {
	METRIC_NAME,   /* "step_time" */
	METRIC_TITLE,  /* "step time p50" */
	METRIC_UNIT,   /* "ns", "bytes", "ratio", "per_s", "count" or "none": of base, new and delta */
	METRIC_BETTER, /* "lower", "higher" or "neither" */
	METRIC_BASE,
	METRIC_NEW,
	METRIC_DELTA,
	METRIC_RATIO, /* delta / base */
	METRIC_LOW,   /* 95 % interval of the ratio */
	METRIC_HIGH,
	METRIC_SAME_LOW, /* 90 % interval of the ratio: what is "no difference" lies within the tolerance with it */
	METRIC_SAME_HIGH,
	METRIC_P, /* of no change at all; Holm's for all but the first row */
	METRIC_RESULT,
	METRIC_NEEDED_RUNS, /* a side, to tell a change of `tolerance` from none in 19 of 20 cases; missing: settled, or unknown */
	METRIC_NEEDED_STEPS, /* a run */
	METRIC_REASON,       /* of the result, in words */
	METRIC_COLUMNS,
};

enum contribution_column {  /* of `contributions` and `memory` */
	CONTRIBUTION_LEVEL, /* "phase", "operator", "memory category", ...: the rows of one level sum to the whole */
	CONTRIBUTION_NAME,
	CONTRIBUTION_BASE, /* ns of a step; bytes at the peak */
	CONTRIBUTION_NEW,
	CONTRIBUTION_DELTA,
	CONTRIBUTION_RATIO,      /* share of the step's difference */
	CONTRIBUTION_BASE_CALLS, /* of a step; of memory: allocations that were alive */
	CONTRIBUTION_NEW_CALLS,
	CONTRIBUTION_IS_CERTAIN, /* its change is no noise (95 %, Holm over the level); missing: the noise is not known */
	CONTRIBUTION_LOW,        /* 95 % interval of the change; missing as well */
	CONTRIBUTION_HIGH,
	CONTRIBUTION_NOTE, /* "renamed: a -> b", "only in new", ... */
	CONTRIBUTION_COLUMNS,
};

enum function_change_column {  /* shares are of all samples of a side that count the same */
	FUNCTIONS_SELF_CHANGE, /* new minus base; the rows of one FUNCTIONS_WHAT sum to 0 */
	FUNCTIONS_BASE_SELF_RATIO,
	FUNCTIONS_NEW_SELF_RATIO,
	FUNCTIONS_TOTAL_CHANGE, /* with what it calls */
	FUNCTIONS_BASE_TOTAL_RATIO,
	FUNCTIONS_NEW_TOTAL_RATIO,
	FUNCTIONS_BASE_SELF, /* as the samples count, mean over the runs */
	FUNCTIONS_NEW_SELF,
	FUNCTIONS_BASE_TOTAL,
	FUNCTIONS_NEW_TOTAL,
	FUNCTIONS_IS_CERTAIN, /* its change of self is no noise (95 %, Holm over the rows); missing: the noise is not known */
	FUNCTIONS_NAME,
	FUNCTIONS_FILE, /* missing: it has none */
	FUNCTIONS_WHAT, /* the samples count: "time", "bytes", "samples", ... */
	FUNCTIONS_NOTE, /* "only in the base", ... */
	FUNCTIONS_COLUMNS,
};

enum telemetry_change_column {
	TELEMETRY_CHANGE_OF, /* the GPU */
	TELEMETRY_CHANGE_QUANTITY,
	TELEMETRY_CHANGE_UNIT, /* of base, new, delta and the interval; missing: the file gives none */
	TELEMETRY_CHANGE_BASE, /* median over the run, mean over the runs */
	TELEMETRY_CHANGE_NEW,
	TELEMETRY_CHANGE_DELTA,
	TELEMETRY_CHANGE_LOW, /* 95 % interval of it */
	TELEMETRY_CHANGE_HIGH,
	TELEMETRY_CHANGE_P, /* of no change at all, Holm's */
	TELEMETRY_CHANGE_RESULT,
	TELEMETRY_CHANGE_BASE_VALUES,
	TELEMETRY_CHANGE_NEW_VALUES,
	TELEMETRY_CHANGE_BLOCK,  /* values that depend on each other, the most of any run */
	TELEMETRY_CHANGE_REASON, /* of the result, in words */
	TELEMETRY_CHANGE_COLUMNS,
};

/* What was decided about a row of `metrics`. */
struct metric_result {
	enum compare_metric metric;
	enum table_unit unit; /* of base and new */
	enum compare_result result;
	enum result_reason reason;
	bool is_told_same; /* RESULT_SAME because the 90 % interval says so; not because a certain change is small */
	bool has_sides, has_ratio, has_interval; /* of the numbers below */
	double base, new;
	double ratio;                          /* new over base minus 1 */
	double low, high, same_low, same_high; /* its 95 % and 90 % intervals */
	int64_t needed_runs, needed_steps;     /* METRIC_NEEDED_RUNS and _STEPS; 0: missing */
};

struct comparison {
	struct table verdict, runs, differences, metrics, contributions, functions, memory, telemetry;
	/* by row of the table, in its arena */
	const struct metric_result *metric_results;
	const enum compare_result *telemetry_results;
	const enum fact_kind *difference_kinds;
	struct verdict decided;
	bool is_whole; /* no run has steps: contributions are of whole recordings */
	const char
		*failure; /* a run that did not complete, in words, in the arena of `verdict`; NULL: none is known of */
	const char *diverged; /* a new run that says that its loss diverged, in that arena; NULL: none */
};

extern const struct comparison_options comparison_defaults;

/* Each side needs at least one run. options NULL: comparison_defaults. */
void comparison_init(struct comparison *comparison, const struct compared_run *base, int base_count,
                     const struct compared_run *new, int new_count, const struct comparison_options *options);
void comparison_release(struct comparison *comparison);

/* Return the row of a metric in `metrics`, by its value or by its name; -1 if it has none. */
int comparison_row(const struct comparison *comparison, enum compare_metric metric);
int comparison_metric(const struct comparison *comparison, const char *name);

/* Returns the first row of `differences` of this kind that matters; -1 if there is none. */
int comparison_difference(const struct comparison *comparison, enum fact_kind kind);

#endif
