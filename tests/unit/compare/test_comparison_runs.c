/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs that are read from the model of a recording: their facts, phases and competitors.
 */
#include "compared_pair.h"
#include "hand_model.h"
#include "near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void read_run(struct compared_run *run, bool has_steps)
{
	const struct analysis_options options = {.filter = {.has_steps = has_steps, .first_step = 2, .last_step = 3}};
	struct report report;
	struct model model;

	hand_model_init(&model);
	model_add_value(&model, 0, intern_add(&model.strings, "host.pressure.cpu.some_ratio"), false, 0, 0.5);
	report_init(&report, &model, &options, "run");
	compared_run_init(run, &report);
	report_release(&report);
	model_release(&model);
}

static void what_competed_is_known_of_a_part_of_the_run_too(void **state)
{
	for (int has_steps = 0; has_steps < 2; has_steps++) {
		struct compared_run run;

		read_run(&run, has_steps);
		assert_int_equal(run.steps_count, has_steps ? 2 : 5);
		assert_non_null(compared_run_value(&run, "cpu_contention"));
		assert_double_equal(compared_run_value(&run, "cpu_contention")->value, 0.5, 1e-9);
		compared_run_release(&run);
	}
}

/* Of the steps 0 to 3 of the hand model, 110, 120, 130 and 140 ms in the mean of its ranks, phases of the first two were removed again. */
static void phases_sum_to_the_step_where_not_all_are_known(void **state)
{
	const struct analysis_options options = {.filter = {.has_steps = true, .first_step = 0, .last_step = 3}};
	struct compared_run run;
	struct report report;
	struct model model;
	double sum = 0, step = 0, unknown = 0;

	hand_model_init(&model);
	for (uint32_t i = 0; i < model.steps_count; i++)
		model.steps[i].has_lost_phases = model.steps[i].number < 2;
	report_init(&report, &model, &options, "run");
	compared_run_init(&run, &report);
	for (size_t i = 0; i < run.steps_count; i++)
		step += run.steps[i].dur_ns / (double)run.steps_count;
	for (size_t i = 0; i < run.parts_count; i++) {
		sum += strcmp(run.parts[i].level, "phase") ? 0 : run.parts[i].amount;
		unknown += strcmp(run.parts[i].name, "(steps whose phases are not known)") ? 0 : run.parts[i].amount;
	}
	assert_int_equal(run.steps_count, 4);
	assert_double_equal(sum, step, 1e-6 * step);
	assert_double_equal(unknown, -10.0 * MS, 1);
	compared_run_release(&run);
	report_release(&report);
	model_release(&model);
}

static void what_is_missing_from_a_side_is_said(void **state)
{
	struct pair pair;

	read_run(&pair.base, false);
	read_run(&pair.new, false);
	pair.new.facts_count = 0;
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_DAMAGE),
	                    "base 'run': events were dropped because the buffer was full (7)");
	assert_false(compared_run_value(&pair.base, "between_steps")->has_value);
	release(&pair);
}

static void only_words_of_names_are_clocks(void **state)
{
	static const struct {
		const char *name;
		bool is_clock;
	} cases[] = {
		{"gpu0.clocks.sm", true},      {"gpu0.clocks.sm MHz", true},
		{"cpu0.clock_hz", true},       {"clock MHz", true},
		{"gpu0.SM.Clock", true},       {"wall_clock_s", false},
		{"clockwork", false},          {"wall clock", false},
		{"gpu0.clocks.max.sm", false}, {"clocks_event_reasons.active", false},
	};
	const struct analysis_options options = {0};
	struct compared_run run;
	struct report report;
	struct model model;

	hand_model_init(&model);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		model_add_value(&model, 0, intern_add(&model.strings, cases[i].name), false, 0, 1980);
	report_init(&report, &model, &options, "run");
	compared_run_init(&run, &report);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(compared_run_fact(&run, cases[i].name) != NULL, cases[i].is_clock);
	compared_run_release(&run);
	report_release(&report);
	model_release(&model);
}

/* What is another one in each run is no fact: else no two runs are the same. */
static void how_long_something_took_is_no_fact(void **state)
{
	const struct analysis_options options = {0};
	struct compared_run run;
	struct report report;
	struct model model;

	hand_model_init(&model);
	model_add_meta(&model, 0, "torch.owners", "yes: 3 looks at optimizers, 2.8 ms in all");
	model_add_meta(&model, 0, "torch.version", "2.13.0");
	report_init(&report, &model, &options, "run");
	compared_run_init(&run, &report);
	assert_null(compared_run_fact(&run, "torch.owners"));
	assert_non_null(compared_run_fact(&run, "torch.version"));
	compared_run_release(&run);
	report_release(&report);
	model_release(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_competed_is_known_of_a_part_of_the_run_too),
		cmocka_unit_test(phases_sum_to_the_step_where_not_all_are_known),
		cmocka_unit_test(what_is_missing_from_a_side_is_said),
		cmocka_unit_test(only_words_of_names_are_clocks),
		cmocka_unit_test(how_long_something_took_is_no_fact),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
