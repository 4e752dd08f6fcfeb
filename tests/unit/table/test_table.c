/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables: cells with and without values, sorting, and the promises of columns.
 */
#include "table/bound.h"
#include "table/table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
	NAME,
	TIME,
	SHARE,
	COLUMNS
};

/* Columns with the rules that a test wants on the time and the share. */
static void begin(struct table *table, unsigned time_rules, unsigned share_rules)
{
	const struct table_column columns[COLUMNS] = {
		[NAME] = {.name = "name", .type = TABLE_TEXT, .role = ROLE_KEY},
		[TIME] = {.name = "time_ns",
	                  .type = TABLE_INT,
	                  .unit = UNIT_NS,
	                  .rules = time_rules,
	                  .total = 10,
	                  .other = "time_ns"},
		[SHARE] = {.name = "ratio",
	                   .type = TABLE_DOUBLE,
	                   .unit = UNIT_RATIO,
	                   .role = ROLE_SHARE,
	                   .rules = share_rules,
	                   .other = "time_ns"},
	};

	table_init(table, "sample", "Sample", "a table of a test");
	table_columns(table, columns, COLUMNS);
}

static void add(struct table *table, const char *name, int64_t time_ns, double share)
{
	int row = table_row(table);

	table_set_text(table, row, NAME, name);
	table_set_int(table, row, TIME, time_ns);
	table_set_double(table, row, SHARE, share);
}

static void check_says(const struct table *table, const char *words)
{
	struct error err = {0};

	assert_int_equal(table_check(table, &err), STATUS_LIMIT);
	assert_non_null(strstr(err.text, words));
}

static void a_new_cell_is_not_measured(void **state)
{
	struct table table;
	double value;

	begin(&table, 0, 0);
	table_row(&table);
	assert_false(table_get(&table, 0, TIME)->has_value);
	assert_false(table_number(&table, 0, TIME, &value));
	table_set_missing(&table, 0, TIME, "nobody looked");
	assert_string_equal(table_get(&table, 0, TIME)->reason, "nobody looked");
	table_release(&table);
}

static void texts_are_copied(void **state)
{
	char name[] = "gone soon";
	struct table table;

	begin(&table, 0, 0);
	add(&table, name, 1, 0);
	memset(name, 'x', sizeof(name) - 1);
	assert_string_equal(table_get(&table, 0, NAME)->text, "gone soon");
	table_release(&table);
}

static void columns_are_found_by_name(void **state)
{
	struct table table;

	begin(&table, 0, 0);
	assert_int_equal(table_find_column(&table, "ratio"), SHARE);
	assert_int_equal(table_find_column(&table, "rati"), -1);
	table_release(&table);
}

static void sorting_puts_large_first_and_missing_last_and_keeps_ties(void **state)
{
	static const char *const expected[] = {"large", "tie one", "tie two", "small", "missing"};
	struct table table;

	begin(&table, 0, 0);
	add(&table, "missing", 0, 0);
	table_set_missing(&table, 0, TIME, NULL);
	add(&table, "tie one", 5, 0);
	add(&table, "small", -3, 0);
	add(&table, "tie two", 5, 0);
	add(&table, "large", INT64_C(1) << 60, 0);
	table_sort(&table, TIME, false);
	for (int row = 0; row < 5; row++)
		assert_string_equal(table_get(&table, row, NAME)->text, expected[row]);
	table_sort(&table, TIME, true);
	assert_string_equal(table_get(&table, 0, NAME)->text, "small");
	assert_string_equal(table_get(&table, 4, NAME)->text, "missing");
	table_limit(&table, 2);
	assert_int_equal(table.row_count, 2);
	table_release(&table);
}

static void a_sorted_tree_shows_whole_paths(void **state)
{
	struct table table;

	table_init(&table, "modules", "Modules", "a path, the same as a tree, calls");
	table_column(&table, &(struct table_column){.name = "path", .type = TABLE_TEXT, .is_hidden = true});
	table_column(&table, &(struct table_column){.name = "tree", .type = TABLE_TEXT, .is_tree = true});
	table_column(&table, &(struct table_column){.name = "calls", .type = TABLE_INT});
	table_sort(&table, 2, false);
	assert_false(table.columns[0].is_hidden);
	assert_true(table.columns[1].is_hidden);
	table_release(&table);
}

static void a_table_without_rules_has_no_defect(void **state)
{
	struct table table;

	begin(&table, 0, 0);
	add(&table, "a", -1, 17);
	assert_int_equal(table_check(&table, NULL), STATUS_OK);
	table_release(&table);
}

static void negative_numbers_are_found(void **state)
{
	struct table table;

	begin(&table, RULE_NOT_NEGATIVE, 0);
	add(&table, "a", 1, 0);
	add(&table, "b", -1, 0);
	check_says(&table, "row 1: -1 is negative");
	table_release(&table);
}

static void shares_that_do_not_sum_to_one_are_found(void **state)
{
	struct table table;

	begin(&table, 0, RULE_SUMS_TO_ONE | RULE_AT_MOST_ONE);
	add(&table, "a", 1, 0.7);
	add(&table, "b", 1, 0.3);
	assert_int_equal(table_check(&table, NULL), STATUS_OK);
	add(&table, "c", 1, 0.01);
	check_says(&table, "all 3 rows together are 1.01");
	table_set_missing(&table, 2, SHARE, "unknown");
	assert_int_equal(table_check(&table, NULL), STATUS_OK);
	table_set_double(&table, 2, SHARE, NAN);
	check_says(&table, "together are nan");
	table_release(&table);
}

static void integers_must_sum_exactly(void **state)
{
	struct table table;

	begin(&table, RULE_SUMS_TO_TOTAL, 0);
	add(&table, "a", 4, 0);
	add(&table, "b", 6, 0);
	assert_int_equal(table_check(&table, NULL), STATUS_OK);
	add(&table, "c", 1, 0);
	check_says(&table, "together are 11, not 10");
	table_release(&table);
}

static void a_cell_above_the_other_is_found(void **state)
{
	struct table table;

	begin(&table, 0, RULE_AT_MOST_OTHER);
	add(&table, "a", 2, 2);
	assert_int_equal(table_check(&table, NULL), STATUS_OK);
	add(&table, "b", 2, 2.5);
	check_says(&table, "row 1: 2.5 is more than 2 of 'time_ns'");
	table_release(&table);
}

static void parts_that_do_not_make_the_whole_are_found(void **state)
{
	const struct table_column columns[] = {
		{.name = "whole", .type = TABLE_INT},
		{.name = "left", .type = TABLE_INT, .rules = RULE_PART_OF_OTHER, .other = "whole"},
		{.name = "right", .type = TABLE_INT, .rules = RULE_PART_OF_OTHER, .other = "whole"},
	};
	struct table table;

	table_init(&table, "parts", NULL, NULL);
	table_columns(&table, columns, 3);
	table_row(&table);
	table_set_int(&table, 0, 0, 10);
	table_set_int(&table, 0, 1, 4);
	assert_int_equal(table_check(&table, NULL), STATUS_OK);
	table_set_int(&table, 0, 2, 6);
	assert_int_equal(table_check(&table, NULL), STATUS_OK);
	table_set_int(&table, 0, 2, 5);
	check_says(&table, "the parts of 'whole' together are 9, not 10");
	table_release(&table);
}

/* A million names make a million rows: a row must be small, its texts shared, and no operation may hold the rows twice. */
static void rows_are_there_once_and_share_their_texts(void **state)
{
	const int chosen[] = {SHARE, NAME};
	const struct table_cell *cells;
	struct table table;

	(void)state;
	assert_int_equal(sizeof(struct table_cell), 16);
	begin(&table, 0, 0);
	for (int i = 0; i < 1000; i++) {
		int row = table_row(&table);

		table_set_text(&table, row, NAME, "the same");
		table_set_int(&table, row, TIME, i * 7919 % 1000);
		table_set_missing(&table, row, SHARE, "not recorded");
	}
	assert_ptr_equal(table_text(&table, 0, NAME), table_text(&table, 999, NAME));
	assert_ptr_equal(table_get(&table, 0, SHARE)->reason, table_get(&table, 999, SHARE)->reason);
	cells = table.cells;
	table_sort(&table, TIME, true);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(table_get(&table, i, TIME)->i, i);
	table_choose(&table, chosen, 2);
	assert_ptr_equal(table.cells, cells);
	assert_string_equal(table_get(&table, 999, 0)->reason, "not recorded");
	assert_string_equal(table_text(&table, 999, 1), "the same");
	assert_int_equal(table_row(&table), 1000);
	assert_string_equal(table_text(&table, 999, 1), "the same");
	table_release(&table);
}

/* 300,000 rows of values 0 to 299,999, in an order that begins with `first`. */
static void fill_beyond(struct table *table, int first, int by)
{
	begin(table, RULE_NOT_NEGATIVE | RULE_SUMS_TO_TOTAL, RULE_SUMS_TO_ONE);
	table->columns[TIME].more = table->columns[SHARE].more = MORE_SUM;
	table->columns[TIME].total = 299999.0 * 300000 / 2;
	table_bound(table, TIME);
	for (int i = 0, value = first; i < 300000; i++, value = (value + by) % 300000) {
		char name[32];
		int row = table_row(table);

		snprintf(name, sizeof(name), "name %06d", value);
		table_set_text(table, row, NAME, name);
		table_set_int(table, row, TIME, value);
		table_set_double(table, row, SHARE, value / table->columns[TIME].total);
	}
}

static void the_largest_rows_of_a_bounded_table_stay(void **state)
{
	static const int orders[][2] = {{0, 1}, {299999, 299999}, {17, 7919}};

	(void)state;
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		struct error err = {0};
		struct table table;

		fill_beyond(&table, orders[i][0], orders[i][1]);
		assert_true(table.row_capacity <= 131072);
		assert_int_equal(table_add_more(&table, NAME), 100000);
		assert_string_equal(table_text(&table, 100000, NAME), "(more names)");
		assert_int_equal(table_get(&table, 100000, TIME)->i, INT64_C(199999) * 200000 / 2);
		assert_int_equal(table_check(&table, &err), STATUS_OK);
		table_limit(&table, 100000);
		table_sort(&table, TIME, true);
		for (int row = 0; row < 100000; row++) {
			assert_int_equal(table_get(&table, row, TIME)->i, 200000 + row);
			assert_int_equal(strtoll(table_text(&table, row, NAME) + 5, NULL, 10), 200000 + row);
		}
		table_release(&table);
	}
}

static void of_equal_rows_those_stay_whose_keys_come_first(void **state)
{
	struct table table;

	(void)state;
	begin(&table, 0, 0);
	table.columns[TIME].more = MORE_LEAST;
	table_bound(&table, TIME);
	for (int i = 0; i < 150000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%06d", i * 7919 % 150000);
		add(&table, name, 5, 0);
	}
	assert_int_equal(table_add_more(&table, NAME), 100000);
	assert_int_equal(table_get(&table, 100000, TIME)->i, 5);
	assert_false(table_get(&table, 100000, SHARE)->has_value);
	table_limit(&table, 100000);
	table_sort(&table, NAME, true);
	assert_string_equal(table_text(&table, 99999, NAME), "099999");
	table_release(&table);
}

static void a_bounded_table_that_is_not_full_has_no_more(void **state)
{
	struct table table;

	(void)state;
	begin(&table, 0, 0);
	table_bound(&table, TIME);
	add(&table, "a", 1, 0);
	assert_int_equal(table_add_more(&table, NAME), -1);
	assert_int_equal(table.row_count, 1);
	table_release(&table);
}

static void a_sum_beyond_64_bits_is_not_measured(void **state)
{
	struct table table;

	(void)state;
	begin(&table, 0, 0);
	table.columns[TIME].more = table.columns[SHARE].more = MORE_SUM;
	table_bound(&table, SHARE);
	for (int i = 0; i < 100004; i++)
		add(&table, "a", INT64_MAX / 2, i < 100000);
	assert_int_equal(table_add_more(&table, NAME), 100000);
	assert_false(table_get(&table, 100000, TIME)->has_value);
	assert_string_equal(table_get(&table, 100000, TIME)->reason, "it is more than 64 bits hold");
	table_release(&table);
}

/* Stacks and names of templates are long. */
static void texts_of_a_bounded_table_have_a_maximum(void **state)
{
	enum {
		LENGTH = 1 << 20
	};
	char *text = memset(malloc(LENGTH + 1), 'x', LENGTH);
	struct table table;

	(void)state;
	begin(&table, 0, 0);
	table.columns[TIME].more = MORE_SUM;
	table_bound(&table, TIME);
	text[LENGTH] = '\0';
	for (int i = 0; i < 400; i++) {
		text[0] = (char)('a' + i % 2);
		add(&table, text, i, 0);
		assert_true(table.arena.used_bytes < 200 << 20);
	}
	assert_int_equal(table_add_more(&table, NAME), 63);
	assert_true(table.arena.used_bytes < 80 << 20);
	assert_int_equal(table_get(&table, 0, TIME)->i, 337);
	assert_int_equal(table_text(&table, 0, NAME)[0], 'b');
	assert_int_equal(table_get(&table, 63, TIME)->i, 336 * 337 / 2);
	table_release(&table);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_cell_is_not_measured),
		cmocka_unit_test(texts_are_copied),
		cmocka_unit_test(columns_are_found_by_name),
		cmocka_unit_test(sorting_puts_large_first_and_missing_last_and_keeps_ties),
		cmocka_unit_test(a_sorted_tree_shows_whole_paths),
		cmocka_unit_test(a_table_without_rules_has_no_defect),
		cmocka_unit_test(negative_numbers_are_found),
		cmocka_unit_test(shares_that_do_not_sum_to_one_are_found),
		cmocka_unit_test(integers_must_sum_exactly),
		cmocka_unit_test(a_cell_above_the_other_is_found),
		cmocka_unit_test(parts_that_do_not_make_the_whole_are_found),
		cmocka_unit_test(rows_are_there_once_and_share_their_texts),
		cmocka_unit_test(the_largest_rows_of_a_bounded_table_stay),
		cmocka_unit_test(of_equal_rows_those_stay_whose_keys_come_first),
		cmocka_unit_test(a_bounded_table_that_is_not_full_has_no_more),
		cmocka_unit_test(a_sum_beyond_64_bits_is_not_measured),
		cmocka_unit_test(texts_of_a_bounded_table_have_a_maximum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
