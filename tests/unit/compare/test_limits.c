/* SPDX-License-Identifier: Apache-2.0
 *
 * test_limits.c: limits from tiers and files, and what they say of comparisons whose numbers are set by hand.
 */
#include "compare/gate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- files ---- */

static enum status read_text(struct limits *limits, const char *text, struct error *err)
{
	char path[] = "/tmp/stepscope-limits-XXXXXX";
	int file = mkstemp(path);
	enum status status;

	assert_true(file >= 0);
	assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
	close(file);
	status = limits_read(limits, path, err);
	unlink(path);
	return status;
}

static void a_file_changes_what_it_names(void **state)
{
	struct limits limits;
	struct error err = {0};

	assert_true(limits_init(&limits, "default"));
	assert_true(limits.values[LIMIT_STEP_TIME] == 10);
	assert_int_equal(read_text(&limits,
	                           "max_step_time_increase_pct: 7.5\nbase_tier: nightly\nmin_step_count: 30\n"
	                           "confidence_level: 0.95\n",
	                           &err),
	                 STATUS_OK);
	assert_string_equal(limits.tier, "nightly");
	assert_true(limits.values[LIMIT_STEP_TIME] == 7.5); /* also before base_tier */
	assert_true(limits.values[LIMIT_TOKENS] == 3);
	assert_true(limits.values[LIMIT_MEMORY_MB] == 200);
	assert_true(limits.values[LIMIT_STEP_COUNT] == 30);
	assert_false(limits_init(&limits, "perfect"));
}

static void refused(const char *text, const char *expected)
{
	struct limits limits;
	struct error err = {0};

	limits_init(&limits, "default");
	assert_int_equal(read_text(&limits, text, &err), STATUS_USAGE);
	if (!strstr(err.text, expected))
		fail_msg("'%s' is not in '%s'", expected, err.text);
}

static void nonsense_is_refused_with_its_line(void **state)
{
	refused("a: 1\n", "line 1: unknown limit 'a'");
	refused("\nmax_tps_drop_percent: 1\n", "line 2: unknown limit 'max_tps_drop_percent'");
	refused("max_tps_drop_pct: much\n", "line 1: max_tps_drop_pct must be a number, got 'much'");
	refused("max_tps_drop_pct: 101\n", "from 0 to 100, got '101'");
	refused("max_mem_increase_mb: -1\n", "must be at least 0");
	refused("max_mem_increase_mb: .nan\n", "must be a number");
	refused("max_mem_increase_mb: nan\n", "must be a number");
	refused("max_mem_increase_mb: 1e400\n", "must be a number");
	refused("max_mem_increase_mb:\n", "must be a number, got ''");
	refused("nan_steps_allowed: 0.5\n", "must be a whole number");
	refused("base_tier: fast\n", "line 1: unknown tier 'fast'");
	refused("confidence_level: 0.99\n", "must be 0.95");
	refused("max_tps_drop_pct: {a: 1}\n", "unknown limit 'max_tps_drop_pct.a'");
	refused("x: &a 5\nmax_tps_drop_pct: *a\n", "unknown limit 'x'");
	refused("max_tps_drop_pct: 5\n---\nmax_tps_drop_pct: 6\n", "one document");
}

/* ---- checks ---- */

/* A run of this many steps of 100 ms, every other one a little longer, so that there is noise. */
static void make_run(struct compared_run *run, int steps, double factor, double spread)
{
	*run = (struct compared_run){.name = "run", .path = "run"};
	arena_init(&run->arena, 0);
	run->steps = calloc((size_t)steps, sizeof(*run->steps));
	run->steps_count = run->steps_capacity = (size_t)steps;
	for (int i = 0; i < steps; i++)
		run->steps[i] = (struct compared_step){
			.number = i, .dur_ns = 1e8 * factor * (1 + spread * ((i * 7 % 11) - 5) / 5.0)};
	compared_run_add_value(run, "step_time_mean", 1e8 * factor);
	compared_run_add_value(run, "peak_memory", 1e9 * factor);
	compared_run_add_value(run, "final_loss", 2 * factor);
	compared_run_add_value(run, "not_finite", 0);
}

struct pair {
	struct compared_run runs[2];
	struct comparison comparison;
	struct gate gate;
};

static void compare_pair(struct pair *pair, double factor, double spread, const char *tier, enum gate_rule rule)
{
	struct limits limits;

	make_run(&pair->runs[0], 200, 1, spread);
	make_run(&pair->runs[1], 200, factor, spread);
	comparison_init(&pair->comparison, &pair->runs[0], 1, &pair->runs[1], 1, &comparison_defaults);
	if (tier)
		assert_true(limits_init(&limits, tier));
	gate_init(&pair->gate, &pair->comparison, tier ? &limits : NULL, rule);
}

static void release_pair(struct pair *pair)
{
	gate_release(&pair->gate);
	comparison_release(&pair->comparison);
	compared_run_release(&pair->runs[0]);
	compared_run_release(&pair->runs[1]);
}

static const char *result_of(const struct pair *pair, const char *name)
{
	const struct table *limits = &pair->gate.limits;

	for (int row = 0; row < limits->row_count; row++) {
		if (!strcmp(table_get(limits, row, CHECKED_NAME)->text, name))
			return table_get(limits, row, CHECKED_RESULT)->text;
	}
	return "";
}

static void expect_gate(double factor, double spread, const char *tier, enum gate_rule rule, enum status expected)
{
	struct pair pair;
	struct error err = {0};

	compare_pair(&pair, factor, spread, tier, rule);
	assert_int_equal(gate_status(&pair.gate, &err), expected);
	release_pair(&pair);
}

static void a_limit_is_kept_broken_or_not_known(void **state)
{
	struct pair pair;

	compare_pair(&pair, 1.4, 0.001, "default", GATE_LIMITS);
	assert_string_equal(result_of(&pair, "step_time"), "broken");
	assert_string_equal(result_of(&pair, "peak_memory"), "broken");
	assert_string_equal(result_of(&pair, "final_loss"), "kept");
	assert_string_equal(result_of(&pair, "tokens_per_s"), "not measured");
	assert_string_equal(result_of(&pair, "not_finite"), "kept");
	release_pair(&pair);
	compare_pair(&pair, 1.105, 0.001, "default", GATE_LIMITS); /* a little above it */
	assert_string_equal(result_of(&pair, "step_time"), "inconclusive");
	release_pair(&pair);
	compare_pair(&pair, 1.7, 0.001, "default", GATE_LIMITS);
	assert_string_equal(result_of(&pair, "final_loss"), "warning");
	release_pair(&pair);
}

static void the_gate_follows_the_rule(void **state)
{
	expect_gate(1.4, 0.001, "default", GATE_LIMITS, STATUS_LIMIT);
	expect_gate(1.4, 0.001, "default", GATE_NEVER, STATUS_OK);
	expect_gate(1.4, 0.001, NULL, GATE_REGRESSION, STATUS_LIMIT);
	expect_gate(1.105, 0.001, "default", GATE_LIMITS, STATUS_INCONCLUSIVE);
	expect_gate(1.06, 0.001, "smoke", GATE_LIMITS, STATUS_OK);        /* slower, within the limit */
	expect_gate(1.06, 0.001, "smoke", GATE_REGRESSION, STATUS_LIMIT); /* but slower */
	expect_gate(1.0, 0.001, "nightly", GATE_LIMITS, STATUS_OK);
	expect_gate(0.8, 0.001, "nightly", GATE_REGRESSION, STATUS_OK);
}

static void too_few_steps_are_no_ground(void **state)
{
	struct pair pair;
	struct limits limits;

	compare_pair(&pair, 1.4, 0.001, NULL, GATE_LIMITS);
	gate_release(&pair.gate);
	limits_init(&limits, "default");
	limits.values[LIMIT_STEP_COUNT] = 1000;
	gate_init(&pair.gate, &pair.comparison, &limits, GATE_LIMITS);
	assert_string_equal(result_of(&pair, "step_time"), "inconclusive");
	release_pair(&pair);
}

static void other_hardware_is_not_judged(void **state)
{
	struct pair pair;
	struct limits limits;
	struct error err = {0};

	limits_init(&limits, "default");
	make_run(&pair.runs[0], 200, 1, 0.001);
	make_run(&pair.runs[1], 200, 1.4, 0.001);
	compared_run_add_fact(&pair.runs[0], FACT_HARDWARE, "device.0.name", "A");
	compared_run_add_fact(&pair.runs[1], FACT_HARDWARE, "device.0.name", "B");
	comparison_init(&pair.comparison, &pair.runs[0], 1, &pair.runs[1], 1, &comparison_defaults);
	gate_init(&pair.gate, &pair.comparison, &limits, GATE_LIMITS);
	assert_string_equal(result_of(&pair, "step_time"), "not comparable");
	assert_int_equal(gate_status(&pair.gate, &err), STATUS_INCONCLUSIVE);
	release_pair(&pair);
}

static void memory_of_other_work_is_not_judged(void **state)
{
	struct pair pair;
	struct limits limits;
	struct error err = {0};

	limits_init(&limits, "default");
	make_run(&pair.runs[0], 200, 1, 0.001);
	make_run(&pair.runs[1], 200, 1.9, 0.001);
	compared_run_add_fact(&pair.runs[0], FACT_WORK, "batch_size", "4");
	compared_run_add_fact(&pair.runs[1], FACT_WORK, "batch_size", "8");
	comparison_init(&pair.comparison, &pair.runs[0], 1, &pair.runs[1], 1, &comparison_defaults);
	gate_init(&pair.gate, &pair.comparison, &limits, GATE_LIMITS);
	assert_string_equal(result_of(&pair, "step_time"), "not comparable");
	assert_string_equal(result_of(&pair, "peak_memory"), "not comparable");
	assert_string_equal(result_of(&pair, "peak_memory_mib"), "not comparable");
	assert_int_equal(gate_status(&pair.gate, &err), STATUS_INCONCLUSIVE);
	release_pair(&pair);
}

static void not_finite_values_break_their_limit(void **state)
{
	struct pair pair;
	struct limits limits;

	limits_init(&limits, "default");
	make_run(&pair.runs[0], 200, 1, 0.001);
	make_run(&pair.runs[1], 200, 1, 0.001);
	for (size_t i = 0; i < pair.runs[1].values_count; i++)
		if (!strcmp(pair.runs[1].values[i].name, "not_finite"))
			pair.runs[1].values[i].value = 2;
	comparison_init(&pair.comparison, &pair.runs[0], 1, &pair.runs[1], 1, &comparison_defaults);
	gate_init(&pair.gate, &pair.comparison, &limits, GATE_LIMITS);
	assert_string_equal(result_of(&pair, "not_finite"), "broken");
	gate_release(&pair.gate);
	limits.values[LIMIT_NAN_STEPS] = limits.values[LIMIT_INF_STEPS] = 1;
	gate_init(&pair.gate, &pair.comparison, &limits, GATE_LIMITS);
	assert_string_equal(result_of(&pair, "not_finite"), "kept");
	release_pair(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_changes_what_it_names),
		cmocka_unit_test(nonsense_is_refused_with_its_line),
		cmocka_unit_test(a_limit_is_kept_broken_or_not_known),
		cmocka_unit_test(the_gate_follows_the_rule),
		cmocka_unit_test(too_few_steps_are_no_ground),
		cmocka_unit_test(other_hardware_is_not_judged),
		cmocka_unit_test(memory_of_other_work_is_not_judged),
		cmocka_unit_test(not_finite_values_break_their_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
