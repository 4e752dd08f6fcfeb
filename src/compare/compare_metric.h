/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_metric.h: the compared quantities, in the order of the rows of the table `metrics`.
 */
#ifndef COMPARE_COMPARE_METRIC_H
#define COMPARE_COMPARE_METRIC_H

/* value, METRIC_NAME. Quantities that are not times of steps are also names of a run's values
 * (compare/compared_run.h). */
#define COMPARE_METRICS(X)                                                                                             \
	X(COMPARE_TIME_PER_TOKEN, "time_per_token")                                                                    \
	X(COMPARE_TIME_PER_SAMPLE, "time_per_sample")                                                                  \
	X(COMPARE_STEP_TIME, "step_time")                                                                              \
	X(COMPARE_STEP_TIME_FASTEST, "step_time_fastest")                                                              \
	X(COMPARE_STEP_CPU_TIME, "step_cpu_time")                                                                      \
	X(COMPARE_STEP_TIME_MEAN, "step_time_mean")                                                                    \
	X(COMPARE_STEP_TIME_P95, "step_time_p95")                                                                      \
	X(COMPARE_STEP_PERIOD, "step_period")                                                                          \
	X(COMPARE_TOKENS_PER_S, "tokens_per_s")                                                                        \
	X(COMPARE_SAMPLES_PER_S, "samples_per_s")                                                                      \
	X(COMPARE_DEVICE_BUSY, "device_busy")                                                                          \
	X(COMPARE_DEVICE_MEMORY, "device_memory")                                                                      \
	X(COMPARE_PEAK_MEMORY, "peak_memory")                                                                          \
	X(COMPARE_UTILIZATION, "utilization")                                                                          \
	X(COMPARE_WAIT_RATIO, "wait_ratio")                                                                            \
	X(COMPARE_PROFILED_DEVICE_TIME, "profiled_device_time")                                                        \
	X(COMPARE_PROFILED_HOST_TIME, "profiled_host_time")                                                            \
	X(COMPARE_FINAL_LOSS, "final_loss")                                                                            \
	X(COMPARE_NOT_FINITE, "not_finite")

enum compare_metric {
#define X(metric, name) metric,
	COMPARE_METRICS(X)
#undef X
	COMPARE_METRIC_COUNT
};

const char *compare_metric_name(enum compare_metric metric);

#endif
