/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparisons of runs without steps: functions of sampled stacks, memory of snapshots and telemetry of devices.
 */
#include "compared_pair.h"
#include "near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* ---- functions of sampled stacks ---- */

static void add_function(struct compared_run *run, const char *what, const char *name, const char *file, double self,
                         double total)
{
	compared_run_add_function(run,
	                          &(struct compared_function){what, name, file, self, total, self / 100, total / 100});
}

static void make_profiles(struct pair *pair)
{
	*pair = (struct pair){0};
	for (int side = 0; side < 2; side++) {
		struct compared_run *run = side ? &pair->new : &pair->base;

		arena_init(&run->arena, 0);
		run->name = run->path = "profile";
		run->no_steps = "stacks are not of steps";
	}
}

static const struct table_cell *function_cell(const struct pair *pair, const char *name, int column)
{
	const struct table *functions = &pair->comparison.functions;

	for (int row = 0; row < functions->row_count; row++)
		if (!strcmp(table_text(functions, row, FUNCTIONS_NAME), name))
			return table_get(functions, row, column);
	fail_msg("no function %s", name);
	return NULL;
}

static void shares_of_functions_are_compared(void **state)
{
	struct pair pair;
	double sum = 0;

	(void)state;
	make_profiles(&pair);
	add_function(&pair.base, "samples", "slow", "/main/a.py", 60, 100);
	add_function(&pair.base, "samples", "gone", "/main/a.py", 40, 40);
	add_function(&pair.new, "samples", "slow", "/mine/a.py", 90, 100);
	add_function(&pair.new, "samples", "came", NULL, 10, 10);
	compare(&pair);
	assert_int_equal(pair.comparison.functions.row_count, 3);
	for (int row = 0; row < 3; row++)
		sum += table_get(&pair.comparison.functions, row, FUNCTIONS_SELF_CHANGE)->d;
	assert_double_equal(sum, 0, 1e-12);
	assert_double_equal(function_cell(&pair, "slow", FUNCTIONS_SELF_CHANGE)->d, 0.3, 1e-12);
	assert_double_equal(function_cell(&pair, "slow", FUNCTIONS_TOTAL_CHANGE)->d, 0, 1e-12);
	assert_string_equal(function_cell(&pair, "slow", FUNCTIONS_NOTE)->text, "in another folder");
	assert_string_equal(function_cell(&pair, "slow", FUNCTIONS_FILE)->text, "/mine/a.py");
	assert_string_equal(function_cell(&pair, "gone", FUNCTIONS_NOTE)->text, "only in the base");
	assert_string_equal(function_cell(&pair, "came", FUNCTIONS_NOTE)->text, "only on the new side");
	assert_false(function_cell(&pair, "slow", FUNCTIONS_IS_CERTAIN)->has_value);
	assert_string_equal(table_text(&pair.comparison.functions, 0, FUNCTIONS_NAME), "gone");
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "not measured");
	assert_string_equal(verdict_text(&pair, COMPARISON_CAUSE),
	                    "function: gone 40.0 % -> 0.0 % of the samples (self)");
	release(&pair);
}

/* Two of one name in one file name: which is which cannot be told. */
static void functions_are_not_joined_by_guess(void **state)
{
	struct pair pair;

	(void)state;
	make_profiles(&pair);
	add_function(&pair.base, "time", "forward", "/a/x/model.py", 50, 50);
	add_function(&pair.base, "time", "forward", "/a/y/model.py", 50, 50);
	add_function(&pair.new, "time", "forward", "/b/x/model.py", 100, 100);
	compare(&pair);
	assert_int_equal(pair.comparison.functions.row_count, 3);
	release(&pair);
}

static void an_address_in_a_name_is_no_difference(void **state)
{
	struct pair pair;

	(void)state;
	make_profiles(&pair);
	add_function(&pair.base, "time", "<built-in method mean of Tensor object at 0x7f01a>", NULL, 100, 100);
	add_function(&pair.new, "time", "<built-in_method_x_at_0x7f02b>", NULL, 20, 20);
	add_function(&pair.new, "time", "<built-in method mean of Tensor object at 0x7f02b>", NULL, 80, 80);
	compare(&pair);
	assert_int_equal(pair.comparison.functions.row_count, 2);
	assert_double_equal(function_cell(&pair, "<built-in method mean of Tensor object>", FUNCTIONS_SELF_CHANGE)->d,
	                    -0.2, 1e-12);
	assert_double_equal(function_cell(&pair, "<built-in_method_x>", FUNCTIONS_NEW_SELF)->d, 20, 1e-12);
	release(&pair);
}

static void what_counts_different_things_is_not_compared(void **state)
{
	struct pair pair;

	(void)state;
	make_profiles(&pair);
	add_function(&pair.base, "time", "f", NULL, 100, 100);
	add_function(&pair.base, "bytes", "f", NULL, 100, 100);
	add_function(&pair.new, "samples", "f", NULL, 100, 100);
	compare(&pair);
	assert_int_equal(pair.comparison.functions.row_count, 0);
	assert_non_null(strstr(pair.comparison.functions.empty, "have different units"));
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_SENTENCE), "cannot be compared"));
	release(&pair);
}

static void repeats_tell_which_functions_changed_for_certain(void **state)
{
	static const double shares[2][3] = {{50, 52, 48}, {70, 71, 69}};
	struct compared_run runs[2][3];
	struct pair pair = {0};

	(void)state;
	for (int side = 0; side < 2; side++) {
		for (int i = 0; i < 3; i++) {
			struct compared_run *run = &runs[side][i];

			memset(run, 0, sizeof(*run));
			arena_init(&run->arena, 0);
			run->name = run->path = "profile";
			add_function(run, "time", "changed", NULL, shares[side][i], 100);
			add_function(run, "time", "steady", NULL, 10 + i, 10 + i);
			add_function(run, "time", "rest", NULL, 90 - i - shares[side][i], 50);
		}
	}
	comparison_init(&pair.comparison, runs[0], 3, runs[1], 3, NULL);
	assert_true(function_cell(&pair, "changed", FUNCTIONS_IS_CERTAIN)->b);
	assert_false(function_cell(&pair, "steady", FUNCTIONS_IS_CERTAIN)->b);
	assert_double_equal(function_cell(&pair, "changed", FUNCTIONS_NEW_SELF_RATIO)->d, 0.7, 1e-12);
	comparison_release(&pair.comparison);
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < 3; i++)
			compared_run_release(&runs[side][i]);
}

/* A kept run has the functions with the largest shares; the others are one row there. */
static void what_was_left_out_of_a_side_is_not_said_to_be_new(void **state)
{
	struct pair pair;
	double sum = 0;

	(void)state;
	make_profiles(&pair);
	add_function(&pair.base, "time", "large", NULL, 80, 80);
	add_function(&pair.base, "time", COMPARED_OTHERS, NULL, 20, 20);
	add_function(&pair.new, "time", "large", NULL, 60, 60);
	add_function(&pair.new, "time", "small", NULL, 40, 40);
	compare(&pair);
	for (int row = 0; row < pair.comparison.functions.row_count; row++)
		sum += table_get(&pair.comparison.functions, row, FUNCTIONS_SELF_CHANGE)->d;
	assert_double_equal(sum, 0, 1e-12);
	assert_false(function_cell(&pair, "small", FUNCTIONS_BASE_SELF_RATIO)->has_value);
	assert_false(function_cell(&pair, "small", FUNCTIONS_BASE_TOTAL)->has_value);
	assert_double_equal(function_cell(&pair, "small", FUNCTIONS_NEW_SELF_RATIO)->d, 0.4, 1e-12);
	assert_non_null(strstr(function_cell(&pair, "small", FUNCTIONS_NOTE)->text, "one of the others"));
	assert_double_equal(function_cell(&pair, COMPARED_OTHERS, FUNCTIONS_BASE_SELF_RATIO)->d, 0.2, 1e-12);
	assert_string_equal(verdict_text(&pair, COMPARISON_CAUSE),
	                    "function: small (small) -> 40.0 % of the samples (self)");
	release(&pair);
}

/* ---- memory ---- */

static void add_memory(struct compared_run *run, const char *name, double bytes)
{
	compared_run_add_part(run, &(struct compared_part){COMPARED_MEMORY "category", name, NULL, bytes, true, 1});
}

static void make_snapshot(struct compared_run *run, double weights, double activations)
{
	memset(run, 0, sizeof(*run));
	arena_init(&run->arena, 0);
	run->name = run->path = "snapshot";
	run->no_steps = "the snapshot has no steps";
	add_memory(run, "weights", weights);
	add_memory(run, "activations", activations);
	compared_run_add_value(run, "device_memory", weights + activations);
}

static void one_snapshot_each_has_no_interval(void **state)
{
	struct pair pair;
	const struct table *memory = &pair.comparison.memory;

	(void)state;
	make_snapshot(&pair.base, 1000, 1000);
	make_snapshot(&pair.new, 1000, 1500);
	compare(&pair);
	assert_string_equal(verdict_text(&pair, COMPARISON_METRIC), "device_memory");
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "inconclusive");
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_SENTENCE), "too few snapshots for an interval"));
	assert_false(table_get(&pair.comparison.verdict, 0, COMPARISON_LOW)->has_value);
	assert_double_equal(table_get(&pair.comparison.verdict, 0, COMPARISON_RATIO)->d, 0.25, 1e-12);
	assert_int_equal(memory->row_count, 2);
	assert_string_equal(table_text(memory, 0, CONTRIBUTION_NAME), "activations");
	assert_double_equal(table_get(memory, 0, CONTRIBUTION_DELTA)->d, 500, 1e-9);
	assert_false(table_get(memory, 0, CONTRIBUTION_LOW)->has_value);
	assert_false(table_get(memory, 0, CONTRIBUTION_IS_CERTAIN)->has_value);
	assert_int_equal(pair.comparison.contributions.row_count, 0);
	release(&pair);
}

static void repeated_snapshots_have_a_verdict_of_their_peak(void **state)
{
	struct compared_run runs[2][3];
	struct pair pair = {0};
	const struct table *memory = &pair.comparison.memory;

	(void)state;
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < 3; i++)
			make_snapshot(&runs[side][i], 1000, side ? 1500 + i : 1000 - i);
	comparison_init(&pair.comparison, runs[0], 3, runs[1], 3, NULL);
	assert_string_equal(verdict_text(&pair, COMPARISON_RESULT), "regression");
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_SENTENCE), "peak memory of a device"));
	assert_true(table_get(memory, 0, CONTRIBUTION_IS_CERTAIN)->b);
	assert_true(table_get(memory, 0, CONTRIBUTION_LOW)->d < 502 && table_get(memory, 0, CONTRIBUTION_LOW)->d > 490);
	assert_true(table_get(memory, 0, CONTRIBUTION_HIGH)->d > 502);
	assert_false(table_get(memory, 1, CONTRIBUTION_IS_CERTAIN)->b);
	comparison_release(&pair.comparison);
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < 3; i++)
			compared_run_release(&runs[side][i]);
}

/* ---- telemetry ---- */

static void add_telemetry(struct compared_run *run, const char *quantity, const char *unit, double median, double error)
{
	compared_run_add_telemetry(run, &(struct compared_telemetry){"GPU 0", quantity, unit, median, error, 1, 100});
}

static const char *telemetry_result(const struct pair *pair, const char *quantity)
{
	const struct table *telemetry = &pair->comparison.telemetry;

	for (int row = 0; row < telemetry->row_count; row++)
		if (!strcmp(table_text(telemetry, row, TELEMETRY_CHANGE_QUANTITY), quantity))
			return table_text(telemetry, row, TELEMETRY_CHANGE_RESULT);
	fail_msg("no quantity %s", quantity);
	return NULL;
}

static void telemetry_is_compared_by_medians(void **state)
{
	struct pair pair;

	(void)state;
	make_profiles(&pair);
	for (int side = 0; side < 2; side++) {
		struct compared_run *run = side ? &pair.new : &pair.base;

		add_telemetry(run, "utilization.gpu", "%", side ? 60 : 90, 1);
		add_telemetry(run, "memory.used", "MiB", 1000, 0);
		add_telemetry(run, "idle", "%", 0, 0);
		add_telemetry(run, "temperature.gpu", NULL, side ? 64 : 60, 5);
		add_telemetry(run, "power.draw", side ? "kW" : "W", 500, 1);
	}
	add_telemetry(&pair.base, "fan.speed", "%", 30, 0);
	compare(&pair);
	assert_string_equal(telemetry_result(&pair, "utilization.gpu"), "changed");
	assert_string_equal(telemetry_result(&pair, "memory.used"), "no difference");
	assert_string_equal(telemetry_result(&pair, "idle"), "no difference");
	assert_string_equal(telemetry_result(&pair, "temperature.gpu"), "inconclusive");
	assert_string_equal(telemetry_result(&pair, "power.draw"), "not measured");
	assert_string_equal(telemetry_result(&pair, "fan.speed"), "not measured");
	assert_string_equal(verdict_text(&pair, COMPARISON_CAUSE), "GPU 0 utilization.gpu 90 -> 60 %");
	assert_double_equal(table_get(&pair.comparison.telemetry, 0, TELEMETRY_CHANGE_DELTA)->d, -30, 1e-12);
	release(&pair);
}

static void another_kind_of_gpu_is_not_comparable(void **state)
{
	struct pair pair;

	(void)state;
	make_profiles(&pair);
	add_telemetry(&pair.base, "utilization.gpu", "%", 90, 1);
	add_telemetry(&pair.new, "utilization.gpu", "%", 60, 1);
	compared_run_add_fact(&pair.base, FACT_HARDWARE, "GPU 0.name", "one");
	compared_run_add_fact(&pair.new, FACT_HARDWARE, "GPU 0.name", "another");
	compare(&pair);
	assert_string_equal(telemetry_result(&pair, "utilization.gpu"), "not comparable");
	assert_false(table_get(&pair.comparison.verdict, 0, COMPARISON_IS_COMPARABLE)->b);
	release(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_of_functions_are_compared),
		cmocka_unit_test(functions_are_not_joined_by_guess),
		cmocka_unit_test(an_address_in_a_name_is_no_difference),
		cmocka_unit_test(what_counts_different_things_is_not_compared),
		cmocka_unit_test(repeats_tell_which_functions_changed_for_certain),
		cmocka_unit_test(what_was_left_out_of_a_side_is_not_said_to_be_new),
		cmocka_unit_test(one_snapshot_each_has_no_interval),
		cmocka_unit_test(repeated_snapshots_have_a_verdict_of_their_peak),
		cmocka_unit_test(telemetry_is_compared_by_medians),
		cmocka_unit_test(another_kind_of_gpu_is_not_comparable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
