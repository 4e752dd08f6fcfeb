/* SPDX-License-Identifier: Apache-2.0
 *
 * test_json_read.c: what the JSON reader accepts, refuses, and hands out. Texts are copied to the heap without a NUL, so
 * that a sanitizer sees every byte read too far.
 */
#include "base/json_read.h"
#include "base/json_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A reader over a copy of text. */
struct sample {
	char *copy;
	struct json_reader reader;
};

static void sample_init(struct sample *sample, const char *text, size_t length)
{
	sample->copy = malloc(length ? length : 1);
	memcpy(sample->copy, text, length);
	json_reader_init(&sample->reader, sample->copy, length);
}

static void sample_release(struct sample *sample)
{
	json_reader_release(&sample->reader);
	free(sample->copy);
}

static enum json_token read_all(const char *text, size_t length, size_t *offset)
{
	struct sample sample;
	enum json_token token;

	sample_init(&sample, text, length);
	do {
		token = json_next(&sample.reader);
	} while (token != JSON_END && token != JSON_ERROR);
	assert_int_equal(json_next(&sample.reader), token); /* and so it stays */
	assert_true((token == JSON_ERROR) == (sample.reader.problem != NULL));
	if (offset)
		*offset = sample.reader.offset;
	sample_release(&sample);
	return token;
}

static void a_document_comes_token_by_token(void **state)
{
	static const char text[] = " { \"a\" : [ 1 , -2.5e+3 , true , false , null , { } , [ ] ] , \"b\":\"x\" } \n";
	static const struct {
		enum json_token token;
		const char *text;
		int depth;
	} expected[] = {
		{JSON_OBJECT_BEGIN, NULL, 1}, {JSON_KEY, "a", 1},          {JSON_ARRAY_BEGIN, NULL, 2},
		{JSON_NUMBER, "1", 2},        {JSON_NUMBER, "-2.5e+3", 2}, {JSON_TRUE, NULL, 2},
		{JSON_FALSE, NULL, 2},        {JSON_NULL, NULL, 2},        {JSON_OBJECT_BEGIN, NULL, 3},
		{JSON_OBJECT_END, NULL, 2},   {JSON_ARRAY_BEGIN, NULL, 3}, {JSON_ARRAY_END, NULL, 2},
		{JSON_ARRAY_END, NULL, 1},    {JSON_KEY, "b", 1},          {JSON_STRING, "x", 1},
		{JSON_OBJECT_END, NULL, 0},   {JSON_END, NULL, 0},
	};
	struct sample sample;

	sample_init(&sample, text, sizeof(text) - 1);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		assert_int_equal(json_next(&sample.reader), expected[i].token);
		assert_int_equal(sample.reader.depth, expected[i].depth);
		if (expected[i].text)
			assert_string_equal(sample.reader.text.data, expected[i].text);
	}
	sample_release(&sample);
}

static void good_documents_are_accepted(void **state)
{
	static const char *const texts[] = {
		"0",          "-0",          "0.0",          "1e5",
		"1E+05",      "1e-5",        "-0.1e1",       "123456789012345678901234567890",
		"\"\"",       "true",        " null\r\n\t ", "[]",
		"{}",         "[[[]]]",      "{\"\":{}}",    "{\"a\":1,\"a\":2}",
		"[1,2]",      "\"\\u0000\"", "\"\\ud800\"",  "\"\x7f\"",
		"[\"\xff\"]", "\"/\\/\"",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(read_all(texts[i], strlen(texts[i]), NULL), JSON_END);
}

static void bad_documents_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		" ",
		"[",
		"{",
		"]",
		"}",
		"[1",
		"[1,",
		"[1,]",
		"[,1]",
		"[1 2]",
		"[1}",
		"{]",
		"{\"a\"",
		"{\"a\":",
		"{\"a\":}",
		"{\"a\" 1}",
		"{\"a\":1,}",
		"{\"a\":1 \"b\":2}",
		"{a:1}",
		"{1:1}",
		"{\"a\",1}",
		"[\"a\":1]",
		"1 2",
		"[] []",
		"{},",
		"nul",
		"nullx",
		"True",
		"tru",
		"NaN",
		"Infinity",
		"-",
		"+1",
		"01",
		"-01",
		"1.",
		".5",
		"1.e5",
		"1e",
		"1e+",
		"0x10",
		"1_000",
		"\"",
		"\"a",
		"\"\\\"",
		"\"\\x\"",
		"\"\\u12\"",
		"\"\\u12g4\"",
		"\"\\",
		"\"\\u",
		"\"\\u123",
		"'a'",
		"\"a\nb\"",
		"\"\t\"",
		"\xef\xbb\xbf{}",
		"[1]/**/",
		"\"\\ud800\\u12\"",
		"--1",
		"[1],",
		",",
		":",
		"[\xa0\x31]",
		"\"abcdefgh\x01\"",
		"{\"a\":1}}",
		"[1]]",
		"-a",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (read_all(texts[i], strlen(texts[i]), NULL) != JSON_ERROR)
			fail_msg("accepted: %s", texts[i]);
	}
	assert_int_equal(read_all("\"a\0b\"", 5, NULL), JSON_ERROR);
	assert_int_equal(read_all("[1\0]", 4, NULL), JSON_ERROR);
	assert_int_equal(read_all("1\0", 2, NULL), JSON_ERROR);
	assert_int_equal(read_all("\0", 1, NULL), JSON_ERROR);
}

static void numbers_of_python_are_taken_when_asked_for(void **state)
{
	static const char text[] = "[NaN, Infinity,-Infinity, 1]",
			  cut[] = "[Infinit", *const expected[] = {"NaN", "Infinity", "-Infinity", "1"};
	struct sample sample;

	sample_init(&sample, text, sizeof(text) - 1);
	sample.reader.takes_nan = true;
	assert_int_equal(json_next(&sample.reader), JSON_ARRAY_BEGIN);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(json_next(&sample.reader), JSON_NUMBER);
		assert_string_equal(sample.reader.text.data, expected[i]);
	}
	assert_int_equal(json_next(&sample.reader), JSON_ARRAY_END);
	assert_int_equal(json_next(&sample.reader), JSON_END);
	sample_release(&sample);
	sample_init(&sample, cut, sizeof(cut) - 1);
	sample.reader.takes_nan = true;
	assert_int_equal(json_next(&sample.reader), JSON_ARRAY_BEGIN);
	assert_int_equal(json_next(&sample.reader), JSON_ERROR);
	sample_release(&sample);
}

static void every_cut_of_a_document_is_refused(void **state)
{
	static const char text[] = "{\"a\": [1, -2.5e+3, true, false, null], \"b\\u00e9\": \"\\ud83d\\ude00\\n\"}";

	for (size_t length = 0; length < sizeof(text) - 1; length++)
		assert_int_equal(read_all(text, length, NULL), JSON_ERROR);
	assert_int_equal(read_all(text, sizeof(text) - 1, NULL), JSON_END);
}

static void errors_carry_the_offset(void **state)
{
	size_t offset;

	assert_int_equal(read_all("[1, 2, x]", 9, &offset), JSON_ERROR);
	assert_int_equal(offset, 7);
	assert_int_equal(read_all("{\"a\" 1}", 7, &offset), JSON_ERROR);
	assert_int_equal(offset, 5);
	assert_int_equal(read_all("\"abc\x01\"", 6, &offset), JSON_ERROR);
	assert_int_equal(offset, 4);
	assert_int_equal(read_all("[1 2]", 5, &offset), JSON_ERROR);
	assert_int_equal(offset, 3);
}

static void check_string(const char *json, const char *expected, size_t length)
{
	struct sample sample;

	sample_init(&sample, json, strlen(json));
	assert_int_equal(json_next(&sample.reader), JSON_STRING);
	assert_int_equal(sample.reader.text.length, length);
	assert_memory_equal(sample.reader.text.data, expected, length + 1);
	sample_release(&sample);
}

static void strings_come_unescaped(void **state)
{
	check_string("\"\"", "", 0);
	check_string("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8);
	check_string("\"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac", 6);
	check_string("\"\\ud83d\\ude00!\"", "\xf0\x9f\x98\x80!", 5);
	check_string("\"a\\u0000b\"", "a\0b", 3);
	check_string("\"caf\xc3\xa9 and more than eight\"", "caf\xc3\xa9 and more than eight", 25);
	check_string("\"aten::native_layer_norm_backward\\n\"", "aten::native_layer_norm_backward\n", 33);
}

static void halves_and_bad_bytes_become_replacements(void **state)
{
	check_string("\"\\ud800\"", "\xef\xbf\xbd", 3);
	check_string("\"\\udc00x\"", "\xef\xbf\xbdx", 4);
	check_string("\"\\ud800\\u0041\"",
	             "\xef\xbf\xbd"
	             "A",
	             4);
	check_string("\"\\udc00\\udc00\"", "\xef\xbf\xbd\xef\xbf\xbd", 6);
	check_string("\"\\ud800\\ue000\"", "\xef\xbf\xbd\xee\x80\x80", 6);
	check_string("\"\\ud800\\n\"", "\xef\xbf\xbd\n", 4);
	check_string("\"\\ud800\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80", 7);
	check_string("\"a\xff"
	             "b\xc3\"",
	             "a\xef\xbf\xbd"
	             "b\xef\xbf\xbd",
	             8);
}

static void nesting_ends_at_512(void **state)
{
	char text[1026];

	memset(text, '[', 513);
	memset(text + 512, ']', 512);
	assert_int_equal(read_all(text, 1024, NULL), JSON_END);
	memset(text, '[', 513);
	memset(text + 513, ']', 513);
	assert_int_equal(read_all(text, 1026, NULL), JSON_ERROR);
}

static void skipping_lands_behind_the_value(void **state)
{
	static const char text[] =
		"{\"a\": {\"x\": [1, {\"y\": \"}]\\\"\"}], \"z\": {}}, \"b\": 5, \"c\": [[]], \"d\": \"s\", \"e\": 1}";
	static const char *const keys[] = {"a", "b", "c", "d"};
	struct sample sample;

	sample_init(&sample, text, sizeof(text) - 1);
	assert_int_equal(json_next(&sample.reader), JSON_OBJECT_BEGIN);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(json_next(&sample.reader), JSON_KEY);
		assert_string_equal(sample.reader.text.data, keys[i]);
		assert_true(json_skip(&sample.reader, json_next(&sample.reader)));
	}
	assert_int_equal(json_next(&sample.reader), JSON_KEY);
	assert_true(json_skip(&sample.reader, JSON_KEY)); /* its value */
	assert_int_equal(json_next(&sample.reader), JSON_OBJECT_END);
	assert_int_equal(json_next(&sample.reader), JSON_END);
	sample_release(&sample);
}

static void skipping_still_refuses_what_is_wrong(void **state)
{
	static const char *const texts[] = {"[1, [2, }]", "[[1, 2]", "[\"\\x\"]", "{\"a\": [}", "{\"a\""};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct sample sample;

		sample_init(&sample, texts[i], strlen(texts[i]));
		assert_false(json_skip(&sample.reader, json_next(&sample.reader)));
		assert_int_equal(json_next(&sample.reader), JSON_ERROR);
		assert_false(json_skip(&sample.reader, JSON_ERROR));
		sample_release(&sample);
	}
}

static void what_the_writer_writes_is_read_back(void **state)
{
	char name[256];
	struct buffer out;
	struct sample sample;

	for (int i = 0; i < 128; i++) {
		name[i] = (char)i;
		name[128 + i] = i % 2 ? (char)0xa9 : (char)0xc3;
	}
	buffer_init(&out, 10000);
	json_quote(&out, name, sizeof(name));
	sample_init(&sample, out.data, out.length);
	assert_int_equal(json_next(&sample.reader), JSON_STRING);
	assert_int_equal(sample.reader.text.length, sizeof(name));
	assert_memory_equal(sample.reader.text.data, name, sizeof(name));
	sample_release(&sample);
	buffer_release(&out);
}

static void special_bytes_are_found_at_every_place_of_a_word(void **state)
{
	static const char specials[] = {'"', '\\', '\x1f', '\0'};

	for (size_t place = 1; place < 30; place++) {
		for (size_t i = 0; i < sizeof(specials); i++) {
			char text[32];

			memset(text, '~', sizeof(text));
			text[0] = text[31] = '"';
			text[place] = specials[i];
			assert_int_equal(read_all(text, sizeof(text), NULL), JSON_ERROR);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_document_comes_token_by_token),
		cmocka_unit_test(good_documents_are_accepted),
		cmocka_unit_test(bad_documents_are_refused),
		cmocka_unit_test(numbers_of_python_are_taken_when_asked_for),
		cmocka_unit_test(every_cut_of_a_document_is_refused),
		cmocka_unit_test(errors_carry_the_offset),
		cmocka_unit_test(strings_come_unescaped),
		cmocka_unit_test(halves_and_bad_bytes_become_replacements),
		cmocka_unit_test(nesting_ends_at_512),
		cmocka_unit_test(skipping_lands_behind_the_value),
		cmocka_unit_test(skipping_still_refuses_what_is_wrong),
		cmocka_unit_test(what_the_writer_writes_is_read_back),
		cmocka_unit_test(special_bytes_are_found_at_every_place_of_a_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
