/* SPDX-License-Identifier: Apache-2.0
 *
 * loaded_model.h: the model that a test has loaded, and checks of its spans and of its ledger. The test releases the model.
 *
 *     CHECK_SPANS(0, {10, 40, "layer", 0, 0}, {20, 10, "matmul", 1, SPAN_END_IS_LOST});
 */
#ifndef UNIT_LOADED_MODEL_H
#define UNIT_LOADED_MODEL_H

#include "model/model.h"

extern struct model model;

struct expected {
	int64_t start_ns, dur_ns;
	const char *name;
	uint16_t depth;
	uint8_t flags;
};

/* Fails unless the track has exactly these spans, in this order. */
void check_spans(uint32_t track, const struct expected *expected, uint32_t count);
#define CHECK_SPANS(track, ...)                                                                                        \
	do {                                                                                                           \
		const struct expected expected_[] = {__VA_ARGS__};                                                     \
		check_spans(track, expected_, sizeof expected_ / sizeof *expected_);                                   \
	} while (0)

/* Returns the sum of the counts of all entries of this kind. */
uint64_t ledger_count(enum ledger_kind kind);

#endif
