/* SPDX-License-Identifier: Apache-2.0
 *
 * metric_question.h: private to compare/: what a metric is on both sides: one level per run, and the estimate of the
 * change.
 *
 *     if (metric_is_asked(metric, sides)) {
 *             metric_question_init(&question, metric, sides);
 *             metric_question_answer(&question, sides);
 *             metric_question_release(&question);
 *     }
 */
#ifndef COMPARE_METRIC_QUESTION_H
#define COMPARE_METRIC_QUESTION_H

#include "compare/comparison_build.h"

enum metric_source {
	FROM_STEPS,
	FROM_FASTEST, /* steps */
	FROM_CPU,     /* time of steps */
	FROM_VALUE,   /* compared_run_value() of the metric's name */
	FROM_FEW,     /* the same; no row where no run has it */
	FROM_MEAN,    /* the same; its error is that of the mean step */
	FROM_P95,     /* of the 95 % quantile of the steps */
	FROM_COUNT,   /* the same; any more of it is worse, without noise */
};

enum metric_better {
	BETTER_LOWER,
	BETTER_HIGHER,
	BETTER_NEITHER
};

struct metric_kind {
	const char *title; /* a template: {middle} is the number that a run's steps become */
	enum table_unit unit;
	enum metric_better better;
	enum metric_source source;
	enum step_amount amount; /* FROM_STEPS */
};

extern const struct metric_kind metric_kinds[COMPARE_METRIC_COUNT];

struct metric_question {
	enum compare_metric metric;
	struct run_level *levels[SIDES];
	double sums[SIDES];  /* of values: for what has no logarithm, and of a single run as it was read */
	const char *missing; /* why it cannot be asked; NULL: it can */
	bool is_zero[SIDES];
	bool has_estimate;
	struct estimate estimate;
	double outside; /* p value of no change; the caller adjusts it to the number of questions. NAN: unknown */
};

/* Returns true if the table has a row for this metric. Times per token or sample are asked if steps have different
 * amounts of them. */
bool metric_is_asked(enum compare_metric metric, const struct compared_sides *sides);

/* Returns true if work and recording change it, as they change times of steps. */
bool metric_is_time(enum compare_metric metric);

void metric_question_init(struct metric_question *question, enum compare_metric metric,
                          const struct compared_sides *sides);
void metric_question_release(struct metric_question *question);

/* Computes the estimate if there can be one. */
void metric_question_answer(struct metric_question *question, const struct compared_sides *sides);

/* Returns the number of a side, the mean over its runs. */
double metric_question_mean(const struct metric_question *question, const struct compared_sides *sides, int side);

#endif
