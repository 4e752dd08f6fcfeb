/* SPDX-License-Identifier: Apache-2.0
 *
 * Short cuts of the reader of events: what is remembered of events before, and plain numbers, change nothing that is read.
 */
#include "importers/kineto/kineto_bytes.h"
#include "importers/kineto/kineto_event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const texts[] = {
	"{\"ph\": \"X\", \"name\": \"a\", \"ts\": 1, \"args\": {\"External id\": 1, \"x\": 2}}",
	"{\"ph\": \"X\", \"name\": \"b\", \"ts\": 12, \"args\": {\"External id\": 1, \"y\": [2, {\"x\": 1}]}}",
	"{\"ph\": \"X\", \"name\": \"c\", \"ts\": 12, \"args\": {}}",
	"{\"ph\": \"X\", \"name\": \"c\", \"ts\": 12, \"args\": null, \"id\": 7, \"cat\": \"long enough that a short cut is tried here\"}",
	"{\"ph\": \"X\", \"name\": \"c\", \"ts\": 12, \"args\": {, \"id\": 7}, \"cat\": \"long enough that a short cut is tried here\"}",
	"{\"ph\": \"X\", \"name\": \"c\", \"ts\": 12, \"args\": {\"id\": 7}, \"id\": 8, \"cat\": \"long enough that a short cut is tried here\"}",
	"{, \"ph\": \"X\", \"name\": \"c\"}",
	"{, \"ts\": 2, \"cat\": \"long enough that a short cut is tried here\"}",
	"{\"ph\": \"X\",, \"name\": \"c\",}",
	"{\n    \"ph\": \"X\",\n    \"name\": \"c\"\n  }",
	"{\n    \"ph\": \"X\",\n    \"name\": \"c\",\n    \"args\": {\n      \"ts\": 1\n    }\n  }",
	"{\"ph\":\"X\",\"name\":\"c\",\"args\":{\"name\":\"ph\"}}",
	"{\"ph\": \"X\", \"a\\u0041\": 1, \"args\": {\"b\\n\": 1, \"stream\": 3}}",
	"{\"ph\": \"X\", \"a key of more bytes than are remembered of what stands between two values\": 1, \"ts\": 2, \"cat\": \"long enough that a short cut is tried here\"}",
	"{\"ph\": \"X\", \"ts\": 2,                                                              \"dur\": 2}",
	"{\"ph\": \"X\" \"ts\": 2}",
	"{\"ph\": \"X\", \"ts\" 2}",
	"{\"ph\": \"X\", \"ts\": }",
	"{\"traceEvents\": []}",
	"{\"args\": {\"a key of more bytes than are remembered of what stands between two values\": 1, \"ts\": 2, \"cat\": 3}}",
	"{}",
};
#define TEXTS (sizeof texts / sizeof *texts)

/* Texts in memory as the reader wants it: a NUL at the end, and bytes behind it that may be read, here those of an event. */
static const char *put(char *room, size_t bytes, const char *text, size_t length)
{
	static const char behind[] = ", \"name\": \"behind\", \"ts\": 5, \"args\": {\"stream\": 5}}";
	memset(room, 0, bytes);
	memcpy(room, text, length);
	memcpy(room + length + 1, behind, sizeof behind - 1);
	return room + length;
}

static void check_value(const struct kineto_value *a, const char *a_text, const struct kineto_value *b,
                        const char *b_text)
{
	assert_int_equal(a->type, b->type);
	if (a->type == VALUE_NONE)
		return;
	assert_int_equal(a->length, b->length);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->at - a_text, b->at - b_text);
}

static void check_same(const struct kineto_event *a, const char *a_text, const struct kineto_event *b,
                       const char *b_text)
{
	assert_int_equal(a->repairs, b->repairs);
	assert_int_equal(a->end - a_text, b->end - b_text);
	assert_int_equal(a->is_document, b->is_document);
	assert_int_equal(a->arg_count, b->arg_count);
	for (int i = 0; i < KINETO_EVENT_FIELD_COUNT; i++)
		check_value(&a->fields[i], a_text, &b->fields[i], b_text);
	for (int i = 0; i < KINETO_ARG_KEY_COUNT; i++)
		check_value(&a->known[i], a_text, &b->known[i], b_text);
	for (uint32_t i = 0; i < a->arg_count; i++) {
		check_value(&a->args[i].key, a_text, &b->args[i].key, b_text);
		check_value(&a->args[i].value, a_text, &b->args[i].value, b_text);
	}
}

static void read_both(struct kineto_event *used, const char *text, size_t length)
{
	static struct kineto_event fresh;
	static char room[512], other[512];
	const char *end = put(room, sizeof room, text, length);
	const char *other_end = put(other, sizeof other, text, length);
	memset(&fresh, 0, sizeof fresh);
	enum kineto_read read = kineto_event_read(used, room, end, 0);
	assert_int_equal(read, kineto_event_read(&fresh, other, other_end, 0));
	if (read == KINETO_COMPLETE)
		check_same(used, room, &fresh, other);
	assert_int_equal(used->is_document, fresh.is_document);
}

static void an_event_is_read_the_same_after_any_other(void **state)
{
	static struct kineto_event used;
	for (size_t a = 0; a < TEXTS; a++)
		for (size_t b = 0; b < TEXTS; b++)
			for (size_t c = 0; c < TEXTS; c++) {
				read_both(&used, texts[a], strlen(texts[a]));
				read_both(&used, texts[b], strlen(texts[b]));
				read_both(&used, texts[c], strlen(texts[c]));
			}
	(void)state;
}

static void an_event_cut_anywhere_is_read_the_same(void **state)
{
	static struct kineto_event used;
	for (size_t text = 0; text < TEXTS; text++)
		for (size_t length = 1; length <= strlen(texts[text]); length++) {
			read_both(&used, texts[text], strlen(texts[text]));
			read_both(&used, texts[text], length);
		}
	(void)state;
}

static void files_of_many_layouts_are_read(void **state)
{
	static struct kineto_event used;
	char text[160];
	for (int i = 0; i < 3000; i++) {
		int length = snprintf(text, sizeof text, "{\"ph\": \"X\", \"key%d\": %d, \"args\": {\"k%d\": 1}}", i, i,
		                      i % 400);
		read_both(&used, text, (size_t)length);
	}
	(void)state;
}

/* Values that are always the same are read with the keys around them: until they change, or the text ends. */
static void values_that_stay_the_same_for_a_while_are_read(void **state)
{
	static struct kineto_event used;
	static const char *const lists[] = {"[1, [2, \"a\"]]", "null", "NaN",         "\"b\\n\"",
	                                    "\"tab\t\"",       "[]",   "{\"k\": {}}", "[1,~2]"};
	char text[400];
	for (int i = 0; i < 6000; i++) {
		const char *name = i % 97 ? "aten::add" : "aten::mul", *cat = i / 60 % 2 ? "kernel" : "cpu_op";
		int length = snprintf(
			text, sizeof text,
			"{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d,\n  \"tid\": \"t%d\", "
			"\"ts\": %d%s\"stream\": 7, \"x\": %s, \"cbid\": %d, \"y\": 1%d}%s}",
			cat, name, i / 1000, i / 300 % 3, i,
			i / 40 % 3 ? ", \"args\": {" : ", \"args\": {}, \"args\": {", lists[i / 50 % 8], i / 70 % 2,
			i / 90 % 2, i / 80 % 2 ? ", \"bp\": \"e\"" : "");
		char *tilde = strchr(text, '~');
		if (tilde)
			*tilde = '\0';
		read_both(&used, text, (size_t)length);
		for (int cut = length; i % 500 == 499 && cut > 0; cut--)
			read_both(&used, text, (size_t)cut);
	}
	for (size_t a = 0; a < TEXTS; a++) {
		for (int i = 0; i < 100; i++)
			read_both(&used, texts[a], strlen(texts[a]));
		for (size_t b = 0; b < TEXTS; b++)
			read_both(&used, texts[b], strlen(texts[b]));
	}
	(void)state;
}

/* With a sign in front it is read the long way. */
static void plain_numbers_are_what_they_are(void **state)
{
	const char *const odd[] = {"0",
	                           "1.",
	                           ".5",
	                           "1.5.2",
	                           "00012.500",
	                           "9999999999999999999",
	                           "99999999999999999999",
	                           "1e3",
	                           "1.e3",
	                           "12x",
	                           "0.0005",
	                           "0.0004999",
	                           "18446744073709551615.999",
	                           "5.",
	                           ".",
	                           "1712195495529884.991",
	                           "9223372036854775.807",
	                           "9223372036854775.808",
	                           "99999999999999999.999",
	                           "123456789012345678.9",
	                           "1234567890123456789.5",
	                           "1234567890.12345678901",
	                           "1234x67",
	                           "1234567:",
	                           "12345678/",
	                           "12345678901234:6",
	                           "1.23 ",
	                           "1234\xb5"
	                           "678",
	                           "123:.500"};
	for (int i = 0; i < 100000; i++) {
		char text[64];
		int64_t plain = 0, slow = 0;
		uint64_t seed = (uint64_t)i * 0x9e3779b97f4a7c15u;
		if (i < (int)(sizeof odd / sizeof *odd))
			snprintf(text, sizeof text, "+%s", odd[i]);
		else
			snprintf(text, sizeof text, "+%llu.%0*llu", (unsigned long long)(seed >> (i % 50)), i % 5 + 1,
			         (unsigned long long)(seed & 0xff));
		uint32_t length = (uint32_t)strlen(text);
		const struct kineto_value signed_value = {.at = text, .length = length, .type = VALUE_STRING},
					  value = {.at = text + 1, .length = length - 1, .type = VALUE_STRING};
		bool is_slow = kineto_nanoseconds(&signed_value, &slow);
		assert_int_equal(kineto_nanoseconds(&value, &plain), is_slow);
		assert_true(plain == slow);
		is_slow = kineto_integer(&signed_value, &slow);
		assert_int_equal(kineto_integer(&value, &plain), is_slow);
		assert_true(plain == slow);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_is_read_the_same_after_any_other),
		cmocka_unit_test(an_event_cut_anywhere_is_read_the_same),
		cmocka_unit_test(files_of_many_layouts_are_read),
		cmocka_unit_test(values_that_stay_the_same_for_a_while_are_read),
		cmocka_unit_test(plain_numbers_are_what_they_are),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
