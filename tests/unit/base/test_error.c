/* SPDX-License-Identifier: Apache-2.0
 *
 * test_error.c: messages, hints and exit statuses.
 */
#include "base/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_message_is_formatted_and_the_status_returned(void **state)
{
	struct error err = {.hint = "old"};

	assert_int_equal(error_set(&err, STATUS_INPUT, "no step %d in '%s'", 3, "a.ssr"), STATUS_INPUT);
	assert_int_equal(err.status, STATUS_INPUT);
	assert_string_equal(err.text, "no step 3 in 'a.ssr'");
	assert_string_equal(err.hint, "");
	error_hint(&err, "try %s", "--all");
	assert_string_equal(err.hint, "try --all");
	assert_string_equal(err.text, "no step 3 in 'a.ssr'");
}

static void nobody_needs_to_want_the_text(void **state)
{
	assert_int_equal(error_set(NULL, STATUS_IO, "x"), STATUS_IO);
	assert_int_equal(error_errno(NULL, STATUS_IO, EIO, "x"), STATUS_IO);
	error_hint(NULL, "x");
}

static void errno_is_spelled_out(void **state)
{
	struct error err;

	assert_int_equal(error_errno(&err, STATUS_IO, EACCES, "cannot read '%s'", "a.ssr"), STATUS_IO);
	assert_string_equal(err.text, "cannot read 'a.ssr': Permission denied");
}

static void a_message_may_quote_the_one_it_replaces(void **state)
{
	struct error err;

	error_set(&err, STATUS_IO, "inner");
	error_set(&err, STATUS_INPUT, "outer: %s", err.text);
	assert_string_equal(err.text, "outer: inner");
	error_hint(&err, "first");
	error_hint(&err, "%s, second", err.hint);
	assert_string_equal(err.hint, "first, second");
}

static void a_long_subject_does_not_push_the_reason_out(void **state)
{
	struct error err;
	char path[4096];

	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	error_errno(&err, STATUS_IO, ENOENT, "cannot read '%s'", path);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_string_equal(err.text + strlen(err.text) - 27, ": No such file or directory");
	error_set(&err, STATUS_IO, "%s", path);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	error_hint(&err, "%s", path);
	assert_int_equal(strlen(err.hint), sizeof(err.hint) - 1);
}

static void a_character_is_never_cut_in_two(void **state)
{
	struct error err;
	char path[2001] = "";

	for (int i = 0; i < 1000; i++)
		memcpy(path + 2 * i, "\xc3\xa9", 3);
	error_set(&err, STATUS_IO, "%s", path); /* room for 511 and a half */
	assert_int_equal(strlen(err.text), 1022);
	error_errno(&err, STATUS_IO, EACCES, "%s", path);
	assert_null(strstr(err.text, "\xc3:"));
	assert_non_null(strstr(err.text, "\xa9: Permission denied"));
}

static void every_status_has_its_exit(void **state)
{
	static const struct {
		enum status status;
		int exit;
	} cases[] = {
		{STATUS_OK, 0},          {STATUS_LIMIT, 1},        {STATUS_USAGE, 2},     {STATUS_INPUT, 3},
		{STATUS_ENVIRONMENT, 4}, {STATUS_INCONCLUSIVE, 5}, {STATUS_NO_MEMORY, 4}, {STATUS_IO, 4},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(status_exit(cases[i].status), cases[i].exit);
	assert_int_equal(status_exit((enum status)99), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_is_formatted_and_the_status_returned),
		cmocka_unit_test(nobody_needs_to_want_the_text),
		cmocka_unit_test(errno_is_spelled_out),
		cmocka_unit_test(a_message_may_quote_the_one_it_replaces),
		cmocka_unit_test(a_long_subject_does_not_push_the_reason_out),
		cmocka_unit_test(a_character_is_never_cut_in_two),
		cmocka_unit_test(every_status_has_its_exit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
