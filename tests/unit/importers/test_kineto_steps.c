/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of Kineto's traces: annotations of torch.profiler, and those that the importer infers from the loop or from repeated names.
 */
#include "kineto_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define STEP(number, ts, dur)                                                                                          \
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#" number                                    \
	"\",\"pid\":1,\"tid\":1,\"ts\":" ts dur "}"

static void steps_without_a_number_are_said(void **state)
{
	static const struct test_case cases[] = {
		{"no digits", "[" STEP("abc", "1", ",\"dur\":1") "," STEP("-3", "3", ",\"dur\":1") "]",
	         "ProfilerStep#abc 1000+1000\nProfilerStep#-3 3000+1000\n",
	         "2 annotations ProfilerStep# without a number", 0},
		{"too many", "[" STEP("99999999999999999999", "1", ",\"dur\":1") "]",
	         "ProfilerStep#99999999999999999999 1000+1000\n", "1 annotations ProfilerStep# without a number", 0},
		{"a step", "[" STEP("12", "1", ",\"dur\":1") "]", "ProfilerStep#12 1000+1000\n", NULL, 0},
	};
	CHECK_CASES(cases);
}

/* R04, T03: a moment belongs to one step. */
static void steps_do_not_overlap(void **state)
{
	static const char text[] = "[" STEP("2", "10", ",\"dur\":5") "," STEP("1", "1", "") "," STEP("2", "10",
	                                                                                             ",\"dur\":5") "]";
	struct model model;
	struct error err = {0};
	assert_int_equal(load(text, sizeof text - 1, &model, &err), STATUS_OK);
	assert_int_equal(model.steps_count, 2);
	assert_int_equal(model.steps[0].number, 1);
	assert_int_equal(model.steps[0].end_ns, 10000);
	assert_true(model.steps[0].is_open);
	assert_int_equal(model.steps[1].end_ns, 15000);
	model_release(&model);
}

/* Each process trains at its own pace, its forwards and backwards on threads of their own; the file has the threads of all in turn. */
static void steps_of_each_process(void **state)
{
	static const char *const parts[] = {"enumerate(DataLoader)#x.__next__", "aten::linear",
	                                    "autograd::engine::evaluate_function: AddmmBackward0",
	                                    "Optimizer.step#SGD.step"};
	uint32_t steps[4] = {0};
	struct buffer text;
	struct model model;
	struct error err = {0};
	buffer_init(&text, 1 << 20);
	for (int step = 0; step < 6; step++)
		for (int part = 0; part < 4; part++)
			for (int pid = 1; pid < 4 && step < 7 - pid; pid++)
				buffer_printf(&text,
				              "%s{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,"
				              "\"ts\":%d,\"dur\":90}",
				              text.length ? "," : "[", part % 3 ? "cpu_op" : "user_annotation",
				              parts[part], pid, 10 * (part == 2) + pid, 400 * step + 100 * part + pid);
	buffer_add_text(&text, "]");
	assert_int_equal(load(text.data, text.length, &model, &err), STATUS_OK);
	for (uint32_t i = 0; i < model.steps_count; i++)
		steps[model.processes[model.steps[i].process].pid]++;
	for (uint32_t pid = 1; pid < 4; pid++)
		assert_int_equal(steps[pid], 7 - pid);
	buffer_release(&text);
	model_release(&model);
}

/* Of two names that take the same time the choice is not that of the file. */
static void what_repeats_in_any_order(void **state)
{
	static const char *const texts[] = {"run", "call", "step", "load", "work", "turn", "loop", "item"};
	for (uint32_t other = 1; other < 8; other++) {
		for (int order = 0; order < 2; order++) {
			struct buffer text;
			struct model model;
			struct error err = {0};
			buffer_init(&text, 1 << 20);
			for (uint32_t i = 0; i < 12; i++)
				buffer_printf(&text,
				              "%s{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"%s\",\"pid\":1,"
				              "\"tid\":1,\"ts\":%u,\"dur\":9}",
				              i ? "," : "[", texts[(i & 1) == (uint32_t)order ? 0 : other],
				              10 * (i >> 1));
			buffer_add_text(&text, "]");
			assert_int_equal(load(text.data, text.length, &model, &err), STATUS_OK);
			const char *said = model_text(&model, model.ledger[model.ledger_count - 1].text);
			const char *first = strcmp(texts[other], "run") < 0 ? texts[other] : "run";
			assert_non_null(strstr(said, first));
			buffer_release(&text);
			model_release(&model);
		}
	}
}

/* Where all lines with "ProfilerStep#" were cut out of a trace, such events are left. */
static void what_has_no_name_is_no_step(void **state)
{
	static const char *const names[] = {"", "\"name\":\"\",", "\"name\":\"work\","};
	for (int i = 0; i < 3; i++) {
		struct buffer text;
		struct model model;
		struct error err = {0};
		buffer_init(&text, 1 << 20);
		for (int at = 0; at < 40; at += 10)
			buffer_printf(&text,
			              "%s{\"ph\":\"X\",\"cat\":\"user_annotation\",%s\"pid\":1,\"tid\":1,\"ts\":%d,"
			              "\"dur\":9}",
			              at ? "," : "[", names[i], at);
		buffer_add_text(&text, "]");
		assert_int_equal(load(text.data, text.length, &model, &err), STATUS_OK);
		assert_int_equal(model.steps_count, i == 2 ? 4 : 0);
		buffer_release(&text);
		model_release(&model);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_without_a_number_are_said), cmocka_unit_test(steps_do_not_overlap),
		cmocka_unit_test(steps_of_each_process),           cmocka_unit_test(what_repeats_in_any_order),
		cmocka_unit_test(what_has_no_name_is_no_step),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
