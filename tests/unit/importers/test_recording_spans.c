/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans of recordings made by hand: how they nest where ends are missing, late or of another class, and what begins, arguments,
 * launches and allocations say of them.
 */
#include "hand_recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* So many that are open in it go on. */
static void end_beneath(struct segment_builder *segment, uint64_t tick, uint64_t above)
{
	segment_put(segment, MAIN, tick, STEPSCOPE_EVENT_END, STEPSCOPE_END_BENEATH, 1, above);
}

static void a_range_that_ends_in_another_one_is_cut(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, RANGE);
	on(&segment, 20, STEPSCOPE_EVENT_BEGIN, RANGE);
	on(&segment, 30, STEPSCOPE_EVENT_BEGIN, OP);
	on(&segment, 40, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	on(&segment, 50, STEPSCOPE_EVENT_BEGIN, OP);
	end_beneath(&segment, 60, 2);
	on(&segment, 70, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	on(&segment, 80, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	segment_end(&segment, "exit");
	load(&segment);
	CHECK_SPANS(0, {10, 10, "layer", 0, SPAN_IS_CLIPPED}, {20, 60, "layer", 0, 0}, {30, 10, "matmul", 1, 0},
	            {50, 20, "matmul", 1, 0});
	assert_int_equal(ledger_count(LEDGER_OTHER), 1);
	assert_non_null(strstr(model_text(&model, model.ledger[0].text), "by 40 ns in total"));
	assert_int_equal(model.args_count, 1);
	assert_int_equal(model.args[0].i64, 40);
	model_release(&model);
}

/* As where PyTorch's dispatcher calls a mode, which begins a range: that is not worth a word. */
static void a_range_that_outlives_its_operator(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 5, STEPSCOPE_EVENT_BEGIN, STEPSCOPE_PHASE_FORWARD);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, OP);
	on(&segment, 20, STEPSCOPE_EVENT_BEGIN, STEPSCOPE_BUILTIN_MICRO_BATCH); /* does not count */
	on(&segment, 30, STEPSCOPE_EVENT_BEGIN, RANGE);
	end_beneath(&segment, 40, 1);
	on(&segment, 50, STEPSCOPE_EVENT_BEGIN, OTHER_OP);
	end_beneath(&segment, 60, 1);
	on(&segment, 70, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	on(&segment, 80, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE);
	on(&segment, 90, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE);
	segment_end(&segment, "exit");
	load(&segment);
	CHECK_SPANS(0, {5, 85, "forward", 0, 0}, {10, 10, "matmul", 1, SPAN_IS_CLIPPED}, {20, 60, "micro-batch", 1, 0},
	            {30, 20, "layer", 2, SPAN_IS_CLIPPED}, {50, 20, "add", 2, 0});
	assert_int_equal(ledger_count(LEDGER_OTHER) + ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
}

/* In another thread, which told when; nothing began in it. */
static void an_end_that_is_told_late(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, RANGE);
	on(&segment, 20, STEPSCOPE_EVENT_BEGIN, OP);
	segment_put(&segment, MAIN, 90, STEPSCOPE_EVENT_END, STEPSCOPE_END_BENEATH, 2, (uint64_t)0, (uint64_t)35);
	on(&segment, 90, STEPSCOPE_EVENT_BEGIN, OTHER_OP);
	on(&segment, 95, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	segment_put(&segment, MAIN, 99, STEPSCOPE_EVENT_END, STEPSCOPE_END_BENEATH, 2, (uint64_t)0, (uint64_t)5);
	segment_end(&segment, "exit");
	load(&segment);
	CHECK_SPANS(0, {10, 85, "layer", 0, SPAN_ENDS_ELSEWHERE}, {20, 15, "matmul", 1, SPAN_ENDS_ELSEWHERE},
	            {90, 5, "add", 1, 0});
	/* the range is as long as what began in it, and it is known when it ended */
	assert_int_equal(model.args_count, 1);
	assert_int_equal(model.args[0].row, 0);
	assert_int_equal(model.args[0].i64, -85); /* at once, as an end before the begin is none */
	model_release(&model);
}

/* A function of TorchScript goes on in another thread, and the range around the call is over before it. */
static void what_an_asynchronous_operator_cut_is_known(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, RANGE);
	on(&segment, 20, STEPSCOPE_EVENT_BEGIN, OP);
	end_beneath(&segment, 50, 1);
	segment_put(&segment, MAIN, 90, STEPSCOPE_EVENT_END, STEPSCOPE_END_BENEATH, 2, (uint64_t)0, (uint64_t)60);
	segment_end(&segment, "exit");
	load(&segment);
	CHECK_SPANS(0, {10, 10, "layer", 0, SPAN_IS_CLIPPED}, {20, 40, "matmul", 0, SPAN_ENDS_ELSEWHERE});
	assert_int_equal(model.args_count, 1);
	assert_int_equal(model.args[0].row, 0);
	assert_int_equal(model.args[0].i64, 30);
	assert_int_equal(ledger_count(LEDGER_OTHER), 0);
	model_release(&model);
}

/* Nobody writes them. */
static void ends_beneath_what_is_not_there(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	end_beneath(&segment, 1, 0);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, RANGE);
	end_beneath(&segment, 20, 1);
	end_beneath(&segment, 30, UINT64_MAX);
	on(&segment, 40, STEPSCOPE_EVENT_END, STEPSCOPE_END_BENEATH); /* without a word: the innermost */
	for (int i = 0; i < 20000; i++)
		on(&segment, 50, STEPSCOPE_EVENT_BEGIN, RANGE);
	for (uint64_t i = 0; i < 20000; i++)
		end_beneath(&segment, 60 + i, i);
	segment_end(&segment, "exit");
	load(&segment);
	assert_int_equal(model.tracks[0]->chunks[0]->dur_ns[0], 30);
	assert_true(ledger_count(LEDGER_UNMATCHED_END) > 3);
	model_release(&model);
}

static void an_end_of_detail_does_not_close_a_phase(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, RANGE);
	on(&segment, 20, STEPSCOPE_EVENT_BEGIN, STEPSCOPE_PHASE_DATA);
	on(&segment, 30, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL); /* closes the range */
	on(&segment, 40, STEPSCOPE_EVENT_BEGIN, OP);
	on(&segment, 50, STEPSCOPE_EVENT_BEGIN, OTHER_OP);
	on(&segment, 60, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE);  /* closes all three */
	on(&segment, 70, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE);  /* ignored */
	on(&segment, 80, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL); /* ignored */
	on(&segment, 90, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL); /* ignored */
	segment_end(&segment, "exit");
	load(&segment);
	CHECK_SPANS(0, {10, 10, "layer", 0, SPAN_IS_CLIPPED}, {20, 40, "data", 0, 0},
	            {40, 20, "matmul", 1, SPAN_END_IS_LOST}, {50, 10, "add", 2, SPAN_END_IS_LOST});
	assert_int_equal(model.args[0].i64, 10);
	assert_int_equal(ledger_count(LEDGER_UNMATCHED_END), 3);
	model_release(&model);
	(void)state;
}

static void fault_G9_a_range_around_the_start_of_a_step_ends_in_it(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, RANGE);
	segment_step(&segment, MAIN, 20, STEPSCOPE_STEP_BEGIN, 0);
	on(&segment, 25, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	on(&segment, 30, STEPSCOPE_EVENT_BEGIN, OP);
	on(&segment, 40, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	segment_step(&segment, MAIN, 50, STEPSCOPE_STEP_END, 0);
	segment_end(&segment, "exit");
	load(&segment);
	CHECK_SPANS(0, {10, 10, "layer", 0, SPAN_IS_CLIPPED}, {20, 30, "step", 0, 0}, {30, 10, "matmul", 1, 0});
	assert_int_equal(model.args[0].i64, 5);
	assert_int_equal(ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
	(void)state;
}

/* The end of such a range is not that of the range around the steps. */
static void fault_G9_a_range_that_a_step_ended_is_over(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 5, STEPSCOPE_EVENT_BEGIN, RANGE);
	segment_step(&segment, MAIN, 10, STEPSCOPE_STEP_BEGIN, 0);
	on(&segment, 15, STEPSCOPE_EVENT_BEGIN, OP);
	segment_step(&segment, MAIN, 20, STEPSCOPE_STEP_END, 0);
	segment_step(&segment, MAIN, 30, STEPSCOPE_STEP_BEGIN, 1);
	on(&segment, 35, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL); /* of the operator: ignored */
	segment_step(&segment, MAIN, 40, STEPSCOPE_STEP_END, 1);
	on(&segment, 45, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	segment_end(&segment, "exit");
	load(&segment);
	CHECK_SPANS(0, {5, 40, "layer", 0, 0}, {10, 10, "step", 1, 0}, {15, 5, "matmul", 2, SPAN_END_IS_LOST},
	            {30, 10, "step", 1, 0});
	assert_int_equal(ledger_count(LEDGER_UNMATCHED_END), 1);
	model_release(&model);
	(void)state;
}

static void a_switch_ends_its_class_and_begins(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	segment_step(&segment, MAIN, 1, STEPSCOPE_STEP_BEGIN, 0);
	on(&segment, 5, STEPSCOPE_EVENT_BEGIN, STEPSCOPE_BUILTIN_MICRO_BATCH);
	on(&segment, 10, STEPSCOPE_EVENT_SWITCH, STEPSCOPE_PHASE_DATA); /* must not end the micro-batch */
	on(&segment, 20, STEPSCOPE_EVENT_SWITCH, OP);                   /* nothing of its class is open */
	on(&segment, 30, STEPSCOPE_EVENT_SWITCH, OTHER_OP);
	on(&segment, 40, STEPSCOPE_EVENT_SWITCH, STEPSCOPE_PHASE_FORWARD);
	on(&segment, 50, STEPSCOPE_EVENT_SWITCH, STEPSCOPE_BUILTIN_MICRO_BATCH);
	on(&segment, 60, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE);
	segment_step(&segment, MAIN, 70, STEPSCOPE_STEP_END, 0);
	segment_end(&segment, "exit");
	load(&segment);
	CHECK_SPANS(0, {1, 69, "step", 0, 0}, {5, 45, "micro-batch", 1, 0}, {10, 30, "data", 2, 0},
	            {20, 10, "matmul", 3, 0}, {30, 10, "add", 3, SPAN_END_IS_LOST},
	            {40, 10, "forward", 2, SPAN_END_IS_LOST}, {50, 10, "micro-batch", 1, 0});
	assert_int_equal(ledger_count(LEDGER_UNMATCHED_END), 0);
	model_release(&model);
	(void)state;
}

static void arguments_belong_to_the_span_before(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, OP);
	segment_put(&segment, MAIN, 10, STEPSCOPE_EVENT_ARG, STEPSCOPE_BUILTIN_KEY_SHAPE, 2,
	            (uint64_t)STEPSCOPE_ARG_SYMBOL, (uint64_t)SHAPE);
	segment_put(&segment, MAIN, 10, STEPSCOPE_EVENT_ARG, STEPSCOPE_BUILTIN_KEY_FLOPS, 2,
	            (uint64_t)STEPSCOPE_ARG_F64, bits(1e9));
	segment_put(&segment, MAIN, 10, STEPSCOPE_EVENT_ARG, STEPSCOPE_BUILTIN_KEY_DTYPE, 2,
	            (uint64_t)STEPSCOPE_ARG_SYMBOL, (uint64_t)SAVED);
	on(&segment, 20, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	on(&segment, 30, STEPSCOPE_EVENT_MARK, SAVED);
	segment_put(&segment, MAIN, 30, STEPSCOPE_EVENT_ARG, STEPSCOPE_BUILTIN_KEY_FLOPS, 2,
	            (uint64_t)STEPSCOPE_ARG_F64, bits(7));
	segment_end(&segment, "exit");
	load(&segment);
	assert_string_equal(model_text(&model, model.tracks[0]->chunks[0]->shape[0]), "[2, 3]");
	assert_int_equal(model.args_count, 2);
	assert_string_equal(model_text(&model, model.args[0].key), "flops");
	assert_true(model.args[0].f64 == 1e9);
	assert_string_equal(model_text(&model, model.args[1].text), "saved");
	model_release(&model);
	(void)state;
}

/* And not to one that was nested in it, or to a phase around it. */
static void arguments_of_an_end_belong_to_its_span(void **state)
{
	const uint64_t key = STEPSCOPE_BUILTIN_KEY_BYTES, number = (uint64_t)STEPSCOPE_ARG_U64 << 32 | key;
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 5, STEPSCOPE_EVENT_BEGIN, STEPSCOPE_BUILTIN_PHASE_DATA);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, RANGE);
	on(&segment, 12, STEPSCOPE_EVENT_BEGIN, OP);
	on(&segment, 14, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	segment_put(&segment, MAIN, 20, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, 4, number, (uint64_t)4096,
	            (uint64_t)STEPSCOPE_ARG_SYMBOL << 32 | key, (uint64_t)SHAPE); /* no symbols: it is left out */
	segment_put(&segment, MAIN, 30, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, 2, number, (uint64_t)7);
	on(&segment, 40, STEPSCOPE_EVENT_BEGIN, OP);
	segment_put(&segment, MAIN, 50, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, 3, UINT64_MAX, (uint64_t)7,
	            (uint64_t)1);
	on(&segment, 60, STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE);
	segment_end(&segment, "exit");
	load(&segment);
	assert_int_equal(model.args_count, 1);
	assert_int_equal(model.args[0].row, 1);
	assert_int_equal(model.args[0].u64, 4096);
	assert_string_equal(model_text(&model, model.args[0].key), "bytes");
	CHECK_SPANS(0, {5, 55, "data", 0, 0}, {10, 10, "layer", 1, 0}, {12, 2, "matmul", 2, 0},
	            {40, 10, "matmul", 1, 0});
	model_release(&model);
	(void)state;
}

static void a_begin_carries_its_sequence_and_inputs(void **state)
{
	enum {
		INPUTS = 60
	};
	struct segment_builder segment;
	begin(&segment);
	segment_symbol(&segment, INPUTS, STEPSCOPE_SYMBOL_INPUTS, "[2, 3] []\nmore");
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, OP);
	segment_put(&segment, MAIN, 20, STEPSCOPE_EVENT_BEGIN, OP, 1, (uint64_t)5 << 48 | 99);
	segment_put(&segment, MAIN, 30, STEPSCOPE_EVENT_BEGIN, OP, 2, UINT64_MAX, (uint64_t)INPUTS);
	segment_put(&segment, MAIN, 40, STEPSCOPE_EVENT_BEGIN, OP, 2, (uint64_t)100, (uint64_t)SHAPE);
	segment_end(&segment, "exit");
	load(&segment);
	const struct span_chunk *chunk = model.tracks[0]->chunks[0];
	assert_true(span_sequence(chunk, 0) == STEPSCOPE_NO_SEQUENCE);
	assert_true(span_sequence(chunk, 1) == ((uint64_t)5 << 48 | 99));
	assert_true(span_sequence(chunk, 2) == STEPSCOPE_NO_SEQUENCE);
	assert_true(span_sequence(chunk, 3) == 100);
	assert_string_equal(model_text(&model, span_inputs(chunk, 2)), "[2, 3] []\nmore");
	assert_string_equal(model_text(&model, chunk->shape[2]), "[2, 3] []");
	assert_int_equal(span_inputs(chunk, 1), 0);
	assert_int_equal(span_inputs(chunk, 3), 0); /* not of that kind */
	model_release(&model);
	(void)state;
}

static void complete_spans_are_sorted_and_linked(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	segment_track(&segment, 3, 2, 0, 7, "stream 7");
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, OP);
	segment_put(&segment, MAIN, 10, STEPSCOPE_EVENT_LINK, STEPSCOPE_LINK_LAUNCH * 2, 1, (uint64_t)77);
	on(&segment, 20, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	segment_put(&segment, MAIN, 100, STEPSCOPE_EVENT_SPAN, KERNEL, 3, (uint64_t)3, (uint64_t)60, (uint64_t)10);
	segment_put(&segment, MAIN, 100, STEPSCOPE_EVENT_SPAN, KERNEL, 3, (uint64_t)3, (uint64_t)40, (uint64_t)15);
	segment_put(&segment, MAIN, 100, STEPSCOPE_EVENT_LINK, STEPSCOPE_LINK_LAUNCH * 2 + 1, 1, (uint64_t)77);
	segment_put(&segment, MAIN, 100, STEPSCOPE_EVENT_ARG, STEPSCOPE_BUILTIN_KEY_BYTES, 2,
	            (uint64_t)STEPSCOPE_ARG_U64, (uint64_t)4096);
	segment_put(&segment, MAIN, 100, STEPSCOPE_EVENT_ARG, STEPSCOPE_BUILTIN_KEY_SHAPE, 2,
	            (uint64_t)STEPSCOPE_ARG_SYMBOL, (uint64_t)SHAPE);
	/* about this thread, which has spans of its own: a track aside */
	segment_put(&segment, MAIN, 110, STEPSCOPE_EVENT_SPAN, OTHER_OP, 3, (uint64_t)0, (uint64_t)15, (uint64_t)30);
	segment_end(&segment, "exit");
	load(&segment);
	assert_int_equal(model.tracks_count, 3);
	assert_int_equal(model.tracks[0]->kind, TRACK_DEVICE);
	assert_int_equal(model.tracks[0]->tid, 7);
	CHECK_SPANS(0, {40, 15, "gemm", 0, 0}, {60, 10, "gemm", 0, 0});
	CHECK_SPANS(1, {10, 10, "matmul", 0, 0});
	CHECK_SPANS(2, {15, 30, "add", 0, 0});
	assert_int_equal(model.links_count, 1);
	assert_int_equal(model.links[0].from_track, 1);
	assert_int_equal(model.links[0].from_row, 0);
	assert_int_equal(model.links[0].to_track, 0);
	assert_int_equal(model.links[0].to_row, 0);
	assert_int_equal(model.args_count, 1);
	assert_int_equal(model.args[0].row, 0);
	assert_int_equal(model.args[0].u64, 4096);
	assert_string_equal(model_text(&model, model.tracks[0]->chunks[0]->shape[0]), "[2, 3]");
	model_release(&model);
	(void)state;
}

static void memory_events_know_where_they_happened(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, OP);
	segment_put(&segment, MAIN, 11, STEPSCOPE_EVENT_ALLOC, STEPSCOPE_MEMORY_ID(STEPSCOPE_MEMORY_GRADIENT, 1), 2,
	            (uint64_t)0x1000, (uint64_t)256);
	on(&segment, 12, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL);
	segment_put(&segment, MAIN, 13, STEPSCOPE_EVENT_FREE, STEPSCOPE_MEMORY_ID(0, 1), 1, (uint64_t)0x1000);
	segment_put(&segment, MAIN, 14, STEPSCOPE_EVENT_FREE, STEPSCOPE_MEMORY_ID(0, -1), 1, (uint64_t)0x1000);
	segment_end(&segment, "exit");
	load(&segment);
	assert_int_equal(model.memory_count, 3);
	assert_int_equal(model.memory[0].device, 1);
	assert_int_equal(model.memory[0].row, 0);
	assert_int_equal(model.memory[1].row, MODEL_NONE);
	assert_int_equal(model.memory[1].bytes, 256);
	assert_int_equal(model.memory[1].category, STEPSCOPE_MEMORY_GRADIENT);
	assert_int_equal(model.memory[2].device, -1);
	assert_false(model.memory[2].has_bytes);
	model_release(&model);
	(void)state;
}

static void a_thread_that_ended_has_no_open_spans(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	segment_stream_of_kind(&segment, 2, 99, "worker", STEPSCOPE_STREAM_THREAD, 0);
	segment_put(&segment, 2, 10, STEPSCOPE_EVENT_BEGIN, OP, 0);
	segment_put(&segment, 2, 20, STEPSCOPE_EVENT_MARK, SAVED, 0);
	segment_stream_of_kind(&segment, 2, 99, "worker", STEPSCOPE_STREAM_THREAD, 2);
	on(&segment, 500, STEPSCOPE_EVENT_MARK, SAVED);
	segment_end(&segment, "exit");
	load(&segment);
	CHECK_SPANS(0, {10, 10, "matmul", 0, SPAN_END_IS_LOST});
	assert_int_equal(ledger_count(LEDGER_OPEN_SPANS), 1);
	model_release(&model);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_that_ends_in_another_one_is_cut),
		cmocka_unit_test(a_range_that_outlives_its_operator),
		cmocka_unit_test(an_end_that_is_told_late),
		cmocka_unit_test(what_an_asynchronous_operator_cut_is_known),
		cmocka_unit_test(ends_beneath_what_is_not_there),
		cmocka_unit_test(an_end_of_detail_does_not_close_a_phase),
		cmocka_unit_test(fault_G9_a_range_around_the_start_of_a_step_ends_in_it),
		cmocka_unit_test(fault_G9_a_range_that_a_step_ended_is_over),
		cmocka_unit_test(a_switch_ends_its_class_and_begins),
		cmocka_unit_test(arguments_belong_to_the_span_before),
		cmocka_unit_test(arguments_of_an_end_belong_to_its_span),
		cmocka_unit_test(a_begin_carries_its_sequence_and_inputs),
		cmocka_unit_test(complete_spans_are_sorted_and_linked),
		cmocka_unit_test(memory_events_know_where_they_happened),
		cmocka_unit_test(a_thread_that_ended_has_no_open_spans),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
