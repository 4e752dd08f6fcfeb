/* SPDX-License-Identifier: Apache-2.0
 *
 * test_pickle_read.c: pickles opcode by opcode: what is read, what is refused, and what is left of one that breaks off.
 */
#include "base/pickle_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

struct reading {
	struct pickle pickle;
	struct error err;
	enum status status;
};

static void read_bytes(struct reading *reading, const char *bytes, size_t length)
{
	char path[64];
	struct input_stream *input;
	int fd = memfd_create("pickle", 0);
	assert_int_equal(write(fd, bytes, length), (ssize_t)length);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	memset(reading, 0, sizeof *reading);
	assert_int_equal(input_open(path, &input, &reading->err), STATUS_OK);
	pickle_init(&reading->pickle, (struct pickle_client){0});
	reading->status = pickle_read(&reading->pickle, input, "x", &reading->err);
	input_close(input);
	close(fd);
}

#define READ(reading, text) read_bytes(reading, text, sizeof(text) - 1)

static const struct pickle_value *find(const struct reading *reading, const char *key)
{
	const struct pickle_object *top = pickle_object(&reading->pickle, &reading->pickle.result, PICKLE_DICTIONARY);
	return pickle_find(&reading->pickle, top, key);
}

static void numbers_have_their_values(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
		uint32_t type;
		int64_t number;
	} samples[] = {
#define SAMPLE(text, type, number) {"\x80\x02" text ".", sizeof(text) + 2, type, number}
		SAMPLE("K\xff", PICKLE_INT, 255),
		SAMPLE("M\xff\xff", PICKLE_INT, 65535),
		SAMPLE("J\xfe\xff\xff\xff", PICKLE_INT, -2),
		SAMPLE("\x8a\x00", PICKLE_INT, 0),
		SAMPLE("\x8a\x01\xff", PICKLE_INT, -1),
		SAMPLE("\x8a\x06\x00\x80`l\x86\x7f", PICKLE_INT, 0x7f866c608000),
		SAMPLE("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", PICKLE_INT, INT64_MAX),
		SAMPLE("\x8b\x01\x00\x00\x00\x07", PICKLE_INT, 7),
		SAMPLE("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00", PICKLE_LARGE, 0),
		SAMPLE("\x88", PICKLE_BOOL, 1),
		SAMPLE("\x89", PICKLE_BOOL, 0),
		SAMPLE("N", PICKLE_NONE, 0),
	};
	for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
		struct reading reading;
		read_bytes(&reading, samples[i].bytes, samples[i].length);
		assert_int_equal(reading.pickle.end, PICKLE_COMPLETE);
		assert_int_equal(reading.pickle.result.type, samples[i].type);
		assert_int_equal(reading.pickle.result.i64, samples[i].number);
		pickle_release(&reading.pickle);
	}
	struct reading reading;
	READ(&reading, "\x80\x02G\x3f\xf8\0\0\0\0\0\0.");
	assert_true(reading.pickle.result.f64 == 1.5);
	pickle_release(&reading.pickle);
}

static void containers_are_filled_in_all_ways(void **state)
{
	struct reading reading;
	/* {"a": [1, 2], "b": (3, "x"), "c": {"d": ["x"]}}, with a memo, in pieces, by opcodes with and without marks */
	READ(&reading, "\x80\x04\x95\x30\0\0\0\0\0\0\0}\x94(\x8c\x01"
	               "a]\x94(K\x01K\x02"
	               "e\x8c\x01"
	               "bK\x03\x8c\x01x\x94\x86\x94X\x01\0\0\0c}X\x01\0\0\0d]h\x02"
	               "asu.");
	assert_int_equal(reading.status, STATUS_OK);
	assert_int_equal(reading.pickle.end, PICKLE_COMPLETE);
	const struct pickle_object *list = pickle_object(&reading.pickle, find(&reading, "a"), PICKLE_LIST);
	assert_int_equal(list->count, 2);
	assert_int_equal(list->items[1].i64, 2);
	const struct pickle_object *tuple = pickle_object(&reading.pickle, find(&reading, "b"), PICKLE_TUPLE);
	assert_string_equal(pickle_text(&reading.pickle, &tuple->items[1]), "x");
	const struct pickle_object *inner = pickle_object(&reading.pickle, find(&reading, "c"), PICKLE_DICTIONARY);
	list = pickle_object(&reading.pickle, pickle_find(&reading.pickle, inner, "d"), PICKLE_LIST);
	assert_string_equal(pickle_text(&reading.pickle, &list->items[0]), "x");
	assert_null(find(&reading, "nothing"));
	pickle_release(&reading.pickle);
}

static void an_empty_key_is_found_by_its_name_only(void **state)
{
	struct reading reading;
	/* {"": 1} */
	READ(&reading, "\x80\x02}\x8c\x00K\x01s.");
	assert_int_equal(reading.pickle.end, PICKLE_COMPLETE);
	assert_int_equal(find(&reading, "")->i64, 1);
	assert_null(find(&reading, "nothing"));
	pickle_release(&reading.pickle);
}

static void bytes_have_a_number_in_the_memo(void **state)
{
	struct reading reading;
	/* (b"ab", "x", b"ab", "x"), of each the second time from the memo */
	READ(&reading, "\x80\x04(C\x02"
	               "ab\x94\x8c\x01x\x94h\x00h\x01t\x94.");
	assert_int_equal(reading.pickle.end, PICKLE_COMPLETE);
	const struct pickle_object *tuple = pickle_object(&reading.pickle, &reading.pickle.result, PICKLE_TUPLE);
	assert_int_equal(tuple->count, 4);
	assert_int_equal(tuple->items[2].type, PICKLE_BYTES);
	assert_string_equal(pickle_text(&reading.pickle, &tuple->items[3]), "x");
	pickle_release(&reading.pickle);
}

static void what_would_run_is_refused_by_name_and_place(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
		const char *says;
	} samples[] = {
#define HOSTILE(text, says) {"\x80\x02" text, sizeof(text) + 1, says}
		HOSTILE("cos\nsystem\n(X\x01\0\0\0atR.", "byte 2 of the pickle is the opcode GLOBAL (os.system)"),
		HOSTILE("X\x02\0\0\0osX\x06\0\0\0system\x93.",
	                "byte 20 of the pickle is the opcode STACK_GLOBAL (os.system)"),
		HOSTILE("cos\n\x1b[31m\n.", "GLOBAL (os.?[31m)"),
		HOSTILE("(ios\nsystem\n.", "INST (os.system)"),
		HOSTILE("c", "GLOBAL"),
		HOSTILE("NR", "REDUCE"),
		HOSTILE("Nb", "BUILD"),
		HOSTILE("(No", "OBJ"),
		HOSTILE("N)\x81", "NEWOBJ"),
		HOSTILE("N)}\x92", "NEWOBJ_EX"),
		HOSTILE("\x82\x01", "EXT1"),
		HOSTILE("\x83\x01\x01", "EXT2"),
		HOSTILE("\x84\x01\x01\x01\x01", "EXT4"),
		HOSTILE("Pid\n", "PERSID"),
		HOSTILE("NQ", "BINPERSID"),
		HOSTILE("\x97", "NEXT_BUFFER"),
		HOSTILE("\x98", "READONLY_BUFFER"),
	};
	for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
		struct reading reading;
		read_bytes(&reading, samples[i].bytes, samples[i].length);
		assert_int_equal(reading.status, STATUS_INPUT);
		assert_int_equal(reading.pickle.end, PICKLE_REFUSED);
		assert_non_null(strstr(reading.err.text, samples[i].says));
		pickle_release(&reading.pickle);
	}
}

static void what_was_complete_is_kept_when_it_breaks_off(void **state)
{
	/* {"a": [[1, 2]], "b": ... */
	static const char whole[] = "\x80\x02}(X\x01\0\0\0a](](K\x01K\x02"
				    "eeX\x01\0\0\0b]K\x09"
				    "au.";
	for (size_t length = 3; length < sizeof whole - 2; length++) {
		struct reading reading;
		read_bytes(&reading, whole, length);
		assert_int_equal(reading.status, STATUS_OK);
		assert_int_equal(reading.pickle.end, PICKLE_CUT);
		const struct pickle_object *outer = pickle_object(&reading.pickle, find(&reading, "a"), PICKLE_LIST);
		if (length >= 11) /* the list is there */
			assert_non_null(outer);
		if (length >= 16) { /* and its first number */
			const struct pickle_object *inner = pickle_object(&reading.pickle, outer->items, PICKLE_LIST);
			assert_int_equal(outer->count, 1);
			assert_int_equal(inner->count, length >= 18 ? 2 : 1);
			assert_int_equal(inner->items[0].i64, 1);
		}
		if (length >= 29) { /* an item that was to be appended */
			const struct pickle_object *last = pickle_object(&reading.pickle, find(&reading, "b"),
			                                                 PICKLE_LIST);
			assert_int_equal(last->count, 1);
		}
		pickle_release(&reading.pickle);
	}
}

static void nonsense_ends_the_reading_there(void **state)
{
	static const char *const samples[] = {"e",
	                                      "u",
	                                      "s",
	                                      "t",
	                                      "1",
	                                      "0",
	                                      "\x85",
	                                      "\x94",
	                                      "2",
	                                      ".",
	                                      "(.",
	                                      "h\x05",
	                                      "K\x01K\x02"
	                                      "a",
	                                      "I01\n",
	                                      "\xff",
	                                      "}(K\x01u",
	                                      "](K\x01u",
	                                      "\x80\x09"};
	for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
		char bytes[64];
		struct reading reading;
		int length = snprintf(bytes, sizeof bytes, "\x80\x02%sNN", samples[i]);
		read_bytes(&reading, bytes, (size_t)length);
		assert_int_equal(reading.status, STATUS_OK);
		assert_int_equal(reading.pickle.end, PICKLE_MALFORMED);
		pickle_release(&reading.pickle);
	}
}

static void a_bomb_is_refused(void **state)
{
	/* lists that are doubled by opcodes of one byte, and a memo with one entry far away */
	static char bomb[4 << 20];
	struct reading reading;
	memset(bomb, ']', sizeof bomb);
	memcpy(bomb, "\x80\x02", 2);
	read_bytes(&reading, bomb, sizeof bomb);
	assert_int_equal(reading.pickle.end, PICKLE_CUT); /* 4 MiB of lists are 128 MiB of memory */
	assert_true(reading.pickle.used_bytes < 400u << 20);
	pickle_release(&reading.pickle);
	READ(&reading, "\x80\x02]r\xff\xff\xff\x7f.");
	assert_int_equal(reading.pickle.end, PICKLE_MALFORMED);
	pickle_release(&reading.pickle);
	READ(&reading, "\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.");
	assert_int_equal(reading.pickle.end, PICKLE_CUT);
	pickle_release(&reading.pickle);
}

static void only_pickles_begin_like_one(void **state)
{
	assert_true(pickle_begins("\x80\x02}q", 4));
	assert_true(pickle_begins("\x80\x05\x95", 3));
	assert_true(pickle_begins("\x80\x03"
	                          "cos",
	                          5));
	assert_false(pickle_begins("\x80\x01}", 3));
	assert_false(pickle_begins("\x80\x06}", 3));
	assert_false(pickle_begins("{\"a\"", 4));
	assert_false(pickle_begins("\x80\x02", 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_their_values),
		cmocka_unit_test(containers_are_filled_in_all_ways),
		cmocka_unit_test(an_empty_key_is_found_by_its_name_only),
		cmocka_unit_test(bytes_have_a_number_in_the_memo),
		cmocka_unit_test(what_would_run_is_refused_by_name_and_place),
		cmocka_unit_test(what_was_complete_is_kept_when_it_breaks_off),
		cmocka_unit_test(nonsense_ends_the_reading_there),
		cmocka_unit_test(a_bomb_is_refused),
		cmocka_unit_test(only_pickles_begin_like_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
