/* SPDX-License-Identifier: Apache-2.0
 *
 * Links between forward and backward in recordings made by hand: how a node finds the operator with its sequence number.
 */
#include "hand_recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A node that PyTorch's thread `thread` made the operator of: number is the sequence number. */
#define WORD(thread, number) ((uint64_t)(thread) << 48 | (uint64_t)(number))

#define NODE 61

static void check_link(uint32_t link, uint32_t from_track, uint32_t from_row, uint32_t to_track, uint32_t to_row)
{
	assert_int_equal(model.links[link].kind, STEPSCOPE_LINK_BACKWARD);
	assert_int_equal(model.links[link].from_track, from_track);
	assert_int_equal(model.links[link].from_row, from_row);
	assert_int_equal(model.links[link].to_track, to_track);
	assert_int_equal(model.links[link].to_row, to_row);
}

static void put_word(struct segment_builder *segment, uint32_t stream, uint64_t tick, uint32_t id, uint64_t word)
{
	segment_put(segment, stream, tick, STEPSCOPE_EVENT_BEGIN, id, 1, word);
	segment_put(segment, stream, tick + 1, STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, 0);
}

static void nodes_are_linked_to_the_newest_operator_of_their_number(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	segment_stream(&segment, 2, 4300, "autograd");
	segment_symbol(&segment, NODE, STEPSCOPE_SYMBOL_BACKWARD, "MmBackward0");
	/* the other thread's block comes first: its node (row 0) is of an operator of the first thread (row 3) */
	segment_put(&segment, 2, 5, STEPSCOPE_EVENT_EXTENDED, STEPSCOPE_EXTENDED_TORCH_THREAD, 1, (uint64_t)2);
	put_word(&segment, 2, 100, NODE, WORD(1, 8));
	put_word(&segment, 2, 110, OP, WORD(0, 7)); /* of this thread: another number 7 */
	segment_put(&segment, MAIN, 6, STEPSCOPE_EVENT_EXTENDED, STEPSCOPE_EXTENDED_TORCH_THREAD, 1, (uint64_t)1);
	put_word(&segment, MAIN, 10, OP, WORD(0, 7));
	put_word(&segment, MAIN, 20, OTHER_OP, WORD(0, 7)); /* nested or later: it made the node */
	put_word(&segment, MAIN, 30, NODE, WORD(1, 7));     /* row 2 */
	put_word(&segment, MAIN, 40, OP, WORD(0, 8));
	put_word(&segment, MAIN, 50, NODE, WORD(1, 7)); /* the same graph once more */
	put_word(&segment, MAIN, 60, NODE, WORD(1, 6)); /* before the recording */
	put_word(&segment, MAIN, 70, NODE, WORD(9, 7)); /* of a thread that nobody knows */
	put_word(&segment, MAIN, 80, NODE, WORD(0, 7)); /* of no forward */
	segment_end(&segment, "exit");
	load(&segment);
	uint32_t main = model.tracks[0]->is_main ? 0 : 1;
	assert_int_equal(model.tracks[main]->torch_thread, 1);
	assert_int_equal(model.links_count, 3);
	check_link(0, main, 1, main, 2);
	check_link(1, main, 1, main, 4);
	check_link(2, main, 3, 1 - main, 0);
	model_release(&model);
	(void)state;
}

static void links_need_nothing_that_lies_before_the_steps_that_are_loaded(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	segment_stream(&segment, 2, 4300, "autograd");
	segment_stream(&segment, 3, 4301, "not seen again");
	segment_symbol(&segment, NODE, STEPSCOPE_SYMBOL_BACKWARD, "MmBackward0");
	for (uint32_t stream = 1; stream <= 3; stream++) /* once, at the beginning */
		segment_put(&segment, stream, 5 + stream, STEPSCOPE_EVENT_EXTENDED, STEPSCOPE_EXTENDED_TORCH_THREAD, 1,
		            (uint64_t)stream);
	for (uint64_t n = 0; n < 4; n++) {
		segment_step(&segment, MAIN, 100 + 100 * n, STEPSCOPE_STEP_BEGIN, (int64_t)n);
		put_word(&segment, MAIN, 110 + 100 * n, OP, WORD(0, 7 + 2 * n));
		put_word(&segment, MAIN, 120 + 100 * n, OTHER_OP, WORD(0, 8 + 2 * n));
		put_word(&segment, MAIN, 130 + 100 * n, NODE, WORD(1, 8 + 2 * n));
		put_word(&segment, 2, 140 + 100 * n, NODE, WORD(1, 7 + 2 * n));
		segment_step(&segment, MAIN, 190 + 100 * n, STEPSCOPE_STEP_END, (int64_t)n);
	}
	segment_end(&segment, "exit");
	const struct model_filter filter = {.has_steps = true, .first_step = 2, .last_step = 2};
	const char *name = "n.4242.1.0.ssr";
	load_all(&segment, 1, &name, &filter);
	uint32_t main = model.tracks[0]->is_main ? 0 : 1;
	assert_int_equal(model.tracks_count, 2);
	assert_int_equal(model.tracks[main]->torch_thread, 1);
	assert_int_equal(model.tracks[1 - main]->torch_thread, 2);
	assert_int_equal(model.links_count, 2);
	check_link(0, main, 2, main, 3); /* row 0 is the step */
	check_link(1, main, 1, 1 - main, 0);
	model_release(&model);
	(void)state;
}

static void operators_without_backward_do_not_fill_the_memory(void **state)
{
	enum {
		OPERATORS = 300000,
		KEPT = 1 << 18
	};
	struct segment_builder segment;
	begin(&segment);
	segment_symbol(&segment, NODE, STEPSCOPE_SYMBOL_BACKWARD, "MmBackward0");
	segment_put(&segment, MAIN, 6, STEPSCOPE_EVENT_EXTENDED, STEPSCOPE_EXTENDED_TORCH_THREAD, 1, (uint64_t)1);
	for (uint64_t i = 0; i < OPERATORS; i++)
		put_word(&segment, MAIN, 10 + 2 * i, OP, WORD(0, i));
	put_word(&segment, MAIN, 20 + 2 * OPERATORS, NODE, WORD(1, OPERATORS - KEPT));
	put_word(&segment, MAIN, 30 + 2 * OPERATORS, NODE, WORD(1, OPERATORS - KEPT - 1));
	segment_end(&segment, "exit");
	load(&segment);
	assert_int_equal(model.links_count, 1);
	check_link(0, 0, OPERATORS - KEPT, 0, OPERATORS);
	assert_int_equal(ledger_count(LEDGER_OTHER), 1);
	model_release(&model);
	(void)state;
}

static void the_engine_around_a_node_has_its_number(void **state)
{
	struct segment_builder segment;
	begin(&segment);
	segment_symbol(&segment, NODE, STEPSCOPE_SYMBOL_BACKWARD, "MmBackward0");
	segment_symbol(&segment, 62, STEPSCOPE_SYMBOL_OP, "autograd::engine::evaluate_function: MmBackward0");
	on(&segment, 10, STEPSCOPE_EVENT_BEGIN, 62);
	put_word(&segment, MAIN, 20, NODE, WORD(1, 7));
	segment_end(&segment, "exit");
	load(&segment);
	assert_true(span_sequence(model.tracks[0]->chunks[0], 0) == WORD(1, 7));
	model_release(&model);
	(void)state;
}

#define LINKED_THREADS 20u

/* Two operators far apart make a table as large as it gets; those of very many threads must not fill the memory. */
static void links_of_very_many_operators_are_left_out(void **state)
{
	struct segment_builder segment;
	const uint64_t apart = 1 << 17;
	begin(&segment);
	segment_symbol(&segment, 50, STEPSCOPE_SYMBOL_BACKWARD, "MmBackward0");
	for (uint32_t thread = 1; thread <= LINKED_THREADS; thread++) {
		uint64_t node = 1 | (uint64_t)thread << 48;
		segment_stream(&segment, 10 + thread, 9000 + thread, "thread");
		segment_put(&segment, 10 + thread, 10, STEPSCOPE_EVENT_EXTENDED, STEPSCOPE_EXTENDED_TORCH_THREAD, 1,
		            (uint64_t)thread);
		segment_put(&segment, 10 + thread, 11, STEPSCOPE_EVENT_BEGIN, OP, 1, (uint64_t)1);
		segment_put(&segment, 10 + thread, 12, STEPSCOPE_EVENT_BEGIN, OP, 1, 1 + apart);
		segment_put(&segment, 10 + thread, 13, STEPSCOPE_EVENT_BEGIN, 50, 1, node);
	}
	segment_end(&segment, "exit");
	load(&segment);
	uint64_t lost = 0;
	for (uint32_t i = 0; i < model.ledger_count; i++)
		if (strstr(model_text(&model, model.ledger[i].text), "too many operations are between"))
			lost += model.ledger[i].count;
	assert_int_equal(model.links_count + lost, LINKED_THREADS);
	assert_true(model.links_count >= 8 && model.links_count <= 16);
	model_release(&model);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_are_linked_to_the_newest_operator_of_their_number),
		cmocka_unit_test(links_need_nothing_that_lies_before_the_steps_that_are_loaded),
		cmocka_unit_test(operators_without_backward_do_not_fill_the_memory),
		cmocka_unit_test(the_engine_around_a_node_has_its_number),
		cmocka_unit_test(links_of_very_many_operators_are_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
