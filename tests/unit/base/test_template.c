/* SPDX-License-Identifier: Apache-2.0
 *
 * test_template.c: how the gaps of a sentence are filled.
 */
#include "base/template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void check_texts(const char *template, const char *expected)
{
	static const struct template_text texts[] = {
		{"who", "a step"}, {"new", "12 ms"}, {"base", "10 ms"}, {"empty", ""}, {"missing", NULL}};
	struct arena arena;

	arena_init(&arena, 0);
	assert_string_equal(template_write(&arena, template, texts, sizeof(texts) / sizeof(texts[0])), expected);
	arena_release(&arena);
}

static void gaps_are_filled(void **state)
{
	check_texts("", "");
	check_texts("nothing to fill: 5 %", "nothing to fill: 5 %");
	check_texts("{who} takes {new} instead of {base}", "a step takes 12 ms instead of 10 ms");
	check_texts("{empty}{who}", "a step");
	check_texts("{missing|no step} takes {new}", "no step takes 12 ms");
	check_texts("{who|no step}", "a step");
	check_texts("{missing}", "not measured");
}

static void brackets_are_left_out_with_what_they_miss(void **state)
{
	check_texts("{who}[; {missing}]", "a step");
	check_texts("{who}[; {new}]", "a step; 12 ms");
	check_texts("[{missing}]", "");
	check_texts("[{who}{empty}]", "a step");
	check_texts("[{who}[, {missing}], {new}]", "a step, 12 ms");
	check_texts("[{missing}[, {who}]]{base}", "10 ms");
}

/* The value of a gap is the number that it is named after. */
static bool add_number(struct buffer *out, const void *context, const char *name, double *number)
{
	*number = name[0] - '0';
	return buffer_add(out, name, 1);
}

static void check_numbers(const char *template, bool is_ascii, const char *expected)
{
	struct buffer out;

	buffer_init(&out, 1000);
	template_add(&out, template, &(struct template_values){.add = add_number, .is_ascii = is_ascii});
	assert_string_equal(out.data, expected);
	assert_int_equal(out.length, strlen(expected));
	buffer_release(&out);
}

static void counts_have_their_word(void **state)
{
	check_numbers("{1:step}, {2:step}, {0:step}", false, "1 step, 2 steps, 0 steps");
	check_numbers("{1:process}, {3:process}", false, "1 process, 3 processes");
	check_numbers("a[, {?2:step}][, {?0:step}]", false, "a, 2 steps");
	check_numbers("a {?0}", false, "a not measured");
}

static void signs_are_ascii_on_demand(void **state)
{
	check_numbers("{5} ± {1}", false, "5 ± 1");
	check_numbers("{5} ± {1}", true, "5 +- 1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gaps_are_filled),
		cmocka_unit_test(brackets_are_left_out_with_what_they_miss),
		cmocka_unit_test(counts_have_their_word),
		cmocka_unit_test(signs_are_ascii_on_demand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
