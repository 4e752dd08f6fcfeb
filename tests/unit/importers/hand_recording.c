/* SPDX-License-Identifier: Apache-2.0
 *
 * Segments with the symbols of hand_recording.h, and the way from them into `model`.
 */
#include "hand_recording.h"

#include "importers/recording/recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

void begin(struct segment_builder *segment)
{
	segment_begin(segment, 4242, 0);
	segment_stream(segment, MAIN, 4242, "main");
	segment_symbol(segment, OP, STEPSCOPE_SYMBOL_OP, "matmul");
	segment_symbol(segment, RANGE, STEPSCOPE_SYMBOL_RANGE, "layer");
	segment_symbol(segment, LOSS, STEPSCOPE_SYMBOL_METRIC, "loss");
	segment_symbol(segment, QUEUE, STEPSCOPE_SYMBOL_COUNTER, "queue");
	segment_symbol(segment, SAVED, STEPSCOPE_SYMBOL_MARK, "saved");
	segment_symbol(segment, SHAPE, STEPSCOPE_SYMBOL_TEXT, "[2, 3]");
	segment_symbol(segment, KERNEL, STEPSCOPE_SYMBOL_KERNEL, "gemm");
	segment_symbol(segment, OTHER_OP, STEPSCOPE_SYMBOL_OP, "add");
}

void on(struct segment_builder *segment, uint64_t tick, enum stepscope_event type, uint32_t id)
{
	segment_put(segment, MAIN, tick, type, id, 0);
}

void load_all(struct segment_builder *segments, uint32_t count, const char *const *names,
              const struct model_filter *filter)
{
	struct recording_bytes bytes[8];
	struct error err = {.status = STATUS_OK};
	for (uint32_t i = 0; i < count; i++)
		bytes[i] = (struct recording_bytes){segments[i].bytes.data, segments[i].bytes.length, names[i]};
	model_init(&model, 0);
	assert_int_equal(recording_load_memory(bytes, count, filter, &model, &err), STATUS_OK);
	model_finish(&model);
	for (uint32_t i = 0; i < count; i++)
		segment_release(&segments[i]);
}

void load(struct segment_builder *segment)
{
	const char *name = "node.7.4242.5242.0.ssr";
	load_all(segment, 1, &name, NULL);
}

uint64_t bits(double value)
{
	uint64_t result;
	memcpy(&result, &value, sizeof result);
	return result;
}
