/* SPDX-License-Identifier: Apache-2.0
 *
 * test_hex_id.c: ids from their digits.
 */
#include "base/hex_id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const uint8_t expected[HEX_ID_BYTES] = {0x0f, 0xe1, 0xd2, 0xc3, 0xb4, 0xa5, 0x96, 0x87,
                                               0x78, 0x69, 0x5a, 0x4b, 0x3c, 0x2d, 0x1e, 0xf0};

static void dashes_do_not_count(void **state)
{
	static const char *const texts[] = {"0fe1d2c3-b4a5-9687-7869-5a4b3c2d1ef0\n",
	                                    "0fe1d2c3b4a5968778695a4b3c2d1ef0", "0fe1d2c3b4a5968778695a4b3c2d1ef0123"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		uint8_t id[HEX_ID_BYTES] = {0xff};

		assert_true(hex_id_parse(id, texts[i]));
		assert_memory_equal(id, expected, sizeof(id));
	}
	(void)state;
}

static void what_is_missing_is_zero(void **state)
{
	static const uint8_t half[HEX_ID_BYTES] = {0x0f, 0xe1}, none[HEX_ID_BYTES] = {0};
	uint8_t id[HEX_ID_BYTES] = {0xff, 0xff, 0xff};

	assert_false(hex_id_parse(id, "0fe1"));
	assert_memory_equal(id, half, sizeof(id));
	assert_false(hex_id_parse(id, ""));
	assert_memory_equal(id, none, sizeof(id));
	(void)state;
}

static void the_boot_has_one(void **state)
{
	static const uint8_t none[HEX_ID_BYTES] = {0};
	uint8_t id[HEX_ID_BYTES], again[HEX_ID_BYTES];

	if (access("/proc/sys/kernel/random/boot_id", R_OK) != 0)
		skip();
	assert_true(hex_id_of_boot(id));
	assert_true(hex_id_of_boot(again));
	assert_memory_not_equal(id, none, sizeof(id));
	assert_memory_equal(id, again, sizeof(id));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dashes_do_not_count),
		cmocka_unit_test(what_is_missing_is_zero),
		cmocka_unit_test(the_boot_has_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
