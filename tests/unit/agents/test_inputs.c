/* SPDX-License-Identifier: Apache-2.0
 *
 * That no two different inputs of operators are taken for the same: sizes that are powers of two, small ones, and values that differ in
 * their highest bits are what a weak hash would confuse.
 */
#include "agents/torch/inputs_layout.h"
#include "recorder/emit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define TENSOR 1
#define INT 2
#define DOUBLE 3

struct inputs_layout inputs_layout = {.is_known = true,
                                      .has_types = true,
                                      .has_strides = true,
                                      .has_values = true,
                                      .sizes = 16,
                                      .type = 8,
                                      .list_begin = 16,
                                      .tensor_tag = TENSOR,
                                      .list_tag = 9,
                                      .value_tags = {INT, DOUBLE, 4}};
unsigned stepscope_active = STEPSCOPE_ACTIVE_STEPS | STEPSCOPE_ACTIVE_DETAIL | STEPSCOPE_ACTIVE_SHAPES;

struct tensor {
	uint64_t keys, type, depth, numbers[10];
};

struct value {
	uint64_t payload, tag;
};

struct record {
	const struct value *values;
	uint64_t count;
};

static uint32_t symbols; /* that were made */

uint32_t emit_symbol(enum stepscope_symbol_kind kind, const char *text, uint32_t length)
{
	(void)kind;
	(void)text;
	(void)length;
	return ++symbols;
}

void stepscope_emit_metadata(const char *key, const char *value)
{
	(void)key;
	(void)value;
}

/* What was not there before gets a symbol of its own, and keeps it. */
static void expect_new(const struct value *values, uint64_t count)
{
	const struct record record = {values, count};
	uint32_t next = symbols + 1;
	assert_int_equal(inputs_symbol(&record), next);
	assert_int_equal(inputs_symbol(&record), next);
}

static struct tensor make_tensor(uint64_t depth, const uint64_t *sizes)
{
	struct tensor tensor = {.keys = 1, .type = 6, .depth = depth};
	uint64_t stride = 1;
	for (uint64_t i = depth; i-- > 0; stride *= sizes[i]) {
		tensor.numbers[i] = sizes[i];
		tensor.numbers[5 + i] = stride;
	}
	return tensor;
}

static void tensors_of_powers_of_two_are_told_apart(void **state)
{
	(void)state;
	for (uint64_t depth = 1; depth <= 5; depth++) {
		uint64_t base = depth <= 2 ? 24 : depth == 3 ? 12 : 5, count = 1;
		for (uint64_t i = 0; i < depth; i++)
			count *= base;
		for (uint64_t number = 0; number < count; number++) {
			uint64_t sizes[5], left = number;
			for (uint64_t i = 0; i < depth; i++, left /= base)
				sizes[i] = 1ull << left % base;
			const struct tensor tensor = make_tensor(depth, sizes);
			const struct value value = {(uint64_t)(uintptr_t)&tensor, TENSOR};
			expect_new(&value, 1);
		}
	}
}

static void small_tensors_with_any_strides_are_told_apart(void **state)
{
	struct tensor tensor = make_tensor(2, (uint64_t[]){0, 0});
	const struct value value = {(uint64_t)(uintptr_t)&tensor, TENSOR};
	(void)state;
	tensor.type = 7; /* none of those before, which are still remembered */
	for (uint64_t number = 0; number < 16ull * 16 * 16 * 16; number++) {
		tensor.numbers[0] = number % 16;
		tensor.numbers[1] = number / 16 % 16;
		tensor.numbers[5] = number / 256 % 16;
		tensor.numbers[6] = number / 4096;
		expect_new(&value, 1);
	}
}

static void pairs_of_small_tensors_are_told_apart(void **state)
{
	struct tensor one = make_tensor(1, (uint64_t[]){0}), other = make_tensor(1, (uint64_t[]){0});
	const struct value pair[2] = {{(uint64_t)(uintptr_t)&one, TENSOR}, {(uint64_t)(uintptr_t)&other, TENSOR}};
	(void)state;
	for (uint64_t number = 0; number < 128ull * 128; number++) {
		one.numbers[0] = number % 128;
		other.numbers[0] = number / 128;
		expect_new(pair, 2);
	}
}

/* Pairs that differ in sign or exponent alone; few, for more than some with the same tensor are left out. */
static void values_that_differ_in_their_highest_bits_are_told_apart(void **state)
{
	static const double numbers[4] = {0, -0., 2, -2};
	struct tensor tensor = make_tensor(1, (uint64_t[]){1000});
	struct value values[3] = {{(uint64_t)(uintptr_t)&tensor, TENSOR}, {0, DOUBLE}, {0, DOUBLE}};
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned k = 0; k < 4; k++) {
			memcpy(&values[1].payload, &numbers[i], 8);
			memcpy(&values[2].payload, &numbers[k], 8);
			expect_new(values, 3);
		}
	}
}

static void a_value_of_any_bits_is_a_value(void **state)
{
	(void)state;
	for (uint64_t bits = 0; bits < 4; bits++)
		expect_new((const struct value[]){{bits, INT}}, 1);
	expect_new((const struct value[]){{0x9e3779b97f4a7c15u, INT}}, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tensors_of_powers_of_two_are_told_apart),
		cmocka_unit_test(small_tensors_with_any_strides_are_told_apart),
		cmocka_unit_test(pairs_of_small_tensors_are_told_apart),
		cmocka_unit_test(values_that_differ_in_their_highest_bits_are_told_apart),
		cmocka_unit_test(a_value_of_any_bits_is_a_value),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
