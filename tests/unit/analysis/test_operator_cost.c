/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators cost, by the steps with and without them, of runs with a clock of their own: the truth is known.
 */
#include "analysis/evidence/cost.h"
#include "analysis/evidence/operator_cost.h"
#include "computed.h"
#include "mixed_model.h"
#include "near.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define STEPS 400
#define STEP_MS 100.0

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static double random_unit(uint64_t *state)
{
	return (double)(random_next(state) >> 11) * 0x1p-53;
}

/* One of each block of `every`, at a random place. */
static void choose_steps(char *kinds, unsigned every, uint64_t *state)
{
	memset(kinds, '.', STEPS);
	kinds[STEPS] = '\0';
	for (unsigned first = 0; first < STEPS; first += every) {
		unsigned i = first + (unsigned)(random_next(state) % every);

		if (i >= 3 && i < STEPS)
			kinds[i] = 'o';
	}
}

static struct operator_cost cost_of(const struct model *model, uint32_t process)
{
	struct analysis_context context;
	const struct step_times *times;
	struct operator_cost cost;

	analysis_context_init(&context, model, &all_steps);
	times = analysis_context_step_times(&context);
	cost = operator_cost_find(model, times, process);
	analysis_context_release(&context);
	return cost;
}

static void the_difference_to_the_neighbours_is_the_cost(void **state)
{
	struct operator_cost cost;
	struct model model;

	mixed_model_init(&model, "....o...o....o..o...", STEP_MS, 20);
	cost = cost_of(&model, MODEL_NONE);
	assert_null(cost.unknown);
	assert_int_equal(cost.pairs, 4);
	assert_int_equal(cost.beside, 8);
	assert_int_equal(cost.with, 4);
	assert_int_equal(cost.count, 20);
	assert_double_equal(cost.ratio, 0.2, 1e-9);
	assert_double_equal(cost.half, 0, 1e-9);
	model_release(&model);
}

static void what_cannot_be_compared_says_why(void **state)
{
	static const struct {
		const char *kinds, *unknown;
	} cases[] = {{"", OPERATOR_COST_NO_STEPS},
	             {"oooooo", OPERATOR_COST_ALL},
	             {"rrrooo", OPERATOR_COST_ALL},
	             {"......", OPERATOR_COST_NONE},
	             {"....o...o...", "fewer than three"},
	             {"ooo....o...o...", "fewer than three"},
	             {"....opo.oppo...", NULL}};
	struct operator_cost cost;
	struct model model;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		mixed_model_init(&model, cases[i].kinds, STEP_MS, 20);
		cost = cost_of(&model, MODEL_NONE);
		assert_int_equal(!cost.unknown, !cases[i].unknown);
		if (cost.unknown)
			assert_non_null(strstr(cost.unknown, cases[i].unknown));
		model_release(&model);
	}
}

/* Neither a gap nor the first steps are the program's usual ones. */
static void neighbours_behind_a_gap_are_none(void **state)
{
	struct operator_cost cost;
	struct model model;

	mixed_model_init(&model, "o...o...o...o...o...", STEP_MS, 20);
	for (uint32_t i = 5; i < model.steps_count; i++)
		model.steps[i].start_ns += 200000000, model.steps[i].end_ns += 200000000;
	cost = cost_of(&model, MODEL_NONE);
	assert_int_equal(cost.pairs, 4);
	assert_int_equal(cost.beside, 7);
	model.steps[12].track = MODEL_NONE;
	assert_int_equal(cost_of(&model, MODEL_NONE).pairs, 3);
	model_release(&model);
}

static struct operator_cost cost_of_run(const char *kinds, double cost_ms, const double *more_ms)
{
	struct operator_cost cost;
	struct model model;

	model_init(&model, 0);
	mixed_model_add(
		&model,
		&(struct mixed_run){
			.kinds = kinds, .step_ms = STEP_MS, .cost_ms = cost_ms, .more_ms = more_ms, .rank = -1});
	model_finish(&model);
	cost = cost_of(&model, MODEL_NONE);
	assert_null(cost.unknown);
	model_release(&model);
	return cost;
}

/* Of a program whose steps differ, the truth is in the interval in 19 of 20 runs; and what is told as a number is near it. */
static void count_hits(const double *more, size_t period, double noise, double cost_ms, unsigned every, int *hits,
                       int *wrong)
{
	uint64_t random = 88172645463325252u + every;
	char kinds[STEPS + 1];
	double added[STEPS];

	*hits = *wrong = 0;
	for (int run = 0; run < 100; run++) {
		struct operator_cost cost;
		double mean = 0, truth;

		choose_steps(kinds, every, &random);
		for (int i = 0; i < STEPS; i++) {
			added[i] = more[(size_t)i % period] + noise * (random_unit(&random) + random_unit(&random) - 1);
			mean += (STEP_MS + added[i]) / STEPS;
		}
		cost = cost_of_run(kinds, cost_ms, added);
		truth = cost_ms / mean;
		*hits += fabs(cost.ratio - truth) <= cost.half + 0.001;
		*wrong += operator_cost_is_told(cost.ratio, cost.half) &&
		          fabs(cost.ratio - truth) > fmax(0.005 * every, truth / 3);
	}
}

static void the_truth_is_in_the_interval(void **state)
{
	static const double even[] = {0}, two[] = {0, 200}, fourth[] = {0, 0, 0, 300},
			    eighth[] = {0, 0, 0, 0, 0, 0, 0, 300}, tenth[] = {300, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	static const struct {
		const double *more;
		size_t period;
	} programs[] = {{even, 1}, {two, 2}, {fourth, 4}, {eighth, 8}, {tenth, 10}};

	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
		for (unsigned every = 2; every <= 16; every *= 2) {
			int hits, wrong;

			count_hits(programs[i].more, programs[i].period, 5, 18, every, &hits, &wrong);
			if (hits < 90 || wrong > 2)
				fail_msg("program %zu, every %u: %d of 100 in the interval, %d wrong", i, every, hits,
				         wrong);
		}
	}
}

/* The figure that is printed, of how much all would cost: within a third of the truth or half a point; a bound is above it. */
static void count_right(const double *more, double cost_ms, unsigned every, int *right, double *most)
{
	uint64_t random = 88172645463325252u + every;
	char kinds[STEPS + 1];

	*right = 0;
	*most = 0;
	for (int run = 0; run < 100; run++) {
		double added[STEPS], truth = cost_ms / STEP_MS;
		struct operator_cost cost;

		choose_steps(kinds, every, &random);
		for (int i = 0; i < STEPS; i++)
			added[i] = more[i] + 3 * (random_unit(&random) + random_unit(&random) - 1);
		cost = cost_of_run(kinds, cost_ms, added);
		if (operator_cost_is_told(cost.ratio, cost.half))
			*right += fabs(cost.ratio - truth) <= fmax(truth / 3, 0.005);
		else
			*right += cost.ratio + cost.half >= truth;
		*most = fmax(*most, cost.ratio + cost.half);
	}
}

static void a_burst_of_the_machine_is_no_cost(void **state)
{
	static const double costs_ms[] = {1, 5, 18, 60};
	double even[STEPS] = {0}, start[STEPS] = {0}, between[STEPS] = {0}, uneven[STEPS] = {0};
	const struct {
		const char *name;
		const double *more;
	} programs[] = {{"even", even}, {"start", start}, {"between", between}, {"uneven", uneven}};

	(void)state;
	for (int i = 0; i < 10; i++)
		start[i] = between[150 + i] = 19 * STEP_MS;
	for (int i = 0; i < 40; i++)
		uneven[100 + i] = i * 7 % 5 < 2 ? 19 * STEP_MS : 0;
	for (size_t p = 0; p < sizeof programs / sizeof *programs; p++)
		for (size_t c = 0; c < sizeof costs_ms / sizeof *costs_ms; c++)
			for (unsigned every = 2; every <= 16; every *= 2) {
				double most;
				int right;

				count_right(programs[p].more, costs_ms[c], every, &right, &most);
				if (right < 90 || most > 2 * costs_ms[c] / STEP_MS + 0.05)
					fail_msg("%s, cost %g ms, every %u: %d of 100 right, up to %.2f is said",
					         programs[p].name, costs_ms[c], every, right, most);
			}
}

/* What ranks say of one step is one difference, or their interval would be that of so many more. */
static void ranks_are_one_job(void **state)
{
	static const char kinds[] = "....o...o....o..o...";
	double noise[] = {0, 0, 0, 0, 9, 0, 0, 0, 3, 0, 0, 0, 0, 7, 0, 0, 1, 0, 0, 0};
	struct operator_cost one, job;
	struct model model;

	model_init(&model, 0);
	for (int32_t rank = 0; rank < 4; rank++)
		mixed_model_add(
			&model,
			&(struct mixed_run){
				.kinds = kinds, .step_ms = STEP_MS, .cost_ms = 20, .more_ms = noise, .rank = rank});
	model_finish(&model);
	one = cost_of(&model, 0);
	job = cost_of(&model, MODEL_NONE);
	assert_int_equal(job.pairs, 4);
	assert_double_equal(job.ratio, 0.25, 1e-9);
	assert_true(job.half > 0);
	assert_double_equal(job.half, one.half, 1e-9);
	model_release(&model);
}

static const char *cost_text(const struct model *model, struct table *table)
{
	compute("run", model, &all_steps, table);
	return table_get(table, 0, table_find_column(table, "cost"))->text;
}

static void the_run_says_what_recording_cost(void **state)
{
	struct table table;
	struct model model;

	mixed_model_init(&model, "....o...o....o..o...", STEP_MS, 20);
	assert_string_equal(cost_text(&model, &table),
	                    "recording cost 4.0 % (4 steps with operators compared with their neighbours: "
	                    "20.0 +- 0.0 % each)");
	assert_double_equal(table_get(&table, 0, table_find_column(&table, "overhead_ratio"))->d, 0.04, 1e-9);
	assert_double_equal(table_get(&table, 0, table_find_column(&table, "overhead_all_ratio"))->d, 0.2, 1e-9);
	assert_int_equal(table_get(&table, 0, table_find_column(&table, "operator_steps"))->i, 4);
	table_release(&table);
	model_release(&model);

	mixed_model_init(&model, "....o...o....o..o...", STEP_MS, 0.5);
	model.processes[0].drainer_cpu_ns = 20000000;
	assert_non_null(strstr(cost_text(&model, &table), "recording cost 1.1 % (4 steps with operators"));
	table_release(&table);
	model_release(&model);
}

static void a_cost_that_is_not_sure_is_a_bound(void **state)
{
	double noise[] = {0, 0, 0, 0, 9, 0, 0, 0, -3, 0, 0, 0, 0, 7, 0, 0, -1, 0, 0, 0};
	struct table table;
	struct model model;

	model_init(&model, 0);
	mixed_model_add(
		&model,
		&(struct mixed_run){.kinds = "....o...o....o..o...", .step_ms = STEP_MS, .more_ms = noise, .rank = -1});
	model_finish(&model);
	assert_non_null(strstr(cost_text(&model, &table), "recording cost less than "));
	assert_false(table_get(&table, 0, table_find_column(&table, "overhead_ratio"))->has_value);
	assert_true(table_get(&table, 0, table_find_column(&table, "overhead_high_ratio"))->has_value);
	table_release(&table);
	model_release(&model);
}

/* PyTorch pays for being observed, which the recorder's own events do not tell. */
static void events_alone_are_a_part_of_it_with_pytorch(void **state)
{
	const char *text;
	struct table table;
	struct model model;

	mixed_model_init(&model, "oooooo", STEP_MS, 0);
	model.processes[0].event_count = 1000;
	model.processes[0].cost_per_event_ns = 30;
	assert_non_null(strstr(cost_text(&model, &table), "recording took <0.1 % of the CPU time"));
	assert_true(table_get(&table, 0, table_find_column(&table, "overhead_ratio"))->has_value);
	table_release(&table);
	model_add_meta(&model, 0, "torch.version", "2.13.0");
	text = cost_text(&model, &table);
	assert_non_null(strstr(text, "cost not measured: operators were recorded in all steps; events alone took"));
	assert_non_null(strstr(text, "without the cost of PyTorch's callbacks"));
	assert_false(table_get(&table, 0, table_find_column(&table, "overhead_ratio"))->has_value);
	table_release(&table);
	model_release(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_difference_to_the_neighbours_is_the_cost),
		cmocka_unit_test(what_cannot_be_compared_says_why),
		cmocka_unit_test(neighbours_behind_a_gap_are_none),
		cmocka_unit_test(the_truth_is_in_the_interval),
		cmocka_unit_test(a_burst_of_the_machine_is_no_cost),
		cmocka_unit_test(ranks_are_one_job),
		cmocka_unit_test(the_run_says_what_recording_cost),
		cmocka_unit_test(a_cost_that_is_not_sure_is_a_bound),
		cmocka_unit_test(events_alone_are_a_part_of_it_with_pytorch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
