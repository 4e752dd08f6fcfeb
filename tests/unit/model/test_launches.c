/* SPDX-License-Identifier: Apache-2.0
 *
 * test_launches.c: work of a device finds the call that launched it and the operator around that; and what has neither says so.
 */
#include "base/storage.h"
#include "device_model.h"
#include "model/launches.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stepscope/stepscope.h>
#include <string.h>

#include <cmocka.h>

static const char *name_of(const struct model *model, uint32_t track, uint32_t row)
{
	uint32_t i;
	const struct span_chunk *chunk = track_chunk(model->tracks[track], row, &i);

	return model_text(model, chunk->name[i]);
}

static void check(const struct model *model, const struct launches *launches, uint32_t track, uint32_t row,
                  const char *call, const char *operation)
{
	const struct launch *launch = launches_of(launches, track, row);

	assert_non_null(launch);
	if (call)
		assert_string_equal(name_of(model, launch->track, launch->row), call);
	else
		assert_int_equal(launch->track, MODEL_NONE);
	if (operation)
		assert_string_equal(name_of(model, launch->track, launch->operation), operation);
	else
		assert_int_equal(launch->operation, MODEL_NONE);
}

static void work_finds_its_launch_and_operator(void **state)
{
	struct launches launches;
	struct model model;

	device_model_init(&model);
	launches_init(&launches, &model);
	check(&model, &launches, DEVICE_MODEL_STREAM_7, 0, "cudaLaunchKernel", "aten::mm");
	check(&model, &launches, DEVICE_MODEL_STREAM_7, 1, "cudaMemcpyAsync", "aten::copy_");
	check(&model, &launches, DEVICE_MODEL_STREAM_7, 2, "cuLaunchKernel", "aten::mm");
	check(&model, &launches, DEVICE_MODEL_STREAM_9, 0, "cudaLaunchKernel", "c10d::allreduce_");
	launches_release(&launches);
	model_release(&model);
}

static void no_operator_and_no_launch_are_answers(void **state)
{
	struct launches launches;
	struct model model;

	device_model_init(&model);
	launches_init(&launches, &model);
	check(&model, &launches, DEVICE_MODEL_STREAM_7, 3, "cudaLaunchKernel", NULL);
	check(&model, &launches, DEVICE_MODEL_STREAM_7, 4, NULL, NULL);
	assert_null(launches_of(&launches, DEVICE_MODEL_HOST, 0));
	assert_int_equal(launches.work_count, 6);
	assert_int_equal(launches.unlaunched, 1);
	launches_release(&launches);
	launches_release(&launches);
	model_release(&model);
}

/* Two calls of number 1, at 10 and 100, and work with it before, between and behind; another process has the number, too. */
static void a_number_that_comes_twice_is_the_last_call_before_the_work(void **state)
{
	static const int64_t starts[] = {5, 50, 150};
	static const uint32_t rows[] = {0, 0, 1};
	struct launches launches;
	struct model model;
	uint32_t host, stream, other, name;

	model_init(&model, 0);
	name = intern_add(&model.strings, "x");
	host = model_add_track(&model, model_add_process(&model), TRACK_THREAD);
	stream = model_add_track(&model, 0, TRACK_DEVICE);
	other = model_add_track(&model, model_add_process(&model), TRACK_DEVICE);
	for (int64_t start = 10; start <= 100; start += 90)
		model_span_set_correlation(&model, host,
		                           model_span_complete(&model, host, start, 5, SPAN_RUNTIME, name), 1);
	for (int i = 0; i < 3; i++)
		model_span_set_correlation(&model, stream,
		                           model_span_complete(&model, stream, starts[i], 5, SPAN_KERNEL, name), 1);
	model_span_set_correlation(&model, other, model_span_complete(&model, other, 60, 5, SPAN_KERNEL, name), 1);
	model_span_complete(&model, stream, 200, 5, SPAN_ANNOTATION, name);
	model_finish(&model);
	launches_init(&launches, &model);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(launches_of(&launches, stream, i)->track, host);
		assert_int_equal(launches_of(&launches, stream, i)->row, rows[i]);
	}
	assert_int_equal(launches_of(&launches, other, 0)->track, MODEL_NONE);
	assert_int_equal(launches_of(&launches, stream, 3)->track, MODEL_NONE);
	assert_int_equal(launches.work_count, 4);
	assert_int_equal(launches.out_of_order, 1);
	launches_release(&launches);
	model_release(&model);
}

static void link_launch(struct model *model, uint32_t from, uint32_t call, uint32_t to, uint32_t work)
{
	const struct model_link link = {STEPSCOPE_LINK_LAUNCH, 1, from, call, to, work};

	model_add_link(model, &link);
}

/* Calls of numbers 1 and none in an operator; work without a number that links lead to from both, from the operator, and from another
 * process; then work whose number says more than the link to it. */
static void work_without_a_number_is_launched_where_its_link_begins(void **state)
{
	static const uint32_t rows[] = {1, 2, MODEL_NONE, MODEL_NONE, 1};
	struct launches launches;
	struct model model;
	uint32_t host, stream, other, name;

	model_init(&model, 0);
	name = intern_add(&model.strings, "x");
	host = model_add_track(&model, model_add_process(&model), TRACK_THREAD);
	stream = model_add_track(&model, 0, TRACK_DEVICE);
	other = model_add_track(&model, model_add_process(&model), TRACK_THREAD);
	model_span_complete(&model, host, 0, 100, SPAN_OP, name);
	model_span_set_correlation(&model, host, model_span_complete(&model, host, 10, 5, SPAN_RUNTIME, name), 1);
	model_span_complete(&model, host, 20, 5, SPAN_RUNTIME, name);
	model_span_complete(&model, other, 10, 5, SPAN_RUNTIME, name);
	for (int64_t start = 12; start < 37; start += 5)
		model_span_complete(&model, stream, start, 5, SPAN_KERNEL, name);
	model_span_set_correlation(&model, stream, 4, 1);
	link_launch(&model, host, 1, stream, 0);
	link_launch(&model, host, 2, stream, 1);
	link_launch(&model, host, 0, stream, 2);
	link_launch(&model, other, 0, stream, 3);
	link_launch(&model, host, 2, stream, 4);
	model_finish(&model);
	launches_init(&launches, &model);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(launches_of(&launches, stream, i)->row, rows[i]);
		assert_int_equal(launches_of(&launches, stream, i)->operation, rows[i] == MODEL_NONE ? MODEL_NONE : 0);
	}
	assert_int_equal(launches.unlaunched, 2);
	assert_int_equal(launches.out_of_order, 1);
	assert_int_equal(launches.workless_count, 0);
	launches_release(&launches);
	model_release(&model);
}

/* op 0-100 {annotation 10-90 {launch 20-30}}, annotation 100-200 {annotation 110-190 {launch 120-130}} */
static void an_operator_goes_before_ranges_inside_of_it(void **state)
{
	struct launches launches;
	struct model model;
	uint32_t host, stream, name, row;

	model_init(&model, 0);
	name = intern_add(&model.strings, "x");
	host = model_add_track(&model, model_add_process(&model), TRACK_THREAD);
	stream = model_add_track(&model, 0, TRACK_DEVICE);
	for (int64_t i = 0; i < 2; i++) {
		model_span_complete(&model, host, i * 100, 100, i ? SPAN_ANNOTATION : SPAN_OP, name);
		model_span_complete(&model, host, i * 100 + 10, 80, SPAN_ANNOTATION, name);
		row = model_span_complete(&model, host, i * 100 + 20, 10, SPAN_RUNTIME, name);
		model_span_set_correlation(&model, host, row, (uint64_t)i + 1);
		row = model_span_complete(&model, stream, i * 100 + 30, 10, SPAN_KERNEL, name);
		model_span_set_correlation(&model, stream, row, (uint64_t)i + 1);
	}
	model_finish(&model);
	launches_init(&launches, &model);
	assert_int_equal(launches_of(&launches, stream, 0)->operation, 0);
	assert_int_equal(launches_of(&launches, stream, 1)->operation, 4);
	launches_release(&launches);
	model_release(&model);
}

/* How much of the model's temporary file is in our memory. */
static uint64_t resident_kb(void)
{
	unsigned long start, end, kb, sum = 0;
	char line[4400];
	bool is_ours = false;
	FILE *file = fopen("/proc/self/smaps", "r");

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx", &start, &end) == 2)
			is_ours = strstr(line, " rw-s ") && strstr(line, "(deleted)");
		else if (is_ours && sscanf(line, "Rss: %lu", &kb) == 1)
			sum += kb;
	}
	(void)fclose(file);
	return sum;
}

/* Calls without work of a device, which nothing but the search for calls looks at. */
static void what_was_searched_leaves_memory(void **state)
{
	struct launches launches;
	struct model model;
	uint32_t host, stream, name;

	model_init(&model, 100000);
	name = intern_add(&model.strings, "x");
	host = model_add_track(&model, model_add_process(&model), TRACK_THREAD);
	stream = model_add_track(&model, 0, TRACK_DEVICE);
	model_span_complete(&model, stream, 5, 5, SPAN_KERNEL, name);
	for (uint32_t i = 1; i <= 300000; i++)
		model_span_set_correlation(
			&model, host, model_span_complete(&model, host, 10 * (int64_t)i, 5, SPAN_RUNTIME, name), i);
	model_finish(&model);
	launches_init(&launches, &model);
	assert_true(storage_file_bytes(model.storage) > 10u << 20);
	assert_true(resident_kb() < storage_file_bytes(model.storage) / 1024 / 4);
	launches_release(&launches);
	model_release(&model);
}

/* The search begins where the last one ended: near or far, forth or back, it finds the same. */
static void work_in_any_order_finds_its_launch(void **state)
{
	static const uint32_t steps[] = {1, 1999, 7, 611, 1000};

	(void)state;
	for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
		struct launches launches;
		struct model model;
		uint32_t host, stream, name, wanted = 0;

		model_init(&model, 0);
		name = intern_add(&model.strings, "x");
		host = model_add_track(&model, model_add_process(&model), TRACK_THREAD);
		stream = model_add_track(&model, 0, TRACK_DEVICE);
		for (uint32_t i = 0; i < 2000; i++) { /* every second number, as the others are nobody's */
			model_span_set_correlation(
				&model, host, model_span_complete(&model, host, 10 * (int64_t)i, 5, SPAN_RUNTIME, name),
				2 * i + 2);
			model_span_set_correlation(
				&model, stream,
				model_span_complete(&model, stream, 100000 + 10 * (int64_t)i, 5, SPAN_KERNEL, name),
				2 * (i * steps[k] % 2000) + 2 + i % 5 / 4);
		}
		model_finish(&model);
		launches_init(&launches, &model);
		for (uint32_t i = 0; i < 2000; i++, wanted = (wanted + steps[k]) % 2000) {
			const struct launch *launch = launches_of(&launches, stream, i);

			assert_int_equal(launch->row, i % 5 == 4 ? MODEL_NONE : wanted);
		}
		launches_release(&launches);
		model_release(&model);
	}
}

static void a_model_without_devices_has_none(void **state)
{
	struct launches launches;
	struct model model;

	model_init(&model, 0);
	model_add_track(&model, model_add_process(&model), TRACK_THREAD);
	model_finish(&model);
	launches_init(&launches, &model);
	assert_int_equal(launches.work_count, 0);
	assert_null(launches_of(&launches, 0, 0));
	launches_release(&launches);
	model_release(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_finds_its_launch_and_operator),
		cmocka_unit_test(no_operator_and_no_launch_are_answers),
		cmocka_unit_test(a_number_that_comes_twice_is_the_last_call_before_the_work),
		cmocka_unit_test(work_without_a_number_is_launched_where_its_link_begins),
		cmocka_unit_test(an_operator_goes_before_ranges_inside_of_it),
		cmocka_unit_test(what_was_searched_leaves_memory),
		cmocka_unit_test(work_in_any_order_finds_its_launch),
		cmocka_unit_test(a_model_without_devices_has_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
