/* SPDX-License-Identifier: Apache-2.0
 *
 * Recordings of PyTorch that no program would write: very deep, very many, or random events. Loading them must end, and give steps in
 * order.
 */
#include "torch_recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void very_deep_nesting(void **state)
{
	static const uint32_t names[] = {RANGE, OP, NODE, CALL, STEPSCOPE_PHASE_FORWARD};

	for (unsigned kind = 0; kind < sizeof names / sizeof *names; kind++) {
		begin();
		for (int i = 0; i < 300000; i++)
			open_on(MAIN, names[kind]);
		for (int i = 0; i < 1000; i++)
			step();
		for (int i = 0; i < 300000; i++)
			segment_put(&segment, MAIN, now += 10, STEPSCOPE_EVENT_END,
			            kind % 2 ? STEPSCOPE_END_PHASE : STEPSCOPE_END_DETAIL, 0);
		finish(NULL);
		model_release(&model);
	}
}

static void millions_of_ranges(void **state)
{
	begin();
	for (int i = 0; i < 1000000; i++) {
		open_on(MAIN, RANGE);
		close_on(MAIN);
	}
	for (int i = 0; i < 100000; i++) {
		open_on(MAIN, RANGE);
		backward_on(i % 2 ? OTHER : MAIN);
		call((uint64_t)i % 3);
		close_on(MAIN);
	}
	finish("exit");
	assert_true(model.steps_count > 30000);
	model_release(&model);
}

static void gaps_of_nonsense(void **state)
{
	begin();
	for (int i = 0; i < 1000; i++) {
		gap(INT32_MAX, i % 2 ? 0 : INT32_MIN);
		step();
		gap(i, i + 1);
		gap(-1, INT32_MIN);
	}
	finish(NULL);
	model_release(&model);
}

/* Some with equal times, some of them under a filter. */
static void random_event(uint64_t *seed, bool has_all_types, uint32_t below)
{
	static const uint8_t types[] = {STEPSCOPE_EVENT_BEGIN, STEPSCOPE_EVENT_BEGIN,  STEPSCOPE_EVENT_END,
	                                STEPSCOPE_EVENT_END,   STEPSCOPE_EVENT_SWITCH, STEPSCOPE_EVENT_ARG,
	                                STEPSCOPE_EVENT_GAP,   STEPSCOPE_EVENT_STEP};
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	uint32_t r = (uint32_t)(*seed >> 32);
	uint8_t type = types[r % (has_all_types ? sizeof types : 4)];
	uint32_t stream = r / 4096 % 8 ? MAIN : OTHER, id = AGENT + r / 64 % (NAMES_END - AGENT);

	now += r / 32768 % below;
	if (type == STEPSCOPE_EVENT_BEGIN && r / 8 % 4 == 0)
		id = PROFILED + r / 64 % 5;
	if (type == STEPSCOPE_EVENT_END)
		id = r / 64 % 8 > 2 ? STEPSCOPE_END_DETAIL : r / 64 % 8 ? STEPSCOPE_END_BENEATH : STEPSCOPE_END_PHASE;
	if (type == STEPSCOPE_EVENT_SWITCH && r / 64 % 2)
		id = STEPSCOPE_PHASE_FORWARD;
	if (type == STEPSCOPE_EVENT_GAP)
		gap((int32_t)(r / 64 % 5) - 2, -(int32_t)(r / 1024 % 4));
	else if (type == STEPSCOPE_EVENT_STEP && r / 1024 % 2)
		segment_put(&segment, stream, now, type, STEPSCOPE_STEP_TRAINING, 4,
		            (uint64_t)r / 64 % 12 | (uint64_t)(r / 256 % 8) << 8, now - r / 64 % 50, now + r / 2048 % 3,
		            (uint64_t)r / 128 % 5);
	else if (type == STEPSCOPE_EVENT_STEP)
		segment_put(&segment, stream, now, type, STEPSCOPE_STEP_CAPTURE, 2, (uint64_t)0, (uint64_t)r / 64 % 4);
	else if (type == STEPSCOPE_EVENT_END && id == STEPSCOPE_END_BENEATH)
		segment_put(&segment, stream, now, type, id, r / 64 % 8, (uint64_t)(r / 1024 % 4), now - r / 2048 % 9);
	else
		segment_put(&segment, stream, now, type, id, type == STEPSCOPE_EVENT_ARG ? 2 : id == OP || id == NODE,
		            type == STEPSCOPE_EVENT_ARG ? (uint64_t)STEPSCOPE_ARG_U64 : r / 64 % 9,
		            (uint64_t)r / 64 % 3);
}

static void any_events(void **state)
{
	const struct model_filter filter = {.has_steps = true, .first_step = 0, .last_step = 1};
	uint64_t seed = 3;

	for (int round = 0; round < 6000; round++) {
		begin();
		for (int i = 0; i < 100; i++)
			random_event(&seed, round % 4 == 0, round % 3 ? 20 : 2);
		if (round % 5 == 0) /* now there are two of them */
			step();
		if (round % 5 == 0)
			step();
		finish_with(round % 2 ? "exit" : NULL, round % 5 == 0 ? &filter : NULL);
		model_release(&model);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(very_deep_nesting),
		cmocka_unit_test(millions_of_ranges),
		cmocka_unit_test(gaps_of_nonsense),
		cmocka_unit_test(any_events),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
