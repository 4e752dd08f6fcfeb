/* SPDX-License-Identifier: Apache-2.0
 *
 * test_operator_inputs.c: lines of inputs taken apart: whole ones, short ones, and what nobody would write.
 */
#include "model/operator_inputs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void check_parts(const struct inputs_part *line, char separator, const char *const *expected)
{
	struct inputs_part part = {0};
	for (; *expected; expected++) {
		assert_true(operator_inputs_next(line, separator, &part));
		assert_int_equal(part.length, strlen(*expected));
		assert_memory_equal(part.text, *expected, part.length);
	}
	assert_false(operator_inputs_next(line, separator, &part));
}

#define CHECK_PARTS(line, separator, ...) check_parts(line, separator, (const char *const[]){__VA_ARGS__, NULL})

static void lines_have_a_part_per_input(void **state)
{
	struct operator_inputs inputs = operator_inputs_split(
		"[2, 3] [[4], [5, 6]] []\nt float;TensorList;Scalar\ns [3, 1] [[1], [6, 1]] []\nv ;;-0.5");
	CHECK_PARTS(&inputs.sizes, ' ', "[2, 3]", "[[4], [5, 6]]", "[]");
	CHECK_PARTS(&inputs.types, ';', "float", "TensorList", "Scalar");
	CHECK_PARTS(&inputs.strides, ' ', "[3, 1]", "[[1], [6, 1]]", "[]");
	CHECK_PARTS(&inputs.values, ';', "", "", "-0.5");
}

static void a_list_that_is_the_only_input_is_one_part(void **state)
{
	struct operator_inputs inputs = operator_inputs_split("[[[4], [5, 6]]]\nt TensorList\ns [[[1], [6, 1]]]");
	CHECK_PARTS(&inputs.sizes, ' ', "[[4], [5, 6]]");
	CHECK_PARTS(&inputs.strides, ' ', "[[1], [6, 1]]");
}

static void what_was_not_recorded_has_no_parts(void **state)
{
	struct operator_inputs inputs = operator_inputs_split("[2]\nx whatever\nv ");
	CHECK_PARTS(&inputs.sizes, ' ', "[2]");
	assert_null(inputs.types.text);
	CHECK_PARTS(&inputs.types, ';', NULL);
	CHECK_PARTS(&inputs.values, ';', "");
	inputs = operator_inputs_split("");
	CHECK_PARTS(&inputs.sizes, ' ', "");
	inputs = operator_inputs_split("]]]\nt\ns\n\n");
	CHECK_PARTS(&inputs.sizes, ' ', "]]]");
	assert_null(inputs.types.text);
}

static void check_numbers(const char *text, int expected)
{
	int64_t numbers[3];
	struct inputs_part part = {text, strlen(text)};
	assert_int_equal(operator_inputs_numbers(&part, numbers, 3), expected);
}

static void numbers_are_read_whole_or_not(void **state)
{
	int64_t numbers[3];
	struct inputs_part part = {"[2, -1, 1099511627776]", 22};
	assert_int_equal(operator_inputs_numbers(&part, numbers, 3), 3);
	assert_int_equal(numbers[0], 2);
	assert_int_equal(numbers[1], -1);
	assert_true(numbers[2] == (int64_t)1 << 40);
	check_numbers("[]", 0);
	check_numbers("[1, 2, 3, 4]", -1);
	check_numbers("", -1);
	check_numbers("[", -1);
	check_numbers("[1", -1);
	check_numbers("[1,", -1);
	check_numbers("[1,]", -1);
	check_numbers("[1, ]", -1);
	check_numbers("[-]", -1);
	check_numbers("[1.]", -1);
	check_numbers("[[1]]", -1);
	check_numbers("[1 2]", -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_have_a_part_per_input),
		cmocka_unit_test(a_list_that_is_the_only_input_is_one_part),
		cmocka_unit_test(what_was_not_recorded_has_no_parts),
		cmocka_unit_test(numbers_are_read_whole_or_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
