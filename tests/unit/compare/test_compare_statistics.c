/* SPDX-License-Identifier: Apache-2.0
 *
 * The statistics of comparisons against values from their definitions, worked out elsewhere (scipy), and against what is known of
 * series that were made for it.
 */
#include "base/statistics.h"
#include "compare/estimate.h"
#include "compare/holm.h"
#include "compare/kernel_family.h"
#include "compare/ranks.h"
#include "compare/resample.h"
#include "compare/steady.h"
#include "near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STEPS 4000

static double uniform(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(*state >> 33) + 0.5) / 2147483648.0;
}

static double normal(uint64_t *state)
{
	double radius = sqrt(-2 * log(uniform(state)));

	return radius * cos(2 * 3.14159265358979323846 * uniform(state));
}

/* Each value depends on the one before by `memory`. */
static void fill(double *values, size_t count, double memory, uint64_t seed)
{
	double last = 0;

	for (size_t i = 0; i < count; i++) {
		last = memory * last + normal(&seed);
		values[i] = last;
	}
}

/* ---- Student, Wilcoxon, Holm ---- */

static void student_shares_and_limits_are_each_others_inverse(void **state)
{
	assert_double_equal(student_t_outside(2, 5), 0.10193947882985835, 1e-12);
	assert_double_equal(student_t_limit(0.1, 8), 1.8595480375308973, 1e-9);
	assert_double_equal(student_t_outside(student_t_limit(0.001, 3), 3), 0.001, 1e-12);
	assert_double_equal(student_t_limit(0.05, INFINITY), 1.959963984540054, 1e-12); /* the normal distribution */
	assert_double_equal(student_t_outside(-1, INFINITY), 0.31731050786291415, 1e-12);
}

static void a_change_without_error_is_certain_unless_it_is_none(void **state)
{
	assert_double_equal(student_t_chance(2, 1, 5), 0.10193947882985835, 1e-12);
	assert_double_equal(student_t_chance(-1e-9, 0, 5), 0, 0);
	assert_double_equal(student_t_chance(0, 0, INFINITY), 1, 0);
}

static void rank_sums_give_the_exact_interval_and_p_value(void **state)
{
	const double left[] = {1.83, 0.50, 1.62, 2.48, 1.68}, right[] = {2.878, 1.647, 2.598, 3.05, 2.06};
	struct shift shift;

	rank_sum_shift(&shift, left, 5, right, 5);
	assert_double_equal(shift.middle, 0.918, 1e-9);
	assert_double_equal(shift.low, -0.183, 1e-9);
	assert_double_equal(shift.high, 2.098, 1e-9);
	/* the fifth of 25 differences from either end: 12 of 252 orders have four or fewer beyond */
	assert_double_equal(shift.same_low, 0.027, 1e-9);
	assert_double_equal(shift.same_high, 1.43, 1e-9);
	assert_double_equal(shift.outside, 0.09523809523809523, 1e-12);
}

static void signed_ranks_give_the_exact_interval_and_p_value(void **state)
{
	const double differences[] = {0.6, -0.1, 0.9, 0.3, 0.5, 0.7, 0.2, 1.1};
	struct shift shift;

	signed_rank_shift(&shift, differences, 8);
	assert_double_equal(shift.middle, 0.525, 1e-9);
	assert_double_equal(shift.low, 0.2, 1e-9);
	assert_double_equal(shift.high, 0.9, 1e-9);
	/* the sixth of 36 means: of 256 signs 10 have five or fewer beyond, 14 have six */
	assert_double_equal(shift.same_low, 0.25, 1e-9);
	assert_double_equal(shift.same_high, 0.8, 1e-9);
	assert_double_equal(shift.outside, 0.015625, 1e-12);
}

static void many_ranks_are_taken_as_normal(void **state)
{
	double left[60], right[60];
	struct shift shift;

	fill(left, 60, 0, 1);
	fill(right, 60, 0, 2);
	for (int i = 0; i < 60; i++)
		right[i] += 3;
	rank_sum_shift(&shift, left, 60, right, 60);
	assert_double_equal(shift.middle, 3, 0.4);
	assert_true(shift.low > 2.3 && shift.high < 3.7 && shift.low < shift.middle && shift.middle < shift.high);
	assert_true(shift.outside < 1e-6);
}

static void one_odd_run_does_not_move_ranks(void **state)
{
	struct run_level base[8] = {{0}}, new[8] = {{0}};
	struct estimate estimate;

	for (int i = 0; i < 8; i++) {
		base[i].level = 0.001 * i;
		new[i].level = 0.03 + 0.001 * ((i + 3) % 8);
	}
	new[2].level = 5;
	estimate_compute(&estimate, base, 8, new, 8, &(struct estimate_options){.assumed_noise = 0.01, .wanted = 0.03});
	assert_int_equal(estimate.way, ESTIMATE_REPEATS);
	assert_true(estimate.has_ranks);
	assert_double_equal(estimate.change, 0.03, 0.002);
	assert_true(estimate.low > 0.02 && estimate.high < 0.04);
}

static void holm_multiplies_by_what_is_left(void **state)
{
	double outside[] = {0.04, NAN, 0.01, 0.03, 0.005};

	holm_adjust(outside, 5);
	assert_double_equal(outside[4], 0.02, 1e-12);
	assert_double_equal(outside[2], 0.03, 1e-12);
	assert_double_equal(outside[3], 0.06, 1e-12);
	assert_double_equal(outside[0], 0.06, 1e-12); /* never less than the one before */
	assert_true(isnan(outside[1]));
}

/* ---- three ways of knowing the noise ---- */

static const struct estimate_options usual = {.assumed_noise = 0.01, .wanted = 0.03};

static void repeats_use_the_scatter_of_both_sides(void **state)
{
	struct run_level base[] = {{.level = 1.01}, {.level = 1.02}, {.level = 1.00}};
	struct run_level new[] = {{.level = 1.03}, {.level = 1.05}, {.level = 1.04}};
	struct estimate estimate;

	estimate_compute(&estimate, base, 3, new, 3, &usual);
	assert_int_equal(estimate.way, ESTIMATE_REPEATS);
	assert_double_equal(estimate.change, 0.03, 1e-12);
	assert_double_equal(estimate.outside, 0.02131164112875671, 1e-9);
	assert_double_equal(estimate.noise, 0.01, 1e-12);
	assert_double_equal(estimate.high - estimate.change, 2.7764451051977987 * 0.01 * sqrt(2.0 / 3), 1e-9);
	assert_double_equal(estimate.same_high - estimate.change, 2.1318467863266499 * 0.01 * sqrt(2.0 / 3), 1e-9);
	assert_double_equal(estimate.change - estimate.same_low, estimate.same_high - estimate.change, 1e-12);
}

static void runs_made_in_turns_are_pairs(void **state)
{
	const double differences[] = {.01, .02, .03, .025, .015};
	struct run_level base[5], new[5];
	struct estimate estimate;

	for (int i = 0; i < 5; i++) { /* the machine gets slower meanwhile; order within a pair changes */
		base[i] = (struct run_level){.level = 0.2 * i, .has_created = true, .created_ns = 10 * i};
		new[i] = (struct run_level){.level = 0.2 * i + differences[i],
		                            .has_created = true,
		                            .created_ns = 10 * i + (i % 2 ? 1 : -1)};
	}
	estimate_compute(&estimate, base, 5, new, 5, &usual);
	assert_int_equal(estimate.way, ESTIMATE_PAIRS);
	assert_double_equal(estimate.change, 0.02, 1e-12);
	assert_double_equal(estimate.low, 0.010183784210989187, 1e-7);
	assert_double_equal(estimate.high, 0.029816215789010808, 1e-7);
	new[0].created_ns = 11; /* not in turns: base, base, new, new, ... */
	new[1].created_ns = 12;
	base[1].created_ns = 1;
	estimate_compute(&estimate, base, 5, new, 5, &usual);
	assert_int_equal(estimate.way, ESTIMATE_REPEATS);
}

static void single_runs_have_the_assumed_noise_and_their_own_error(void **state)
{
	struct run_level base = {.level = 0, .error = 0.003, .steps = 100}, new = {.level = 0.01, .error = 0.004};
	struct estimate estimate;

	estimate_compute(&estimate, &base, 1, &new, 1, &usual);
	assert_int_equal(estimate.way, ESTIMATE_ASSUMED);
	assert_double_equal(estimate.high - estimate.change, 1.959963985 * sqrt(2e-4 + 25e-6), 1e-9);
	assert_double_equal(estimate.same_high - estimate.change, 1.644853627 * sqrt(2e-4 + 25e-6), 1e-9);
	assert_false(estimate.is_contended || estimate.is_uneven);
	new.contended = 0.8;
	base.uneven = 0.05;
	estimate_compute(&estimate, &base, 1, &new, 1, &usual);
	assert_true(estimate.is_contended && estimate.is_uneven);
	assert_true(estimate.high - estimate.change > 0.3);
	base = (struct run_level){.level = 0, .error = 0.01, .steps = 100};
	new = (struct run_level){.level = 0.01, .error = 0.01};
	estimate_compute(&estimate, &base, 1, &new, 1,
	                 &(struct estimate_options){.assumed_noise = 0.001, .wanted = 0.03});
	/* half an interval of 0.03 * 1.96 / (1.96 + 1.645), of which 2 * 0.001^2 are from run to run */
	assert_int_equal(estimate.needed_steps, (size_t)ceil(100 * 2e-4 / (pow(0.03 / 3.6048176, 2) - 2e-6)));
}

/* The mean of the smallest of 40 normal values lies 2.16 deviations below theirs. */
static void the_best_of_many_was_lucky(void **state)
{
	struct run_level base = {.level = 0, .steps = 200}, new = {.level = 0.03, .steps = 200};
	struct estimate_options options = usual;
	struct estimate plain, lucky;

	assert_double_equal(estimate_luck(0, 0.01), 0, 0);
	assert_double_equal(estimate_luck(1, 0.01), 0, 0);
	assert_double_equal(estimate_luck(40, 0.01), 0.0216, 0.0002);
	options.luck = estimate_luck(40, 0.01);
	estimate_compute(&plain, &base, 1, &new, 1, &usual);
	estimate_compute(&lucky, &base, 1, &new, 1, &options);
	assert_true(plain.low > 0 && plain.outside < SURE);
	assert_true(lucky.low < 0 && lucky.outside > SURE);
	assert_double_equal(lucky.low, plain.low - options.luck, 1e-12);
	assert_double_equal(lucky.same_low, plain.same_low - options.luck, 1e-12);
	assert_double_equal(lucky.high, plain.high, 0);
	new.level = 0.06;
	estimate_compute(&lucky, &base, 1, &new, 1, &options);
	assert_true(lucky.low > 0 && lucky.outside < SURE);
	/* tokens per second: the best has many */
	new.level = -0.03;
	options.luck = -options.luck;
	estimate_compute(&lucky, &base, 1, &new, 1, &options);
	assert_true(lucky.low < 0 && lucky.high > 0 && lucky.outside > SURE);
}

static void fill_runs(struct run_level *runs, size_t count, double level, uint64_t *seed)
{
	for (size_t i = 0; i < count; i++)
		runs[i] = (struct run_level){.level = level + 0.02 * normal(seed)};
}

static bool is_the_same(const struct estimate *estimate)
{
	return estimate->same_low > -usual.wanted && estimate->same_high < usual.wanted;
}

static bool is_told(const struct estimate *estimate)
{
	return estimate->low > 0 || estimate->high < 0 || is_the_same(estimate);
}

/* Of many pairs of five runs those that cannot tell ask for more; then so many are made, that are slower and that are not. */
static void what_it_asks_for_is_enough(void **state)
{
	uint64_t seed = 3;
	int found = 0, same = 0, pilots = 0;
	size_t asked = 0;

	while (pilots < 100) {
		struct run_level base[5], new[5], more[2][200];
		struct estimate estimate;
		size_t needed;

		fill_runs(base, 5, 0, &seed);
		fill_runs(new, 5, 0, &seed);
		estimate_compute(&estimate, base, 5, new, 5, &usual);
		if (is_told(&estimate))
			continue;
		pilots++;
		needed = estimate.needed_runs;
		asked += needed;
		assert_in_range(needed, 6, 200);
		for (int trial = 0; trial < 10; trial++) {
			fill_runs(more[0], needed, 0, &seed);
			fill_runs(more[1], needed, 0.03, &seed);
			estimate_compute(&estimate, more[0], needed, more[1], needed, &usual);
			found += estimate.low > 0;
			fill_runs(more[1], needed, 0, &seed);
			estimate_compute(&estimate, more[0], needed, more[1], needed, &usual);
			same += is_the_same(&estimate);
		}
	}
	assert_in_range(found, 930, 1000);
	assert_in_range(same, 930, 1000);
	assert_in_range(asked, 100 * 13, 100 * 23); /* 13 are enough where the noise is known */
}

/* What could not be told wants more runs than there were. */
static void as_many_as_there_were_are_not_asked_for(void **state)
{
	uint64_t seed = 9;
	int open = 0;

	for (int trial = 0; trial < 1000; trial++) {
		struct run_level base[9], new[9];
		struct estimate estimate;

		fill_runs(base, 9, 0, &seed);
		fill_runs(new, 9, usual.wanted / 2, &seed);
		estimate_compute(&estimate, base, 9, new, 9, &usual);
		if (is_told(&estimate))
			continue;
		open++;
		assert_true(estimate.needed_runs > 9);
	}
	assert_true(open > 100);
}

static void a_change_is_seen_by_chance_in_one_of_twenty_cases(void **state)
{
	uint64_t seed = 4;
	int found = 0;

	for (int trial = 0; trial < 1000; trial++) {
		struct run_level runs[10];
		struct estimate estimate;

		for (int i = 0; i < 10; i++)
			runs[i] = (struct run_level){.level = 0.02 * normal(&seed)};
		estimate_compute(&estimate, runs, 5, runs + 5, 5, &usual);
		found += estimate.low > 0 || estimate.high < 0;
	}
	assert_in_range(found, 30, 70);
}

/* Where the change is just as large as what must be ruled out, it is in one of twenty cases at most; more often there is no answer. `scatters`: for
 * which there is hardly an answer, and for which there is nearly always one. */
static void no_difference_is_wrong_in_one_of_twenty_cases_at_most(void **state)
{
	const double scatters[] = {0.005, 0.015, 0.05};
	const size_t counts[] = {5, 20};
	uint64_t seed = 8;

	for (int of = 0; of < 6; of++) {
		size_t count = counts[of / 3];
		int wrong = 0;

		for (int trial = 0; trial < 1000; trial++) {
			struct run_level runs[40];
			struct estimate estimate;

			for (size_t i = 0; i < 2 * count; i++)
				runs[i] = (struct run_level){.level = (i < count ? 0 : usual.wanted) +
				                                      scatters[of % 3] * normal(&seed)};
			estimate_compute(&estimate, runs, count, runs + count, count, &usual);
			wrong += is_the_same(&estimate);
		}
		assert_in_range(wrong, 0, 70);
	}
}

/* ---- one run ---- */

static void independent_steps_have_short_blocks_and_the_textbook_error(void **state)
{
	double *values = malloc(STEPS * sizeof(*values));
	double block, error;

	fill(values, STEPS, 0, 5);
	block = resample_block(values, STEPS);
	error = resample_error(values, STEPS, block, RESAMPLE_MEDIAN);
	assert_true(block < 4);
	assert_double_equal(error, 1.2533 / sqrt(STEPS), 0.35 * 1.2533 / sqrt(STEPS)); /* known to some 12 % */
	assert_double_equal(resample_error(values, STEPS, 1, RESAMPLE_MEAN), 1 / sqrt(STEPS), 0.12 / sqrt(STEPS));
	assert_double_equal(error, resample_error(values, STEPS, block, RESAMPLE_MEDIAN), 0);
	free(values);
}

/* Of values that remember 0.9 of the one before, the error is larger by sqrt((1 + 0.9) / (1 - 0.9)) = 4.4 than of independent ones of
 * the same spread; of their median somewhat less. */
static void steps_that_depend_on_each_other_have_a_larger_error(void **state)
{
	double *values = malloc(STEPS * sizeof(*values));
	double block, with_blocks, without;

	fill(values, STEPS, 0.9, 6);
	block = resample_block(values, STEPS);
	with_blocks = resample_error(values, STEPS, block, RESAMPLE_MEDIAN);
	without = resample_error(values, STEPS, 1, RESAMPLE_MEDIAN);
	assert_true(block > 15 && block < 120);
	assert_true(with_blocks > 2.5 * without && with_blocks < 5 * without);
	free(values);
}

static void one_step_and_equal_steps_have_no_error(void **state)
{
	const double values[30] = {0};

	assert_double_equal(resample_error(values, 1, 1, RESAMPLE_MEDIAN), 0, 0);
	assert_double_equal(resample_block(values, 30), 1, 0);
	assert_double_equal(resample_error(values, 30, 1, RESAMPLE_P95), 0, 0);
}

static void slow_steps_at_the_begin_are_warm_up(void **state)
{
	double durations[100];

	for (int i = 0; i < 100; i++)
		durations[i] = 10 + 0.1 * (i % 3) + (i == 0 ? 50 : i < 6 ? 5 : 0);
	assert_int_equal(steady_warm_up(durations, 100), 6);
	assert_int_equal(steady_warm_up(durations + 6, 94), 0);
	durations[8] = 20; /* single slow steps later are none of it */
	durations[30] = 20;
	assert_int_equal(steady_warm_up(durations, 100), 9);
	assert_int_equal(steady_warm_up(durations + 9, 91), 0);
	assert_int_equal(steady_warm_up(durations, 7), 1);
	assert_int_equal(steady_warm_up(durations + 1, 7), 0);
	assert_int_equal(steady_warm_up(durations, 3), 0);
}

static void a_drift_is_found_and_noise_is_none(void **state)
{
	double values[200], slope = 0;

	fill(values, 200, 0, 7);
	for (int i = 0; i < 200; i++)
		values[i] = 0.01 * values[i];
	assert_false(steady_trend(values, 200, &slope));
	for (int i = 0; i < 200; i++)
		values[i] += 0.0005 * i;
	assert_true(steady_trend(values, 200, &slope));
	assert_double_equal(slope, 0.0005, 0.0001);
	assert_false(steady_trend(values, 39, &slope));
}

/* ---- names ---- */

static void kernels_of_other_names_are_of_one_family(void **state)
{
	struct arena arena;

	arena_init(&arena, 0);
	assert_string_equal(kernel_family("ampere_sgemm_128x64_tn", &arena), "matrix product");
	assert_string_equal(kernel_family("nvjet_hsh_128x64_TNT", &arena), "matrix product");
	assert_string_equal(kernel_family("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", &arena),
	                    "allreduce");
	assert_string_equal(kernel_family("void at::native::add_kernel<4, float>(int)", &arena),
	                    "at::native::add_kernel");
	assert_string_equal(kernel_family("triton_poi_fused_add_17", &arena), "triton_poi_fused_add");
	assert_string_equal(kernel_family("42", &arena), "42");
	assert_string_equal(kernel_family("", &arena), "");
	arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(student_shares_and_limits_are_each_others_inverse),
		cmocka_unit_test(a_change_without_error_is_certain_unless_it_is_none),
		cmocka_unit_test(rank_sums_give_the_exact_interval_and_p_value),
		cmocka_unit_test(signed_ranks_give_the_exact_interval_and_p_value),
		cmocka_unit_test(many_ranks_are_taken_as_normal),
		cmocka_unit_test(one_odd_run_does_not_move_ranks),
		cmocka_unit_test(holm_multiplies_by_what_is_left),
		cmocka_unit_test(repeats_use_the_scatter_of_both_sides),
		cmocka_unit_test(runs_made_in_turns_are_pairs),
		cmocka_unit_test(single_runs_have_the_assumed_noise_and_their_own_error),
		cmocka_unit_test(the_best_of_many_was_lucky),
		cmocka_unit_test(what_it_asks_for_is_enough),
		cmocka_unit_test(as_many_as_there_were_are_not_asked_for),
		cmocka_unit_test(no_difference_is_wrong_in_one_of_twenty_cases_at_most),
		cmocka_unit_test(a_change_is_seen_by_chance_in_one_of_twenty_cases),
		cmocka_unit_test(independent_steps_have_short_blocks_and_the_textbook_error),
		cmocka_unit_test(steps_that_depend_on_each_other_have_a_larger_error),
		cmocka_unit_test(one_step_and_equal_steps_have_no_error),
		cmocka_unit_test(slow_steps_at_the_begin_are_warm_up),
		cmocka_unit_test(a_drift_is_found_and_noise_is_none),
		cmocka_unit_test(kernels_of_other_names_are_of_one_family),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
