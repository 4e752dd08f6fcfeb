/* SPDX-License-Identifier: Apache-2.0
 *
 * canary_metrics.h: a metrics.json of rlhf-canary as one run of a comparison. The file has no steps, only what its writer made of them:
 * mean, median, deviation and number; their error is that of steps that do not depend on each other, which is the least it can be.
 */
#ifndef COMPARE_CANARY_METRICS_H
#define COMPARE_CANARY_METRICS_H

#include "base/error.h"
#include "compare/compared_run.h"

/* Levels of its parts: self times of the operators that its writer's profiler lists. Its values `profiled_device_time` and
 * `profiled_host_time` are what that profiler counted in all, and absent where the file has none. */
#define CANARY_CUDA_OPERATORS COMPARED_TOP "CUDA operators"
#define CANARY_CPU_OPERATORS COMPARED_TOP "CPU operators"

/* Is it one, by what it begins with? What is no file, such as a pipe, is none, and is not read. */
bool canary_metrics_probe(const char *path);

/* The same of its text; `path` is for messages and for the run's name. */
enum status canary_metrics_parse(struct compared_run *run, const char *text, size_t length, const char *path,
                                 struct error *err) MUST_CHECK;

/* STATUS_INPUT when it is not complete JSON, or has no step times. On failure nothing needs to be released. */
enum status canary_metrics_read(struct compared_run *run, const char *path, struct error *err) MUST_CHECK;

/* The begin of its run_id, "dpo" of "dpo_1795244589_a1b2c3d4", and what tells it from other runs: run_id and timestamp, with the
 * path where one of them is missing; in the run's arena. */
const char *canary_metrics_series(struct compared_run *run);
const char *canary_metrics_identity(struct compared_run *run);

#endif
