/* SPDX-License-Identifier: Apache-2.0
 *
 * compared_telemetry.c: measurements of GPUs from outside (nvidia-smi): one median per quantity and GPU, with its
 * error. Also the facts that make two such files comparable: the number of GPUs, and how often they were queried.
 */
#include "analysis/machine/telemetry.h"
#include "base/memory.h"
#include "base/statistics.h"
#include "compare/compared.h"
#include "compare/resample.h"
#include "model/number_map.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_VALUES                                                                                                    \
	2000 /* used for the error: longer series are thinned, which makes the error larger, never smaller */
#define PARTS 8
#define LEAST_PART 4 /* values */

static size_t select_values(double *values, const struct value_series *series, const struct telemetry_window *window)
{
	size_t count = 0;

	for (uint32_t i = 0; i < series->count; i++)
		if (telemetry_window_holds(window, series->time_ns[i]) && isfinite(series->value[i]))
			values[count++] = series->value[i];
	return count;
}

/* Returns the error of the median, computed from the medians of parts of the run as if those were independent. It
 * exceeds the bootstrap's error if values depend on others that are further away than its stretches are long, such as a
 * temperature. */
static double parts_error(const double *values, size_t count)
{
	double part[MOST_VALUES / PARTS + 1];
	struct summary summary;
	double medians[PARTS];

	if (count < PARTS * (size_t)LEAST_PART)
		return 0;
	for (size_t i = 0; i < PARTS; i++) {
		size_t first = i * count / PARTS, length = (i + 1) * count / PARTS - first;

		memcpy(part, values + first, length * sizeof(*part));
		medians[i] = quantile_within(part, length, 0.5);
	}
	summary_compute(&summary, medians, PARTS);
	return summary.std / sqrt(PARTS) * student_t95(PARTS - 1) / student_t95(INFINITY);
}

/* Expects values in the order of time. */
static void find_error(struct compared_telemetry *telemetry, const double *values, size_t count)
{
	size_t stride = (count + MOST_VALUES - 1) / MOST_VALUES, used = 0;
	double *thinned = memory_resize(NULL, MOST_VALUES, sizeof(*thinned));

	for (size_t i = 0; i < count; i += stride)
		thinned[used++] = values[i];
	telemetry->block = resample_block(thinned, used);
	telemetry->error = fmax(resample_error(thinned, used, telemetry->block, RESAMPLE_MEDIAN),
	                        parts_error(thinned, used));
	telemetry->error = isfinite(telemetry->error) ? telemetry->error : DBL_MAX; /* if the numbers overflow */
	telemetry->block *= (double)stride;
	free(thinned);
}

static void read_series(struct compared_run *run, const struct model *model, const struct value_series *series,
                        const struct telemetry_window *window)
{
	struct compared_telemetry telemetry = {.of = model_text(model, series->subject),
	                                       .quantity = model_text(model, series->name),
	                                       .unit = series->unit ? model_text(model, series->unit) : NULL};
	double *values = memory_resize(NULL, (size_t)series->count + 1, sizeof(*values));
	size_t count = select_values(values, series, window);

	if (count) {
		find_error(&telemetry, values, count);
		telemetry.median = quantile_within(values, count, 0.5);
		telemetry.count = (int64_t)count;
		compared_run_add_telemetry(run, &telemetry);
	}
	free(values);
}

/* ---- facts ---- */

/* Returns false for a process on a GPU: "GPU 0, pid 4711". */
static bool is_gpu(const char *subject)
{
	return !strstr(subject, "pid ");
}

/* Returns the median distance of values in seconds, rounded to the millisecond; 0 if there is none. */
static double period_of(const struct value_series *series)
{
	double *distances = memory_resize(NULL, (size_t)series->count + 1, sizeof(*distances)), period = 0;
	size_t count = 0;

	for (uint32_t i = 1; i < series->count; i++)
		if (series->time_ns[i] > series->time_ns[i - 1])
			distances[count++] = ((double)series->time_ns[i] - (double)series->time_ns[i - 1]) / 1e9;
	sort_doubles(distances, count);
	if (count)
		period = round(quantile(distances, count, 0.5) * 1e3) / 1e3;
	free(distances);
	return period;
}

void compared_read_telemetry(struct compared_run *run, struct report *report)
{
	const struct model *model = report->model;
	const struct telemetry_window window = telemetry_window_find(model, report_step_times(report),
	                                                             report->context.options.filter.has_steps);
	struct number_map gpus = {0};
	double period = 0;

	for (uint32_t i = 0; i < model->series_count; i++) {
		const struct value_series *series = model->series[i];

		if (!series->subject)
			continue;
		read_series(run, model, series, &window);
		if (!is_gpu(model_text(model, series->subject)))
			continue;
		number_map_set(&gpus, series->subject, 1);
		period = period > 0 ? period : period_of(series);
	}
	if (gpus.count)
		compared_run_add_number(run, FACT_HARDWARE, "GPUs", gpus.count);
	if (period > 0)
		compared_run_add_number(run, FACT_RECORDING, COMPARED_PERIOD, period);
	number_map_release(&gpus);
}
