/* SPDX-License-Identifier: Apache-2.0
 *
 * test_intern.c: equal strings, equal numbers.
 */
#include "base/intern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void numbers_count_from_one_and_repeat(void **state)
{
	struct intern intern;

	intern_init(&intern);
	assert_int_equal(intern_add(&intern, "forward"), 1);
	assert_int_equal(intern_add(&intern, "backward"), 2);
	assert_int_equal(intern_add(&intern, "forward"), 1);
	assert_int_equal(intern_add_n(&intern, "forwarded", 7), 1);
	assert_int_equal(intern_add_n(&intern, "forwarded", 9), 3);
	assert_string_equal(intern_text(&intern, 1), "forward");
	assert_string_equal(intern_text(&intern, 3), "forwarded");
	assert_int_equal(intern_length(&intern, 2), 8);
	intern_release(&intern);
	intern_release(&intern);
}

static void no_string_is_zero_and_reads_empty(void **state)
{
	struct intern intern;

	intern_init(&intern);
	assert_string_equal(intern_text(&intern, 0), "");
	assert_int_equal(intern_find(&intern, "x"), 0);
	assert_int_equal(intern_add(&intern, ""), 0);
	assert_int_equal(intern_add(&intern, NULL), 0);
	intern_add(&intern, "x");
	assert_string_equal(intern_text(&intern, 0), "");
	assert_string_equal(intern_text(&intern, 2), "");
	assert_string_equal(intern_text(&intern, UINT32_MAX), "");
	assert_int_equal(intern_length(&intern, 77), 0);
	assert_int_equal(intern_find(&intern, ""), 0);
	assert_int_equal(intern_find(&intern, NULL), 0);
	intern_release(&intern);
}

static void finding_does_not_add(void **state)
{
	struct intern intern;

	intern_init(&intern);
	intern_add(&intern, "a");
	assert_int_equal(intern_find(&intern, "b"), 0);
	assert_int_equal(intern_find(&intern, "a"), 1);
	assert_int_equal(intern.count, 2);
	intern_release(&intern);
}

static void bytes_may_hold_nul(void **state)
{
	struct intern intern;

	intern_init(&intern);
	assert_int_equal(intern_add_n(&intern, "a\0b", 3), 1);
	assert_int_equal(intern_add_n(&intern, "a\0c", 3), 2);
	assert_int_equal(intern_add_n(&intern, "a", 1), 3);
	assert_int_equal(intern_add_n(&intern, "a\0b", 3), 1);
	assert_int_equal(intern_add_n(&intern, "a\0", 2), 4);
	assert_memory_equal(intern_text(&intern, 1), "a\0b", 4);
	intern_release(&intern);
}

static void hundred_thousand_names_keep_their_numbers(void **state)
{
	struct intern intern;
	char name[64];

	intern_init(&intern);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 1; i <= 100000; i++) {
			snprintf(name, sizeof(name), "layers.%u.attention.self.query/%u", i % 100, i);
			assert_int_equal(intern_add(&intern, name), i);
		}
	}
	for (uint32_t i = 1; i <= 100000; i += 777) {
		snprintf(name, sizeof(name), "layers.%u.attention.self.query/%u", i % 100, i);
		assert_string_equal(intern_text(&intern, i), name);
		assert_int_equal(intern_find(&intern, name), i);
	}
	assert_true(intern.slot_count >= 2 * intern.count);
	intern_release(&intern);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_count_from_one_and_repeat),
		cmocka_unit_test(no_string_is_zero_and_reads_empty),
		cmocka_unit_test(finding_does_not_add),
		cmocka_unit_test(bytes_may_hold_nul),
		cmocka_unit_test(hundred_thousand_names_keep_their_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
