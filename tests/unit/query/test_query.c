/* SPDX-License-Identifier: Apache-2.0
 *
 * test_query.c: what may be asked in SQL, and what results become. Joins and conditions: tests/golden/query.
 */
#include "query/query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
	struct model model;
	struct report report;
	struct query query;
};

static struct fixture fixture;

/* Three tracks, one of them empty; the second has more than one chunk. */
static int set_up(void **state)
{
	const struct query_limits limits = {10, (int64_t)64 << 20};
	struct analysis_options options = {0};
	struct error err = {0};
	uint32_t process, name;

	model_init(&fixture.model, 0);
	process = model_add_process(&fixture.model);
	fixture.model.processes[process].pid = 7;
	name = intern_add(&fixture.model.strings, "work");
	for (uint32_t track = 0; track < 3; track++)
		model_add_track(&fixture.model, process, TRACK_THREAD);
	for (int64_t i = 0; i < 3; i++)
		model_span_complete(&fixture.model, 0, i * 10, 5, SPAN_OP, name);
	for (int64_t i = 0; i < 1000; i++)
		model_span_complete(&fixture.model, 2, i * 10, 5, SPAN_RANGE, name);
	model_finish(&fixture.model);
	report_init(&fixture.report, &fixture.model, &options, "run");
	assert_int_equal(query_init(&fixture.query, &fixture.report, &limits, &err), STATUS_OK);
	return 0;
}

static int tear_down(void **state)
{
	query_release(&fixture.query);
	report_release(&fixture.report);
	model_release(&fixture.model);
	return 0;
}

static int64_t number(const char *sql)
{
	struct table rows;
	struct error err = {0};
	int64_t value;

	assert_int_equal(query_begin(&fixture.query, sql, &err), STATUS_OK);
	assert_int_equal(query_fetch(&fixture.query, &rows, 10, &err), STATUS_OK);
	assert_int_equal(rows.row_count, 1);
	assert_int_equal(rows.columns[0].type, TABLE_INT);
	value = table_get(&rows, 0, 0)->i;
	table_release(&rows);
	return value;
}

static void all_spans_are_seen(void **state)
{
	assert_int_equal(number("SELECT count(*) FROM spans"), 1003);
	assert_int_equal(number("SELECT sum(dur_ns) FROM spans"), 5015);
	assert_int_equal(number("SELECT count(*) FROM spans WHERE track = 1"), 0);
	assert_int_equal(number("SELECT sum(span) FROM spans WHERE track = 2"), 499500);
	assert_int_equal(number("SELECT count(*) FROM spans WHERE start_ns >= 5000"), 500);
	assert_int_equal(number("SELECT count(*) FROM spans WHERE start_ns < 30"), 6);
	assert_int_equal(number("SELECT count(*) FROM spans WHERE start_ns <= 30"), 7);
	assert_int_equal(number("SELECT count(*) FROM spans WHERE start_ns BETWEEN 20 AND 20"), 2);
	assert_int_equal(number("SELECT start_ns FROM spans WHERE track = 2 AND span = 777"), 7770);
	assert_int_equal(number("SELECT count(*) FROM spans WHERE kind = 'op' AND name = 'work'"), 3);
	assert_int_equal(number("SELECT count(*) FROM spans a JOIN spans b ON b.track = 0 AND b.span = a.span"), 6);
}

static void only_reading_is_allowed(void **state)
{
	static const char *const statements[] = {
		"CREATE TABLE t(x)",
		"CREATE TEMP TABLE t(x)",
		"INSERT INTO ops VALUES (1)",
		"UPDATE spans SET name = 1",
		"DELETE FROM spans",
		"DROP TABLE spans",
		"ATTACH ':memory:' AS a",
		"DETACH main",
		"VACUUM",
		"VACUUM INTO 'f'",
		"PRAGMA journal_mode = OFF",
		"PRAGMA table_info(spans)",
		"SELECT * FROM pragma_table_info('spans')",
		"SELECT load_extension('x')",
		"SELECT LOAD_EXTENSION('x', 'y')",
		"BEGIN",
		"SAVEPOINT s",
		"REINDEX",
		"ANALYZE",
		"CREATE TRIGGER t AFTER INSERT ON spans BEGIN SELECT 1; END",
		"ALTER TABLE spans RENAME TO s",
		"CREATE VIRTUAL TABLE t USING spans",
		"SELECT 1; SELECT 2",
		"EXPLAIN DELETE FROM spans",
	};

	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
		struct error err = {0};

		assert_int_equal(query_begin(&fixture.query, statements[i], &err), STATUS_USAGE);
		assert_true(err.text[0]);
	}
	assert_int_equal(number("SELECT 1 -- it goes on"), 1);
}

static void columns_take_the_type_that_holds_all_values(void **state)
{
	struct table rows;
	struct error err = {0};

	assert_int_equal(query_begin(&fixture.query,
	                             "SELECT 1 AS a_ns, 1 AS b, 'x' AS c, NULL AS d, 1 AS e, 1 AS e "
	                             "UNION ALL SELECT 2, 2.5, 3, NULL, NULL, x'0aff'",
	                             &err),
	                 STATUS_OK);
	assert_int_equal(query_fetch(&fixture.query, &rows, 10, &err), STATUS_OK);
	assert_true(fixture.query.is_done);
	assert_int_equal(rows.columns[0].type, TABLE_INT);
	assert_int_equal(rows.columns[0].unit, UNIT_NS);
	assert_int_equal(rows.columns[1].type, TABLE_DOUBLE);
	assert_true(table_get(&rows, 0, 1)->d == 1);
	assert_string_equal(table_get(&rows, 1, 2)->text, "3");
	assert_false(table_get(&rows, 0, 3)->has_value);
	assert_false(table_get(&rows, 1, 4)->has_value);
	assert_string_equal(rows.columns[5].name, "e_2");
	assert_string_equal(table_get(&rows, 1, 5)->text, "0aff");
	table_release(&rows);
}

static void rows_come_in_pieces(void **state)
{
	struct table rows;
	struct error err = {0};
	int count = 0;

	assert_int_equal(query_begin(&fixture.query, "SELECT span FROM spans", &err), STATUS_OK);
	while (!fixture.query.is_done) {
		assert_int_equal(query_fetch(&fixture.query, &rows, 100, &err), STATUS_OK);
		count += rows.row_count;
		table_release(&rows);
	}
	assert_int_equal(count, 1003);
}

static void limits_are_broken_plainly(void **state)
{
	struct table rows;
	struct error err = {0};

	fixture.query.limits.seconds = 1e-9;
	assert_int_equal(query_begin(&fixture.query, "SELECT count(*) FROM spans a, spans b", &err), STATUS_OK);
	assert_int_equal(query_fetch(&fixture.query, &rows, 1, &err), STATUS_LIMIT);
	fixture.query.limits.seconds = 10;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_spans_are_seen),
		cmocka_unit_test(only_reading_is_allowed),
		cmocka_unit_test(columns_take_the_type_that_holds_all_values),
		cmocka_unit_test(rows_come_in_pieces),
		cmocka_unit_test(limits_are_broken_plainly),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
