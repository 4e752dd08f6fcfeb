/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics against values worked out from their formulas and the tables of Student t.
 */
#include "base/statistics.h"
#include "near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void student_quantiles_are_those_of_the_tables(void **state)
{
	assert_double_equal(student_t95(1), 12.7062047, 1e-6);
	assert_double_equal(student_t95(2), 4.3026527, 1e-6);
	assert_double_equal(student_t95(9), 2.2621572, 1e-6);
	assert_double_equal(student_t95(100), 1.9839715, 1e-6);
	assert_double_equal(student_t95(1e6), 1.9599664, 1e-5);
}

/* Values in the given order, in all small counts, with values that repeat. */
static void a_quantile_needs_no_order(void **state)
{
	static const double shares[] = {0, 0.1, 0.5, 0.73, 1};
	double values[500], sorted[500];

	for (size_t count = 1; count <= 500; count += count < 100 ? 1 : 37)
		for (unsigned kind = 0; kind < 5; kind++)
			for (size_t s = 0; s < sizeof(shares) / sizeof(shares[0]); s++) {
				uint32_t random = 1;

				for (size_t i = 0; i < count; i++) {
					random = random * 1664525 + 1013904223;
					values[i] = kind == 0   ? random >> 8
					            : kind == 1 ? random >> 30
					            : kind == 2 ? (double)i
					            : kind == 3 ? (double)(count - i)
					                        : 7;
				}
				memcpy(sorted, values, sizeof(sorted));
				sort_doubles(sorted, count);
				assert_true(quantile_within(values, count, shares[s]) ==
				            quantile(sorted, count, shares[s]));
				sort_doubles(values, count);
				assert_memory_equal(values, sorted, count * sizeof(*values)); /* none is lost */
			}
}

static void a_summary_has_mean_interval_and_quantiles(void **state)
{
	double values[] = {4, 1, 3, 2, 10};
	struct summary summary;

	assert_true(summary_compute(&summary, values, 5));
	assert_double_equal(summary.mean, 4, 1e-12);
	assert_double_equal(summary.std, 3.5355339, 1e-6);
	assert_true(summary.has_interval);
	assert_double_equal(summary.low, -0.3899452, 1e-6);
	assert_double_equal(summary.high, 8.3899452, 1e-6);
	assert_double_equal(summary.p50, 3, 1e-12);
	assert_double_equal(summary.p95, 8.8, 1e-12);
	assert_double_equal(summary.p99, 9.76, 1e-12);
	assert_double_equal(summary.min, 1, 0);
	assert_double_equal(summary.max, 10, 0);
}

static void one_value_has_no_interval_and_none_no_summary(void **state)
{
	double value = 7;
	struct summary summary;

	assert_true(summary_compute(&summary, &value, 1));
	assert_false(summary.has_interval);
	assert_double_equal(summary.p99, 7, 0);
	assert_false(summary_compute(&summary, &value, 0));
}

static void median_and_mad_ignore_one_outlier(void **state)
{
	double values[] = {10, 12, 11, 1000, 13}, scratch[5], median, mad;

	median_and_mad(values, scratch, 5, &median, &mad);
	assert_double_equal(median, 12, 0);
	assert_double_equal(mad, 1, 0);
}

static void a_line_gives_its_slope_with_no_width(void **state)
{
	double x[] = {0, 1, 2, 3}, y[] = {5, 7, 9, 11};
	struct slope slope;

	assert_true(slope_compute(&slope, x, y, 4));
	assert_double_equal(slope.slope, 2, 1e-12);
	assert_true(slope.has_interval);
	assert_double_equal(slope.low, 2, 1e-9);
	assert_double_equal(slope.high, 2, 1e-9);
}

static void a_noisy_line_gives_an_interval_around_its_slope(void **state)
{
	double x[] = {1, 2, 3, 4, 5}, y[] = {2.1, 3.9, 6.2, 7.8, 10.1};
	struct slope slope;

	assert_true(slope_compute(&slope, x, y, 5));
	assert_double_equal(slope.slope, 1.99, 1e-9);
	assert_double_equal(slope.low, 1.7999393, 1e-6);
	assert_double_equal(slope.high, 2.1800607, 1e-6);
}

static void equal_x_have_no_slope(void **state)
{
	double x[] = {1, 1}, y[] = {2, 3};
	struct slope slope;

	assert_false(slope_compute(&slope, x, y, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(student_quantiles_are_those_of_the_tables),
		cmocka_unit_test(a_quantile_needs_no_order),
		cmocka_unit_test(a_summary_has_mean_interval_and_quantiles),
		cmocka_unit_test(one_value_has_no_interval_and_none_no_summary),
		cmocka_unit_test(median_and_mad_ignore_one_outlier),
		cmocka_unit_test(a_line_gives_its_slope_with_no_width),
		cmocka_unit_test(a_noisy_line_gives_an_interval_around_its_slope),
		cmocka_unit_test(equal_x_have_no_slope),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
