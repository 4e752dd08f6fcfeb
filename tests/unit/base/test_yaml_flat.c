/* SPDX-License-Identifier: Apache-2.0
 *
 * test_yaml_flat.c: keys with dots, and all that is refused.
 */
#include "base/buffer.h"
#include "base/yaml_flat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

struct expected {
	const char *key, *value;
	int line;
};

static void check_entries(const char *text, const struct expected *expected, int count)
{
	struct yaml_flat yaml;
	struct error err = {0};

	assert_int_equal(yaml_flat_parse(&yaml, text, strlen(text), "x.yaml", &err), STATUS_OK);
	assert_int_equal(yaml.count, count);
	for (int i = 0; i < count; i++) {
		assert_string_equal(yaml.entries[i].key, expected[i].key);
		assert_string_equal(yaml.entries[i].value, expected[i].value);
		assert_int_equal(yaml.entries[i].line, expected[i].line);
	}
	assert_string_equal(err.text, "");
	yaml_flat_release(&yaml);
	yaml_flat_release(&yaml);
}

static void check_refused(const char *text, size_t length, const char *message)
{
	struct yaml_flat yaml;
	struct error err = {0};

	assert_int_equal(yaml_flat_parse(&yaml, text, length, "x.yaml", &err), STATUS_USAGE);
	assert_string_equal(err.text, message);
	assert_int_equal(yaml.count, 0);
	assert_null(yaml.entries);
	yaml_flat_release(&yaml);
}

static void the_example_of_the_header_holds(void **state)
{
	check_entries("a: {b: [x, y]}", (struct expected[]){{"a.b.0", "x", 1}, {"a.b.1", "y", 1}}, 2);
}

static void nested_blocks_become_dotted_keys(void **state)
{
	check_entries("# settings\n"
	              "schedule:\n"
	              "  wait: 1\n"
	              "  active: 3\n"
	              "with: [shapes, memory]\n"
	              "rules:\n"
	              "- id: SS101\n"
	              "  limit: 5%\n"
	              "- id: \"SS 102\"\n"
	              "deep: {a: {b: {c: yes}}}\n"
	              "last: |\n"
	              "  two\n"
	              "  lines\n",
	              (struct expected[]){
			      {"schedule.wait", "1", 3},
			      {"schedule.active", "3", 4},
			      {"with.0", "shapes", 5},
			      {"with.1", "memory", 5},
			      {"rules.0.id", "SS101", 7},
			      {"rules.0.limit", "5%", 8},
			      {"rules.1.id", "SS 102", 9},
			      {"deep.a.b.c", "yes", 10},
			      {"last", "two\nlines\n", 11},
		      },
	              9);
}

static void lists_in_lists_are_numbered(void **state)
{
	check_entries("- [a, [b, c]]\n- d\n",
	              (struct expected[]){{"0.0", "a", 1}, {"0.1.0", "b", 1}, {"0.1.1", "c", 1}, {"1", "d", 2}}, 4);
}

static void scalars_stay_as_written(void **state)
{
	check_entries("a: 007\nb: ~\nc:\ng: 1e3\ne: 'it''s'\nf: true\n",
	              (struct expected[]){{"a", "007", 1},
	                                  {"b", "~", 2},
	                                  {"c", "", 3},
	                                  {"g", "1e3", 4},
	                                  {"e", "it's", 5},
	                                  {"f", "true", 6}},
	              6);
}

static void nothing_gives_no_entries(void **state)
{
	check_entries("", NULL, 0);
	check_entries("# only a comment\n", NULL, 0);
	check_entries("---\n", NULL, 0);
	check_entries("{}", NULL, 0);
}

static void empty_lists_and_blocks_are_empty_values(void **state)
{
	check_entries("a: []\nb: {}\nc: [[], 1]\n",
	              (struct expected[]){{"a", "", 1}, {"b", "", 2}, {"c.0", "", 3}, {"c.1", "1", 3}}, 4);
}

static void aliases_are_told_but_not_followed(void **state)
{
	const char *text = "a: &x {b: 1}\nc: {<<: *x, <<: *x, d: 2}\ne: [*x, *x]\n*x : 3\nf: 4\n";
	static const bool is_alias[] = {false, true, true, false, true, true, false, false};
	struct yaml_flat yaml;
	struct error err = {0};

	check_entries(text,
	              (struct expected[]){{"a.b", "1", 1},
	                                  {"c.<<", "", 2},
	                                  {"c.<<", "", 2},
	                                  {"c.d", "2", 2},
	                                  {"e.0", "", 3},
	                                  {"e.1", "", 3},
	                                  {"*x", "3", 4},
	                                  {"f", "4", 5}},
	              8);
	assert_int_equal(yaml_flat_parse(&yaml, text, strlen(text), "x.yaml", &err), STATUS_OK);
	for (int i = 0; i < yaml.count; i++)
		assert_int_equal(yaml.entries[i].is_alias, is_alias[i]);
	yaml_flat_release(&yaml);
}

static void documents_are_numbered(void **state)
{
	const char *text = "a: 1\nb: 2\n---\na: 3\n--- text\n--- *a\n---\n- x\n";
	static const int documents[] = {1, 1, 2, 5};
	struct yaml_flat yaml;
	struct error err = {0};

	check_entries(text, (struct expected[]){{"a", "1", 1}, {"b", "2", 2}, {"a", "3", 4}, {"0", "x", 8}}, 4);
	assert_int_equal(yaml_flat_parse(&yaml, text, strlen(text), "x.yaml", &err), STATUS_OK);
	for (int i = 0; i < yaml.count; i++)
		assert_int_equal(yaml.entries[i].document, documents[i]);
	yaml_flat_release(&yaml);
}

#define REFUSED(text, message) check_refused(text, strlen(text), message)

static void what_cannot_be_flat_is_refused(void **state)
{
	REFUSED("a: 1\n[b, c]: 2\n", "'x.yaml' line 2: a key is not plain text");
	REFUSED("? {a: b}\n: 2\n", "'x.yaml' line 1: a key is not plain text");
	REFUSED("just text\n", "'x.yaml' line 1: 'key: value' is expected");
	REFUSED("*a\n", "'x.yaml' line 1: 'key: value' is expected");
	REFUSED("a: 1\nb: 2\na: 3\n", "'x.yaml' line 3: duplicate key 'a'");
	REFUSED("a: {b: 1}\nc: 1\na: {d: 2}\n", "'x.yaml' line 3: duplicate key 'a'");
	REFUSED("a: {b: 1}\na: 2\n", "'x.yaml' line 2: duplicate key 'a'");
	REFUSED("a: []\na: [2]\n", "'x.yaml' line 2: duplicate key 'a'");
	REFUSED("- {a: 1, a: {b: 1}}\n", "'x.yaml' line 1: duplicate key '0.a'");
	REFUSED("a:\n  b: 1\na.b: 2\n", "'x.yaml' line 3: duplicate key 'a.b'");
	REFUSED("'': 1\n", "'x.yaml' line 1: a key is empty or contains a NUL");
	REFUSED("\"a\\0b\": 1\n", "'x.yaml' line 1: a key is empty or contains a NUL");
	REFUSED("a: \"b\\0c\"\n", "'x.yaml' line 1: a value contains a NUL");
}

static void what_is_not_yaml_is_refused_with_its_line(void **state)
{
	struct yaml_flat yaml;
	struct error err;

	assert_int_equal(yaml_flat_parse(&yaml, "a: 1\nb: [1, 2\nc: 3\n", 19, "x.yaml", &err), STATUS_USAGE);
	assert_memory_equal(err.text, "'x.yaml' line 3: ", 17);
	assert_int_equal(yaml_flat_parse(&yaml, "a: 1\n\tb: 2\n", 11, "x.yaml", &err), STATUS_USAGE);
	assert_memory_equal(err.text, "'x.yaml' line 2: ", 17);
	assert_int_equal(yaml_flat_parse(&yaml, "a: \xff\n", 5, "x.yaml", &err), STATUS_USAGE);
	assert_int_equal(yaml_flat_parse(&yaml, "a: \x01\n", 5, "x.yaml", &err), STATUS_USAGE);
}

static void ten_thousand_values_are_the_maximum(void **state)
{
	struct yaml_flat yaml;
	struct error err;
	struct buffer text;

	buffer_init(&text, 1 << 20);
	for (int i = 0; i < 10000; i++)
		buffer_printf(&text, "key%d: %d\n", i, i);
	assert_int_equal(yaml_flat_parse(&yaml, text.data, text.length, "x.yaml", &err), STATUS_OK);
	assert_int_equal(yaml.count, 10000);
	for (int i = 0; i < 10000; i++) {
		assert_int_equal(yaml.entries[i].line, i + 1);
		assert_int_equal(strtol(yaml.entries[i].key + 3, NULL, 10), i);
		assert_int_equal(strtol(yaml.entries[i].value, NULL, 10), i);
	}
	yaml_flat_release(&yaml);
	buffer_printf(&text, "more: 1\n");
	check_refused(text.data, text.length, "'x.yaml' is too large: at most 10000 values");
	buffer_release(&text);
}

static void thirty_two_levels_are_the_maximum(void **state)
{
	struct yaml_flat yaml;
	struct error err;
	char text[100];

	memset(text, '[', sizeof(text));
	text[32] = 'x';
	memset(text + 33, ']', 32);
	assert_int_equal(yaml_flat_parse(&yaml, text, 65, "x.yaml", &err), STATUS_OK);
	assert_int_equal(yaml.count, 1);
	assert_int_equal(strlen(yaml.entries[0].key), 63);
	yaml_flat_release(&yaml);
	memset(text, '[', sizeof(text));
	memset(text + 33, ']', 33);
	check_refused(text, 66, "'x.yaml' line 1: nested more than 32 deep");
}

static void a_long_key_is_refused(void **state)
{
	struct buffer text;

	buffer_init(&text, 100000);
	buffer_printf(&text, "? \"%05000d\"\n: 1\n", 1);
	check_refused(text.data, text.length, "'x.yaml' line 1: a key is longer than 4096 bytes");
	buffer_release(&text);
}

static void files_are_read_by_name(void **state)
{
	char path[] = "/tmp/stepscope-test-XXXXXX";
	int file = mkstemp(path);
	struct yaml_flat yaml;
	struct error err;
	char message[200];

	assert_true(file >= 0);
	assert_int_equal(write(file, "a:\n  b: 1\n", 10), 10);
	close(file);
	assert_int_equal(yaml_flat_read(&yaml, path, &err), STATUS_OK);
	assert_string_equal(yaml.entries[0].key, "a.b");
	assert_int_equal(yaml.entries[0].line, 2);
	yaml_flat_release(&yaml);
	assert_int_equal(truncate(path, 5 << 20), 0);
	assert_int_equal(yaml_flat_read(&yaml, path, &err), STATUS_INPUT);
	snprintf(message, sizeof(message), "'%s' is too large: at most 4 MiB", path);
	assert_string_equal(err.text, message);
	unlink(path);
	assert_int_equal(yaml_flat_read(&yaml, path, &err), STATUS_INPUT);
	snprintf(message, sizeof(message), "cannot read '%s': No such file or directory", path);
	assert_string_equal(err.text, message);
	assert_int_equal(yaml_flat_read(&yaml, "/", &err), STATUS_INPUT);
	assert_string_equal(err.text, "cannot read '/': Is a directory");
	yaml_flat_release(&yaml);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_example_of_the_header_holds),
		cmocka_unit_test(nested_blocks_become_dotted_keys),
		cmocka_unit_test(lists_in_lists_are_numbered),
		cmocka_unit_test(scalars_stay_as_written),
		cmocka_unit_test(nothing_gives_no_entries),
		cmocka_unit_test(empty_lists_and_blocks_are_empty_values),
		cmocka_unit_test(aliases_are_told_but_not_followed),
		cmocka_unit_test(documents_are_numbered),
		cmocka_unit_test(what_cannot_be_flat_is_refused),
		cmocka_unit_test(what_is_not_yaml_is_refused_with_its_line),
		cmocka_unit_test(ten_thousand_values_are_the_maximum),
		cmocka_unit_test(thirty_two_levels_are_the_maximum),
		cmocka_unit_test(a_long_key_is_refused),
		cmocka_unit_test(files_are_read_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
