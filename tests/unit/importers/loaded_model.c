/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the spans of the loaded model with those that a test expects, and sums its ledger.
 */
#include "loaded_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct model model;

void check_spans(uint32_t track, const struct expected *expected, uint32_t count)
{
	const struct track *spans = model.tracks[track];
	assert_int_equal(spans->span_count, count);
	for (uint32_t row = 0; row < count; row++) {
		uint32_t i;
		const struct span_chunk *chunk = track_chunk(spans, row, &i);
		assert_string_equal(model_text(&model, chunk->name[i]), expected[row].name);
		assert_int_equal(chunk->start_ns[i], expected[row].start_ns);
		assert_int_equal(chunk->dur_ns[i], expected[row].dur_ns);
		assert_int_equal(chunk->depth[i], expected[row].depth);
		assert_int_equal(chunk->flags[i], expected[row].flags);
	}
}

uint64_t ledger_count(enum ledger_kind kind)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < model.ledger_count; i++)
		count += model.ledger[i].kind == kind ? model.ledger[i].count : 0;
	return count;
}
