/* SPDX-License-Identifier: Apache-2.0
 *
 * metric_question.c: see the header.
 */
#include "compare/metric_question.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALLOCATOR_NOISE 2e-4 /* of the peak: some blocks more or less */

/* ---- the metrics ---- */

const struct metric_kind metric_kinds[COMPARE_METRIC_COUNT] = {
	[COMPARE_TIME_PER_TOKEN] = {"step time {middle} per token", UNIT_NS, BETTER_LOWER, FROM_STEPS, PER_TOKEN},
	[COMPARE_TIME_PER_SAMPLE] = {"step time {middle} per sample", UNIT_NS, BETTER_LOWER, FROM_STEPS, PER_SAMPLE},
	[COMPARE_STEP_TIME] = {"step time {middle}", UNIT_NS, BETTER_LOWER, FROM_STEPS, PER_STEP},
	[COMPARE_STEP_TIME_FASTEST] = {"step time, fastest 1 %", UNIT_NS, BETTER_LOWER, FROM_FASTEST, 0},
	[COMPARE_STEP_CPU_TIME] = {"CPU time of a step {middle}", UNIT_NS, BETTER_LOWER, FROM_CPU, 0},
	[COMPARE_STEP_TIME_MEAN] = {"step time mean", UNIT_NS, BETTER_LOWER, FROM_MEAN, 0},
	[COMPARE_STEP_TIME_P95] = {"step time p95", UNIT_NS, BETTER_LOWER, FROM_P95, 0},
	[COMPARE_STEP_PERIOD] = {"from step to step", UNIT_NS, BETTER_LOWER, FROM_MEAN, 0},
	[COMPARE_TOKENS_PER_S] = {"tokens/s", UNIT_PER_SECOND, BETTER_HIGHER, FROM_MEAN, 0},
	[COMPARE_SAMPLES_PER_S] = {"samples/s", UNIT_PER_SECOND, BETTER_HIGHER, FROM_MEAN, 0},
	[COMPARE_DEVICE_BUSY] = {"devices busy", UNIT_RATIO, BETTER_NEITHER, FROM_VALUE, 0},
	[COMPARE_DEVICE_MEMORY] = {"peak memory of a device", UNIT_BYTES, BETTER_LOWER, FROM_VALUE, 0},
	[COMPARE_PEAK_MEMORY] = {"peak memory of the host", UNIT_BYTES, BETTER_LOWER, FROM_VALUE, 0},
	[COMPARE_UTILIZATION] = {"utilization of the GPU", UNIT_RATIO, BETTER_NEITHER, FROM_FEW, 0},
	[COMPARE_WAIT_RATIO] = {"between steps, of step time", UNIT_RATIO, BETTER_NEITHER, FROM_FEW, 0},
	[COMPARE_PROFILED_DEVICE_TIME] = {"CUDA time as profiled", UNIT_NS, BETTER_NEITHER, FROM_FEW, 0},
	[COMPARE_PROFILED_HOST_TIME] = {"CPU time as profiled", UNIT_NS, BETTER_NEITHER, FROM_FEW, 0},
	[COMPARE_FINAL_LOSS] = {"last loss", UNIT_NONE, BETTER_LOWER, FROM_VALUE, 0},
	[COMPARE_NOT_FINITE] = {"values not finite", UNIT_COUNT, BETTER_LOWER, FROM_COUNT, 0},
};

/* ---- levels of runs ---- */

static bool value_of(const struct compared_run *run, const char *name, double *value, const char **reason)
{
	const struct compared_value *found = compared_run_value(run, name);

	if (!found || !found->has_value) {
		*reason = found ? found->reason : "not recorded";
		return false;
	}
	*value = found->value;
	return true;
}

/* Finds the mean time from the start of a step to the start of the next. Returns false if it is unknown. */
static bool period_of(const struct compared_run *run, double *value, const char **reason)
{
	double between;

	if (!value_of(run, "step_time_mean", value, reason) || !value_of(run, "between_steps", &between, reason))
		return false;
	*value += between;
	return true;
}

/* Returns the error of a period whose mean step has this error. Old runs of a history have no error of the time between
 * steps; it counts as 0. */
static double error_of_period(const struct compared_run *run, double error)
{
	double mean, between, between_error;
	const char *reason;

	if (!value_of(run, "step_time_mean", &mean, &reason) || !value_of(run, "between_steps", &between, &reason) ||
	    mean + between <= 0)
		return error;
	if (!value_of(run, "between_steps_error", &between_error, &reason))
		between_error = 0;
	return hypot(error * mean, between_error) / (mean + between);
}

/* Returns the error of a run's number from its own steps, or 0 if repeated runs show their scatter. */
static double error_of(enum compare_metric metric, const struct compared_sides *sides, int side, size_t i)
{
	enum metric_source source = metric_kinds[metric].source;
	const struct step_level *level = &sides->levels[side][i];
	const struct compared_run *run = &sides->runs[side][i];
	double error;

	if (has_repeats(sides) || !sides->has_level[side][i])
		return 0;
	if (source == FROM_P95)
		return step_level_error(level, run, RESAMPLE_P95);
	if (source != FROM_MEAN)
		return 0;
	error = step_level_error(level, run, RESAMPLE_MEAN);
	return step_level_error_of_logarithm(metric == COMPARE_STEP_PERIOD ? error_of_period(run, error) : error);
}

static void set_value(struct metric_question *question, const struct compared_sides *sides, int side, size_t i)
{
	enum metric_source source = metric_kinds[question->metric].source;
	const struct compared_run *run = &sides->runs[side][i];
	double value = 0;
	bool is_known = question->metric == COMPARE_STEP_PERIOD
	                        ? period_of(run, &value, &question->missing)
	                        : value_of(run, compare_metric_name(question->metric), &value, &question->missing);

	if (!is_known)
		return;
	question->sums[side] += value;
	question->is_zero[side] |= !(value > 0);
	question->levels[side][i] = sides->levels[side][i].run;
	question->levels[side][i].error = error_of(question->metric, sides, side, i);
	question->levels[side][i].level = value > 0 ? log(value) : 0;
	if (source == FROM_MEAN)
		question->levels[side][i].uneven = sides->levels[side][i].uneven_mean;
	if (source != FROM_VALUE && source != FROM_FEW)
		return;
	question->levels[side][i]
		.uneven = 0; /* work that competes for a CPU makes steps longer, but not memory larger */
	question->levels[side][i].contended = 0;
}

static void set_steps(struct metric_question *question, const struct compared_sides *sides, int side, size_t i)
{
	const struct compared_run *run = &sides->runs[side][i];
	enum step_amount amount = metric_kinds[question->metric].amount;
	struct step_level level = {0};

	if (amount == PER_STEP) {
		level = sides->levels[side][i];
		question->sums[side] += run->steps_count ? 0 : run->summary.median_ns;
		if (!sides->has_level[side][i])
			question->missing = run->no_steps ? run->no_steps : "no step was completed";
	} else if (!step_level_compute(&level, run, amount, sides->steps.is_evened[amount])) {
		question->missing = "not every step says how much work it had";
	}
	question->levels[side][i] = level.run;
}

static void set_fastest(struct metric_question *question, const struct compared_sides *sides, int side, size_t i)
{
	struct step_level level = sides->levels[side][i];

	if (!sides->has_level[side][i] || !step_level_fastest(&level, &sides->runs[side][i], sides->steps.is_running))
		question->missing = "fewer than 30 steps";
	question->levels[side][i] = level.run;
}

static void set_cpu(struct metric_question *question, const struct compared_sides *sides, int side, size_t i)
{
	struct step_level level = {0};

	if (!step_level_cpu(&level, &sides->runs[side][i], sides->steps.is_cpu_evened))
		question->missing = "recorded only of steps that the program marks and that are long enough";
	question->levels[side][i] = level.run;
}

void metric_question_init(struct metric_question *question, enum compare_metric metric,
                          const struct compared_sides *sides)
{
	enum metric_source source = metric_kinds[metric].source;

	memset(question, 0, sizeof(*question));
	question->metric = metric;
	question->outside = NAN;
	for (int side = 0; side < SIDES; side++) {
		question->levels[side] = memory_resize(NULL, sides->count[side], sizeof(*question->levels[side]));
		memset(question->levels[side], 0, sides->count[side] * sizeof(*question->levels[side]));
		for (size_t i = 0; i < sides->count[side] && !question->missing; i++) {
			if (source == FROM_STEPS)
				set_steps(question, sides, side, i);
			else if (source == FROM_FASTEST)
				set_fastest(question, sides, side, i);
			else if (source == FROM_CPU)
				set_cpu(question, sides, side, i);
			else
				set_value(question, sides, side, i);
		}
	}
}

void metric_question_release(struct metric_question *question)
{
	free(question->levels[SIDE_BASE]);
	free(question->levels[SIDE_NEW]);
}

/* ---- the estimate ---- */

bool metric_is_time(enum compare_metric metric)
{
	enum metric_source source = metric_kinds[metric].source;

	return source != FROM_VALUE && source != FROM_FEW && source != FROM_COUNT;
}

/* Returns how far a base may be below its mean because it was chosen for the shortest step: all its times are then
 * short. */
static double luck_of(const struct metric_kind *kind, const struct comparison_options *options)
{
	double luck = estimate_luck(options->best_of, options->assumed_noise);

	if (kind->source == FROM_VALUE || kind->source == FROM_COUNT)
		return 0;
	return kind->better == BETTER_HIGHER ? -luck : luck;
}

/* The peak of an allocator is nearly the same in each run of a program, unlike times and the memory of a process. */
static double assumed_noise(enum compare_metric metric, const struct comparison_options *options)
{
	return metric == COMPARE_DEVICE_MEMORY ? fmin(ALLOCATOR_NOISE, options->assumed_noise) : options->assumed_noise;
}

void metric_question_answer(struct metric_question *question, const struct compared_sides *sides)
{
	const struct metric_kind *kind = &metric_kinds[question->metric];
	const struct estimate_options options = {assumed_noise(question->metric, sides->options),
	                                         log1p(sides->options->tolerance), luck_of(kind, sides->options),
	                                         metric_is_time(question->metric) ? sides->prices.doubt : 0};

	if (question->missing || kind->source == FROM_COUNT || question->is_zero[SIDE_BASE] ||
	    question->is_zero[SIDE_NEW] || (sides->metrics.is_memory && !has_repeats(sides)))
		return;
	estimate_compute(&question->estimate, question->levels[SIDE_BASE], sides->count[SIDE_BASE],
	                 question->levels[SIDE_NEW], sides->count[SIDE_NEW], &options);
	question->has_estimate = true;
	question->outside = question->estimate.outside;
}

double metric_question_mean(const struct metric_question *question, const struct compared_sides *sides, int side)
{
	double sum = 0;

	if (!question->has_estimate || (sides->count[side] == 1 && question->sums[side] > 0))
		return question->sums[side] / (double)sides->count[side];
	for (size_t i = 0; i < sides->count[side]; i++)
		sum += question->levels[side][i].level;
	return exp(sum / (double)sides->count[side]);
}

/* ---- which metrics are asked ---- */

static bool has_value(const struct compared_sides *sides, const char *name)
{
	for (int side = 0; side < SIDES; side++)
		for (size_t i = 0; i < sides->count[side]; i++)
			if (compared_run_value(&sides->runs[side][i], name))
				return true;
	return false;
}

bool metric_is_asked(enum compare_metric metric, const struct compared_sides *sides)
{
	const struct metric_kind *kind = &metric_kinds[metric];

	if (kind->source == FROM_FEW && !has_value(sides, compare_metric_name(metric)))
		return false;
	return kind->source != FROM_STEPS || kind->amount == PER_STEP || kind->amount == sides->work.amount;
}
