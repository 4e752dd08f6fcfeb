/* SPDX-License-Identifier: Apache-2.0
 *
 * Stacks of recordings made by hand: the frames of spans and samples, also those of broken files.
 */
#include "hand_recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void frame(struct segment_builder *segment, uint32_t id, const char *text, uint32_t length)
{
	segment_symbol_n(segment, id, STEPSCOPE_SYMBOL_FRAME, text, length);
}

#define FRAME(segment, id, text) frame(segment, id, text, sizeof(text) - 1)

static uint32_t stack_of_row(uint32_t row)
{
	uint32_t index;
	const struct span_chunk *chunk = track_chunk(model.tracks[0], row, &index);
	return span_stack(chunk, index);
}

/* What a broken file says of its frames ends in some stack, never in a loop. */
static void begins_have_the_stacks_of_their_frames(void **state)
{
	struct segment_builder segment;
	static const uint32_t frames[] = {31, 0, 32, 34, 36, 37, 99, SAVED};
	begin(&segment);
	FRAME(&segment, 31,
	      "30\0"
	      "12\0forward\0net.py");
	FRAME(&segment, 30,
	      "0\0"
	      "3\0<module>\0train.py");
	FRAME(&segment, 32,
	      "33\0"
	      "1\0one\0a.py");
	FRAME(&segment, 33,
	      "32\0"
	      "2\0other\0a.py"); /* a circle */
	FRAME(&segment, 34,
	      "34\0"
	      "99999999999999999999\0itself\0");
	FRAME(&segment, 36, "77\0x");
	FRAME(&segment, 37, "");
	for (size_t i = 0; i < sizeof frames / sizeof *frames; i++)
		segment_put(&segment, MAIN, 10 + i, STEPSCOPE_EVENT_BEGIN, OP, 2, STEPSCOPE_NO_SEQUENCE,
		            (uint64_t)frames[i] << 32);
	segment_end(&segment, "exit");
	load(&segment);
	const struct stack_node *node = &model.stacks[stack_of_row(0)];
	assert_string_equal(model_text(&model, node->frame), "forward");
	assert_string_equal(model_text(&model, node->file), "net.py");
	assert_int_equal(node->line, 12);
	assert_int_equal(model.stacks[node->parent].line, 3);
	assert_int_equal(model.stacks[node->parent].parent, 0);
	assert_int_equal(stack_of_row(1), stack_of_row(0)); /* as that of the span around it */
	assert_string_equal(model_text(&model, model.stacks[stack_of_row(2)].frame), "one");
	assert_string_equal(model_text(&model, model.stacks[stack_of_row(3)].frame), "itself");
	assert_true(model.stacks_count < 10);
	assert_int_equal(stack_of_row(6), 0); /* there is no such frame */
	assert_int_equal(stack_of_row(7), 0);
	model_release(&model);
	(void)state;
}

/* What the recorder said it costs to read a frame counts for those that it read. */
static void frames_count_that_the_one_around_does_not_have(void **state)
{
	struct segment_builder segment;
	static const uint32_t frames[] = {32, 0, 33, 34};
	begin(&segment);
	segment_symbol(&segment, 50, STEPSCOPE_SYMBOL_ANNOTATION, "mine");
	FRAME(&segment, 31,
	      "0\0"
	      "3\0<module>\0train.py");
	FRAME(&segment, 32,
	      "31\0"
	      "12\0forward\0net.py");
	FRAME(&segment, 33,
	      "32\0"
	      "1\0mode\0net.py");
	FRAME(&segment, 34,
	      "31\0"
	      "2\0other\0net.py");
	for (size_t i = 0; i < sizeof frames / sizeof *frames;
	     i++) /* 2 frames, 0, 1 beyond that, 2 that go another way */
		segment_put(&segment, MAIN, 10 + i, STEPSCOPE_EVENT_BEGIN, OP, 2, STEPSCOPE_NO_SEQUENCE,
		            (uint64_t)frames[i] << 32);
	segment_put(&segment, MAIN, 20, STEPSCOPE_EVENT_BEGIN, 50, 2, STEPSCOPE_NO_SEQUENCE, (uint64_t)33 << 32);
	segment_put(&segment, MAIN, 21, STEPSCOPE_EVENT_BEGIN, OP, 2, STEPSCOPE_NO_SEQUENCE, (uint64_t)33 << 32);
	segment_end(&segment, "exit");
	load(&segment);
	assert_int_equal(model.processes[0].stack_frames, 2 + 0 + 1 + 2 + 3 + 3);
	model_release(&model);
	(void)state;
}

static void samples_have_stacks(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	segment_symbol(&segment, 30, STEPSCOPE_SYMBOL_FRAME, "main");
	segment_symbol(&segment, 31, STEPSCOPE_SYMBOL_FRAME, "forward");
	const struct stepscope_stack_node nodes[] = {{1, 0, 30, 12}, {2, 1, 31, 0}};
	segment_block(&segment, STEPSCOPE_BLOCK_STACKS, 0, nodes, sizeof nodes);
	segment_put(&segment, MAIN, 50, STEPSCOPE_EVENT_SAMPLE, SAVED, 3, (uint64_t)2, (uint64_t)9, (uint64_t)0);
	segment_end(&segment, "exit");
	load(&segment);
	assert_int_equal(model.samples_count, 1);
	assert_int_equal(model.samples[0].weight, 9);
	const struct stack_node *node = &model.stacks[model.samples[0].stack];
	assert_string_equal(model_text(&model, node->frame), "forward");
	assert_int_equal(model.stacks[node->parent].line, 12);
	model_release(&model);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(begins_have_the_stacks_of_their_frames),
		cmocka_unit_test(frames_count_that_the_one_around_does_not_have),
		cmocka_unit_test(samples_have_stacks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
