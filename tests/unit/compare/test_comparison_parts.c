/* SPDX-License-Identifier: Apache-2.0
 *
 * Contributions of parts to the difference of two runs: their sums, their shares, renamed kernels and the cause in the verdict.
 */
#include "compared_pair.h"
#include "near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void contributions_sum_to_the_difference_of_their_level(void **state)
{
	const struct table *table;
	double sum = 0, shares = 0;
	struct pair pair;

	make_run(&pair.base, 10, 0);
	make_run(&pair.new, 11, 0);
	add_part(&pair.base, "operator", "mm", NULL, 6);
	add_part(&pair.base, "operator", "gone", NULL, 0.25);
	add_part(&pair.base, "operator", "(rest)", NULL, 3);
	add_part(&pair.new, "operator", "mm", NULL, 7.25);
	add_part(&pair.new, "operator", "added", NULL, 0.125);
	add_part(&pair.new, "operator", "(rest)", NULL, 2.875);
	compare(&pair);
	table = &pair.comparison.contributions;
	assert_int_equal(table->row_count, 4);
	assert_string_equal(table_get(table, 0, CONTRIBUTION_NAME)->text, "mm");
	assert_string_equal(table_get(table, 1, CONTRIBUTION_NOTE)->text, "only in the base");
	for (int row = 0; row < table->row_count; row++) {
		sum += table_get(table, row, CONTRIBUTION_DELTA)->d;
		shares += table_get(table, row, CONTRIBUTION_RATIO)->d;
	}
	assert_double_equal(sum, 1e6, 1e-3);
	assert_double_equal(shares, 1, 1e-12);
	assert_false(table_get(table, 0, CONTRIBUTION_IS_CERTAIN)->has_value);
	assert_non_null(strstr(verdict_text(&pair, COMPARISON_CAUSE), "mm +1.250 ms"));
	release(&pair);
}

static void rows_that_cancel_out_have_no_shares(void **state)
{
	const struct table *table;
	struct pair pair;

	make_run(&pair.base, 10, 0);
	make_run(&pair.new, 11, 0);
	add_part(&pair.base, "operator", "mm", NULL, 5);
	add_part(&pair.base, "operator", "add", NULL, 5);
	add_part(&pair.new, "operator", "mm", NULL, 9.5); /* 450 % of the difference */
	add_part(&pair.new, "operator", "add", NULL, 1.5);
	compare(&pair);
	table = &pair.comparison.contributions;
	assert_int_equal(table->row_count, 2);
	for (int row = 0; row < table->row_count; row++) {
		const struct table_cell *share = table_get(table, row, CONTRIBUTION_RATIO);

		assert_false(share->has_value);
		assert_string_equal(share->reason, "the rows of this level cancel out");
	}
	assert_string_equal(verdict_text(&pair, COMPARISON_CAUSE), "operator: mm +4.500 ms");
	release(&pair);
}

/* The cause of a run that is slower by `changes`, in operators a, b, c, ...; the last is called "other". */
static const char *cause_of_changes(struct pair *pair, const double *changes, int count)
{
	static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};

	make_run(&pair->base, 10, 0);
	make_run(&pair->new, 11, 0);
	for (int i = 0; i < count; i++) {
		const char *name = i + 1 < count ? names[i] : "other";

		add_part(&pair->base, "operator", name, NULL, 1);
		add_part(&pair->new, "operator", name, NULL, 1 + changes[i]);
	}
	compare(pair);
	return verdict_text(pair, COMPARISON_CAUSE);
}

static void all_that_is_to_blame_alike_is_named(void **state)
{
	static const double five[] = {0.2, 0.21, 0.19, 0.2, 0.2, 0}, two[] = {0.5, 0.1, 0.3, 0.1, 0},
			    little[] = {0.3, 0.08, 0.08, 0.08, 0.08, 0.38}, least[] = {0.15, 0.05, 0.05, 0.75},
			    against[] = {0.9, -0.6, 0.7, 0};
	struct pair pair;

	assert_string_equal(cause_of_changes(&pair, five, 6),
	                    "operator: b +210.0 us, a +200.0 us, d +200.0 us and 2 similar ones");
	release(&pair);
	assert_string_equal(cause_of_changes(&pair, two, 5), "operator: a +500.0 us, c +300.0 us");
	release(&pair);
	assert_string_equal(cause_of_changes(&pair, little, 6), "operator: a +300.0 us, among others");
	release(&pair);
	assert_null(cause_of_changes(&pair, least, 4));
	release(&pair);
	assert_string_equal(cause_of_changes(&pair, against, 4), "operator: a +900.0 us, c +700.0 us");
	release(&pair);
}

static void renamed_kernels_are_one_row(void **state)
{
	const struct table *table;
	struct pair pair;

	make_run(&pair.base, 10, 0);
	make_run(&pair.new, 11, 0);
	add_part(&pair.base, "kernel", "sgemm_64", "matrix product", 4);
	add_part(&pair.base, "kernel", "sgemm_128", "matrix product", 1);
	add_part(&pair.base, "kernel", "both_gemm", "matrix product", 2);
	add_part(&pair.base, "kernel", "old_add", "old_add", 1);
	add_part(&pair.new, "kernel", "nvjet", "matrix product", 6);
	add_part(&pair.new, "kernel", "both_gemm", "matrix product", 2);
	compare(&pair);
	table = &pair.comparison.contributions;
	assert_int_equal(table->row_count, 3);
	assert_string_equal(table_get(table, 0, CONTRIBUTION_NAME)->text, "matrix product (renamed)");
	assert_double_equal(table_get(table, 0, CONTRIBUTION_DELTA)->d, 1e6, 1e-3);
	assert_double_equal(table_get(table, 0, CONTRIBUTION_BASE_CALLS)->d, 2, 1e-12);
	assert_string_equal(table_get(table, 1, CONTRIBUTION_NAME)->text, "old_add");
	assert_string_equal(table_get(table, 2, CONTRIBUTION_NAME)->text, "both_gemm");
	release(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contributions_sum_to_the_difference_of_their_level),
		cmocka_unit_test(rows_that_cancel_out_have_no_shares),
		cmocka_unit_test(all_that_is_to_blame_alike_is_named),
		cmocka_unit_test(renamed_kernels_are_one_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
