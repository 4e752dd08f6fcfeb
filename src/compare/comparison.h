/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison.h: the differences between the runs of two sides, as tables that every writer can print:
 *
 *     verdict        one row: the answer, in words and numbers
 *     runs           one row per run: its steps, how noisy it was
 *     differences    facts that differ: hardware, software, the work per step; one row per fact
 *     metrics        one row per quantity: both sides, the change with its interval, the result, what would settle it
 *     explained_by   costs that a replay can remove: what each saved on both sides, and its part of the difference
 *     contributions  where the difference of a step comes from; the rows of one level sum to the whole
 *     memory         where the difference of the peak of memory comes from; the rows of one level sum to it
 *     telemetry      activity of GPUs, seen from outside: medians over the run
 *     functions      of sampled stacks, which have no steps: functions whose share of the samples changed
 *
 *     struct comparison comparison;
 *     comparison_init(&comparison, base, base_count, new, new_count, &options);
 *     enum compare_result result = comparison.metric_results[0].result;
 *     comparison_release(&comparison);
 *
 * The sides are read before (compare/compared_run.h); the tables keep nothing of them. Results
 * (compare/compare_result.h):
 *
 *     regression, improvement   the 95 % interval of the change excludes 0, and the change is at least `smallest`
 *     no difference             the 90 % interval is within +-`tolerance` (two tests at 5 %, one for either direction:
 *                               compare/estimate.h), or the change is certain and below `smallest`
 *     inconclusive              neither; METRIC_NEEDED_RUNS or _STEPS says what would settle it
 *     not comparable            the work per step differs and its amount is unknown, or operators were recorded on one
 *                               side only and their cost is not known well enough
 *     changed                   as a regression or improvement, for a metric that has no better direction
 *     not measured              on one side or both; METRIC_REASON says why
 *
 * The verdict is about the first row of `metrics`. If that row is not a regression, but a mean is, the verdict is
 * about the mean. Means are the mean step, the mean time from step to step, and tokens or samples per second if the
 * first row is per token or sample. The first row is tested at 95 % alone. The others share 95 % (Holm), so that many
 * quantities do not make one of them a regression by chance.
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
	double smallest;      /* smaller changes do not count */
	double tolerance;     /* "no difference" must exclude changes of this size */
	double assumed_noise; /* standard deviation from run to run, as a ratio, if there are no repeated runs */
	bool is_noise_kept;   /* assumed_noise was measured in `best_of` runs of the history */
	size_t best_of;       /* number of runs of which the base is the fastest; 0: it was not chosen for its speed */
};

enum comparison_verdict_column {
	COMPARISON_RESULT, /* of the first metric, or of a mean that is certainly worse; the others are in `metrics` */
	COMPARISON_SENTENCE, /* the answer in words */
	COMPARISON_METRIC,   /* METRIC_NAME of the metric that the answer is about */
	COMPARISON_RATIO,    /* change of that metric, new over base minus 1 */
	COMPARISON_LOW,      /* 95 % interval of the change */
	COMPARISON_HIGH,
	COMPARISON_IS_COMPARABLE, /* hardware, software and the work per step are not known to differ */
	COMPARISON_EXPLANATION,   /* the rows of `differences` that explain the change; missing: none does */
	COMPARISON_BY_CUT,        /* the largest parts of `explained_by`, in words; missing: a side has no replay */
	COMPARISON_PROMISED,      /* savings that the base promised, and what came; missing: none */
	COMPARISON_UNEXPLAINED,   /* ns per step of the difference that no cut explains */
	COMPARISON_CAUSE,         /* the largest of `contributions`, in words; missing: none stands out */
	COMPARISON_NEEDED,        /* what would settle the answer, in words; missing: it is settled */
	COMPARISON_DAMAGE,        /* damage of the inputs, run by run; missing: they are complete */
	COMPARISON_WORK,          /* why the work of a step is unknown; missing: it is known */
	COMPARISON_UNCHECKED, /* facts that could not be compared, because a side does not note them; missing: none */
	COMPARISON_NOISE,     /* the noise from run to run and its source, in words */
	COMPARISON_METHOD,    /* how the intervals were computed, in words */
	COMPARISON_BASE_RUNS,
	COMPARISON_NEW_RUNS,
	COMPARISON_SMALLEST,
	COMPARISON_TOLERANCE,
	COMPARISON_COLUMNS,
};

enum compared_run_column {
	RUNS_SIDE, /* "base" or "new" */
	RUNS_RUN,
	RUNS_CREATED, /* wall clock, text; missing: not in the input */
	RUNS_STEPS,   /* steps that are compared */
	RUNS_SKIPPED, /* at the start, as warm-up */
	RUNS_MEDIAN,  /* ns */
	RUNS_ERROR,   /* standard error of the median from the run's own steps, as a ratio */
	RUNS_TREND,   /* change of the step time over the run that was removed, as a ratio; missing: there was none */
	RUNS_DAMAGE,  /* damage of the input, in words; missing: it is complete */
	RUNS_BLOCK,   /* mean length of the bootstrap's blocks, stretches of steps that depend on each other */
	RUNS_COLUMNS,
};

enum difference_column {
	DIFFERENCE_KIND, /* "work", "hardware", "software", "settings", "recording", "clock" */
	DIFFERENCE_FACT,
	DIFFERENCE_BASE,
	DIFFERENCE_NEW,
	DIFFERENCE_RATIO,   /* new over base, for numbers */
	DIFFERENCE_MATTERS, /* bool: it must be considered when step times are compared */
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
	METRIC_SAME_LOW, /* 90 % interval of the ratio: for "no difference" it is within the tolerance */
	METRIC_SAME_HIGH,
	METRIC_P, /* of no change; adjusted by Holm for all but the first row */
	METRIC_RESULT,
	/* per side, to tell a change of `tolerance` from none in 19 of 20 cases; missing: settled or unknown */
	METRIC_NEEDED_RUNS,
	METRIC_NEEDED_STEPS, /* per run */
	METRIC_REASON,       /* why METRIC_RESULT is so, in words */
	METRIC_COLUMNS,
};

enum contribution_column {  /* of `contributions` and `memory` */
	CONTRIBUTION_LEVEL, /* "phase", "operator", "memory category", ...: the rows of one level sum to the whole */
	CONTRIBUTION_NAME,
	CONTRIBUTION_BASE, /* ns per step; bytes at the peak */
	CONTRIBUTION_NEW,
	CONTRIBUTION_DELTA,
	CONTRIBUTION_RATIO,      /* share of the level's difference */
	CONTRIBUTION_BASE_CALLS, /* per step; for memory, allocations that were alive */
	CONTRIBUTION_NEW_CALLS,
	/* the change is not noise (95 %, Holm over the level); missing: the noise is unknown */
	CONTRIBUTION_IS_CERTAIN,
	CONTRIBUTION_LOW, /* 95 % interval of the change; missing if the noise is unknown */
	CONTRIBUTION_HIGH,
	CONTRIBUTION_NOTE, /* "renamed: a -> b", "only in new", ... */
	CONTRIBUTION_COLUMNS,
};

enum explained_column {
	EXPLAINED_CUT,
	EXPLAINED_PLACE,
	EXPLAINED_BASE, /* ns per step that the base saves without this cost alone */
	EXPLAINED_NEW,
	EXPLAINED_CHANGE, /* new minus base */
	EXPLAINED_LOW,    /* 95 % interval of the change */
	EXPLAINED_HIGH,
	EXPLAINED_PART,     /* of the difference of the step; parts and COMPARISON_UNEXPLAINED sum to it */
	EXPLAINED_PROMISED, /* the base saves this much without the cost, and the new side no longer has it */
	EXPLAINED_CAME,     /* how much shorter the step became by that */
	EXPLAINED_COLUMNS,
};

enum function_change_column {  /* shares are of all samples of a side with the same FUNCTIONS_WHAT */
	FUNCTIONS_SELF_CHANGE, /* new minus base; the rows of one FUNCTIONS_WHAT sum to 0 */
	FUNCTIONS_BASE_SELF_RATIO,
	FUNCTIONS_NEW_SELF_RATIO,
	FUNCTIONS_TOTAL_CHANGE, /* of samples with the function anywhere in the stack */
	FUNCTIONS_BASE_TOTAL_RATIO,
	FUNCTIONS_NEW_TOTAL_RATIO,
	FUNCTIONS_BASE_SELF, /* in units of FUNCTIONS_WHAT, mean over the runs */
	FUNCTIONS_NEW_SELF,
	FUNCTIONS_BASE_TOTAL,
	FUNCTIONS_NEW_TOTAL,
	/* the change of self is not noise (95 %, Holm over the rows); missing: the noise is unknown */
	FUNCTIONS_IS_CERTAIN,
	FUNCTIONS_NAME,
	FUNCTIONS_FILE, /* missing: the frame has no file */
	FUNCTIONS_WHAT, /* quantity that the samples count: "time", "bytes", "samples", ... */
	FUNCTIONS_NOTE, /* "only in the base", ... */
	FUNCTIONS_COLUMNS,
};

enum telemetry_change_column {
	TELEMETRY_CHANGE_OF, /* the GPU */
	TELEMETRY_CHANGE_QUANTITY,
	TELEMETRY_CHANGE_UNIT, /* of base, new, delta and the interval; missing: the file has no unit */
	TELEMETRY_CHANGE_BASE, /* median over the run, mean over the runs */
	TELEMETRY_CHANGE_NEW,
	TELEMETRY_CHANGE_DELTA,
	TELEMETRY_CHANGE_LOW, /* 95 % interval of the delta */
	TELEMETRY_CHANGE_HIGH,
	TELEMETRY_CHANGE_P, /* of no change, adjusted by Holm */
	TELEMETRY_CHANGE_RESULT,
	TELEMETRY_CHANGE_BASE_VALUES,
	TELEMETRY_CHANGE_NEW_VALUES,
	TELEMETRY_CHANGE_BLOCK,  /* length of stretches of values that depend on each other, the longest of any run */
	TELEMETRY_CHANGE_REASON, /* why the result is so, in words */
	TELEMETRY_CHANGE_COLUMNS,
};

/* The decision about a row of `metrics`. */
struct metric_result {
	enum compare_metric metric;
	enum table_unit unit; /* of base and new */
	enum compare_result result;
	enum result_reason reason;
	bool is_told_same; /* RESULT_SAME because of the 90 % interval, not because a certain change is small */
	bool has_sides, has_ratio, has_interval; /* which of the numbers below are known */
	double base, new;
	double ratio;                          /* new over base minus 1 */
	double low, high, same_low, same_high; /* its 95 % and 90 % intervals */
	int64_t needed_runs, needed_steps;     /* METRIC_NEEDED_RUNS and _STEPS; 0: missing */
};

#define EXPLAINED_PROFILER "profiler" /* EXPLAINED_CUT of the row of the profiler's own cost */

/* The difference of the replayed steps. */
struct comparison_cuts {
	const char *reason;          /* why it is unknown, in the arena of `explained_by`; NULL: it is known */
	bool is_either;              /* a side has a replay */
	double base_ns, new_ns;      /* replayed steps */
	double unexplained_ns;       /* part of the difference that no cut explains */
	double promised_ns, came_ns; /* of all rows with EXPLAINED_PROMISED together */
	int promised_count;
};

struct comparison {
	struct table verdict, runs, differences, metrics, explained_by, contributions, functions, memory, telemetry;
	struct comparison_cuts cuts;
	/* by row of the table, in the table's arena */
	const struct metric_result *metric_results;
	const enum compare_result *telemetry_results;
	const enum fact_kind *difference_kinds;
	struct verdict decided;
	bool is_whole;       /* no run has steps: contributions are of whole recordings */
	const char *failure; /* a run that did not complete, in words, in the arena of `verdict`; NULL: none is known */
	const char *diverged; /* name of a new run that reports a diverged loss, in that arena; NULL: none does */
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
