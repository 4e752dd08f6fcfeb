/* SPDX-License-Identifier: Apache-2.0
 *
 * test_verdict_sentences.c: the words of verdicts that are made by hand; nothing is decided.
 */
#include "compare/verdict_sentences.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* What all sentences have: two metrics of a step, of 10 and 11 ms, and a plain run a side. */
struct stage {
	struct arena arena;
	struct metric_result results[2];
	struct compared_run runs[SIDES];
	struct comparison comparison;
	struct compared_sides sides;
	struct verdict verdict;
	struct verdict_words words;
};

static void stage_init(struct stage *stage)
{
	struct table *metrics = &stage->comparison.metrics;

	memset(stage, 0, sizeof(*stage));
	arena_init(&stage->arena, 0);
	table_init(metrics, "metrics", "", "");
	for (int column = 0; column < METRIC_COLUMNS; column++)
		table_column(metrics, &(struct table_column){.name = arena_printf(&stage->arena, "%d", column),
		                                             .type = TABLE_TEXT});
	for (int row = 0; row < 2; row++) {
		stage->results[row] = (struct metric_result){.unit = UNIT_NS, .low = 0.09, .high = 0.11};
		table_row(metrics);
		table_set_text(metrics, row, METRIC_TITLE, row ? "step time mean" : "step time p50");
		table_set_text(metrics, row, METRIC_REASON, "it had none");
	}
	stage->comparison.metric_results = stage->results;
	stage->sides = (struct compared_sides){.runs = {&stage->runs[SIDE_BASE], &stage->runs[SIDE_NEW]},
	                                       .count = {1, 1},
	                                       .options = &comparison_defaults};
	stage->runs[SIDE_BASE].name = "main";
	stage->runs[SIDE_NEW].name = "mine";
	stage->verdict = (struct verdict){.base = 10e6,
	                                  .new = 11e6,
	                                  .ratio = 0.1,
	                                  .low = 0.09,
	                                  .high = 0.11,
	                                  .same_low = -0.01,
	                                  .same_high = 0.02};
	stage->words = (struct verdict_words){&stage->comparison, &stage->sides, &stage->verdict, &stage->arena};
}

static void stage_release(struct stage *stage)
{
	table_release(&stage->comparison.metrics);
	arena_release(&stage->arena);
}

static void check_sentence(struct stage *stage, enum verdict_answer answer, const char *expected)
{
	stage->verdict.answer = answer;
	assert_string_equal(verdict_sentence(&stage->words), expected);
}

static void each_answer_has_a_sentence(void **state)
{
	struct stage stage;

	stage_init(&stage);
	check_sentence(&stage, ANSWER_NOTHING, "the sides cannot be compared: it had none");
	check_sentence(&stage, ANSWER_TABLES, "the faster side is unknown: it had none");
	check_sentence(&stage, ANSWER_WHOLE,
	               "the faster side is unknown: it had none; differences are those of whole recordings");
	check_sentence(&stage, ANSWER_CHANGED,
	               "a step takes 10.0 % longer, 11.00 ms instead of 10.00 ms (95 %: +9.0 % to +11.0 %)");
	check_sentence(&stage, ANSWER_SMALL,
	               "a step takes 10.0 % longer, 11.00 ms instead of 10.00 ms (95 %: +9.0 % to +11.0 %), too little "
	               "to matter");
	check_sentence(&stage, ANSWER_SAME,
	               "a step takes the same time: -1.0 % to +2.0 % (90 %), a change of 3 % is ruled out");
	check_sentence(
		&stage, ANSWER_OPEN,
		"a step takes 11.00 ms instead of 10.00 ms, but the change is uncertain: the 95 % interval is +9.0 % "
		"to +11.0 %");
	check_sentence(
		&stage, ANSWER_ONE_STEP,
		"a step takes 11.00 ms instead of 10.00 ms (+10.0 %), but the change is uncertain: a run with one step "
		"does not show how much steps vary");
	check_sentence(&stage, ANSWER_MEAN,
	               "steps take 10.0 % longer on average, 11.00 ms instead of 10.00 ms (95 %: +9.0 % to +11.0 %), "
	               "although the median step is unchanged");
	stage.verdict.ratio = -0.1;
	check_sentence(&stage, ANSWER_CHANGED,
	               "a step takes 10.0 % less time, 11.00 ms instead of 10.00 ms (95 %: +9.0 % to +11.0 %)");
	stage_release(&stage);
}

static void a_sentence_has_no_gap(void **state)
{
	struct stage stage;

	stage_init(&stage);
	for (int answer = ANSWER_NOTHING; answer <= ANSWER_CHANGED; answer++) {
		const char *sentence;

		stage.sides.prices.is_unlike = answer == ANSWER_UNLIKE;
		stage.verdict.answer = (enum verdict_answer)answer;
		sentence = verdict_sentence(&stage.words);
		assert_true(*sentence && !strpbrk(sentence, "{}[]") && !strstr(sentence, "not measured"));
	}
	for (int needed = NEEDED_NOTHING; needed <= NEEDED_RUNS; needed++) {
		stage.verdict.needed = (enum verdict_needed)needed;
		assert_true(!verdict_needed_text(&stage.words) != !verdict_not_needed_text(&stage.words));
	}
	for (int test = TEST_PAIRS_STUDENT; test <= TEST_BOOTSTRAP; test++)
		for (int number = NUMBER_MEDIAN; number <= NUMBER_PEAK; number++) {
			stage.verdict.test = (enum verdict_test)test;
			stage.verdict.number = (enum verdict_number)number;
			assert_null(strstr(verdict_method_text(&stage.words), "null"));
		}
	stage_release(&stage);
}

static void other_metrics_follow_an_open_answer(void **state)
{
	struct stage stage;

	stage_init(&stage);
	stage.results[1].metric = COMPARE_STEP_CPU_TIME;
	stage.verdict.others[stage.verdict.others_count++] = 1;
	stage.verdict.worse[stage.verdict.worse_count++] = 1;
	stage.sides.work.is_step_unchecked = stage.verdict.is_unchecked = true;
	check_sentence(
		&stage, ANSWER_OPEN,
		"a step takes 11.00 ms instead of 10.00 ms, but the change is uncertain: the 95 % interval is +9.0 % to "
		"+11.0 %; the CPU time of a step, which includes no waits, changed by +9.0 % to +11.0 % (95 %); but "
		"step time mean changed by +9.0 % to +11.0 % (95 %); unchecked: the definition of a step");
	stage_release(&stage);
}

static void noise_is_said_with_its_reason(void **state)
{
	struct stage stage;
	struct verdict_noise *noise = &stage.verdict.noise;

	stage_init(&stage);
	assert_null(verdict_noise_text(&stage.words));
	*noise = (struct verdict_noise){.scatter = SCATTER_OF_REPEATS, .ratio = 0.012};
	assert_string_equal(verdict_noise_text(&stage.words), "repeated runs: they scatter by 1.2 %");
	*noise = (struct verdict_noise){.scatter = SCATTER_ASSUMED, .ratio = 0.02, .is_uneven = true, .is_few = true};
	assert_string_equal(
		verdict_noise_text(&stage.words),
		"assumed without repeated runs: 2 % from run to run, because the steps of the runs were uneven");
	*noise = (struct verdict_noise){.scatter = SCATTER_OF_PAIRS, .ratio = 0.01, .luck = 0.014, .best_of = 8};
	stage.verdict.subject = SUBJECT_FASTEST;
	assert_string_equal(
		verdict_noise_text(&stage.words),
		"alternating runs: the differences within pairs scatter by 1.4 %; up to 1.4 % more may be luck, because "
		"the base is the fastest of 8 runs; other work competed for the CPUs, so the fastest steps are "
		"compared: they are disturbed least, but do not show a slowdown of only some steps");
	stage_release(&stage);
}

static void runs_with_trouble_are_named(void **state)
{
	struct compared_fact damage = {FACT_RECORDING, COMPARED_DAMAGE, "events are missing"};
	struct compared_fact failed = {FACT_RECORDING, COMPARED_STATUS, "failed"};
	struct stage stage;

	stage_init(&stage);
	assert_null(verdict_damage_text(&stage.words));
	assert_null(verdict_failure_text(&stage.words));
	stage.runs[SIDE_BASE].facts = &damage;
	stage.runs[SIDE_NEW].facts = &failed;
	stage.runs[SIDE_BASE].facts_count = stage.runs[SIDE_NEW].facts_count = 1;
	stage.verdict.damage[SIDE_BASE].count = 3;
	stage.verdict.failure[SIDE_NEW].count = 1;
	assert_string_equal(verdict_damage_text(&stage.words),
	                    "base 'main': events are missing, and 2 more runs on this side");
	assert_string_equal(verdict_failure_text(&stage.words), "new 'mine' did not complete: its status is 'failed'");
	stage_release(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_answer_has_a_sentence),          cmocka_unit_test(a_sentence_has_no_gap),
		cmocka_unit_test(other_metrics_follow_an_open_answer), cmocka_unit_test(noise_is_said_with_its_reason),
		cmocka_unit_test(runs_with_trouble_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
