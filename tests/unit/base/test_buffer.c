/* SPDX-License-Identifier: Apache-2.0
 *
 * test_buffer.c: growing, the maximum, and who owns the bytes.
 */
#include "base/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void an_empty_buffer_is_an_empty_text(void **state)
{
	struct buffer buffer;
	struct buffer zeroed = {0};
	char *taken;

	buffer_init(&buffer, 10);
	assert_string_equal(buffer.data, "");
	buffer_clear(&buffer);
	assert_true(buffer_add(&buffer, NULL, 0));
	assert_string_equal(buffer.data, "");
	buffer_release(&buffer);
	buffer_release(&buffer);
	buffer_release(&zeroed);
	taken = buffer_take(&buffer);
	assert_string_equal(taken, "");
	free(taken);
}

static void contents_grow_and_stay_terminated(void **state)
{
	struct buffer buffer;

	buffer_init(&buffer, 1 << 20);
	for (int i = 0; i < 50000; i++) {
		assert_true(buffer_add_byte(&buffer, (uint8_t)('a' + i % 26)));
		assert_int_equal(buffer.data[buffer.length], 0);
	}
	assert_int_equal(buffer.length, 50000);
	for (int i = 0; i < 50000; i++)
		assert_int_equal(buffer.data[i], 'a' + i % 26);
	buffer_clear(&buffer);
	assert_int_equal(buffer.length, 0);
	assert_string_equal(buffer.data, "");
	assert_true(buffer.capacity >= 50001);
	buffer_release(&buffer);
	assert_int_equal(buffer.capacity, 0);
}

static void the_maximum_can_be_reached_but_not_passed(void **state)
{
	struct buffer buffer;

	buffer_init(&buffer, 5);
	assert_true(buffer_add_text(&buffer, "12345"));
	assert_false(buffer.is_overflown);
	assert_true(buffer_add_text(&buffer, ""));
	assert_false(buffer_add_byte(&buffer, '6'));
	assert_true(buffer.is_overflown);
	assert_string_equal(buffer.data, "12345");
	assert_true(buffer.capacity <= 6);
	buffer_clear(&buffer);
	assert_false(buffer.is_overflown);
	assert_true(buffer_add_text(&buffer, "1"));
	buffer_release(&buffer);
}

static void after_an_overflow_nothing_more_is_added(void **state)
{
	struct buffer buffer;

	buffer_init(&buffer, 4);
	assert_true(buffer_add_text(&buffer, "ab"));
	assert_false(buffer_add_text(&buffer, "cde"));
	assert_false(buffer_add_text(&buffer, "c")); /* would fit */
	assert_false(buffer_printf(&buffer, "c"));
	assert_false(buffer_add_byte(&buffer, 1));
	assert_null(buffer_reserve(&buffer, 0));
	assert_false(buffer_add(&buffer, "x", SIZE_MAX));
	assert_string_equal(buffer.data, "ab");
	assert_int_equal(buffer.length, 2);
	buffer_release(&buffer);
}

static void a_huge_maximum_does_not_wrap(void **state)
{
	struct buffer buffer;

	buffer_init(&buffer, SIZE_MAX);
	assert_true(buffer_add_text(&buffer, "ab"));
	assert_false(buffer_add(&buffer, "x", SIZE_MAX));
	assert_true(buffer.is_overflown);
	assert_string_equal(buffer.data, "ab");
	buffer_release(&buffer);
}

static void taken_bytes_belong_to_the_taker(void **state)
{
	struct buffer buffer;
	char *taken;

	buffer_init(&buffer, 100);
	buffer_add_text(&buffer, "mine");
	taken = buffer_take(&buffer);
	assert_string_equal(buffer.data, "");
	assert_int_equal(buffer.length, 0);
	buffer_add_text(&buffer, "yours");
	assert_string_equal(taken, "mine");
	free(taken);
	buffer_release(&buffer);
}

static void printf_writes_short_and_long_texts(void **state)
{
	struct buffer buffer;

	buffer_init(&buffer, 2000);
	assert_true(buffer_printf(&buffer, "%s=%d;", "a", 1));
	assert_true(buffer_printf(&buffer, "%300d", 5));
	assert_int_equal(buffer.length, 304);
	assert_int_equal(buffer.data[303], '5');
	assert_int_equal(buffer.data[304], 0);
	for (int length = 254; length < 258; length++) {
		buffer_clear(&buffer);
		assert_true(buffer_printf(&buffer, "%*d", length, 7));
		assert_int_equal(strlen(buffer.data), length);
		assert_int_equal(buffer.length, length);
	}
	assert_false(buffer_printf(&buffer, "%3000d", 5));
	assert_int_equal(buffer.length, 257);
	buffer_release(&buffer);
}

static void reserved_room_is_behind_the_contents(void **state)
{
	struct buffer buffer;
	char *room;

	buffer_init(&buffer, 1000);
	buffer_add_text(&buffer, "head");
	room = buffer_reserve(&buffer, 996);
	assert_ptr_equal(room, buffer.data + 4);
	memset(room, 'x', 996);
	buffer.length += 996;
	assert_int_equal(buffer.data[1000], 0);
	assert_null(buffer_reserve(&buffer, 1));
	buffer_release(&buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_buffer_is_an_empty_text),
		cmocka_unit_test(contents_grow_and_stay_terminated),
		cmocka_unit_test(the_maximum_can_be_reached_but_not_passed),
		cmocka_unit_test(after_an_overflow_nothing_more_is_added),
		cmocka_unit_test(a_huge_maximum_does_not_wrap),
		cmocka_unit_test(taken_bytes_belong_to_the_taker),
		cmocka_unit_test(printf_writes_short_and_long_texts),
		cmocka_unit_test(reserved_room_is_behind_the_contents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
