/* SPDX-License-Identifier: Apache-2.0
 *
 * test_units.c: numbers as people read them.
 */
#include "base/units.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct number_case {
	double value;
	const char *text;
};

static void check(char *(*function)(char *, double), const struct number_case *cases, size_t count)
{
	char out[UNITS_BYTES];

	for (size_t i = 0; i < count; i++) {
		assert_ptr_equal(function(out, cases[i].value), out);
		assert_string_equal(out, cases[i].text);
	}
}

#define CHECK(function, ...)                                                                                           \
	do {                                                                                                           \
		const struct number_case cases[] = {__VA_ARGS__};                                                      \
		check(function, cases, sizeof(cases) / sizeof(cases[0]));                                              \
	} while (0)

static void times_have_four_digits(void **state)
{
	CHECK(units_time, {812, "812 ns"}, {14210, "14.21 us"}, {412.3e6, "412.3 ms"}, {3.217e9, "3.217 s"},
	      {8040e9, "2 h 14 min"}, {0, "0 ns"}, {12.34, "12.34 ns"}, {1000, "1.000 us"}, {-14210, "-14.21 us"},
	      {-0.0, "0 ns"});
}

static void times_round_into_the_next_unit(void **state)
{
	CHECK(units_time, {999, "999 ns"}, {999.94, "999.9 ns"}, {999.96, "1.000 us"}, {9999.6, "10.00 us"},
	      {999940, "999.9 us"}, {999960, "1.000 ms"}, {59.994e9, "59.99 s"}, {59.996e9, "1 min 0 s"},
	      {3599.4e9, "59 min 59 s"}, {3599.6e9, "1 h 0 min"}, {3580e9, "59 min 40 s"}, {7199e9, "2 h 0 min"});
}

static void long_times_have_two_parts(void **state)
{
	CHECK(units_time, {60e9, "1 min 0 s"}, {134e9, "2 min 14 s"}, {3600e9, "1 h 0 min"}, {172700e9, "47 h 58 min"},
	      {172800e9, "2 d 0 h"}, {97200e9, "27 h 0 min"}, {273600e9, "3 d 4 h"}, {-134e9, "-2 min 14 s"});
}

static void bytes_have_three_digits_by_1024(void **state)
{
	CHECK(units_bytes, {0, "0 B"}, {512, "512 B"}, {1023, "1023 B"}, {1024, "1.00 KiB"}, {1536, "1.50 KiB"},
	      {31.2 * 1073741824, "31.2 GiB"}, {300.0 * 1048576, "300 MiB"}, {1023 * 1048576.0, "1023 MiB"},
	      {1023.6 * 1048576.0, "1.00 GiB"}, {-1536, "-1.50 KiB"}, {1023.7, "1.00 KiB"}, {0.2, "0 B"},
	      {1.5 * 1125899906842624.0, "1.50 PiB"});
}

static void counts_are_grouped(void **state)
{
	CHECK(units_count, {9941, "9 941"}, {1234567, "1 234 567"}, {0, "0"}, {999, "999"}, {1000, "1 000"},
	      {-9941, "-9 941"}, {2.5, "2.5"}, {0.3333333, "0.3333"}, {999.96, "1 000"}, {12345.6, "12 346"},
	      {-0.0, "0"}, {123456789012, "123 456 789 012"});
}

static void ratios_are_percent(void **state)
{
	CHECK(units_ratio, {0.333, "33.3 %"}, {0, "0.0 %"}, {0.0004, "<0.1 %"}, {0.0005, "0.1 %"}, {-0.0004, "0.0 %"},
	      {1, "100.0 %"}, {0.9999, "100.0 %"}, {0.004, "0.4 %"}, {-0.106, "-10.6 %"}, {-0.0001, "0.0 %"},
	      {12.34, "1 234 %"}, {9.999, "999.9 %"}, {9.9996, "1 000 %"});
}

static void check_rate(double value, const char *what, const char *text)
{
	char out[UNITS_BYTES];

	assert_string_equal(units_rate(out, value, what), text);
}

static void rates_say_of_what(void **state)
{
	check_rate(9941, "tokens", "9 941 tokens/s");
	check_rate(1.21e9, "FLOP", "1.21 GFLOP/s");
	check_rate(312e12, "FLOP", "312 TFLOP/s");
	check_rate(999.6e12, "FLOP", "1.00 PFLOP/s");
	check_rate(2.5, "steps", "2.5 steps/s");
	check_rate(98304, "tokens", "98 300 tokens/s");
	check_rate(123456, "tokens", "123 500 tokens/s");
	check_rate(999960, "tokens", "1.00 Mtokens/s");
	check_rate(9999.7, "tokens", "10 000 tokens/s");
	check_rate(0, "tokens", "0 tokens/s");
	check_rate(1.21e9, "a unit whose name is far too long for the line", "1.21 G.../s");
}

static void what_is_no_number_says_so(void **state)
{
	char out[UNITS_BYTES];

	CHECK(units_time, {NAN, "n/a"}, {INFINITY, "inf"}, {-INFINITY, "-inf"});
	CHECK(units_bytes, {NAN, "n/a"});
	CHECK(units_count, {NAN, "n/a"});
	CHECK(units_ratio, {NAN, "n/a"});
	CHECK(units_change, {0.031, "+3.1 %"}, {-0.031, "-3.1 %"}, {0.0004, "0.0 %"}, {-0.0004, "0.0 %"},
	      {12, "+1 200 %"}, {NAN, "n/a"});
	assert_string_equal(units_rate(out, NAN, "tokens"), "n/a");
}

static void nothing_outgrows_its_room(void **state)
{
	char *(*const functions[])(char *, double) = {units_time, units_bytes, units_count, units_ratio, units_change};
	char *out = malloc(UNITS_BYTES); /* so that a sanitizer sees the end */

	for (double value = DBL_MIN; value < DBL_MAX / 8; value *= 7) {
		for (size_t i = 0; i < 4; i++) {
			assert_true(strlen(functions[i](out, value)) < UNITS_BYTES);
			assert_true(strlen(functions[i](out, -value)) < UNITS_BYTES);
			assert_in_range(out[strlen(out) - 1], '!', '~');
		}
		assert_true(strlen(units_rate(out, -value, "tokens")) < UNITS_BYTES);
		assert_non_null(strstr(out, "tokens/s"));
	}
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_have_four_digits),    cmocka_unit_test(times_round_into_the_next_unit),
		cmocka_unit_test(long_times_have_two_parts), cmocka_unit_test(bytes_have_three_digits_by_1024),
		cmocka_unit_test(counts_are_grouped),        cmocka_unit_test(ratios_are_percent),
		cmocka_unit_test(rates_say_of_what),         cmocka_unit_test(what_is_no_number_says_so),
		cmocka_unit_test(nothing_outgrows_its_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
