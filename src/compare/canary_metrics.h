/* SPDX-License-Identifier: Apache-2.0
 *
 * canary_metrics.h: reads a metrics.json of rlhf-canary as one run of a comparison. The file has no steps, only their
 * summary: mean, median, deviation and number. The error is computed as if steps did not depend on each other, which
 * is a lower bound.
 */
#ifndef COMPARE_CANARY_METRICS_H
#define COMPARE_CANARY_METRICS_H

#include "base/error.h"
#include "compare/compared_run.h"

/* Levels of the run's parts: self times of the operators that its writer's profiler lists. The values
 * `profiled_device_time` and `profiled_host_time` are the totals of that profiler, and absent if the file has none. */
#define CANARY_CUDA_OPERATORS COMPARED_TOP "CUDA operators"
#define CANARY_CPU_OPERATORS COMPARED_TOP "CPU operators"

/* Returns true if the file starts like a metrics.json. Returns false for anything but a regular file, such as a pipe,
 * without reading it. */
bool canary_metrics_probe(const char *path);

/* Parses the text of a metrics.json; `path` is used for messages and for the run's name. Fails like
 * canary_metrics_read(). */
enum status canary_metrics_parse(struct compared_run *run, const char *text, size_t length, const char *path,
                                 struct error *err) MUST_CHECK;

/* Reads the file. Returns STATUS_INPUT if it is not complete JSON or has no step times. On failure nothing needs to be
 * released. */
enum status canary_metrics_read(struct compared_run *run, const char *path, struct error *err) MUST_CHECK;

/* Return the start of the run_id ("dpo" of "dpo_1795244589_a1b2c3d4"), and the run's identity: run_id and timestamp,
 * and the path if one of them is missing. Both texts are in the run's arena. */
const char *canary_metrics_series(struct compared_run *run);
const char *canary_metrics_identity(struct compared_run *run);

#endif
