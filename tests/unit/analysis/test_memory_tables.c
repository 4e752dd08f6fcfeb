/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of memory against numbers worked out on paper: peaks, growth, selected steps and absurd sizes.
 */
#include "computed.h"
#include "hand_model.h"
#include "near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stepscope/format.h>
#include <stepscope/stepscope.h>

#include <cmocka.h>

static void memory_has_its_peak_and_its_growth(void **state)
{
	struct table table;
	struct model model;
	int row;

	hand_model_init(&model);
	compute("memory", &model, &all_steps, &table);
	row = find_row(&table, "category", "all");
	assert_double_equal(number(&table, row, "peak_bytes"), 1000 + 500 + 5 * 10, 0);
	assert_double_equal(number(&table, row, "live_bytes"), 1000 + 5 * 10, 0);
	assert_double_equal(number(&table, row, "growth_bytes_per_step"), 10, 1e-9);
	row = find_row(&table, "category", "activation");
	assert_double_equal(number(&table, row, "allocated_bytes"), 5 * 500, 0);
	assert_double_equal(number(&table, row, "live_bytes"), 0, 0);
	table_release(&table);
	compute("memory_peak", &model, &all_steps, &table);
	row = find_row(&table, "category", "other");
	assert_double_equal(number(&table, row, "alive_bytes"), 50, 0);
	assert_double_equal(number(&table, row, "live_allocations"), 5, 0);
	table_release(&table);
	model_release(&model);
}

static void add_step(struct model *model, uint32_t track, int64_t ordinal, int64_t start_ns)
{
	struct model_step step = {.number = ordinal,
	                          .start_ns = start_ns,
	                          .end_ns = start_ns + 10,
	                          .track = track,
	                          .capture = STEPSCOPE_CAPTURE_RECORD,
	                          .has_detail = true,
	                          .has_memory = true};

	step.row = model_span_begin(model, track, start_ns, SPAN_STEP, intern_add(&model->strings, "step"));
	model_span_end(model, track, step.end_ns, 0);
	*model_add_step(model) = step;
}

static void add_memory(struct model *model, int64_t time_ns, uint64_t address, uint64_t bytes)
{
	model_add_memory(model, &(struct memory_event){.time_ns = time_ns,
	                                               .address = address,
	                                               .bytes = bytes,
	                                               .track = MODEL_NONE,
	                                               .row = MODEL_NONE,
	                                               .device = STEPSCOPE_DEVICE_CPU,
	                                               .is_free = !bytes,
	                                               .has_bytes = bytes});
}

/* What was allocated before counts, what was freed before does not; a step may begin with its peak. */
static void the_peak_is_that_of_selected_steps(void **state)
{
	static const struct {
		int64_t first, last;
		double peak;
	} cases[] = {{0, 2, 1100}, {1, 1, 105}, {2, 2, 105}, {1, 2, 105}, {3, 3, 5}};
	struct table table;
	struct model model;

	model_init(&model, 0);
	uint32_t track = model_add_track(&model, model_add_process(&model), TRACK_THREAD);
	for (int64_t step = 0; step < 4; step++)
		add_step(&model, track, step, 10 + step * 10);
	add_memory(&model, 1, 0x100, 100);
	add_memory(&model, 12, 0x200, 1000);
	add_memory(&model, 15, 0x200, 0);
	add_memory(&model, 22, 0x300, 5);
	add_memory(&model, 35, 0x100, 0);
	model_finish(&model);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct analysis_options steps = {
			.filter = {.has_steps = true, .first_step = cases[i].first, .last_step = cases[i].last}};
		double alive = 0;

		compute("memory", &model, &steps, &table);
		assert_double_equal(number(&table, 0, "peak_bytes"), cases[i].peak, 0);
		table_release(&table);
		compute("memory_peak", &model, &steps, &table);
		for (int row = 0; row < table.row_count; row++)
			alive += number(&table, row, "alive_bytes");
		assert_double_equal(alive, cases[i].peak, 0);
		table_release(&table);
	}
	model_release(&model);
}

static void sums_of_absurd_sizes_are_saturated(void **state)
{
	struct table table;
	struct model model;

	model_init(&model, 0);
	model_add_process(&model);
	for (uint64_t i = 0; i < 10; i++)
		model_add_memory(&model, &(struct memory_event){.time_ns = (int64_t)i,
		                                                .address = 1 + i,
		                                                .bytes = (uint64_t)1 << 62,
		                                                .track = MODEL_NONE,
		                                                .row = MODEL_NONE,
		                                                .device = -1,
		                                                .has_bytes = true});
	model_finish(&model);
	compute("memory", &model, &all_steps, &table);
	assert_int_equal(table_get(&table, 0, table_find_column(&table, "peak_bytes"))->i, INT64_MAX);
	assert_int_equal(table_get(&table, 0, table_find_column(&table, "allocated_bytes"))->i, INT64_MAX);
	table_release(&table);
	compute("memory_peak", &model, &all_steps, &table);
	assert_int_equal(table_get(&table, 0, table_find_column(&table, "alive_bytes"))->i, INT64_MAX);
	table_release(&table);
	model_release(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_has_its_peak_and_its_growth),
		cmocka_unit_test(the_peak_is_that_of_selected_steps),
		cmocka_unit_test(sums_of_absurd_sizes_are_saturated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
