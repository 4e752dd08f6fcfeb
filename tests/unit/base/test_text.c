/* SPDX-License-Identifier: Apache-2.0
 *
 * test_text.c: widths and cleaning, and below them what is valid UTF-8.
 */
#include "base/text.h"
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void alternatives_are_listed_as_in_a_sentence(void **state)
{
	static const char *const words[] = {"chrome", "perfetto", "ssr"};
	char text[32], short_text[10];

	text_alternatives(text, sizeof(text), words, 3);
	assert_string_equal(text, "chrome, perfetto or ssr");
	text_alternatives(text, sizeof(text), words, 1);
	assert_string_equal(text, "chrome");
	text_alternatives(text, sizeof(text), words, 0);
	assert_string_equal(text, "");
	text_alternatives(short_text, sizeof(short_text), words, 3);
	assert_string_equal(short_text, "chrome, p");
}

static void widths_are_columns_not_bytes(void **state)
{
	assert_int_equal(text_width(""), 0);
	assert_int_equal(text_width("aten::mm"), 8);
	assert_int_equal(text_width("caf\xc3\xa9"), 4);
	assert_int_equal(text_width("e\xcc\x81"), 1);                /* combining accent */
	assert_int_equal(text_width("\xe6\xa8\xa1\xe5\x9e\x8b"), 4); /* two wide characters */
	assert_int_equal(text_width("a\xff"
	                            "b"),
	                 3); /* shown as U+FFFD */
	assert_int_equal(text_width("a\tb\x7f"), 2);
}

static void check_clean(const char *text, size_t length, const char *expected)
{
	struct buffer out;

	buffer_init(&out, 1000);
	text_clean(&out, text, length);
	assert_string_equal(out.data, expected);
	assert_int_equal(out.length, strlen(expected));
	buffer_release(&out);
}

static void cleaning_keeps_good_text(void **state)
{
	check_clean("", 0, "");
	check_clean("a b", 3, "a b");
	check_clean("caf\xc3\xa9 \xf0\x9f\x98\x80", 10, "caf\xc3\xa9 \xf0\x9f\x98\x80");
}

static void control_characters_become_blanks(void **state)
{
	check_clean("a\nb\tc\0d\x7f", 8, "a b c d ");
	check_clean("\x1b[31m", 5, " [31m");
	check_clean("a\xc2\x9b"
	            "31m",
	            6, "a 31m"); /* the one-character form of ESC [ */
	check_clean("\xc2\xa0", 2, "\xc2\xa0");
}

static void bad_bytes_become_replacements(void **state)
{
	check_clean("a\xff"
	            "b",
	            3,
	            "a\xef\xbf\xbd"
	            "b");
	check_clean("\xe6\xa8", 2, "\xef\xbf\xbd\xef\xbf\xbd");
	check_clean("\xc3\xa9", 1, "\xef\xbf\xbd"); /* the length cuts it */
	check_clean("\xc0\x80", 2, "\xef\xbf\xbd\xef\xbf\xbd");
}

static void only_well_formed_sequences_have_a_length(void **state)
{
	static const struct {
		const char *text;
		size_t length;
	} cases[] = {
		{"", 0},
		{"a", 1},
		{"\x7f", 1},
		{"\xc2\x80", 2},
		{"\xdf\xbf", 2},
		{"\xe0\xa0\x80", 3},
		{"\xef\xbf\xbf", 3},
		{"\xf0\x90\x80\x80", 4},
		{"\xf4\x8f\xbf\xbf", 4},
		{"\xed\x9f\xbf", 3},
		{"\xee\x80\x80", 3},
		/* continuation alone, overlong, surrogate, beyond, short, broken */
		{"\x80", 0},
		{"\xc1\xbf", 0},
		{"\xe0\x9f\xbf", 0},
		{"\xf0\x8f\xbf\xbf", 0},
		{"\xed\xa0\x80", 0},
		{"\xf4\x90\x80\x80", 0},
		{"\xf5\x80\x80\x80", 0},
		{"\xc2", 0},
		{"\xe1\x80", 0},
		{"\xf1\x80\x80", 0},
		{"\xc2\x41", 0},
		{"\xe1\x80\x41", 0},
		{"\xf1\x80\x80\x41", 0},
		{"\xe1\x80\xc0", 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(utf8_length(cases[i].text, strlen(cases[i].text)), cases[i].length);
}

static void what_is_encoded_is_well_formed(void **state)
{
	char bytes[4];

	for (uint32_t character = 0; character < 0x110100; character++) {
		size_t length = utf8_encode(bytes, character);

		assert_int_equal(utf8_length(bytes, length), length);
	}
	assert_int_equal(utf8_encode(bytes, 0x1f600), 4);
	assert_memory_equal(bytes, "\xf0\x9f\x98\x80", 4);
	assert_int_equal(utf8_encode(bytes, 0xd800), 3);
	assert_memory_equal(bytes, UTF8_REPLACEMENT, 3);
	assert_int_equal(utf8_encode(bytes, 0x110000), 3);
	assert_memory_equal(bytes, UTF8_REPLACEMENT, 3);
}

static void long_text_keeps_its_begin_and_its_end(void **state)
{
	struct buffer text;

	buffer_init(&text, 1 << 16);
	buffer_add_text(&text, "0123456789abcdefghi");
	text_shorten(&text, 8, 6);
	assert_string_equal(text.data, "0123456789abcdefghi"); /* no longer than what it would become */
	buffer_add_text(&text, "j");
	text_shorten(&text, 8, 6);
	assert_string_equal(text.data, "01234567 ... efghij");
	assert_int_equal(text.length, strlen(text.data));
	buffer_clear(&text);
	for (int i = 0; i < 20; i++)
		buffer_add_text(&text, "\xc3\xa9"); /* no half of a character */
	text_shorten(&text, 5, 5);
	assert_string_equal(text.data, "\xc3\xa9\xc3\xa9 ... \xc3\xa9\xc3\xa9");
	buffer_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_text_keeps_its_begin_and_its_end),
		cmocka_unit_test(alternatives_are_listed_as_in_a_sentence),
		cmocka_unit_test(widths_are_columns_not_bytes),
		cmocka_unit_test(cleaning_keeps_good_text),
		cmocka_unit_test(control_characters_become_blanks),
		cmocka_unit_test(bad_bytes_become_replacements),
		cmocka_unit_test(only_well_formed_sequences_have_a_length),
		cmocka_unit_test(what_is_encoded_is_well_formed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
