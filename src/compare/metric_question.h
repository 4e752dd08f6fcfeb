/* SPDX-License-Identifier: Apache-2.0
 *
 * metric_question.h: private to compare/: a metric on both sides: one level per run, and the estimate of the change.
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
	FROM_FASTEST, /* the fastest steps */
	FROM_CPU,     /* CPU time of the steps */
	FROM_VALUE,   /* compared_run_value() of the metric's name */
	FROM_FEW,     /* as FROM_VALUE, but no row if no run has the value */
	FROM_MEAN,    /* as FROM_VALUE, with the error of the mean step */
	FROM_P95,     /* as FROM_VALUE, with the error of the 95 % quantile of the steps */
	FROM_COUNT,   /* as FROM_VALUE, but any increase is worse, without noise */
};

enum metric_better {
	BETTER_LOWER,
	BETTER_HIGHER,
	BETTER_NEITHER
};

struct metric_kind {
	const char *title; /* a template: {middle} is the name of the number that represents a run's steps */
	enum table_unit unit;
	enum metric_better better;
	enum metric_source source;
	enum step_amount amount; /* for FROM_STEPS */
};

extern const struct metric_kind metric_kinds[COMPARE_METRIC_COUNT];

struct metric_question {
	enum compare_metric metric;
	struct run_level *levels[SIDES];
	double sums[SIDES];  /* of the values: for values without a logarithm, and for a single run the exact value */
	const char *missing; /* why it cannot be asked; NULL if it can */
	bool is_zero[SIDES];
	bool has_estimate;
	struct estimate estimate;
	double outside; /* p value of no change; the caller adjusts it to the number of questions. NAN: unknown */
};

/* Returns true if the table has a row for this metric. Times per token or sample have one if steps have different
 * amounts of them. */
bool metric_is_asked(enum compare_metric metric, const struct compared_sides *sides);

/* Returns true if the work of a step and recording change the metric as they change times of steps. */
bool metric_is_time(enum compare_metric metric);

void metric_question_init(struct metric_question *question, enum compare_metric metric,
                          const struct compared_sides *sides);
void metric_question_release(struct metric_question *question);

/* Computes the estimate if there can be one. */
void metric_question_answer(struct metric_question *question, const struct compared_sides *sides);

/* Returns the number of a side: the mean over its runs. */
double metric_question_mean(const struct metric_question *question, const struct compared_sides *sides, int side);

#endif
