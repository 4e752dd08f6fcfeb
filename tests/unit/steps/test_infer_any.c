/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules that hold for the steps and phases of any records: they are in order, nested, and cut no range. Loops are drawn at random.
 */
#include "loop_letters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

#include <cmocka.h>

static uint32_t random_below(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((*state >> 33) % below);
}

static void random_text(uint64_t *seed, char *text)
{
	static const char *const alphabets[] = {"DDFFBB1Zo[]()vW",
	                                        "DEFBbP[]()oZSvW",
	                                        "DFB12[]",
	                                        "FBov1[]",
	                                        "FBvW12[]DL",
	                                        "FB1[][][h",
	                                        "DEoFb12345S()[]ZBhL",
	                                        "DFZBBhho[]",
	                                        "DFBauwzbmho[]",
	                                        "FB1[]<>{}{}",
	                                        "DoFB1vE{}{}<>h()",
	                                        "rrrrrrrrrrrrrrrrMBB11[]",
	                                        "rrrrrrrrRRRRRRRRRRRRMB1oZD[]()<>{}"};
	static const char begins[] = "([<{", ends[] = ")]>}";
	const char *alphabet = alphabets[random_below(seed, sizeof alphabets / sizeof *alphabets)];
	size_t length = random_below(seed, 60), used = 0;
	char open[LETTERS];
	uint32_t depth = 0;

	for (size_t i = 0; i < length; i++) {
		char letter = alphabet[random_below(seed, (uint32_t)strlen(alphabet))];
		bool is_call = used && strchr("P123456789", text[used - 1]);
		const char *begin = strchr(begins, letter);
		bool is_end = strchr(ends, letter) != NULL;

		if ((letter == '(' && !is_call) || (is_end && (!depth || open[depth - 1] != letter)))
			continue;
		if (begin && letter != '(' && depth && open[depth - 1] == ')')
			continue;
		if (begin)
			open[depth++] = ends[begin - begins];
		depth -= is_end;
		text[used++] = letter;
	}
	bool is_cut = random_below(seed, 3) == 0;
	if (is_cut)
		text[used++] = '!';
	while (depth && !is_cut)
		text[used++] = open[--depth];
	text[used] = 0;
}

static bool overlaps(int64_t a_start, int64_t a_end, int64_t b_start, int64_t b_end)
{
	bool is_apart = a_end <= b_start || b_end <= a_start;
	bool is_nested = (a_start <= b_start && b_end <= a_end) || (b_start <= a_start && a_end <= b_end);

	return !is_apart && !is_nested;
}

static bool is_hooked(const struct inferred *backward, const struct inferred *call)
{
	return backward->what == STEPSCOPE_PHASE_BACKWARD && call->what == STEPSCOPE_PHASE_OPTIMIZER &&
	       backward->start_ns <= call->start_ns && call->end_ns <= backward->end_ns;
}

static const char *problem_of(const struct loop *loop, size_t range_count)
{
	const struct inferred *step = NULL, *phase = NULL, *inner = NULL, *list = loop->inference.list;
	int64_t number = 0;

	for (size_t i = 0; i < loop->inference.count; i++) {
		if (list[i].end_ns < list[i].start_ns)
			return "ends before it starts";
		if (i && list[i].start_ns < list[i - 1].start_ns)
			return "is not in order";
		for (size_t r = 0; r < range_count; r++)
			if (list[i].end_ns != INFERRED_IS_OPEN &&
			    overlaps(list[i].start_ns, list[i].end_ns, loop->ranges[r].start_ns,
			             loop->ranges[r].end_ns))
				return "cuts a range";
		if (list[i].what == INFERRED_STEP) {
			if (list[i].number != number++)
				return "does not count up";
			if ((step && list[i].start_ns < step->end_ns) || (phase && list[i].start_ns < phase->end_ns))
				return "overlaps what is before it";
			step = &list[i];
		} else if (phase && phase->what == STEPSCOPE_PHASE_OPTIMIZER && list[i].start_ns < phase->end_ns) {
			bool is_call = list[i].what == STEPSCOPE_PHASE_OPTIMIZER;
			if (list[i].end_ns > phase->end_ns || (is_call && !(inner && is_hooked(inner, &list[i]))))
				return "is no part of a closure";
			if (inner && list[i].start_ns < inner->end_ns && !is_hooked(inner, &list[i]))
				return "overlaps what is before it in a closure";
			inner = inner && is_hooked(inner, &list[i]) ? inner : &list[i];
		} else if (!phase || !is_hooked(phase, &list[i])) {
			if (phase && list[i].start_ns < phase->end_ns)
				return "overlaps the phase before";
			if (step && list[i].start_ns < step->end_ns && list[i].end_ns > step->end_ns)
				return "leaves its step";
			phase = &list[i];
		}
	}
	return number == (int64_t)loop->inference.step_count ? NULL : "count is wrong";
}

/* Of pieces that begin together the outer one is first. */
static void phases_that_are_cut_stay_in_order(void **state)
{
	static const char text[] = "DF1(FBhhB)DFBhhB1";
	struct loop loop;
	char whole[LETTERS], cut[LETTERS], steps[LETTERS];

	for (int64_t bound = 0; bound < (int64_t)sizeof(text) * 10; bound++) {
		const int64_t bounds[] = {bound, bound + 12};

		read_loop(&loop, text);
		draw(&loop.inference, strlen(text), steps, whole);
		inference_cut_phases(&loop.inference, bounds, 2);
		const struct inferred *list = loop.inference.list;
		for (size_t i = 1; i < loop.inference.count; i++) {
			bool is_inside = list[i].start_ns < list[i - 1].end_ns;

			assert_true(list[i].start_ns >= list[i - 1].start_ns);
			assert_true(!is_inside || list[i].end_ns <= list[i - 1].end_ns);
		}
		draw(&loop.inference, strlen(text), steps, cut);
		assert_string_equal(cut, whole);
		inference_release(&loop.inference);
	}
}

static void any_records_give_ordered_nested_intervals(void **state)
{
	const char *rounds = getenv("ROUNDS");
	long count = rounds ? strtol(rounds, NULL, 10) : 100000;
	uint64_t seed = 7;

	for (long i = 0; i < count; i++) {
		struct loop loop;
		char text[LETTERS];

		random_text(&seed, text);
		read_loop(&loop, text);
		const char *problem = problem_of(&loop, loop.range_count);
		if (problem) {
			char steps[LETTERS], phases[LETTERS];

			draw(&loop.inference, strlen(text), steps, phases);
			fail_msg("round %ld: something %s\n%s\n%s\n%s", i, problem, text, steps, phases);
		}
		inference_release(&loop.inference);
	}
}

/* Times that make no sense must not matter either. */
static void records_of_nonsense_do_no_harm(void **state)
{
	uint64_t seed = 11;

	for (int round = 0; round < 20000; round++) {
		struct loop loop;

		loop.count = random_below(&seed, 50);
		for (uint32_t i = 0; i < 20; i++)
			loop.ranges[i] = (struct train_range){
				.start_ns = random_below(&seed, 50),
				.end_ns = random_below(&seed, 50),
				.parent = i && random_below(&seed, 2) ? random_below(&seed, i) : NO_RANGE,
				.step = random_below(&seed, 4),
				.is_open = random_below(&seed, 20) == 0};
		for (size_t i = 0; i < loop.count; i++)
			loop.records[i] = (struct train_record){
				.start_ns = random_below(&seed, 50),
				.end_ns = random_below(&seed, 50),
				.range = random_below(&seed, 2) ? random_below(&seed, 20) : NO_RANGE,
				.object = random_below(&seed, 3),
				.token = (uint8_t)random_below(&seed, TOKEN_CUT + 1),
				.is_training = random_below(&seed, 2),
				.is_inside = random_below(&seed, 4) == 0,
				.is_empty = random_below(&seed, 4) == 0};
		for (uint32_t i = 0; i < 5; i++)
			loop.hooked[i] = (struct train_call){random_below(&seed, 50), random_below(&seed, 50)};
		const struct train_loop nonsense = {.records = loop.records,
		                                    .count = loop.count,
		                                    .ranges = loop.ranges,
		                                    .range_count = 20,
		                                    .hooked = loop.hooked,
		                                    .hooked_count = 5};
		infer_steps(&loop.inference, &nonsense);
		inference_mark_steps(&loop.inference, &nonsense);
		inference_release(&loop.inference);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(phases_that_are_cut_stay_in_order),
		cmocka_unit_test(any_records_give_ordered_nested_intervals),
		cmocka_unit_test(records_of_nonsense_do_no_harm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
