/* SPDX-License-Identifier: Apache-2.0
 *
 * test_options.c: parsing, the messages, nearest names, the help.
 */
#include "base/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct {
	bool is_json;
	bool is_color;
	const char *out;
	int64_t steps;
	double limit;
	int64_t memory;
	struct option_list with;
	bool is_hidden;
} values;

static const struct option options[] = {
	OPTION_FLAG("json", 0, &values.is_json, "print one JSON document"),
	OPTION_FLAG("color", 'c', &values.is_color, "use colours"),
	OPTION_GROUP("Limits"),
	OPTION_TEXT("out", 'o', &values.out, "DIR", "where the recording goes"),
	OPTION_INT("steps", 'n', &values.steps, "N", "record this many steps and then stop, whatever the program does"),
	OPTION_DOUBLE("limit", 0, &values.limit, "X", "first line\nsecond line"),
	OPTION_BYTES("memory", 'm', &values.memory, "SIZE", "memory for the model"),
	OPTION_LIST("with", 'w', &values.with, "WHAT", "record more"),
	OPTION_TEXT("a-name-longer-than-the-others", 0, &values.out, "ARGUMENT", "its own line"),
	OPTION_FLAG("hidden-and-rather-long", 0, &values.is_hidden, NULL),
	OPTION_END,
};

static struct options_result result;
static struct error err;
static const char *arguments[80];

/* Parses the arguments behind "stepscope" up to NULL. */
static enum status parse(const char *first, ...)
{
	va_list rest;
	int argc = 0;

	memset(&values, 0, sizeof(values));
	memset(&err, 0, sizeof(err));
	arguments[argc++] = "stepscope";
	va_start(rest, first);
	for (const char *argument = first; argument; argument = va_arg(rest, const char *))
		arguments[argc++] = argument;
	va_end(rest);
	arguments[argc] = NULL;
	return options_parse(options, argc, arguments, &result, &err);
}

static void check_refused(const char *text, const char *hint)
{
	assert_int_equal(err.status, STATUS_USAGE);
	assert_string_equal(err.text, text);
	assert_string_equal(err.hint, hint);
}

static void values_come_in_every_form(void **state)
{
	assert_int_equal(
		parse("--out", "a", "--steps=7", "-m64M", "-w", "x", "--with=y", "--json", "--limit", "2.5", NULL), 0);
	assert_string_equal(values.out, "a");
	assert_int_equal(values.steps, 7);
	assert_int_equal(values.memory, 64 << 20);
	assert_int_equal(values.with.count, 2);
	assert_string_equal(values.with.items[0], "x");
	assert_string_equal(values.with.items[1], "y");
	assert_true(values.is_json);
	assert_true(values.limit == 2.5);
	assert_int_equal(result.operand_count, 0);
	assert_false(result.has_terminator);
	assert_int_equal(err.status, STATUS_OK);
	assert_string_equal(err.text, "");
}

static void flags_can_be_taken_back(void **state)
{
	assert_int_equal(parse("-c", "--json", "--no-color", NULL), 0);
	assert_true(values.is_json);
	assert_false(values.is_color);
	assert_int_equal(parse("--no-color", "-c", NULL), 0);
	assert_true(values.is_color);
	assert_int_equal(parse("--json=true", "--color=false", NULL), 0);
	assert_true(values.is_json);
	assert_false(values.is_color);
	assert_int_equal(parse("--json", "--json=No", "--color=1", NULL), 0);
	assert_false(values.is_json);
	assert_true(values.is_color);
	assert_int_equal(parse("--no-out", NULL), STATUS_USAGE);
	check_refused("unknown option '--no-out'", "did you mean '--out'?");
}

static void a_value_may_look_like_an_option(void **state)
{
	assert_int_equal(parse("--steps", "-5", "--out", "--json", "--out=", NULL), 0);
	assert_int_equal(values.steps, -5);
	assert_string_equal(values.out, "");
	assert_false(values.is_json);
	assert_int_equal(parse("--out=a=b", NULL), 0);
	assert_string_equal(values.out, "a=b");
}

static void operands_may_stand_anywhere(void **state)
{
	assert_int_equal(parse("a", "--json", "b", "-", "-n", "3", "c", NULL), 0);
	assert_int_equal(result.operand_count, 4);
	assert_string_equal(result.operands[0], "a");
	assert_string_equal(result.operands[1], "b");
	assert_string_equal(result.operands[2], "-");
	assert_string_equal(result.operands[3], "c");
	assert_null(result.operands[4]);
	assert_int_equal(result.before_terminator, 4);
	assert_int_equal(parse(NULL, NULL), 0);
	assert_int_equal(result.operand_count, 0);
	assert_null(result.operands[0]);
}

static void behind_the_terminator_nothing_is_an_option(void **state)
{
	assert_int_equal(parse("a", "--json", "--", "python", "--steps", "--", "-x", NULL), 0);
	assert_true(result.has_terminator);
	assert_int_equal(result.before_terminator, 1);
	assert_int_equal(result.operand_count, 5);
	assert_string_equal(result.operands[1], "python");
	assert_string_equal(result.operands[2], "--steps");
	assert_string_equal(result.operands[3], "--");
	assert_string_equal(result.operands[4], "-x");
	assert_null(result.operands[5]);
}

static void malformed_values_name_option_and_value(void **state)
{
	assert_int_equal(parse("--steps", "x", NULL), STATUS_USAGE);
	check_refused("option '--steps' wants a number, got 'x'", "");
	parse("-n", "1.5", NULL);
	check_refused("option '-n' wants a whole number, got '1.5'", "");
	parse("-n99999999999999999999", NULL);
	check_refused("option '-n' wants a smaller number, got '99999999999999999999'", "");
	parse("--limit=1x", NULL);
	check_refused("option '--limit' wants a number, got '1x'", "");
	parse("--limit=nan", NULL);
	check_refused("option '--limit' wants a number, got 'nan'", "");
	parse("--memory=-1", NULL);
	check_refused("option '--memory' wants a size such as 64M, got '-1'", "");
	parse("--steps=", NULL);
	check_refused("option '--steps' wants a number, got ''", "");
	parse("--steps", " 5", NULL);
	check_refused("option '--steps' wants a number, got ' 5'", "");
}

static void missing_and_superfluous_values_are_refused(void **state)
{
	parse("--out", NULL);
	check_refused("option '--out' wants a value (DIR)", "");
	parse("-o", "--", "python", NULL);
	check_refused("option '-o' wants a value (DIR)", "");
	parse("--json=maybe", NULL);
	check_refused("option '--json' wants true or false, or no value, got 'maybe'", "");
	parse("--json=", NULL);
	check_refused("option '--json' wants true or false, or no value, got ''", "");
	parse("--no-json=true", NULL);
	check_refused("option '--no-json' takes no value, got 'true'", "");
	parse("-cx", NULL);
	check_refused("option '-c' takes no value, got 'x'", "");
}

static void unknown_options_get_the_nearest_name(void **state)
{
	parse("--stpes", "3", NULL);
	check_refused("unknown option '--stpes'", "did you mean '--steps'?");
	parse("--jsn=1", NULL);
	check_refused("unknown option '--jsn'", "did you mean '--json'?");
	parse("--mem", NULL);
	check_refused("unknown option '--mem'", "did you mean '--memory'?");
	parse("--something-else", NULL);
	check_refused("unknown option '--something-else'", "");
	parse("-x", NULL);
	check_refused("unknown option '-x'", "");
	parse("-json", NULL);
	check_refused("unknown option '-json'", "did you mean '--json'?");
	parse("--Limits", NULL); /* a heading is no option */
	check_refused("unknown option '--Limits'", "did you mean '--limit'?");
	parse("--hidden-and-rather-lon", NULL);
	check_refused("unknown option '--hidden-and-rather-lon'", "");
}

static void a_list_has_a_maximum(void **state)
{
	const char *many[70] = {"stepscope"};

	memset(&values, 0, sizeof(values));
	for (int i = 1; i <= 65; i++)
		many[i] = "-wx";
	assert_int_equal(options_parse(options, 65, many, &result, &err), 0);
	assert_int_equal(values.with.count, 64);
	memset(&values, 0, sizeof(values));
	many[64] = many[65] = "-wx";
	for (int i = 1; i <= 65; i++)
		many[i] = "-wx";
	assert_int_equal(options_parse(options, 66, many, &result, &err), STATUS_USAGE);
	check_refused("option '-w' is given more than 64 times", "");
}

static void nearest_names_are_near(void **state)
{
	static const char *const names[] = {"report", "record", "run", "export", "import", "compare", NULL};
	static const char *const none[] = {NULL};
	static const char *const swapped[] = {"ba", NULL};
	static const char *const letter[] = {"y", NULL};

	assert_string_equal(nearest_name("repotr", names), "report");
	assert_string_equal(nearest_name("rceord", names), "record");
	assert_string_equal(nearest_name("ru", names), "run");
	assert_string_equal(nearest_name("comp", names), "compare");
	assert_string_equal(nearest_name("run", names), "run");
	assert_string_equal(nearest_name("ab", swapped), "ba");
	assert_null(nearest_name("x", letter));
	assert_null(nearest_name("zzzz", names));
	assert_null(nearest_name("", names));
	assert_null(nearest_name("x", names));
	assert_null(nearest_name("report", none));
	assert_null(nearest_name("a-word-that-is-much-longer-than-any-name-of-a-command-or-option-can-be", names));
}

static void check_bytes(const char *text, int64_t expected)
{
	int64_t bytes = -1;

	assert_true(parse_bytes(text, &bytes));
	assert_int_equal(bytes, expected);
}

static void sizes_are_powers_of_1024(void **state)
{
	static const char *const bad[] = {"",      "x",      "-1",    "64X",
	                                  "64MM",  "64 M",   "1.2.3", "M",
	                                  ".",     "1e3",    "8E",    "9223372036854775808",
	                                  "64Mi8", "0x10",   "+1",    "99999999999999999999E",
	                                  "8.0E",  "64MiBs", "1BB"};
	int64_t bytes = 77;

	check_bytes("64", 64);
	check_bytes("64B", 64);
	check_bytes("64k", 65536);
	check_bytes("64K", 65536);
	check_bytes("64M", 64 << 20);
	check_bytes("64MiB", 64 << 20);
	check_bytes("64MB", 64 << 20);
	check_bytes("64Mi", 64 << 20);
	check_bytes("1.5G", 3ll << 29);
	check_bytes("0", 0);
	check_bytes("0.5k", 512);
	check_bytes("7E", 7ll << 60);
	check_bytes("9223372036854775807", INT64_MAX);
	check_bytes("9007199254740993", 9007199254740993);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (parse_bytes(bad[i], &bytes))
			fail_msg("accepted: '%s'", bad[i]);
		assert_int_equal(bytes, 77);
	}
}

static void check_help(int width, const char *expected)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	options_help(options, out, width);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

static void help_is_aligned_wrapped_and_grouped(void **state)
{
	check_help(60, "      --json         print one JSON document\n"
	               "  -c, --color        use colours\n"
	               "\n"
	               "Limits:\n"
	               "  -o, --out DIR      where the recording goes\n"
	               "  -n, --steps N      record this many steps and then stop,\n"
	               "                     whatever the program does\n"
	               "      --limit X      first line\n"
	               "                     second line\n"
	               "  -m, --memory SIZE  memory for the model\n"
	               "  -w, --with WHAT    record more\n"
	               "      --a-name-longer-than-the-others ARGUMENT\n"
	               "                     its own line\n");
}

static void help_survives_a_narrow_terminal(void **state)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	options_help(options, out, 0);
	fclose(out);
	assert_non_null(strstr(text, "N      record this many\n                     steps and then\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_come_in_every_form),
		cmocka_unit_test(flags_can_be_taken_back),
		cmocka_unit_test(a_value_may_look_like_an_option),
		cmocka_unit_test(operands_may_stand_anywhere),
		cmocka_unit_test(behind_the_terminator_nothing_is_an_option),
		cmocka_unit_test(malformed_values_name_option_and_value),
		cmocka_unit_test(missing_and_superfluous_values_are_refused),
		cmocka_unit_test(unknown_options_get_the_nearest_name),
		cmocka_unit_test(a_list_has_a_maximum),
		cmocka_unit_test(nearest_names_are_near),
		cmocka_unit_test(sizes_are_powers_of_1024),
		cmocka_unit_test(help_is_aligned_wrapped_and_grouped),
		cmocka_unit_test(help_survives_a_narrow_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
