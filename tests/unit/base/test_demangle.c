/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of C++ for people, those that are large, and those that are made to take for ever.
 */
#include "base/buffer.h"
#include "base/demangle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_names(void **state)
{
	static const struct {
		const char *name, *text;
	} tests[] = {
		{"_ZN2at3addEi", "at::add(int)"},
		{"_ZN2at3addEi.isra.0", "at::add(int) [clone .isra.0]"},
		{"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
	         "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, "
	         "at::native::FillFunctor<float>, std::array<char*, 1ul>)"},
		{"aten::mm", NULL},
		{"", NULL},
		{"_Z", NULL},
		{"_Zebra", NULL},
		{"_ZN2at3addEi;main", NULL},
		{"_ZN2at3addE", "at::add"},
		{"_ZN2at3ad", NULL},
	};
	struct demangler demangler = DEMANGLER_NONE;
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		const char *text = demangler_text(&demangler, tests[i].name);
		if (tests[i].text)
			assert_string_equal(text ? text : "(none)", tests[i].text);
		else
			assert_null(text);
	}
	assert_int_equal(demangler.deaths, 0);
	demangler_release(&demangler);
	assert_null(demangler_text(&demangler, "aten::mm")); /* makes no child */
	assert_int_equal(demangler.child, 0);
}

static void test_names_within_text(void **state)
{
	static const struct {
		const char *text, *plain;
	} tests[] = {
		{"", ""},
		{"aten::mm", "aten::mm"},
		{"_ZN2at3addEi", "at::add(int)"},
		{"renamed: _ZN2at3addEi -> _ZN2at3subEi", "renamed: at::add(int) -> at::sub(int)"},
		{"main;_ZN2at3addEi+0x1c;x_ZN2at3addEi", "main;at::add(int)+0x1c;x_ZN2at3addEi"},
		{"it is _ZN2at3addEi.", "it is at::add(int)."},
		{"_Z, _Zebra, ._ZN2at3addEi and _ZN2at3addEi.cold...",
	         "_Z, _Zebra, ._ZN2at3addEi and at::add(int) [clone .cold]..."},
		{"\xe2\x86\x92_ZN2at3addEi\xe2\x86\x92", "\xe2\x86\x92"
	                                                 "at::add(int)\xe2\x86\x92"},
	};
	struct demangler demangler = DEMANGLER_NONE;
	struct buffer out;
	buffer_init(&out, 1 << 16);
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		buffer_clear(&out);
		demangler_words(&demangler, &out, tests[i].text);
		assert_string_equal(out.data, tests[i].plain);
	}
	buffer_release(&out);
	demangler_release(&demangler);
}

/* N02: of more than the 1024 bytes that libiberty takes by itself. */
static void test_the_name_of_a_kernel_made_of_templates(void **state)
{
	struct demangler demangler = DEMANGLER_NONE;
	struct buffer name, text;
	buffer_init(&name, 1 << 20);
	buffer_init(&text, 1 << 20);
	buffer_add_text(&name, "_ZN7cutlass13device_kernelIN4cute5tupleIJ");
	buffer_add_text(&text, "void cutlass::device_kernel<cute::tuple<");
	for (int i = 0; i < 100; i++) {
		buffer_printf(&name, "%sILi%iEEE", i ? "NS3_" : "NS1_1C", i);
		buffer_printf(&text, "%scute::C<%i>", i ? ", " : "", i);
	}
	buffer_add_text(&name, "EEEEEvv");
	buffer_add_text(&text, " > >()");
	assert_true(name.length > 1024);
	const char *got = demangler_text(&demangler, name.data);
	assert_string_equal(got ? got : "(none)", text.data);
	demangler_release(&demangler);
	buffer_release(&name);
	buffer_release(&text);
}

static void repeat(struct buffer *name, const char *text, int count)
{
	for (int i = 0; i < count; i++)
		buffer_add_text(name, text);
}

/* N03: whatever comes of them, the next name is read. */
static void test_hostile_names(void **state)
{
	static const struct {
		const char *begin, *piece, *end;
		int count;
	} tests[] = {
		{"_Z1f", "P", "i", 16000},
		{"_Z1f", "P", "i", 100000},
		{"_Z1f", "1AI", "i", 5400},
		{"_Z1fI", "XadL", "", 4000},
		{"_ZN", "S_", "E", 8000},
		{"_Z1fI", "Dp", "i", 8000},
		{"_Z1f", "FvM1A", "i", 3000},
		{"_ZcvT_IcvT_", "Icv", "", 5},
		{"_Z", "Z", "", 16000},
		{"_ZZ", "ZN1aE", "", 3000},
		{"_Z1fDT", "cl", "E", 8000},
		{"_Z1fIJ", "J", "E", 16000},
		{"_Z99999999999999999999f", "9", "", 1},
	};
	struct demangler demangler = DEMANGLER_NONE;
	struct buffer name;
	buffer_init(&name, 1 << 20);
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		buffer_clear(&name);
		buffer_add_text(&name, tests[i].begin);
		repeat(&name, tests[i].piece, tests[i].count);
		buffer_add_text(&name, tests[i].end);
		(void)demangler_text(&demangler, name.data);
		demangler.deaths = 0; /* of others than this one */
		assert_string_equal(demangler_text(&demangler, "_ZN2at3addEi"), "at::add(int)");
	}
	demangler_release(&demangler);
	buffer_release(&name);
}

/* Each substitution names the two before it: its text is twice as long. */
static void test_a_name_that_doubles(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	struct demangler demangler = DEMANGLER_NONE;
	struct buffer name;
	buffer_init(&name, 1 << 20);
	buffer_add_text(&name, "_Z1f1AIiiE");
	buffer_add_text(&name, "S_IS0_S0_E");
	for (int i = 1; i < 34; i++)
		buffer_printf(&name, "S_IS%c_S%c_E", digits[i], digits[i]);
	assert_null(demangler_text(&demangler, name.data));
	assert_int_equal(demangler.deaths, 0); /* it was stopped by the bytes, not by the time */
	assert_string_equal(demangler_text(&demangler, "_ZN2at3addEi"), "at::add(int)");
	demangler_release(&demangler);
	buffer_release(&name);
}

/* A conversion's arguments are read twice, and so are those in them: 2^40 times, without a byte of text. */
static void test_a_name_that_does_not_end(void **state)
{
	struct demangler demangler = DEMANGLER_NONE;
	struct buffer name;
	buffer_init(&name, 1 << 20);
	for (uint32_t i = 0; i < DEMANGLE_DEATHS_MAX; i++) {
		assert_string_equal(demangler_text(&demangler, "_ZN2at3addEi"), "at::add(int)");
		buffer_clear(&name);
		buffer_add_text(&name, "_ZcvT_I");
		repeat(&name, "JcvT_I", 40 + (int)i);
		assert_null(demangler_text(&demangler, name.data));
		assert_null(demangler_text(&demangler, name.data)); /* nobody dies of it twice */
		assert_int_equal(demangler.deaths, i + 1);
	}
	assert_null(demangler_text(&demangler, "_ZN2at3addEi")); /* it is enough */
	demangler_release(&demangler);
	assert_string_equal(demangler_text(&demangler, "_ZN2at3addEi"), "at::add(int)");
	demangler_release(&demangler);
	buffer_release(&name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_names_within_text),
		cmocka_unit_test(test_the_name_of_a_kernel_made_of_templates),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_a_name_that_doubles),
		cmocka_unit_test(test_a_name_that_does_not_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
