/* SPDX-License-Identifier: Apache-2.0
 *
 * limits.h: how much worse than its baseline a run may be, and whether it is. The keys and tiers are those of
 * rlhf-canary's threshold files, so that such a file works unchanged. docs/commands/compare.md lists the differences.
 *
 *     struct limits limits;
 *     limits_init(&limits, "perf");
 *     status = limits_read(&limits, "thresholds.yaml", err);
 *     limits_check(&limits, &comparison, &table, checked);
 *
 * A limit is broken if the whole interval of the change is beyond it, and kept if the whole interval is within it.
 * Otherwise the result is inconclusive, because of noise.
 */
#ifndef COMPARE_LIMITS_H
#define COMPARE_LIMITS_H

#include "compare/comparison.h"

enum limit_index {
	LIMIT_NAN_STEPS,
	LIMIT_INF_STEPS,
	LIMIT_STEP_TIME,
	LIMIT_TOKENS,
	LIMIT_MEMORY_MB,
	LIMIT_MEMORY,
	LIMIT_LOSS,
	LIMIT_STEP_COUNT,
	LIMIT_COUNT,
};

struct limits {
	double values[LIMIT_COUNT];
	char tier[16]; /* the tier of the initial values */
};

/* Sets the values of tier "default", "smoke", "perf" or "nightly". Returns false if there is no such tier. */
bool limits_init(struct limits *limits, const char *tier);

/* Replaces values by those of a YAML file; its key base_tier selects another tier first. STATUS_USAGE names the line of
 * an unknown key or invalid value. */
enum status limits_read(struct limits *limits, const char *path, struct error *err) MUST_CHECK;

/* "default, smoke, perf, nightly" */
extern const char limit_tiers[];

/* value, CHECKED_NAME; in the order of rlhf-canary's checks */
#define LIMIT_CHECKS(X)                                                                                                \
	X(CHECK_NOT_FINITE, "not_finite")                                                                              \
	X(CHECK_DIVERGENCE, "loss_divergence")                                                                         \
	X(CHECK_STEP_TIME, "step_time")                                                                                \
	X(CHECK_TOKENS, "tokens_per_s")                                                                                \
	X(CHECK_MEMORY_MIB, "peak_memory_mib")                                                                         \
	X(CHECK_MEMORY, "peak_memory")                                                                                 \
	X(CHECK_LOSS, "final_loss")

enum limit_check {
#define X(check, name) check,
	LIMIT_CHECKS(X)
#undef X
	LIMIT_CHECK_COUNT
};

enum limit_reason {
	LIMIT_BY_METRIC,      /* the reason of the metric */
	LIMIT_OTHER_WORK,     /* the work of a step differs */
	LIMIT_OTHER_HARDWARE, /* the first difference of hardware says how */
	LIMIT_NO_RATIO,       /* the base is 0 */
	LIMIT_FEW_STEPS,      /* the base has fewer steps than the limits require */
	LIMIT_MET,            /* the whole interval of the change is within or beyond the limit */
	LIMIT_INSIDE,         /* the limit is inside the interval of the change */
	LIMIT_NOT_COUNTED,    /* the number of values that are not finite is unknown */
	LIMIT_COUNTED,
	LIMIT_DIVERGED, /* a new run reports it */
	LIMIT_CONVERGED,
};

/* The decision about a row of the table `limits`. */
struct checked_limit {
	enum limit_check check;
	enum compare_result result;
	enum limit_reason reason;
	int metric;              /* its row of `metrics`; -1: it has none */
	double most;             /* how much worse the metric may be, in the limit's unit */
	double worse, low, high; /* how much worse it is, with its 95 % interval; for LIMIT_MET and LIMIT_INSIDE */
	double fewest_steps;     /* of a run of the base */
};

enum checked_column {
	CHECKED_NAME,   /* "step_time" */
	CHECKED_TITLE,  /* "step time" */
	CHECKED_METRIC, /* METRIC_NAME of the metric that is limited */
	CHECKED_LIMIT,  /* in words: "+10 %" */
	CHECKED_MOST,   /* as a number: per cent, MiB, or a count */
	CHECKED_RESULT, /* its compare_result_name() */
	CHECKED_MESSAGE,
	CHECKED_COLUMNS,
};

const char *limit_check_name(enum limit_check check);

/* Initialises the table `limits` and checks the new side against each limit. `checked` gets the decisions, by row. */
void limits_check(const struct limits *limits, const struct comparison *comparison, struct table *table,
                  struct checked_limit checked[LIMIT_CHECK_COUNT]);
/* Initialises the table without rows, because there are no limits. */
void limits_none(struct table *table);

#endif
