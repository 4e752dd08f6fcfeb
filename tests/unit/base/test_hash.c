/* SPDX-License-Identifier: Apache-2.0
 *
 * test_hash.c: hashes keep their bits, whatever is made of hash.h: they order rows, choose steps and name runs.
 */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void numbers_have_the_same_hashes_for_ever(void **state)
{
	const uint64_t words[] = {1, 2};

	assert_true(hash_word(3) == UINT64_C(0xdaa66d2c7ddf743f));
	assert_true(hash_two(1, 2) == UINT64_C(0xe785922be3c82d6d));
	assert_true(hash_words(words, 2) == hash_two(1, 2));
	assert_true(hash_words(words, 0) == 0);
	(void)state;
}

/* The first number of splitmix64 that starts with 0. */
static void scattering_is_the_last_step_of_splitmix64(void **state)
{
	assert_true(hash_scatter(HASH_FACTOR) == UINT64_C(0xe220a8397b1dcdaf));
	(void)state;
}

/* As its authors publish them. */
static void bytes_have_the_hashes_of_fnv_1a(void **state)
{
	assert_true(hash_bytes(HASH_BYTES, "", 0) == UINT64_C(0xcbf29ce484222325));
	assert_true(hash_byte(HASH_BYTES, 'a') == UINT64_C(0xaf63dc4c8601ec8c));
	assert_true(hash_bytes(HASH_BYTES, "foobar", 6) == UINT64_C(0x85944171f73967e8));
	(void)state;
}

/* Importers order events of one time by these. */
static void texts_have_the_same_hashes_for_ever(void **state)
{
	static const struct {
		const char *text;
		uint32_t hash;
	} cases[] = {
		{"a", 0xaa81598b},
		{"aten::", 0x36f5c756},
		{"aten::mm", 0x0e9dbefc},
		{"aten::add_", 0x49c6d678},
		{"aten::convolution_backward", 0x949b6b2d},
		{"autograd::engine::evaluate_function: AddmmBackward0", 0x6d15090a},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(hash_text(0, cases[i].text, strlen(cases[i].text)) >> 32, cases[i].hash);
	(void)state;
}

/* Neither what stands before the text nor what stands after it counts. */
static void a_text_is_hashed_alone(void **state)
{
	char first[64], second[64];

	for (size_t length = 0; length < 32; length++) {
		memset(first, 'x', sizeof(first));
		memset(second, 'y', sizeof(second));
		for (size_t i = 0; i < length; i++)
			first[16 + i] = second[16 + i] = (char)('a' + i);
		assert_true(hash_text(7, first + 16, length) == hash_text(7, second + 16, length));
		assert_true(hash_text(7, first + 16, length) != hash_text(8, first + 16, length));
		if (length)
			second[16 + length - 1]++;
		if (length)
			assert_true(hash_text(7, first + 16, length) != hash_text(7, second + 16, length));
	}
	(void)state;
}

/* Keys of two numbers stand for the numbers: nobody looks whether two keys have met. */
static void keys_of_small_numbers_do_not_meet(void **state)
{
	enum {
		FEW = 64
	};
	static uint64_t keys[FEW * FEW];

	for (uint64_t i = 0; i < FEW * FEW; i++)
		keys[i] = hash_two((i / FEW) << 32 | i % 3, i % FEW);
	for (size_t i = 0; i < FEW * FEW; i++)
		for (size_t k = 0; k < i; k++)
			assert_true(keys[i] != keys[k]);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_the_same_hashes_for_ever),
		cmocka_unit_test(scattering_is_the_last_step_of_splitmix64),
		cmocka_unit_test(bytes_have_the_hashes_of_fnv_1a),
		cmocka_unit_test(texts_have_the_same_hashes_for_ever),
		cmocka_unit_test(a_text_is_hashed_alone),
		cmocka_unit_test(keys_of_small_numbers_do_not_meet),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
