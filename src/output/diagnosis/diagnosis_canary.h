/* SPDX-License-Identifier: Apache-2.0
 *
 * diagnosis_canary.h: the block QUICK DIAGNOSIS as rlhf-canary's notebook on profiling prints it, word for word, from
 * sound numbers:
 *
 *     CPU time     self time of operators, of calls of the runtime that do not wait for the device, and of waits for
 *                  data: a nested operator counts once
 *     CUDA time    time in which the devices were busy: an instant counts once, however many kernels run
 *     copies       operators with "copy" in their name among the ten with the most device time
 *
 * For a metrics.json of rlhf-canary the block uses the file's numbers, which are the notebook's own.
 *
 * The notebook adds up total times of operators. It counts an operator once per level of nesting, and a kernel twice.
 */
#ifndef OUTPUT_DIAGNOSIS_DIAGNOSIS_CANARY_H
#define OUTPUT_DIAGNOSIS_DIAGNOSIS_CANARY_H

#include "analysis/report.h"
#include "base/buffer.h"
#include "compare/compared_run.h"
#include "diagnosis/diagnosis.h"

/* Writes the headline of the diagnosis as a note before the block. If the input is too damaged to say anything about
 * devices, a line says so in place of the block. */
enum status diagnosis_canary(struct buffer *out, const struct diagnosis *diagnosis, struct report *report,
                             struct error *err) MUST_CHECK;

/* Writes the block for a run that canary_metrics_read() has read. Returns STATUS_INPUT if the file has no profiler
 * times. */
enum status diagnosis_canary_metrics(struct buffer *out, const struct compared_run *run, struct error *err) MUST_CHECK;

#endif
