/* SPDX-License-Identifier: Apache-2.0
 *
 * step_level.c: see the header.
 */
#include "compare/step_level.h"

#include "base/memory.h"
#include "base/statistics.h"
#include "compare/alternation.h"
#include "compare/resample.h"
#include "compare/steady.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 8
#define LEAST_PART 4 /* steps */
#define CLIPPED 0.05 /* at either end */
#define BY_CHANCE 2  /* variances of PARTS values exceed the expected one by this factor in 1 of 20 cases */
#define FASTEST 0.01
#define LEAST_FASTEST 3
#define LEAST_STEPS_FASTEST 30
#define LEAST_CPU 0.9 /* of the steps */

/* The noise to expect between runs of one program, in addition to the error from their steps. It was measured with
 * single-threaded trainers, alone and beside jobs that come and go.
 *
 * If the waits of the steps are unknown: a quarter if some task always waited for a processor (medians: 22 to 38 %). If
 * they are known: half of the waiting share (0.3: 28 %, 0.6: 25 to 30 %), and the effect of other work on caches and
 * shared cores (2 to 3 % at a pressure of 0.75).
 *
 * If a program returns its memory in every step, its steps scatter by 13 % and its runs by 5 to 8 %; otherwise by 4 %
 * and 1.5 to 2 %. The fastest steps have half of all that (0.3: 10 %, 0.6: 15 %: caches are cold after each wait), and
 * CPU times half of the effect of other work. */
#define CONTENDED_NOISE 0.25
#define WAITING_NOISE 0.5
#define CONTENDED_SHARE 0.05 /* less is normal */
#define SHARED_NOISE 0.04
#define SPREAD_NOISE 0.5
#define DISTURBED 0.5

/* With fewer steps, their scatter is unknown. */
#define FEW_STEPS 8
#define ASSUMED_SCATTER 0.05

#define SURE_ERRORS 2.5 /* one of five metrics is tested at this many errors (Holm) */
#define LEAST_LEFT 1e-4

static bool fill_logarithms(double *logarithms, const struct compared_run *run, enum step_amount amount)
{
	for (size_t i = 0; i < run->steps_count; i++) {
		const struct compared_step *step = &run->steps[i];
		double divisor = amount == PER_STEP ? 1 : amount == PER_TOKEN ? step->tokens : step->samples;

		if ((amount == PER_TOKEN && !step->has_tokens) || (amount == PER_SAMPLE && !step->has_samples) ||
		    divisor <= 0)
			return false;
		logarithms[i] = log(fmax(step->dur_ns, 1) / divisor);
	}
	return run->steps_count > 0;
}

/* Removes the drift so that the middle of the run keeps its level. */
static void remove_trend(struct step_level *level, double *logarithms, size_t count)
{
	double per_step;

	level->has_trend = steady_trend(logarithms, count, &per_step);
	if (!level->has_trend)
		return;
	level->trend = expm1(per_step * (double)(count - 1));
	for (size_t i = 0; i < count; i++)
		logarithms[i] -= per_step * ((double)i - (double)(count - 1) / 2);
}

static double mean_of(const double *values, size_t count)
{
	double mean = 0;

	for (size_t i = 0; i < count; i++)
		mean += values[i] / (double)count;
	return mean;
}

/* One number for each part of a run, with the variance it would have if steps were independent. */
struct parts {
	double values[PARTS], errors[PARTS];
};

/* Returns the variance of the numbers beyond that; `ratio` is their variance over the expected one. */
static double step_level_excess_of(const struct parts *parts, double *ratio)
{
	double mean = 0, squares = 0, errors = 0;

	for (size_t i = 0; i < PARTS; i++) {
		mean += parts->values[i] / PARTS;
		errors += parts->errors[i] / PARTS;
	}
	for (size_t i = 0; i < PARTS; i++)
		squares += (parts->values[i] - mean) * (parts->values[i] - mean) / (PARTS - 1);
	*ratio = errors > 0 ? squares / errors : squares > 0 ? INFINITY : 0;
	return fmax(0, squares - errors);
}

static struct parts medians_of_parts(const double *logarithms, size_t count)
{
	double *part = memory_resize(NULL, 2 * (count / PARTS + 1), sizeof(*part)), mad;
	struct parts parts;

	for (size_t i = 0; i < PARTS; i++) {
		size_t first = i * count / PARTS, length = (i + 1) * count / PARTS - first;

		memcpy(part, logarithms + first, length * sizeof(*part));
		median_and_mad(part, part + length, length, &parts.values[i], &mad);
		/* variance of a median: pi / 2 squared deviations over the count */
		parts.errors[i] = 1.4826 * mad * 1.4826 * mad * 1.5708 / (double)length;
	}
	free(part);
	return parts;
}

static struct parts means_of_parts(const double *values, size_t count)
{
	struct parts parts;

	for (size_t i = 0; i < PARTS; i++) {
		size_t first = i * count / PARTS, length = (i + 1) * count / PARTS - first;
		double mean = 0, squares = 0;

		for (size_t j = first; j < first + length; j++)
			mean += values[j] / (double)length;
		for (size_t j = first; j < first + length; j++)
			squares += (values[j] - mean) * (values[j] - mean);
		parts.values[i] = mean;
		parts.errors[i] = squares / (double)(length - 1) / (double)length;
	}
	return parts;
}

/* Returns how much parts of the run differ beyond the scatter of their steps: in their medians or their means,
 * whichever is less. If there are two kinds of steps in similar numbers, medians of parts jump between the kinds, and
 * means do not. A run that was slower for a while shows in both. */
static double unevenness(const double *logarithms, size_t count)
{
	struct parts medians, means;
	double *clipped, ratio;

	if (count < PARTS * (size_t)LEAST_PART)
		return 0;
	medians = medians_of_parts(logarithms, count);
	clipped = clipped_copy(logarithms, count, CLIPPED); /* medians ignore single odd steps as well */
	means = means_of_parts(clipped, count);
	free(clipped);
	return sqrt(fmin(step_level_excess_of(&medians, &ratio), step_level_excess_of(&means, &ratio)));
}

/* As unevenness(), for the unclipped means: long steps that come together lengthen the mean of one run and not of
 * the next. Such means also scatter by chance, so only the excess over chance counts. A drift over the run does not
 * count. */
static double unevenness_of_mean(const struct compared_run *run, double trend)
{
	size_t count = run->steps_count;
	double *durations, ratio, excess, mean;
	struct parts means;

	if (count < PARTS * (size_t)LEAST_PART)
		return 0;
	durations = memory_resize(NULL, count, sizeof(*durations));
	for (size_t i = 0; i < count; i++)
		durations[i] = run->steps[i].dur_ns * exp(-log1p(trend) * (double)i / (double)(count - 1));
	mean = mean_of(durations, count);
	means = means_of_parts(durations, count);
	free(durations);
	excess = step_level_excess_of(&means, &ratio);
	return ratio > BY_CHANCE && mean > 0 ? sqrt(excess) / mean : 0;
}

/* Returns false if the thread also stopped for other reasons: running_ns is then the whole duration. */
static bool is_without_waits(const struct compared_step *step)
{
	return step->has_cpu && step->running_ns == step->cpu_ns;
}

bool step_level_is_running(const struct compared_run *run)
{
	size_t known = 0;

	for (size_t i = 0; i < run->steps_count; i++)
		known += is_without_waits(&run->steps[i]);
	return known && (double)known >= LEAST_CPU * (double)run->steps_count;
}

/* Returns the share of their time in which steps waited for a processor. For runs with step_level_is_running(). */
static double waiting_of(const struct compared_run *run)
{
	double running_ns = 0, dur_ns = 0;

	for (size_t i = 0; i < run->steps_count; i++) {
		if (!is_without_waits(&run->steps[i]))
			continue;
		running_ns += run->steps[i].running_ns;
		dur_ns += run->steps[i].dur_ns;
	}
	return dur_ns > 0 ? fmax(0, 1 - running_ns / dur_ns) : 0;
}

/* Sets the noise from other work: the pressure of the machine shows its possible effect, and steps with known waits the
 * actual one. */
static void set_contention(struct step_level *level, const struct compared_run *run, bool is_running)
{
	const struct compared_value *value = compared_run_value(run, "cpu_contention");
	double pressure = value && value->has_value ? value->value : 0;
	double waiting = is_running ? waiting_of(run) : 0;

	level->contended = fmax(pressure, waiting);
	if (level->contended > CONTENDED_SHARE)
		level->run.contended = is_running ? hypot(WAITING_NOISE * waiting, SHARED_NOISE * pressure)
		                                  : CONTENDED_NOISE * pressure;
}

static double with_assumed_scatter(double error, size_t steps)
{
	return steps < FEW_STEPS ? fmax(error, ASSUMED_SCATTER / sqrt((double)steps)) : error;
}

/* Returns the error of a statistic of these durations, as a ratio. Sorts the durations. */
static double relative_error(double *durations, size_t count, double block, enum resample_what what)
{
	double error = resample_error(durations, count, block, what), middle = 0;

	for (size_t i = 0; i < count; i++)
		middle += durations[i] / (double)count;
	sort_doubles(durations, count);
	if (what != RESAMPLE_MEAN)
		middle = quantile(durations, count, resample_quantile(what));
	return with_assumed_scatter(middle > 0 ? error / middle : 0, count);
}

/* If a few long steps dominate a mean, its relative error has no counterpart in logarithms: another such mean may be
 * near 0. The result makes the interval of SURE_ERRORS reach equally far down. */
double step_level_error_of_logarithm(double error)
{
	return -log(fmax(1 - SURE_ERRORS * error, LEAST_LEFT)) / SURE_ERRORS;
}

/* Evens out the durations, because repeating steps are not chance. Returns the error that remains in the mean of a run
 * that ends within a period, as a ratio. */
static double even_out(double *durations, size_t count)
{
	double whole = mean_of(durations, count);

	for (size_t i = 0; i < count; i++)
		durations[i] = log(fmax(durations[i], 1));
	alternation_even_out(durations, count);
	for (size_t i = 0; i < count; i++)
		durations[i] = exp(durations[i]);
	return whole / mean_of(durations, count) - 1;
}

double step_level_error(const struct step_level *level, const struct compared_run *run, enum resample_what what)
{
	size_t count = run->steps_count;
	double *durations, error, rest = 0;

	if (!count) /* the run is a summary */
		return level->run.error;
	durations = memory_resize(NULL, count, sizeof(*durations));
	for (size_t i = 0; i < count; i++)
		durations[i] = run->steps[i].dur_ns;
	if (what == RESAMPLE_MEAN)
		rest = even_out(durations, count);
	error = hypot(relative_error(durations, count, level->block, what), rest);
	free(durations);
	return error;
}

/* Uses the summary of an input without steps. */
static bool take_summary(struct step_level *level, const struct compared_summary *summary, enum step_amount amount)
{
	double divisor = amount == PER_STEP ? 1 : amount == PER_TOKEN ? summary->tokens : 0;

	memset(level, 0, sizeof(*level));
	if (divisor <= 0)
		return false;
	level->run = (struct run_level){.level = log(summary->median_ns / divisor),
	                                .error = with_assumed_scatter(summary->error, (size_t)summary->steps),
	                                .is_few = summary->steps < FEW_STEPS,
	                                .steps = (size_t)summary->steps};
	level->block = 1;
	return true;
}

/* Returns the standard deviation by the middle half of sorted values, which ignores single odd steps. */
static double spread_of(const double *logarithms, size_t count)
{
	return (quantile(logarithms, count, 0.75) - quantile(logarithms, count, 0.25)) / 1.349;
}

/* Returns the median. For an even number it is the middle of the two middle durations, not of their logarithms, as in
 * the table `step_time`. */
static double median_of(const double *sorted, size_t count)
{
	double low = sorted[(count - 1) / 2], high = sorted[count / 2];

	return low + log((1 + exp(high - low)) / 2);
}

static void take_median(struct step_level *level, double *logarithms, size_t count)
{
	double error = resample_error(logarithms, count, level->block, RESAMPLE_MEDIAN);

	level->run.error = with_assumed_scatter(error, count);
	sort_doubles(logarithms, count);
	level->run.level = median_of(logarithms, count);
}

/* Uses the mean of the durations, not of their logarithms. */
static void take_mean(struct step_level *level, double *logarithms, size_t count)
{
	for (size_t i = 0; i < count; i++)
		logarithms[i] = exp(logarithms[i]);
	level->run.level = log(mean_of(logarithms, count));
	level->run.error = step_level_error_of_logarithm(
		relative_error(logarithms, count, level->block, RESAMPLE_MEAN));
}

/* Sets the scatter to expect of the next run, from the logarithms of the steps without their alternation. Sorts the
 * logarithms. */
static void set_unevenness(struct step_level *level, double *logarithms, size_t count, bool is_running)
{
	alternation_even_out(logarithms, count);
	level->run.uneven = unevenness(logarithms, count);
	sort_doubles(logarithms, count);
	level->spread = is_running ? spread_of(logarithms, count) : 0;
	level->run.uneven = hypot(level->run.uneven, SPREAD_NOISE * level->spread);
}

/* Computes the level from logarithms in the order of the steps: the median, or with `is_evened` the median of
 * evened-out steps, or their mean if they do not repeat. */
static void take_level(struct step_level *level, const struct compared_run *run, double *logarithms, size_t count,
                       bool is_evened)
{
	double *copy = memory_resize(NULL, count, sizeof(*copy));
	bool is_running = step_level_is_running(run), is_mean;

	memset(level, 0, sizeof(*level));
	level->run = (struct run_level){.steps = count, .has_created = run->has_created, .created_ns = run->created_ns};
	set_contention(level, run, is_running);
	is_mean = is_evened && alternation_even_out(logarithms, count) == 1;
	remove_trend(level, logarithms, count);
	level->block = resample_block(logarithms, count);
	level->run.is_few = count < FEW_STEPS;
	memcpy(copy, logarithms, count * sizeof(*copy));
	set_unevenness(level, copy, count, is_running);
	free(copy);
	level->uneven_mean = fmax(level->run.uneven, unevenness_of_mean(run, level->trend));
	if (is_mean)
		take_mean(level, logarithms, count);
	else
		take_median(level, logarithms, count);
}

bool step_level_compute(struct step_level *level, const struct compared_run *run, enum step_amount amount,
                        bool is_evened)
{
	size_t count = run->steps_count;
	double *logarithms;
	bool is_known;

	if (!count && run->summary.steps)
		return take_summary(level, &run->summary, amount);
	memset(level, 0, sizeof(*level));
	logarithms = memory_resize(NULL, count + 1, sizeof(*logarithms));
	is_known = fill_logarithms(logarithms, run, amount);
	if (is_known)
		take_level(level, run, logarithms, count, is_evened);
	free(logarithms);
	return is_known;
}

bool step_level_has_gap(const struct compared_run *run, enum step_amount amount)
{
	double *logarithms = memory_resize(NULL, run->steps_count + 1, sizeof(*logarithms));
	bool has_gap = fill_logarithms(logarithms, run, amount) && alternation_has_gap(logarithms, run->steps_count);

	free(logarithms);
	return has_gap;
}

static bool has_cpu(const struct compared_run *run)
{
	size_t known = 0;

	for (size_t i = 0; i < run->steps_count; i++)
		known += run->steps[i].has_cpu;
	return known && (double)known >= LEAST_CPU * (double)run->steps_count;
}

static size_t fill_cpu_times(double *logarithms, const struct compared_run *run)
{
	size_t count = 0;

	for (size_t i = 0; i < run->steps_count; i++)
		if (run->steps[i].has_cpu)
			logarithms[count++] = log(fmax(run->steps[i].cpu_ns, 1));
	return count;
}

bool step_level_cpu_has_gap(const struct compared_run *run)
{
	double *logarithms = memory_resize(NULL, run->steps_count + 1, sizeof(*logarithms));
	bool has_gap = has_cpu(run) && alternation_has_gap(logarithms, fill_cpu_times(logarithms, run));

	free(logarithms);
	return has_gap;
}

bool step_level_cpu(struct step_level *level, const struct compared_run *run, bool is_evened)
{
	double *logarithms;

	if (!has_cpu(run))
		return false;
	logarithms = memory_resize(NULL, run->steps_count, sizeof(*logarithms));
	take_level(level, run, logarithms, fill_cpu_times(logarithms, run), is_evened);
	level->run.contended *= DISTURBED;
	free(logarithms);
	return true;
}

bool step_level_fastest(struct step_level *level, const struct compared_run *run, bool is_running)
{
	size_t count = run->steps_count, used = (size_t)fmax(LEAST_FASTEST, FASTEST * (double)count);
	double *durations, sum = 0;

	if (count < LEAST_STEPS_FASTEST)
		return false;
	durations = memory_resize(NULL, count, sizeof(*durations));
	for (size_t i = 0; i < count; i++)
		durations[i] = is_running && run->steps[i].has_cpu ? run->steps[i].running_ns : run->steps[i].dur_ns;
	level->run.error = relative_error(durations, count, level->block, RESAMPLE_P01);
	for (size_t i = 0; i < used; i++) /* relative_error() sorted them */
		sum += durations[i] / (double)used;
	free(durations);
	level->run.level = log(fmax(sum, 1));
	level->run.uneven = DISTURBED * SPREAD_NOISE * level->spread;
	level->run.contended *= DISTURBED;
	return true;
}
