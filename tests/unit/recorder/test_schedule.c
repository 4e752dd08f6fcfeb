/* SPDX-License-Identifier: Apache-2.0
 *
 * test_schedule.c: which steps are recorded, against the schedule function of torch.profiler, and what is said at exit.
 */
#include "recorder/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct record_options resolved(const char *list)
{
	struct record_settings settings = {0};
	struct record_options options = {0};
	char problem[256];

	if (!record_settings_parse(&settings, list, "test", problem, sizeof(problem)) ||
	    !record_options_resolve(&options, &settings, problem, sizeof(problem)))
		fail_msg("'%s': %s", list, problem);
	return options;
}

/* ---- actions ---- */

/* What torch.profiler.schedule()'s function does, line by line, with its division in floating point. */
static enum stepscope_capture torch_action(const struct record_options *o, int64_t step)
{
	int64_t num_steps, mod_step;

	if (step < o->skip_first)
		return STEPSCOPE_CAPTURE_NONE;
	step -= o->skip_first;
	if (o->skip_first_wait != 0)
		step += o->wait;
	num_steps = o->wait + o->warmup + o->active;
	if (o->repeat > 0 && (double)step / (double)num_steps >= (double)o->repeat)
		return STEPSCOPE_CAPTURE_NONE;
	mod_step = step % num_steps;
	if (mod_step < o->wait)
		return STEPSCOPE_CAPTURE_NONE;
	if (mod_step < o->wait + o->warmup)
		return STEPSCOPE_CAPTURE_WARMUP;
	return mod_step < num_steps - 1 ? STEPSCOPE_CAPTURE_RECORD : STEPSCOPE_CAPTURE_SAVE;
}

static void compare_steps(const struct record_options *options)
{
	for (int64_t step = 0; step < 64; step++) {
		enum stepscope_capture action = schedule_action(options, step, 1000 - step);

		if (action != torch_action(options, step))
			fail_msg("wait %d warmup %d active %d repeat %d skip %d/%d step %d: %d", (int)options->wait,
			         (int)options->warmup, (int)options->active, (int)options->repeat,
			         (int)options->skip_first, (int)options->skip_first_wait, (int)step, action);
	}
}

static void a_schedule_does_what_torch_does(void **state)
{
	struct record_options options;
	int choices = 6 * 5 * 5 * 4 * 5 * 3;

	for (int choice = 0; choice < choices; choice++) {
		int rest = choice;

		record_options_init(&options);
		options.mode = RECORD_SCHEDULE;
		options.wait = rest % 6, rest /= 6;
		options.warmup = rest % 5, rest /= 5;
		options.active = 1 + rest % 5, rest /= 5;
		options.repeat = rest % 4, rest /= 4;
		options.skip_first = rest % 5 * 3, rest /= 5;
		options.skip_first_wait = rest;
		compare_steps(&options);
	}
}

/* One letter per step: "." none, "w" warm-up, "r" record, "S" save. */
static void check_letters(const char *list, const char *letters)
{
	struct record_options options = resolved(list);
	char got[100];
	size_t count = strlen(letters);

	assert_true(count < sizeof(got));
	for (size_t step = 0; step < count; step++)
		got[step] = ".wrS"[schedule_action(&options, (int64_t)step, (int64_t)step)];
	got[count] = '\0';
	assert_string_equal(got, letters);
}

static void the_guides_examples_come_out(void **state)
{
	/* 000: wait 5, warmup 2, active 3, once and twice */
	check_letters("wait=5,warmup=2,active=3,repeat=1", ".....wwrrS............");
	check_letters("wait=5,warmup=2,active=3,repeat=2", ".....wwrrS.....wwrrS..........");
	/* 001: start at step 5, 3 steps */
	check_letters("start_step=5,num_steps=3", ".....rrS....");
	check_letters("start_step=5", ".....rrrrrr");
	check_letters("num_steps=2", "rS....");
	/* 002: skip 15, warm 1, record 3, skip 5, warm 1, record 3, stop */
	check_letters("wait=5,warmup=1,active=3,repeat=2,skip_first=10", "...............wrrS.....wrrS..........");
	/* 003: steps 9, 19, 29; and one cycle */
	check_letters("repeat=0,profiling_frequency=10,warmup=2,active=1", ".......wwS.......wwS.......wwS");
	check_letters("profiling_frequency=5,warmup=4,active=1", "wwwwSwwwwSwwwwSwwwwS");
	check_letters("repeat=1,warmup=1,active=5", "wrrrrS......");
	check_letters("repeat=1,wait=1,warmup=1,active=1", ".wS......");
	check_letters("profiling_frequency=10", ".......wwS.......wwS");
}

static void lists_go_by_the_programs_numbers(void **state)
{
	struct record_options options = resolved("steps=50-52:100");

	assert_int_equal(schedule_action(&options, 50, 0), STEPSCOPE_CAPTURE_NONE);
	assert_int_equal(schedule_action(&options, 0, 49), STEPSCOPE_CAPTURE_NONE);
	assert_int_equal(schedule_action(&options, 0, 50), STEPSCOPE_CAPTURE_RECORD);
	assert_int_equal(schedule_action(&options, 0, 52), STEPSCOPE_CAPTURE_SAVE);
	assert_int_equal(schedule_action(&options, 0, 53), STEPSCOPE_CAPTURE_NONE);
	assert_int_equal(schedule_action(&options, 0, 100), STEPSCOPE_CAPTURE_SAVE);
	assert_int_equal(schedule_action(&options, 0, -1), STEPSCOPE_CAPTURE_NONE);
	assert_int_equal(schedule_action(&options, 0, INT64_MAX), STEPSCOPE_CAPTURE_NONE);
	assert_int_equal(schedule_action(&options, 0, INT64_MIN), STEPSCOPE_CAPTURE_NONE);
	check_letters("steps=all", "rrrr");
	check_letters("steps=none", "....");
	check_letters("enabled=false,steps=1-2", "....");
}

static void the_largest_numbers_do_not_overflow(void **state)
{
	struct record_options options = resolved(
		"wait=1000000000000000,warmup=1000000000000000,active=1000000000000000,"
		"repeat=1000000000000000,skip_first=1000000000000000,skip_first_wait=1");

	assert_int_equal(schedule_action(&options, 0, 0), STEPSCOPE_CAPTURE_NONE);
	assert_int_equal(schedule_action(&options, INT64_C(1000000000000000), 0), STEPSCOPE_CAPTURE_WARMUP);
	options = resolved("start_step=1000000000000000,num_steps=1000000000000000");
	assert_int_equal(schedule_action(&options, 0, INT64_C(1999999999999999)), STEPSCOPE_CAPTURE_SAVE);
}

static void what_records_its_first_step_records_from_the_start(void **state)
{
	static const struct {
		const char *list;
		enum stepscope_capture action;
	} cases[] = {
		{"", STEPSCOPE_CAPTURE_RECORD},           {"active=1", STEPSCOPE_CAPTURE_RECORD},
		{"active=3", STEPSCOPE_CAPTURE_RECORD},   {"warmup=1", STEPSCOPE_CAPTURE_WARMUP},
		{"wait=1", STEPSCOPE_CAPTURE_NONE},       {"wait=4,skip_first_wait=1", STEPSCOPE_CAPTURE_RECORD},
		{"skip_first=1", STEPSCOPE_CAPTURE_NONE}, {"steps=0-3", STEPSCOPE_CAPTURE_RECORD},
		{"steps=1-3", STEPSCOPE_CAPTURE_NONE},    {"steps=none", STEPSCOPE_CAPTURE_NONE},
		{"enabled=no", STEPSCOPE_CAPTURE_NONE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct record_options options = resolved(cases[i].list);

		assert_int_equal(schedule_before_first(&options), cases[i].action);
	}
}

/* ---- the sentence at exit ---- */

/* Runs steps `first`, `first` + 1, ... and compares what is said of them. */
static void check_sentence(const char *list, int64_t first, int64_t count, const char *sentence)
{
	struct record_options options = resolved(list);
	struct schedule_progress progress = {0};
	char out[512];
	size_t length;

	for (int64_t index = 0; index < count; index++)
		schedule_note(&progress, schedule_action(&options, index, first + index), first + index);
	length = schedule_describe(&options, &progress, out, sizeof(out));
	assert_int_equal(length, strlen(out));
	assert_string_equal(out, sentence);
}

static void it_says_what_was_captured(void **state)
{
	check_sentence(
		"start_step=50,num_steps=20", 0, 70,
		"captured steps 50-69 (20 steps) with operators; 50 steps before them with steps and phases only");
	check_sentence("start_step=50,num_steps=20", 0, 80,
	               "captured steps 50-69 (20 steps) with operators; 50 steps before them and 10 after with steps "
	               "and phases only");
	check_sentence("steps=0", 0, 3, "captured step 0 with operators; 2 steps after it with steps and phases only");
	check_sentence("", 5, 3, "captured all 3 steps (5-7) with operators");
	check_sentence("", 5, 1, "captured the only step (5) with operators");
	check_sentence("wait=5,warmup=2,active=3,repeat=2", 0, 30,
	               "captured 6 of the steps 7-19 with operators; the other 24 steps with steps and phases only");
	check_sentence(
		"start_step=50,num_steps=20", 0, 55,
		"captured steps 50-54 (5 steps) with operators; 50 steps before them with steps and phases only; "
		"20 steps were requested, but the program's last step was 54");
	check_sentence("steps=none", 0, 3, "captured 3 steps with steps and phases only, as requested");
}

static void it_names_the_lowest_and_the_highest_number(void **state)
{
	static const struct {
		int64_t numbers[6];
		const char *sentence;
	} cases[] = {
		{{-1, -2, 0, 1, 2, 3}, "captured all 6 steps (-2 to 3) with operators"},
		{{0, 1, 2, 1, 2, 0}, "captured all 6 steps (0-2) with operators"},
		{{9, 8, 7, 6, 5, 4}, "captured all 6 steps (4-9) with operators"},
	};
	struct record_options options = resolved("");
	char out[512];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct schedule_progress progress = {0};

		for (int index = 0; index < 6; index++)
			schedule_note(&progress, schedule_action(&options, index, cases[i].numbers[index]),
			              cases[i].numbers[index]);
		schedule_describe(&options, &progress, out, sizeof(out));
		assert_string_equal(out, cases[i].sentence);
	}
}

static void it_says_why_nothing_was_captured(void **state)
{
	check_sentence("wait=50", 0, 12,
	               "captured no operators: the schedule waits for 50 steps and the program ended after 12; use "
	               "--wait 5 or --steps 0-11");
	check_sentence(
		"wait=5,warmup=1,active=3,skip_first=10", 1, 12,
		"captured no operators: the schedule skips 10 steps, waits for 5 steps and warms up for 1, and the "
		"program ended after 12; use --skip-first 0 --wait 4 or --steps 1-12");
	check_sentence("warmup=5", 0, 1,
	               "captured no operators: the schedule warms up for 5 steps and the program ended after 1; use "
	               "--steps 0");
	check_sentence(
		"profiling_frequency=100", 0, 12,
		"captured no operators: the schedule waits for 97 steps and warms up for 2, and the program ended "
		"after 12; use --profiling-frequency 12 or --steps 0-11");
	check_sentence("steps=50-60:100", 0, 12,
	               "captured no operators: steps 50-60,100 were requested, but the program ran steps 0-11; use "
	               "--steps 0-11");
	check_sentence("steps=50-", 7, 1,
	               "captured no operators: steps 50- were requested, but the program ran step 7; use --steps 7");
	check_sentence("steps=7", 8, 2,
	               "captured no operators: step 7 was requested, but the program ran steps 8-9; use --steps 8-9");
	check_sentence("enabled=false,wait=5", 0, 12, "captured nothing: recording is off (enabled=false)");
}

static void it_says_what_there_was_without_steps(void **state)
{
	static const struct {
		struct schedule_progress progress;
		const char *sentence;
	} cases[] = {
		{{.observer = "PyTorch", .has_operators = true},
	         "captured the operators of PyTorch; the program marked no steps, and none were "
	         "counted; the report infers steps if it can; mark steps with stepscope.step()"},
		{{.observer = "PyTorch", .has_operators = true, .steps_noted = 1},
	         "captured the operators of PyTorch; the program marked no steps, the report infers them (1 was counted by the calls of optimizers)"},
		{{.observer = "PyTorch", .has_operators = true, .steps_noted = 3, .has_uncounted = true},
	         "captured the operators of PyTorch; the program marked no steps, the report infers them (3 were counted by the calls of optimizers; those of "
	         "compiled optimizers are not counted)"},
		{{.observer = "PyTorch", .has_operators = true, .steps_noted = 3, .profiler = "torch.profiler"},
	         "captured the operators of PyTorch; the report uses the steps that torch.profiler marks, and infers others (3 were counted by "
	         "the calls of optimizers)"},
		{{.observer = "PyTorch", .has_operators = true, .profiler = "torch.profiler"},
	         "captured the operators of PyTorch; the report uses the steps that torch.profiler marks"},
		{{.observer = "PyTorch", .has_ranges = true},
	         "captured no operators: PyTorch ran none, and the program marked no steps"},
		{{.has_ranges = true},
	         "the program marked no steps: captured its ranges without steps; mark them with "
	         "stepscope_step_begin() and stepscope_step_end()"},
		{{.has_operators = true, .has_ranges = true},
	         "the program marked no steps: captured its operators and ranges without steps; mark them with "
	         "stepscope_step_begin() and stepscope_step_end()"},
	};
	struct record_options options = resolved("");
	char out[512];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		schedule_describe(&options, &cases[i].progress, out, sizeof(out));
		assert_string_equal(out, cases[i].sentence);
	}
}

/* Whom the closing line of a run speaks for. */
static void it_tells_what_came_of_the_process(void **state)
{
	static const struct {
		const char *options;
		struct schedule_progress progress;
		enum captured captured;
	} cases[] = {
		{"", {.observer = "PyTorch", .has_operators = true, .steps_noted = 1}, CAPTURED_STEPS},
		{"", {.observer = "PyTorch", .has_operators = true, .steps_noted = 7}, CAPTURED_STEPS},
		{"", {.observer = "PyTorch", .has_operators = true, .has_uncounted = true}, CAPTURED_STEPS},
		{"", {.observer = "PyTorch", .has_operators = true}, CAPTURED_DETAIL},
		{"", {.observer = "PyTorch", .has_ranges = true}, CAPTURED_DETAIL},
		{"", {.observer = "PyTorch"}, CAPTURED_NOTHING},
		{"", {.has_ranges = true}, CAPTURED_DETAIL},
		{"", {0}, CAPTURED_NOTHING},
		{"wait=5", {.has_ranges = true}, CAPTURED_NOTHING},
		{"steps=3", {.observer = "PyTorch"}, CAPTURED_NOTHING},
		{"type=simple", {.has_operators = true}, CAPTURED_NOTHING},
		{"enabled=false", {0}, CAPTURED_NOTHING},
		{"", {.is_left_out = true, .rank = 3, .has_ranges = true}, CAPTURED_NOTHING},
		{"", {.is_left_out = true, .rank = 3, .steps_begun = 2, .last_number = 1}, CAPTURED_STEPS},
		{"", {.steps_begun = 2, .steps_recorded = 2, .last_number = 1, .last_recorded = 1}, CAPTURED_STEPS},
		{"steps=5", {.steps_begun = 2, .last_number = 1}, CAPTURED_STEPS},
		{"", {.earlier = 1}, CAPTURED_NOTHING},
		{"", {.earlier = 1, .captured = CAPTURED_STEPS}, CAPTURED_STEPS},
		{"", {.earlier = 1, .captured = CAPTURED_NOTHING, .has_ranges = true}, CAPTURED_DETAIL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct record_options options = resolved(cases[i].options);

		assert_int_equal(schedule_captured(&options, &cases[i].progress), cases[i].captured);
	}
}

static void what_came_of_a_process_outlives_its_recording(void **state)
{
	struct schedule_progress progress = {.captured = CAPTURED_DETAIL};

	schedule_restart(&progress);
	assert_int_equal(progress.captured, CAPTURED_DETAIL);
	schedule_forget_counted(&progress);
	assert_int_equal(progress.captured, CAPTURED_DETAIL);
}

static void it_says_when_no_steps_were_marked(void **state)
{
	check_sentence("", 0, 0,
	               "the program marked no steps, operators or ranges: mark them with stepscope_step_begin() and "
	               "stepscope_step_end()");
	check_sentence(
		"wait=5", 0, 0,
		"captured no operators: the program marked no steps, so the schedule never started; mark them with "
		"stepscope_step_begin() and stepscope_step_end(), or use --steps all");
	check_sentence(
		"steps=5", 0, 0,
		"captured no operators: the program marked no steps, so none of the requested steps occurred; mark them "
		"with stepscope_step_begin() and stepscope_step_end(), or use --steps all");
	check_sentence("type=simple", 0, 0,
	               "the program marked no steps: captured phases only, as requested; mark them with "
	               "stepscope_step_begin() and stepscope_step_end()");
}

static void it_says_when_the_rank_was_left_out(void **state)
{
	struct record_options options = resolved("ranks=0");
	struct schedule_progress progress = {.is_left_out = true, .rank = 3};
	char out[200];

	for (int64_t step = 0; step < 7; step++)
		schedule_note(&progress, STEPSCOPE_CAPTURE_NONE, step);
	schedule_describe(&options, &progress, out, sizeof(out));
	assert_string_equal(out, "captured 7 steps with steps and phases only: rank 3 is not among the selected ranks "
	                         "(--ranks)");
}

/* What it suggests must really capture something in a run of the same length. */
static void what_it_suggests_works(void **state)
{
	static const char *const lists[] = {
		"wait=50",   "wait=5,skip_first=40,active=2", "warmup=30,active=9",
		"steps=90-", "profiling_frequency=90",        "wait=9,skip_first=30,skip_first_wait=1"};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		for (int64_t count = 1; count <= 30; count++) {
			struct record_options options = resolved(lists[i]);
			struct schedule_progress progress = {0}, again = {0};
			char out[512], list[100];
			const char *steps;

			for (int64_t step = 0; step < count; step++)
				schedule_note(&progress, schedule_action(&options, step, step), step);
			schedule_describe(&options, &progress, out, sizeof(out));
			steps = strstr(out, "--steps ");
			assert_non_null(steps);
			snprintf(list, sizeof(list), "steps=%s", steps + 8);
			options = resolved(list);
			for (int64_t step = 0; step < count; step++)
				schedule_note(&again, schedule_action(&options, step, step), step);
			assert_int_equal(again.steps_recorded, count);
		}
	}
}

static void a_sentence_is_cut_to_its_room(void **state)
{
	struct record_options options = resolved("wait=50");
	struct schedule_progress progress = {0};
	char out[64];

	for (size_t bytes = 0; bytes <= sizeof(out); bytes++) {
		size_t length;

		memset(out, '#', sizeof(out));
		length = schedule_describe(&options, &progress, out, bytes);
		assert_int_equal(length, bytes ? bytes - 1 : 0);
		if (bytes)
			assert_int_equal(out[length], '\0');
		for (size_t i = bytes; i < sizeof(out); i++)
			assert_int_equal(out[i], '#');
	}
}

static void the_sentence_says_how_many_steps_have_operators(void **state)
{
	struct record_options options = resolved("");
	struct schedule_progress progress = {.every = 8};
	char out[512];

	for (int64_t step = 0; step < 287; step++)
		schedule_note(&progress, step % 7 ? STEPSCOPE_CAPTURE_NONE : STEPSCOPE_CAPTURE_RECORD, step);
	schedule_describe(&options, &progress, out, sizeof(out));
	assert_string_equal(out, "captured operators of 41 of 287 steps (1 of 8)");
	progress.cost = COST_MEASURED;
	progress.cost_ratio = 0.1804;
	schedule_describe(&options, &progress, out, sizeof(out));
	assert_string_equal(out, "captured operators of 41 of 287 steps (1 of 8): all would cost 18 %");
	progress.cost = COST_ESTIMATED;
	progress.cost_ratio = 0.0994;
	progress.counted_by = "the calls of optimizers";
	schedule_describe(&options, &progress, out, sizeof(out));
	assert_string_equal(
		out,
		"captured operators of 41 of 287 steps (1 of 8): all would cost about 9.9 %; steps were counted by "
		"the calls of optimizers");
	progress.cost = COST_BELOW;
	progress.cost_ratio = 0.112;
	progress.least_every = 2;
	progress.counted_by = NULL;
	schedule_describe(&options, &progress, out, sizeof(out));
	assert_string_equal(out, "captured operators of 41 of 287 steps (1 of 2 to 8): all would cost less than 12 %");
	progress.cost_ratio = 0.01;
	progress.least_every = 0;
	progress.every = 1;
	progress.counted_by = NULL;
	schedule_describe(&options, &progress, out, sizeof(out));
	assert_string_equal(out, "captured operators of 41 of 287 steps: all would cost less than 1 %");
	for (int64_t step = 0; step < 287; step += 28)
		schedule_note_inputs(&progress, step);
	progress.every_inputs = 4;
	schedule_describe(&options, &progress, out, sizeof(out));
	assert_string_equal(
		out, "captured operators of 41 of 287 steps, inputs of 11 (1 of 4): all would cost less than 1 %");
	progress.every = 8;
	progress.every_inputs = 32;
	progress.last_with_inputs = 286;
	schedule_take_back(&progress, 286);
	schedule_describe(&options, &progress, out, sizeof(out));
	assert_string_equal(out, "captured operators of 41 of 286 steps (1 of 8), inputs of 10 (1 of 32): all would "
	                         "cost less than 1 %");
}

static void the_sentence_says_that_a_few_steps_are_too_few(void **state)
{
	struct record_options options = resolved("");
	struct schedule_progress progress = {.every = 1, .cost = COST_MEASURED, .cost_ratio = 0.18};
	char out[512];

	for (int64_t step = 0; step < 11; step++)
		schedule_note(&progress, step % 7 == 3 ? STEPSCOPE_CAPTURE_RECORD : STEPSCOPE_CAPTURE_NONE, step);
	schedule_describe(&options, &progress, out, sizeof(out));
	assert_string_equal(out, "captured operators of 2 of 11 steps; --budget none records all");
	progress = (struct schedule_progress){.every = 1};
	schedule_note(&progress, STEPSCOPE_CAPTURE_NONE, 0);
	schedule_describe(&options, &progress, out, sizeof(out));
	assert_string_equal(out, "captured operators of 0 of 1 step; --budget none records all");
}

static void the_sentence_says_what_memory_costs(void **state)
{
	struct record_options options = resolved("with=memory");
	struct schedule_progress progress = {.every = 1, .cost = COST_ESTIMATED, .cost_ratio = 0.083};
	char out[512];

	for (int64_t step = 0; step < 20; step++)
		schedule_note(&progress, STEPSCOPE_CAPTURE_RECORD, step);
	schedule_describe(&options, &progress, out, sizeof(out));
	assert_string_equal(
		out,
		"captured all 20 steps (0-19) with operators, as --with memory requires; operators cost about 8.3 %");
	progress.cost_ratio = 0.0004;
	schedule_describe(&options, &progress, out, sizeof(out));
	assert_non_null(strstr(out, "operators cost less than about 0.1 %"));
}

static void the_sentence_counts_earlier_recordings(void **state)
{
	struct record_options options = resolved("budget=none");
	struct schedule_progress progress = {0};
	char out[512];

	schedule_note(&progress, STEPSCOPE_CAPTURE_RECORD, 0);
	schedule_note(&progress, STEPSCOPE_CAPTURE_RECORD, 1);
	schedule_restart(&progress);
	progress.every = 2;
	schedule_note(&progress, STEPSCOPE_CAPTURE_NONE, 5);
	schedule_describe(&options, &progress, out, sizeof(out));
	assert_string_equal(
		out, "in 2 recordings of this process captured 3 steps, 2 of them with operators; in the last one "
		     "captured operators of 0 of 1 step; --budget none records all");
	schedule_note(&progress, STEPSCOPE_CAPTURE_RECORD, 6);
	schedule_restart(&progress);
	assert_int_equal(progress.earlier, 2);
	assert_int_equal(progress.earlier_begun, 4);
	assert_int_equal(progress.earlier_recorded, 3);
	for (int i = 0; i < 1000; i++)
		schedule_restart(&progress);
	schedule_note(&progress, STEPSCOPE_CAPTURE_RECORD, 1);
	schedule_describe(&options, &progress, out, sizeof(out));
	assert_string_equal(
		out, "the last of more than 100 recordings of this process captured the only step (1) with operators");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sentence_says_how_many_steps_have_operators),
		cmocka_unit_test(the_sentence_says_that_a_few_steps_are_too_few),
		cmocka_unit_test(the_sentence_says_what_memory_costs),
		cmocka_unit_test(the_sentence_counts_earlier_recordings),
		cmocka_unit_test(a_schedule_does_what_torch_does),
		cmocka_unit_test(the_guides_examples_come_out),
		cmocka_unit_test(lists_go_by_the_programs_numbers),
		cmocka_unit_test(the_largest_numbers_do_not_overflow),
		cmocka_unit_test(what_records_its_first_step_records_from_the_start),
		cmocka_unit_test(it_says_what_was_captured),
		cmocka_unit_test(it_names_the_lowest_and_the_highest_number),
		cmocka_unit_test(it_says_why_nothing_was_captured),
		cmocka_unit_test(it_tells_what_came_of_the_process),
		cmocka_unit_test(what_came_of_a_process_outlives_its_recording),
		cmocka_unit_test(it_says_when_no_steps_were_marked),
		cmocka_unit_test(it_says_what_there_was_without_steps),
		cmocka_unit_test(it_says_when_the_rank_was_left_out),
		cmocka_unit_test(what_it_suggests_works),
		cmocka_unit_test(a_sentence_is_cut_to_its_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
