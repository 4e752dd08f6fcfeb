/* SPDX-License-Identifier: Apache-2.0
 *
 * export_sample.h: a model built by hand that has one of everything an exporter writes; for the exporters' tests and,
 * through export_sample_main.c, for the readers of tests/conformance.
 */
#ifndef TESTS_EXPORT_SAMPLE_H
#define TESTS_EXPORT_SAMPLE_H

#include "model/model.h"

/* Two trainers (ranks 0 and 1), each with three steps of phases and ops, a loader thread, a device with two streams,
 * launches, marks, counters, metrics and memory; names that need escaping; one open op. finish() has been called. */
void sample_fill(struct model *model, unsigned rank_count);

/* Makes the two kernels of step `step` on stream 20 of rank 0 cross each other, as graphs make them do. */
void sample_cross_kernels(struct model *model);

struct sample_sum { /* what the spans of a model come to */
	uint64_t spans;
	int64_t dur_ns;
};
struct sample_sum sample_sum(const struct model *model);

#endif
