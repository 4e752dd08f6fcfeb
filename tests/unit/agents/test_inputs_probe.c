/* SPDX-License-Identifier: Apache-2.0
 *
 * test_inputs_probe.c: where a PyTorch keeps sizes and keys is found also where its tensors end before the words that are looked at do, and
 * what lies behind them in memory fits by chance.
 */
#include "agents/torch/inputs_layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define TENSORS 5
#define TENSOR_TAG 1
#define LIST_TAG 2
#define PLAIN_KEYS 0x8001

struct tensor {
	uint64_t before[4], depth, sizes[SIZES_IN_PLACE], strides[SIZES_IN_PLACE], keys, type;
	uint64_t behind[16]; /* of the next object */
};

static const struct {
	enum inputs_probe kind;
	uint64_t keys, behind; /* the size of the next block of the heap */
	int64_t sizes[4];      /* two, and two strides */
} known[TENSORS] = {
	{INPUTS_PLAIN, PLAIN_KEYS, 0x21, {2, 3, 3, 1}},
	{INPUTS_PLAIN, PLAIN_KEYS, 0x21, {5, 7, 7, 1}},
	{INPUTS_PLAIN, PLAIN_KEYS, 0x21, {11, 13, 13, 1}},
	{INPUTS_META, 0xc000, 0x81, {2, 3, 3, 1}},
	{INPUTS_FOREIGN, 0x20000 | PLAIN_KEYS, 0x41, {5, 7, 7, 1}},
};

static struct tensor tensors[TENSORS];

static uint64_t address_of(const void *object)
{
	return (uint64_t)(uintptr_t)object;
}

static void show_tensors(void)
{
	for (int i = 0; i < TENSORS; i++) {
		struct tensor *tensor = &tensors[i];
		*tensor = (struct tensor){.depth = 2, .keys = known[i].keys, .type = 6, .behind = {0, known[i].behind}};
		memcpy(tensor->sizes, known[i].sizes, 16);
		memcpy(tensor->strides, known[i].sizes + 2, 16);
		const struct inputs_tensor told = {address_of(tensor), known[i].kind, 6, 2, known[i].sizes};
		inputs_add_tensor(&told);
	}
}

static void show_operators(const struct tensor *first, const struct tensor *second)
{
	const uint64_t values[] = {address_of(first), TENSOR_TAG, address_of(second), TENSOR_TAG};
	const uint64_t list[8] = {0, 0, address_of(values), address_of(values + 4), address_of(values + 4), 77};
	const uint64_t in_list[] = {address_of(list), LIST_TAG, 0, 0};
	const uint64_t mul[64] = {[9] = address_of(values), 2}, cat[64] = {[9] = address_of(in_list), 2};
	inputs_expect(address_of(first), address_of(second));
	inputs_look_at(mul, "aten::mul");
	inputs_look_at(cat, "aten::cat");
}

static void what_lies_behind_a_tensor_is_none_of_it(void **state)
{
	show_tensors();
	for (int i = 0; i < 3; i++)
		show_operators(&tensors[i], &tensors[(i + 1) % 3]);
	assert_true(inputs_solve());
	assert_int_equal(inputs_layout.inputs, 9 * 8);
	assert_int_equal(inputs_layout.sizes, offsetof(struct tensor, depth));
	assert_int_equal(inputs_layout.keys, offsetof(struct tensor, keys));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_lies_behind_a_tensor_is_none_of_it)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
