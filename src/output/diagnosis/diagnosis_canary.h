/* SPDX-License-Identifier: Apache-2.0
 *
 * diagnosis_canary.h: the block QUICK DIAGNOSIS as rlhf-canary's notebook on profiling prints it, word for word, from sound numbers:
 *
 *     CPU time     self time of operators, of calls of the runtime that do not wait for the device, and of waits for data: an
 *                  operator inside of another counts once
 *     CUDA time    time in which the devices were busy: an instant counts once, however many kernels run
 *     copies       operators with "copy" in their name among the ten with the most time of devices behind them
 *
 * or of a metrics.json of rlhf-canary from what that has, which are the notebook's own numbers.
 *
 * The notebook adds up what operators take with everything inside, which counts an operator as often as it is nested, and a kernel twice.
 */
#ifndef OUTPUT_DIAGNOSIS_DIAGNOSIS_CANARY_H
#define OUTPUT_DIAGNOSIS_DIAGNOSIS_CANARY_H

#include "analysis/report.h"
#include "base/buffer.h"
#include "compare/compared_run.h"
#include "diagnosis/diagnosis.h"

/* The headline of the diagnosis stands before it, as a note; where that can say nothing of devices, neither does the block. */
enum status diagnosis_canary(struct buffer *out, const struct diagnosis *diagnosis, struct report *report,
                             struct error *err) MUST_CHECK;

/* Of a run that canary_metrics_read() has read; STATUS_INPUT when its file has no times of a profiler. */
enum status diagnosis_canary_metrics(struct buffer *out, const struct compared_run *run, struct error *err) MUST_CHECK;

#endif
