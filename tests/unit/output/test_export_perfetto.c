/* SPDX-License-Identifier: Apache-2.0
 *
 * The Perfetto exporter: what is in the file by our own reader of the wire format (the real one is in
 * tests/conformance), and files that were cut off.
 */
#include "export_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void export_breaks_no_rule(void **state)
{
	for (unsigned ranks = 0; ranks <= 2; ranks++) {
		struct export_test *test = test_begin(ranks);

		test_export(test, "perfetto", "a.pftrace");
		test_validate(test);
		for (int rule = 0; rule < VALIDATE_RULE_COUNT; rule++)
			assert_int_equal(test->validation.findings[rule].count, 0);
		assert_int_equal(test->validation.spans, sample_sum(&test->model).spans + 3 * ranks); /* row of steps */
		assert_int_equal(test->result.slices, sample_sum(&test->model).spans);
		assert_int_equal(test->validation.flows, test->result.flows);
		test_end(test);
	}
}

static void crossing_kernels_are_put_on_lanes(void **state)
{
	struct export_test *test = test_begin(1);

	sample_cross_kernels(&test->model);
	test_export(test, "perfetto", "a.pftrace");
	test_validate(test);
	assert_int_equal(test->result.slices, sample_sum(&test->model).spans);
	test_end(test);
}

static void file_is_the_same_every_time(void **state)
{
	struct export_test *test = test_begin(2);
	struct buffer first;

	test_export(test, "perfetto", "a.pftrace");
	buffer_init(&first, SIZE_MAX);
	buffer_add(&first, test->text.data, test->text.length);
	test_export(test, "perfetto", "b.pftrace.gz");
	assert_int_equal(first.length, test->text.length);
	assert_memory_equal(first.data, test->text.data, first.length);
	buffer_release(&first);
	test_end(test);
}

/* A long track: its state is cleared several times, so that what is left of a cut file has all it needs. */
static void fill_long(struct model *model)
{
	uint32_t process = model_add_process(model);
	uint32_t track = model_add_track(model, process, TRACK_THREAD);
	uint32_t name = intern_add(&model->strings, "op");

	for (int64_t i = 0; i < 700000; i++)
		model_span_complete(model, track, i * 100, 90, SPAN_OP, name);
	model_finish(model);
}

static void state_is_repeated_in_long_files(void **state)
{
	struct export_test *test = test_begin(0);

	model_release(&test->model);
	model_init(&test->model, 0);
	fill_long(&test->model);
	test_export(test, "perfetto", "a.pftrace");
	test_validate(test);
	assert_int_equal(test->validation.spans, 700000);
	assert_true(test->text.length > 16000000);
	test_end(test);
}

static void every_cut_of_a_file_is_only_cut_off(void **state)
{
	struct export_test *test = test_begin(1);
	struct buffer whole;

	test_export(test, "perfetto", "a.pftrace");
	buffer_init(&whole, SIZE_MAX);
	buffer_add(&whole, test->text.data, test->text.length);
	for (size_t length = 1; length < whole.length; length += 7) {
		FILE *file = fopen(test->path, "wb");

		assert_int_equal(fwrite(whole.data, 1, length, file), length);
		fclose(file);
		(void)!validate_file(test->path, &test->validation, &test->err);
		for (int rule = 0; rule < VALIDATE_RULE_COUNT; rule++)
			if (rule != VALIDATE_W1 && rule != VALIDATE_W11)
				assert_int_equal(test->validation.findings[rule].count, 0);
	}
	buffer_release(&whole);
	test_end(test);
}

static void steps_select_what_begins_in_them(void **state)
{
	struct export_test *test = test_begin(1);

	test->options = (struct export_options){.has_steps = true, .first_step = 10, .last_step = 11};
	test_export(test, "perfetto", "a.pftrace");
	test_validate(test);
	assert_int_equal(test->result.flows, 6);
	assert_int_equal(test->result.slices, 28);
	test_end(test);
}

static void limit_of_bytes_leaves_out_whole_steps_from_the_end(void **state)
{
	struct export_test *test = test_begin(1);

	test_export(test, "perfetto", "all.pftrace");
	test->options.max_bytes = (int64_t)test->text.length - 100;
	test_export(test, "perfetto", "less.pftrace");
	test_validate(test);
	assert_true(test->text.length <= (uint64_t)test->options.max_bytes);
	assert_non_null(strstr(test->result.note, "2 of 3 steps"));
	test_end(test);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(export_breaks_no_rule),
		cmocka_unit_test(crossing_kernels_are_put_on_lanes),
		cmocka_unit_test(file_is_the_same_every_time),
		cmocka_unit_test(state_is_repeated_in_long_files),
		cmocka_unit_test(every_cut_of_a_file_is_only_cut_off),
		cmocka_unit_test(steps_select_what_begins_in_them),
		cmocka_unit_test(limit_of_bytes_leaves_out_whole_steps_from_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
