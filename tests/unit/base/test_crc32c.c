/* SPDX-License-Identifier: Apache-2.0
 *
 * test_crc32c.c: known sums, chaining, and the table against the instruction (it includes the source for that).
 */
#include "base/crc32c.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void known_sums_come_out(void **state)
{
	unsigned char bytes[32];

	assert_int_equal(crc32c(0, "", 0), 0);
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
	/* RFC 3720, B.4 */
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(crc32c(0, bytes, 32), 0x8a9136aa);
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(crc32c(0, bytes, 32), 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		bytes[i] = (unsigned char)i;
	assert_int_equal(crc32c(0, bytes, 32), 0x46dd794e);
	for (int i = 0; i < 32; i++)
		bytes[i] = (unsigned char)(31 - i);
	assert_int_equal(crc32c(0, bytes, 32), 0x113fdb5c);
}

static void sums_chain_at_any_place(void **state)
{
	const char text[] = "the quick brown fox jumps over the lazy dog";
	size_t length = sizeof(text) - 1;
	uint32_t whole = crc32c(0, text, length);

	for (size_t i = 0; i <= length; i++)
		assert_int_equal(crc32c(crc32c(0, text, i), text + i, length - i), whole);
}

static void the_table_agrees_with_the_instruction(void **state)
{
#if HAVE_INSTRUCTION
	unsigned char bytes[512];
	uint32_t seed = 1;

	if (!is_supported())
		skip();
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)((seed = seed * 1664525 + 1013904223) >> 24);
	for (size_t from = 0; from < 9; from++) {
		for (size_t length = 0; length < 300; length++)
			assert_int_equal(by_table(seed, bytes + from, length),
			                 by_instruction(seed, bytes + from, length));
	}
#else
	skip();
#endif
}

static void the_table_is_right_by_itself(void **state)
{
	assert_int_equal(~by_table(~0u, (const unsigned char *)"123456789", 9), 0xe3069283);
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t remainder = i;

		for (int bit = 0; bit < 8; bit++)
			remainder = remainder & 1 ? remainder >> 1 ^ 0x82f63b78 : remainder >> 1;
		assert_int_equal(table[i], remainder);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_sums_come_out),
		cmocka_unit_test(sums_chain_at_any_place),
		cmocka_unit_test(the_table_agrees_with_the_instruction),
		cmocka_unit_test(the_table_is_right_by_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
