/* SPDX-License-Identifier: Apache-2.0
 *
 * test_json_write.c: layout, quoting and numbers of the JSON writer.
 */
#include "base/json_write.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void write_sample(struct json_writer *json)
{
	json_object_begin(json);
	json_key(json, "schema"), json_string(json, "stepscope.summary/1");
	json_key(json, "steps"), json_int(json, -20);
	json_key(json, "none"), json_array_begin(json), json_array_end(json);
	json_key(json, "list");
	json_array_begin(json);
	json_uint(json, UINT64_MAX);
	json_object_begin(json), json_object_end(json);
	json_bool(json, true);
	json_bool(json, false);
	json_null(json);
	json_double(json, 0.5);
	json_array_end(json);
	json_object_end(json);
}

static void check_sample(enum json_style style, const char *expected)
{
	struct buffer out;
	struct json_writer json;

	buffer_init(&out, 10000);
	json_writer_init(&json, &out, style);
	write_sample(&json);
	assert_string_equal(out.data, expected);
	assert_int_equal(json.depth, 0);
	buffer_release(&out);
}

static void compact_has_no_blanks(void **state)
{
	check_sample(JSON_COMPACT, "{\"schema\":\"stepscope.summary/1\",\"steps\":-20,\"none\":[],"
	                           "\"list\":[18446744073709551615,{},true,false,null,0.5]}");
}

static void pretty_has_a_line_per_item(void **state)
{
	check_sample(JSON_PRETTY, "{\n"
	                          "  \"schema\": \"stepscope.summary/1\",\n"
	                          "  \"steps\": -20,\n"
	                          "  \"none\": [],\n"
	                          "  \"list\": [\n"
	                          "    18446744073709551615,\n"
	                          "    {},\n"
	                          "    true,\n"
	                          "    false,\n"
	                          "    null,\n"
	                          "    0.5\n"
	                          "  ]\n"
	                          "}");
}

static void check_quote(const char *text, size_t length, const char *expected)
{
	struct buffer out;

	buffer_init(&out, 10000);
	json_quote(&out, text, length);
	assert_string_equal(out.data, expected);
	buffer_release(&out);
}

static void strings_are_escaped(void **state)
{
	check_quote("", 0, "\"\"");
	check_quote("plain", 5, "\"plain\"");
	check_quote("say \"hi\" \\ /", 12, "\"say \\\"hi\\\" \\\\ /\"");
	check_quote("a\nb\tc\0d\x1f\x7f", 9, "\"a\\u000ab\\u0009c\\u0000d\\u001f\x7f\"");
	check_quote("caf\xc3\xa9 \xf0\x9f\x98\x80", 10, "\"caf\xc3\xa9 \xf0\x9f\x98\x80\"");
}

static void bad_bytes_become_replacements(void **state)
{
	check_quote("a\xff"
	            "b",
	            3,
	            "\"a\xef\xbf\xbd"
	            "b\"");
	check_quote("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	check_quote("\xc3\xa9", 1, "\"\xef\xbf\xbd\"");
}

static void keys_are_escaped_too(void **state)
{
	struct buffer out;
	struct json_writer json;

	buffer_init(&out, 100);
	json_writer_init(&json, &out, JSON_COMPACT);
	json_object_begin(&json);
	json_key(&json, "a\"b"), json_string_n(&json, "x\0y", 3);
	json_object_end(&json);
	assert_string_equal(out.data, "{\"a\\\"b\":\"x\\u0000y\"}");
	buffer_release(&out);
}

static void check_number(double value, const char *expected)
{
	struct buffer out;

	buffer_init(&out, 100);
	json_number(&out, value);
	assert_string_equal(out.data, expected);
	buffer_release(&out);
}

static void numbers_are_as_short_as_they_can_be(void **state)
{
	check_number(0, "0");
	check_number(-0.0, "-0");
	check_number(1, "1");
	check_number(-1, "-1");
	check_number(0.1, "0.1");
	check_number(0.1 + 0.2, "0.30000000000000004");
	check_number(1.0 / 3, "0.3333333333333333");
	check_number(100000, "100000");
	check_number(999999999999999.0, "999999999999999");
	check_number(1e15, "1e+15");
	check_number(9007199254740993.0, "9007199254740992");
	check_number(5e-324, "4.94065645841247e-324");
	check_number(1.7976931348623157e308, "1.7976931348623157e+308");
	check_number(1790857026000000000.0, "1.790857026e+18");
}

static void what_json_cannot_say_is_null(void **state)
{
	check_number(NAN, "null");
	check_number(INFINITY, "null");
	check_number(-INFINITY, "null");
}

static void every_number_reads_back_the_same(void **state)
{
	struct buffer out;
	uint64_t bits = 88172645463325252u;

	buffer_init(&out, 100);
	for (int i = 0; i < 100000; i++) {
		double value;

		bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
		memcpy(&value, &bits, sizeof(value));
		if (!isfinite(value))
			continue;
		buffer_clear(&out);
		json_number(&out, value);
		assert_true(strtod(out.data, NULL) == value);
	}
	buffer_release(&out);
}

static void a_full_buffer_is_seen_afterwards(void **state)
{
	struct buffer out;
	struct json_writer json;

	buffer_init(&out, 20);
	json_writer_init(&json, &out, JSON_PRETTY);
	write_sample(&json);
	assert_true(out.is_overflown);
	assert_true(out.length <= 20);
	buffer_release(&out);
}

static void nesting_may_be_64_deep(void **state)
{
	struct buffer out;
	struct json_writer json;

	buffer_init(&out, 10000);
	json_writer_init(&json, &out, JSON_COMPACT);
	for (int i = 0; i < 64; i++)
		json_array_begin(&json);
	for (int i = 0; i < 64; i++)
		json_array_end(&json);
	assert_int_equal(out.length, 128);
	buffer_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compact_has_no_blanks),
		cmocka_unit_test(pretty_has_a_line_per_item),
		cmocka_unit_test(strings_are_escaped),
		cmocka_unit_test(bad_bytes_become_replacements),
		cmocka_unit_test(keys_are_escaped_too),
		cmocka_unit_test(numbers_are_as_short_as_they_can_be),
		cmocka_unit_test(what_json_cannot_say_is_null),
		cmocka_unit_test(every_number_reads_back_the_same),
		cmocka_unit_test(a_full_buffer_is_seen_afterwards),
		cmocka_unit_test(nesting_may_be_64_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
