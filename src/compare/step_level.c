/* SPDX-License-Identifier: Apache-2.0
 *
 * step_level.c: see the header.
 */
#include "compare/step_level.h"

#include "compare/resample.h"
#include "compare/steady.h"

#include "analysis/statistics.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 8
#define LEAST_PART 4 /* steps */
#define FASTEST 0.01
#define LEAST_FASTEST 3
#define LEAST_STEPS_FASTEST 30
#define LEAST_CPU 0.9 /* of the steps */

/* What is to be expected of runs of one program beyond the error of their own steps, measured with trainers of one thread, alone and
 * beside jobs that come and go. Where it is not known what they waited for: a quarter when somebody always waited for a processor (medians:
 * 22 to 38 %). Where it is known how long they did: half of that share (0.3: 28 %, 0.6: 25 to 30 %), and what others do to caches
 * and shared cores (2 to 3 % at a pressure of 0.75). Where a program gives its memory back in every step, its steps scatter by 13 % and
 * its runs by 5 to 8 %; where it does not, by 4 and 1.5 to 2 %. Of the fastest steps half of all that (0.3: 10 %, 0.6: 15 %: caches are
 * cold after each wait); of CPU times half of what others do. */
#define CONTENDED_NOISE 0.25
#define WAITING_NOISE 0.5
#define CONTENDED_SHARE 0.05 /* less is normal */
#define SHARED_NOISE 0.04
#define SPREAD_NOISE 0.5
#define DISTURBED 0.5

/* So few steps do not tell how much steps differ. */
#define FEW_STEPS 8
#define ASSUMED_SCATTER 0.05

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

/* So that the middle of the run stays where it is. */
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

/* How much the medians of parts differ beyond what steps that do not depend on each other would make them differ. */
static double unevenness(const double *logarithms, size_t count)
{
	double medians[PARTS], errors = 0, mean = 0, squares = 0, *part, mad;

	if (count < PARTS * (size_t)LEAST_PART)
		return 0;
	part = memory_resize(NULL, 2 * (count / PARTS + 1), sizeof(*part));
	for (size_t i = 0; i < PARTS; i++) {
		size_t first = i * count / PARTS, length = (i + 1) * count / PARTS - first;

		memcpy(part, logarithms + first, length * sizeof(*part));
		median_and_mad(part, part + length, length, &medians[i], &mad);
		/* of a median: sqrt(pi / 2) deviations over the root of the count */
		errors += 1.4826 * mad * 1.4826 * mad * 1.5708 / (double)length / PARTS;
		mean += medians[i] / PARTS;
	}
	free(part);
	for (size_t i = 0; i < PARTS; i++)
		squares += (medians[i] - mean) * (medians[i] - mean) / (PARTS - 1);
	return sqrt(fmax(0, squares - errors));
}

/* Of a step in which the thread stopped for something else, too, it is the whole duration. */
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

/* Share of their time in which the steps of a run that is_running waited for a processor. */
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

/* What other work may have done to the run is known of the machine; what it did, of steps that tell how long they waited. */
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

/* Of a number of these durations, as a ratio. Sorts them. */
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

double step_level_error(const struct step_level *level, const struct compared_run *run, enum resample_what what)
{
	size_t count = run->steps_count;
	double *durations, error;

	if (!count) /* of a summary */
		return level->run.error;
	durations = memory_resize(NULL, count, sizeof(*durations));
	for (size_t i = 0; i < count; i++)
		durations[i] = run->steps[i].dur_ns;
	error = relative_error(durations, count, level->block, what);
	free(durations);
	return error;
}

/* Of an input that holds no steps, but what was made of them. */
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

/* Standard deviation, as the middle half of sorted values has it: single odd steps do not count. */
static double spread_of(const double *logarithms, size_t count)
{
	return (quantile(logarithms, count, 0.75) - quantile(logarithms, count, 0.25)) / 1.349;
}

/* Of an even number the middle of the two in the middle, of what they are the logarithms of: as in the table `step_time`. */
static double median_of(const double *sorted, size_t count)
{
	double low = sorted[(count - 1) / 2], high = sorted[count / 2];

	return low + log((1 + exp(high - low)) / 2);
}

/* The median of logarithms in the order of the steps; sorts them. */
static void take_median(struct step_level *level, const struct compared_run *run, double *logarithms, size_t count)
{
	bool is_running = step_level_is_running(run);

	memset(level, 0, sizeof(*level));
	level->run = (struct run_level){.steps = count, .has_created = run->has_created, .created_ns = run->created_ns};
	set_contention(level, run, is_running);
	remove_trend(level, logarithms, count);
	level->block = resample_block(logarithms, count);
	level->run.error = with_assumed_scatter(resample_error(logarithms, count, level->block, RESAMPLE_MEDIAN),
	                                        count);
	level->run.is_few = count < FEW_STEPS;
	level->run.uneven = unevenness(logarithms, count);
	sort_doubles(logarithms, count);
	level->run.level = median_of(logarithms, count);
	level->spread = is_running ? spread_of(logarithms, count) : 0;
	level->run.uneven = hypot(level->run.uneven, SPREAD_NOISE * level->spread);
}

bool step_level_compute(struct step_level *level, const struct compared_run *run, enum step_amount amount)
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
		take_median(level, run, logarithms, count);
	free(logarithms);
	return is_known;
}

static bool has_cpu(const struct compared_run *run)
{
	size_t known = 0;

	for (size_t i = 0; i < run->steps_count; i++)
		known += run->steps[i].has_cpu;
	return known && (double)known >= LEAST_CPU * (double)run->steps_count;
}

bool step_level_cpu(struct step_level *level, const struct compared_run *run)
{
	double *logarithms;
	size_t count = 0;

	if (!has_cpu(run))
		return false;
	logarithms = memory_resize(NULL, run->steps_count, sizeof(*logarithms));
	for (size_t i = 0; i < run->steps_count; i++)
		if (run->steps[i].has_cpu)
			logarithms[count++] = log(fmax(run->steps[i].cpu_ns, 1));
	take_median(level, run, logarithms, count);
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
	for (size_t i = 0; i < used; i++) /* they are sorted now */
		sum += durations[i] / (double)used;
	free(durations);
	level->run.level = log(fmax(sum, 1));
	level->run.uneven = DISTURBED * SPREAD_NOISE * level->spread;
	level->run.contended *= DISTURBED;
	return true;
}
