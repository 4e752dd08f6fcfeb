/* SPDX-License-Identifier: Apache-2.0
 *
 * limits.h: how much a run may be worse than its baseline, and whether it is. The keys and tiers are those of rlhf-canary's threshold
 * files, so that such a file can be used as it is; docs/commands/compare.md says where we differ from it.
 *
 *     struct limits limits;
 *     limits_init(&limits, "perf");
 *     status = limits_read(&limits, "thresholds.yaml", err);
 *     limits_check(&limits, &comparison, &checked);
 *
 * A limit is broken when the whole interval of the change lies beyond it, kept when it lies within, and else it is not known: with
 * noise there is a third answer here, too.
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
	char tier[16]; /* whose values they were to begin with */
};

/* "default", "smoke", "perf" or "nightly"; false: there is no such tier. */
bool limits_init(struct limits *limits, const char *tier);

/* Values of a YAML file instead; base_tier in it begins with another tier. STATUS_USAGE names the line of a key that is not known or a
 * value that makes no sense. */
enum status limits_read(struct limits *limits, const char *path, struct error *err) MUST_CHECK;

/* "default, smoke, perf, nightly" */
extern const char limit_tiers[];

#define LIMIT_KEPT "kept"
#define LIMIT_BROKEN "broken"
#define LIMIT_WARNING "warning" /* broken, but nothing fails for it */
#define LIMIT_INCONCLUSIVE "inconclusive"
#define LIMIT_NOT_COMPARABLE "not comparable"
#define LIMIT_NOT_MEASURED "not measured"

enum checked_column {
	CHECKED_NAME,   /* "step_time" */
	CHECKED_TITLE,  /* "step time" */
	CHECKED_METRIC, /* METRIC_NAME of what it is about */
	CHECKED_LIMIT,  /* in words: "+10 %" */
	CHECKED_MOST,   /* as a number: per cent, MiB, or a count */
	CHECKED_RESULT, /* one of the LIMIT_ texts */
	CHECKED_MESSAGE,
	CHECKED_COLUMNS,
};

/* Initialises the table `limits`: one row per limit, in the order of rlhf-canary's checks. */
void limits_check(const struct limits *limits, const struct comparison *comparison, struct table *checked);
/* The same table without rows, for want of limits. */
void limits_none(struct table *checked);

#endif
