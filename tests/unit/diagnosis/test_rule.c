/* SPDX-License-Identifier: Apache-2.0
 *
 * test_rule.c: the header of a rule, and all that is refused.
 */
#include "diagnosis/rule.h"
#include "diagnosis/rule_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "-- id: A1\n-- title: what\n-- needs: ops\n-- advice: do\n-- wrong: when\n"

static enum status parse(struct rule *rule, struct arena *arena, const char *text, struct error *err)
{
	memset(err, 0, sizeof(*err));
	arena_init(arena, 0);
	return rule_parse(rule, arena, text, strlen(text), "x.sql", err);
}

static void a_header_is_read_with_its_long_lines(void **state)
{
	struct rule rule;
	struct arena arena;
	struct error err;

	assert_int_equal(parse(&rule, &arena,
	                       "-- SPDX-License-Identifier: Apache-2.0\n"
	                       "-- id: SS1\n-- title:  The title: with a colon \n--   goes on\n-- severity: hint\n"
	                       "-- verdict: data-bound\n-- needs: phases.ratio, steps\n-- tells if: 1 = 1\n"
	                       "-- cannot tell: because\n-- threshold: share = -0.05e1 (ours (really))\n"
	                       "-- threshold: n=3 (theirs)\n--\n-- advice: do\n-- wrong: when\n"
	                       "SELECT 1\n-- id: no header any more\nFROM x;\n",
	                       &err),
	                 STATUS_OK);
	assert_string_equal(rule.id, "SS1");
	assert_string_equal(rule.title, "The title: with a colon goes on");
	assert_int_equal(rule.severity, RULE_HINT);
	assert_string_equal(rule.verdict, "data-bound");
	assert_string_equal(rule.needs, "phases.ratio, steps");
	assert_string_equal(rule.tells_if, "1 = 1");
	assert_string_equal(rule.cannot_tell, "because");
	assert_int_equal(rule.threshold_count, 2);
	assert_string_equal(rule.thresholds[0].name, "share");
	assert_true(rule.thresholds[0].value == -0.5);
	assert_string_equal(rule.thresholds[0].source, "ours (really)");
	assert_string_equal(rule.thresholds[1].name, "n");
	assert_string_equal(rule.sql, "SELECT 1\n-- id: no header any more\nFROM x;");
	arena_release(&arena);
}

static void a_byte_order_mark_is_passed_over(void **state)
{
	struct rule rule;
	struct arena arena;
	struct error err;

	assert_int_equal(parse(&rule, &arena, "\xef\xbb\xbf" HEAD "SELECT 1\n", &err), STATUS_OK);
	assert_string_equal(rule.id, "A1");
	arena_release(&arena);
}

static void severity_is_problem_unless_it_is_said(void **state)
{
	struct rule rule;
	struct arena arena;
	struct error err;

	assert_int_equal(parse(&rule, &arena, HEAD "SELECT 1", &err), STATUS_OK);
	assert_int_equal(rule.severity, RULE_PROBLEM);
	assert_null(rule.verdict);
	assert_null(rule.tells_if);
	arena_release(&arena);
}

static void wrong_headers_are_refused_with_their_line(void **state)
{
	static const char *const cases[][2] = {
		{"", "line 1: the header has no 'id'"},
		{"SELECT 1", "line 1: the header has no 'id'"},
		{HEAD, "line 6: there is no SELECT"},
		{HEAD "-- id: B\nSELECT 1", "line 6: this key was there before"},
		{HEAD "-- verdict:\nSELECT 1", "line 6: this key has no value"},
		{HEAD "-- color: red\nSELECT 1", "line 6: unknown key 'color'"},
		{HEAD "-- no key at all\nSELECT 1", "line 6: a line of the header is '-- key: value'"},
		{HEAD "-- severity: bad\nSELECT 1", "line 6: severity is 'problem' or 'hint'"},
		{HEAD "-- threshold: a = 1\nSELECT 1", "line 6: a threshold is 'name = number (source)'"},
		{HEAD "-- threshold: a = ()\nSELECT 1", "line 6: a threshold is 'name = number (source)'"},
		{HEAD "-- threshold: a = 1 ()\nSELECT 1", "line 6: a threshold is 'name = number (source)'"},
		{HEAD "-- threshold: a = inf (x)\nSELECT 1", "line 6: a threshold is 'name = number (source)'"},
		{HEAD "-- threshold: 1a = 1 (x)\nSELECT 1", "line 6: a threshold is 'name = number (source)'"},
		{HEAD "-- threshold:\nSELECT 1", "line 6: a threshold is 'name = number (source)'"},
		{HEAD "-- tells if: 1\nSELECT 1", "line 7: 'tells if' wants 'cannot tell'"},
		{HEAD "-- cannot tell: 1\nSELECT 1", "line 7: 'cannot tell' wants 'tells if'"},
		{"-- id: a b\n-- title: what\n-- needs: ops\n-- advice: do\n-- wrong: when\nSELECT 1",
	         "line 1: an id is letters, digits and '_'"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rule rule;
		struct arena arena;
		struct error err;

		assert_int_equal(parse(&rule, &arena, cases[i][0], &err), STATUS_INPUT);
		assert_non_null(strstr(err.text, cases[i][1]));
		arena_release(&arena);
	}
}

static void what_is_no_text_or_too_long_is_refused(void **state)
{
	static char long_text[RULE_BYTES + 2];
	struct rule rule;
	struct arena arena;
	struct error err = {0};

	memset(long_text, ' ', sizeof(long_text) - 1);
	assert_int_equal(parse(&rule, &arena, long_text, &err), STATUS_INPUT);
	arena_release(&arena);
	assert_int_equal(rule_parse(&rule, &arena, "-- id: A\0B", 10, "x.sql", &err), STATUS_INPUT);
	assert_non_null(strstr(err.text, "not a text"));
	arena_release(&arena);
}

static void built_in_rules_are_right_and_in_order(void **state)
{
	static struct rule_set set;
	struct error err = {0};

	assert_int_equal(rule_set_init(&set, &err), STATUS_OK);
	assert_true(set.count >= 10);
	for (int i = 1; i < set.count; i++)
		assert_true(strcmp(set.rules[i - 1].id, set.rules[i].id) < 0);
	rule_set_release(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_is_read_with_its_long_lines),
		cmocka_unit_test(a_byte_order_mark_is_passed_over),
		cmocka_unit_test(severity_is_problem_unless_it_is_said),
		cmocka_unit_test(wrong_headers_are_refused_with_their_line),
		cmocka_unit_test(what_is_no_text_or_too_long_is_refused),
		cmocka_unit_test(built_in_rules_are_right_and_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
