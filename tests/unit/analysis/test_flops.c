/* SPDX-License-Identifier: Apache-2.0
 *
 * test_flops.c: formulas against numbers worked out by hand, those of a GPU's operators above all, which no test here can run.
 */
#include "analysis/operators/flops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct model model;
static struct flops flops;

static enum flops_result count(enum flops_definition definition, const char *name, const char *inputs, double *result)
{
	uint32_t string = inputs ? intern_add(&model.strings, inputs) : 0;
	return flops_of(&flops, definition, intern_add(&model.strings, name), string, result);
}

static void check(const char *name, const char *inputs, double expected)
{
	double result;
	assert_int_equal(count(FLOPS_COUNTER, name, inputs, &result), FLOPS_KNOWN);
	assert_true(result == expected);
	assert_int_equal(count(FLOPS_COUNTER, name, inputs, &result), FLOPS_KNOWN); /* now it is remembered */
	assert_true(result == expected);
}

static void check_profiler(const char *name, const char *inputs, double expected)
{
	double result;
	assert_int_equal(count(FLOPS_PROFILER, name, inputs, &result), FLOPS_KNOWN);
	assert_true(result == expected);
}

static void check_none(const char *name, const char *inputs, enum flops_result expected)
{
	double result;
	assert_int_equal(count(FLOPS_COUNTER, name, inputs, &result), expected);
}

static void products_of_matrices(void **state)
{
	check("aten::mm", "[2, 3] [3, 5]", 60);
	check("aten::mm", "[0, 3] [3, 5]", 0);
	check("aten::addmm", "[5] [2, 3] [3, 5] [] []", 60);
	check("aten::bmm", "[7, 2, 3] [7, 3, 5]", 420);
	check("aten::baddbmm", "[7, 2, 5] [7, 2, 3] [7, 3, 5] [] []", 420);
	check("aten::_scaled_mm", "[16, 32] [32, 64] [] []", 65536);
}

#define X "[2, 4, 8, 8] "
#define BACKWARD(transposed, mask)                                                                                     \
	"[2, 6, 4, 4] " X "[6, 4, 3, 3] [] [] [] [] [] [] [] []\nv ;;;[6];[2, 2];[1, 1];[1, 1];" transposed            \
	";[0, 0];1;" mask
static void convolutions(void **state)
{
	/* 3 x 3, stride 2, padding 1: 4 x 4 places */
	check("aten::convolution", X "[6, 4, 3, 3] [6] [] [] [] [] [] []\nv ;;;[2, 2];[1, 1];[1, 1];False;[0, 0];1",
	      2.0 * 2 * 16 * 6 * 4 * 9);
	/* two groups, dilation 2: 4 x 4 places */
	check("aten::_convolution", X "[6, 2, 3, 3] [] [] [] [] [] [] []\nv ;;;[1];[0];[2];False;[0];2",
	      2.0 * 2 * 16 * 6 * 2 * 9);
	/* transposed: each place of the input */
	check("aten::convolution", X "[4, 6, 3, 3] [] [] [] [] [] [] []\nv ;;;[2, 2];[1, 1];[1, 1];True;[1, 1];1",
	      2.0 * 2 * 64 * 4 * 6 * 9);
	check("aten::cudnn_convolution",
	      X "[6, 4, 3, 3] [] [] [] [] [] [] []\nv ;;[1, 1];[2, 2];[1, 1];1;False;False;True",
	      2.0 * 2 * 16 * 6 * 4 * 9);
	check("aten::convolution_backward", BACKWARD("False", "[True, True, True]"), 2.0 * 2 * 16 * 6 * 4 * 9 * 2);
	check("aten::convolution_backward", BACKWARD("False", "[False, True, True]"), 2.0 * 2 * 16 * 6 * 4 * 9);
	check_profiler("aten::conv2d", X "[6, 4, 3, 3] [] [] [] [] []\nv ;;;[2, 2];[1, 1];[1, 1];1",
	               2.0 * 2 * 16 * 6 * 4 * 9);
}

static void attention_of_every_kernel(void **state)
{
	double forward = 2.0 * 2 * 4 * 10 * 12 * (8 + 6), backward = 2.0 * 2 * 4 * 10 * 12 * (3 * 8 + 2 * 6);
#define QKV "[2, 4, 10, 8] [2, 4, 12, 8] [2, 4, 12, 6]"
#define INNER "[2, 10, 4, 8] [2, 12, 4, 8] [2, 12, 4, 6]"
	static const char *const kinds[] = {"flash", "efficient", "cudnn"};
	char name[100];
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "aten::_scaled_dot_product_%s_attention", kinds[i]);
		check(name, QKV " [] [] []", forward);
		snprintf(name, sizeof(name), "aten::_scaled_dot_product_%s_attention_backward", kinds[i]);
		check(name, "[2, 4, 10, 6] " QKV " []", backward);
	}
	check("aten::_scaled_dot_product_flash_attention_for_cpu", QKV " []", forward);
	check("aten::_flash_attention_forward", INNER " [] [] [] []", forward);
	check("aten::_efficient_attention_forward", INNER " [] [] [] []", forward);
	check("aten::_flash_attention_backward", "[2, 10, 4, 6] " INNER " [] [] [] []", backward);
	check("aten::_efficient_attention_backward", "[2, 10, 4, 6] " INNER " [] [] [] []", backward);
	/* fewer heads of keys: they are used several times */
	check("aten::_scaled_dot_product_flash_attention", "[2, 4, 10, 8] [2, 2, 12, 8] [2, 2, 12, 6] []", forward);
	/* sequences of different lengths in one tensor: how long they are is not recorded */
	check_none("aten::_flash_attention_forward", INNER " [3] [3] [] []", FLOPS_UNKNOWN);
}

static void element_by_element(void **state)
{
	check_profiler("aten::mul", "[2, 3] []", 6);
	check_profiler("aten::add", "[] [2, 3] []", 1);
	check_profiler("aten::add", "[] [2, 3] []\nt float;float;Scalar", 1);
	check_none("aten::mul", "[2, 3] []", FLOPS_NO_FORMULA);
}

static void a_tensor_that_was_not_read_has_no_elements(void **state)
{
	double result;
	assert_int_equal(count(FLOPS_PROFILER, "aten::add", "[] [] []\nt ;;Scalar", &result), FLOPS_UNKNOWN);
	assert_true(result == 0);
}

static void what_is_not_known_is_not_zero(void **state)
{
	check_none("aten::mm", NULL, FLOPS_NO_SIZES);
	check_none("aten::mm", "[2, 3]", FLOPS_UNKNOWN);
	check_none("aten::mm", "[2, 3] [4, 5]", FLOPS_UNKNOWN);
	check_none("aten::mm", "[2, -3] [-3, 5]", FLOPS_UNKNOWN);
	check_none("aten::mm", "nonsense", FLOPS_UNKNOWN);
	check_none("aten::bmm", "[] []", FLOPS_UNKNOWN);
	check_none("aten::convolution", X "[6, 4, 3, 3]", FLOPS_UNKNOWN); /* values were left out */
	check_none("aten::convolution", X "[6, 4, 9, 9] []\nv ;;;[1];[0];[1];False", FLOPS_UNKNOWN);
	check_none("aten::convolution", X "[6, 4, 3, 3] []\nv ;;;[0];[0];[1];False", FLOPS_UNKNOWN);
	check_none("aten::convolution", X "[6, 4, 3, 3] []\nv ;;;[1, 1, 1];[0];[1];False", FLOPS_UNKNOWN);
	check_none("aten::convolution_backward", X X X "\nv ", FLOPS_UNKNOWN);
	/* some were left out */
	check_none("aten::convolution", X "[6, 4, 3, 3] []\nv ;;;[1];[0];[1];;[0];1", FLOPS_UNKNOWN);
	check_none("aten::convolution", X "[6, 4, 3, 3] []\nv ;;;[, 1];[0];[1];False;[0];1", FLOPS_UNKNOWN);
	check_none("aten::convolution_backward", BACKWARD("", "[True, True, True]"), FLOPS_UNKNOWN);
	check_none("aten::convolution_backward", BACKWARD("False", "[, True, True]"), FLOPS_UNKNOWN);
	check_none("aten::convolution_backward", BACKWARD("False", "[True, , True]"), FLOPS_UNKNOWN);
	check_none("aten::convolution_backward", BACKWARD("False", "[True,]"), FLOPS_UNKNOWN);
	check_none("aten::linear", "[2, 3] [5, 3]", FLOPS_NO_FORMULA);
}

static int set_up(void **state)
{
	model_init(&model, 0);
	flops.model = &model;
	return 0;
}

static int tear_down(void **state)
{
	flops_release(&flops);
	model_release(&model);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_of_matrices),
		cmocka_unit_test(convolutions),
		cmocka_unit_test(attention_of_every_kernel),
		cmocka_unit_test(element_by_element),
		cmocka_unit_test(what_is_not_known_is_not_zero),
		cmocka_unit_test(a_tensor_that_was_not_read_has_no_elements),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
