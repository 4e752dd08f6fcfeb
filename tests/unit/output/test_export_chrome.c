/* SPDX-License-Identifier: Apache-2.0
 *
 * The Chrome exporter: what is in the file, and that it obeys every rule that `stepscope validate` knows.
 */
#include "base/json_read.h"
#include "export_check.h"
#include "output/export/compress.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stepscope/format.h>
#include <string.h>

#include <cmocka.h>

static void export_has_every_span_with_its_nanoseconds(void **state)
{
	struct export_test *test = test_begin(1);
	struct sample_sum sum = sample_sum(&test->model);
	int64_t total_ns = 0;

	test_export(test, "chrome", "a.json");
	for (const char *at = test->text.data; (at = strstr(at, "\"dur\": ")); at++) {
		const char *name = at;

		while (*name != '\n')
			name--;
		if (strstr(name, "\"cat\": \"Trace\"") != name + 13)
			total_ns += (int64_t)(strtod(at + 7, NULL) * 1000 + 0.5);
	}
	assert_int_equal(test->result.slices, sum.spans);
	assert_int_equal(count_text(test->text.data, "\"ph\": \"X\""), sum.spans + 1); /* and the plugin's marker */
	assert_int_equal(total_ns, sum.dur_ns);
	test_end(test);
}

static void export_is_strict_json(void **state)
{
	struct export_test *test = test_begin(2);
	struct json_reader reader;
	enum json_token token;

	test_export(test, "chrome", "a.json");
	json_reader_init(&reader, test->text.data, test->text.length);
	while ((token = json_next(&reader)) != JSON_END)
		assert_int_not_equal(token, JSON_ERROR);
	json_reader_release(&reader);
	test_end(test);
}

static void export_breaks_no_rule(void **state)
{
	static const char *const names[] = {"a.json", "a.json.gz"};

	for (unsigned ranks = 1; ranks <= 2; ranks++) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			struct export_test *test = test_begin(ranks);

			test_export(test, "chrome", names[i]);
			test_validate(test);
			for (int rule = 0; rule < VALIDATE_RULE_COUNT; rule++)
				assert_int_equal(test->validation.findings[rule].count, 0);
			test_end(test);
		}
	}
}

static void rank_stands_before_the_events_with_a_blank(void **state)
{
	struct export_test *test = test_begin(1);
	const char *rank;

	test_export(test, "chrome", "a.json");
	rank = strstr(test->text.data, "\"rank\":");
	assert_non_null(rank);
	assert_memory_equal(rank, "\"rank\": 0,", 10);
	assert_true(rank < strstr(test->text.data, "\"traceEvents\""));
	assert_null(strstr(rank + 1, "\"rank\":"));
	test_end(test);
}

static void crossing_kernels_are_put_on_lanes(void **state)
{
	struct export_test *test = test_begin(1);

	sample_cross_kernels(&test->model);
	test_export(test, "chrome", "a.json");
	test_validate(test);
	assert_int_equal(count_text(test->text.data, "(lane 2)"), 1);
	assert_int_equal(test->result.slices, sample_sum(&test->model).spans);
	test_end(test);
}

static void names_are_escaped_for_all_readers(void **state)
{
	struct export_test *test = test_begin(1);

	test_export(test, "chrome", "a.json");
	assert_non_null(strstr(test->text.data, "\"quo\\\"te\\\\back\\nline tab  \xc3\xa9 \xef\xbf\xbd\""));
	test_end(test);
}

/* A program may say anything of the bytes of a span; readers want a whole number of 64 bits. */
static void absurd_args_are_valid(void **state)
{
	static const struct {
		struct span_arg arg;
		const char *written;
	} cases[] = {
		{{.type = STEPSCOPE_ARG_F64, .f64 = 1e306}, "\"bytes\": 9223372036854775807"},
		{{.type = STEPSCOPE_ARG_F64, .f64 = 1e15}, "\"bytes\": 1000000000000000"},
		{{.type = STEPSCOPE_ARG_F64, .f64 = 12.5}, "\"bytes\": 13"},
		{{.type = STEPSCOPE_ARG_F64, .f64 = -INFINITY}, "\"bytes (as given)\": \"-Infinity\""},
		{{.type = STEPSCOPE_ARG_U64, .u64 = UINT64_MAX}, "\"bytes\": 9223372036854775807"},
		{{.type = STEPSCOPE_ARG_BOOL, .u64 = 1}, "\"bytes (as given)\": true"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct export_test *test = test_begin(1);
		uint32_t flops = intern_find(&test->model.strings, "flops");
		uint32_t bytes = intern_add(&test->model.strings, "bytes");

		for (uint32_t n = 0; n < test->model.args_count; n++) {
			struct span_arg *arg = &test->model.args[n];

			if (arg->key != flops)
				continue;
			arg->key = bytes;
			arg->type = cases[i].arg.type;
			arg->u64 = cases[i].arg.u64;
		}
		test_export(test, "chrome", "a.json");
		assert_non_null(strstr(test->text.data, cases[i].written));
		test_validate(test);
		assert_int_equal(test->validation.findings[VALIDATE_H9].count, 0);
		test_end(test);
	}
}

static void kernel_carries_the_id_of_its_op_and_flows_join_them(void **state)
{
	struct export_test *test = test_begin(1);

	test_export(test, "chrome", "a.json");
	assert_non_null(strstr(test->text.data, "\"name\": \"mm\", \"pid\": 4242, \"tid\": 4242, \"ts\": "));
	assert_int_equal(count_text(test->text.data, "\"External id\": 4,"), 3); /* op, call, kernel */
	assert_int_equal(count_text(test->text.data, "\"ph\": \"s\""), 9);
	assert_int_equal(count_text(test->text.data, "\"ph\": \"f\""), 9);
	assert_non_null(strstr(test->text.data, "\"stream\": 7,")); /* the default stream, as CUPTI calls it */
	test_end(test);
}

static void open_span_lasts_to_the_end_and_says_so(void **state)
{
	struct export_test *test = test_begin(1);

	test_export(test, "chrome", "a.json");
	assert_non_null(strstr(test->text.data, "\"dur\": 12.345, \"args\": {\"External id\": 31, \"flops\": 1048576, "
	                                        "\"open\": true}"));
	test_end(test);
}

static void value_that_is_no_number_is_left_out(void **state)
{
	struct export_test *test = test_begin(1);

	test_export(test, "chrome", "a.json");
	assert_int_equal(count_text(test->text.data, "\"name\": \"loss\""), 2);
	assert_null(strstr(test->text.data, "nan"));
	test_end(test);
}

static void steps_select_what_begins_in_them(void **state)
{
	struct export_test *test = test_begin(1);

	test->options = (struct export_options){.has_steps = true, .first_step = 11, .last_step = 11};
	test_export(test, "chrome", "a.json");
	test_validate(test);
	assert_int_equal(count_text(test->text.data, "ProfilerStep#11"), 1);
	assert_int_equal(count_text(test->text.data, "ProfilerStep#"), 1);
	assert_int_equal(count_text(test->text.data, "\"ph\": \"f\""), 3);
	assert_int_equal(count_text(test->text.data, "[memory]"), 1);
	assert_int_equal(count_text(test->text.data, "queue length"), 1);
	assert_null(strstr(test->text.data, "hangs here"));
	test_end(test);
}

static void limit_of_bytes_leaves_out_whole_steps_from_the_end(void **state)
{
	struct export_test *test = test_begin(1);
	uint64_t all;

	test_export(test, "chrome", "all.json");
	all = test->text.length;
	test->options.max_bytes = (int64_t)all - 100;
	test_export(test, "chrome", "less.json");
	test_validate(test);
	assert_true(test->text.length <= all - 100);
	assert_int_equal(count_text(test->text.data, "ProfilerStep#"), 2);
	assert_null(strstr(test->text.data, "ProfilerStep#12"));
	assert_non_null(strstr(test->result.note, "2 of 3 steps"));
	test_end(test);
}

static void one_rank_can_be_written_alone(void **state)
{
	struct export_test *test = test_begin(2);
	bool processes[2] = {false, true};

	test->options.processes = processes;
	test_export(test, "chrome", "a.json");
	test_validate(test);
	assert_non_null(strstr(test->text.data, "\"rank\": 1,"));
	assert_null(strstr(test->text.data, "\"pid\": 4242"));
	test_end(test);
}

static void processes_with_one_pid_get_different_ones(void **state)
{
	struct export_test *test = test_begin(2);

	test->model.processes[1].pid = test->model.processes[0].pid;
	test_export(test, "chrome", "a.json");
	test_validate(test);
	assert_non_null(strstr(test->text.data, "\"pid\": 8388608"));
	test_end(test);
}

static void times_count_from_a_base_that_doubles_can_hold(void **state)
{
	struct export_test *test = test_begin(1);
	const char *base;

	test_export(test, "chrome", "a.json");
	base = strstr(test->text.data, "\"baseTimeNanoseconds\": ");
	assert_non_null(base);
	assert_int_equal(strtoll(base + 23, NULL, 10) % (INT64_C(604800) * 1000000000), 0);
	test_end(test);
}

static void model_without_anything_is_a_valid_file(void **state)
{
	struct export_test *test = test_begin(0);

	test_export(test, "chrome", "a.json");
	test_validate(test);
	assert_int_equal(test->result.slices, 0);
	test_end(test);
}

/* ---- S04: what viewers open ---- */

static uint64_t more_bytes;

uint64_t __real_output_raw_bytes(const struct output *output);
uint64_t __wrap_output_raw_bytes(const struct output *output);

uint64_t __wrap_output_raw_bytes(const struct output *output)
{
	return __real_output_raw_bytes(output) + more_bytes;
}

static void S04_more_than_viewers_open_is_said(void **state)
{
	struct export_test *test = test_begin(1);

	test_export(test, "chrome", "a.json");
	assert_string_equal(test->result.note, "");
	more_bytes = (uint64_t)512 * 1000 * 1000;
	test_export(test, "chrome", "b.json");
	more_bytes = 0;
	assert_non_null(strstr(test->result.note, "at most 512 MB of text: use --steps A-B or --max-mb 480"));
	test_end(test);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(export_has_every_span_with_its_nanoseconds),
		cmocka_unit_test(export_is_strict_json),
		cmocka_unit_test(export_breaks_no_rule),
		cmocka_unit_test(rank_stands_before_the_events_with_a_blank),
		cmocka_unit_test(crossing_kernels_are_put_on_lanes),
		cmocka_unit_test(names_are_escaped_for_all_readers),
		cmocka_unit_test(absurd_args_are_valid),
		cmocka_unit_test(kernel_carries_the_id_of_its_op_and_flows_join_them),
		cmocka_unit_test(open_span_lasts_to_the_end_and_says_so),
		cmocka_unit_test(value_that_is_no_number_is_left_out),
		cmocka_unit_test(steps_select_what_begins_in_them),
		cmocka_unit_test(limit_of_bytes_leaves_out_whole_steps_from_the_end),
		cmocka_unit_test(one_rank_can_be_written_alone),
		cmocka_unit_test(processes_with_one_pid_get_different_ones),
		cmocka_unit_test(times_count_from_a_base_that_doubles_can_hold),
		cmocka_unit_test(model_without_anything_is_a_valid_file),
		cmocka_unit_test(S04_more_than_viewers_open_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
