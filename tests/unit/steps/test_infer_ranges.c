/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of loops that have ranges, which are drawn as letters: steps take in whole ranges, and ranges of a profiler in the program are
 * steps.
 */
#include "loop_letters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void an_evaluation_inside_of_a_range(void **state)
{
	check("DFB1[DoDoE]DFB1", "0000.......1111", NULL);
	check("[DFB1][DoE][DFB1]", "000000.....111111", NULL);
	check("[DFB1DoE][DFB1DoE]", "00000....11111....", NULL);
	check("[DoEDFB1][DoEDFB1]", "....0000.....1111.", NULL);
	/* the end of a loop with workers looks like a batch */
	check("DFB1[DoDoD]DFB1", "0000.......1111", NULL);
}

static void steps_take_in_whole_ranges(void **state)
{
	check("[D[FB1]][D[FB1]]", "0000000011111111", NULL);
	check("[[]oFB1[]][[]oFB1[]]", "00000000001111111111", NULL); /* also where nothing but the range begins */
	check("[[oFB1][oFB1]]", ".000000111111.", NULL);
	check("[oFB1][oFB1oFB1]", "000000.11112222.", NULL);
	check("[[]oFB1]", "....000.", NULL); /* of one step nobody knows what is around it */
	check("[DFB1DFB1]", ".00001111.", NULL);
	check("D[FB][1oZ]D[FB][1oZ]", "00000000001111111111", "d.fb..o...d.fb..o...");
	check("DFB[1F]DFB[1F]", "00000001111111", NULL);
}

static void a_range_with_several_steps_is_not_cut(void **state)
{
	check("D[FB1FB1]D[FB1FB1]", "..000111...222333.", NULL);
	check("[DFB1F]B1", "000000011", NULL);
	check("D[[FB1]F]B[1DF]B1", "00000000011111122", NULL);
}

static void ranges_of_a_profiler_are_the_steps(void **state)
{
	check("<FB1>{FB1}{FB1}{}", "000001111122222..", ".fbo..fbo..fbo...");
	check("<>{FB1}{FB1}", "..0000011111", NULL); /* step() comes first, and stop() behind the last one */
	check("<FB>{FB}{FB1}{FB}{FB}{FB1}{}", "00001111222223333444455555..", NULL);
	check("<FB1FB1>{FB1FB1}{}",
	      "00000000"
	      "11111111"
	      "..",
	      NULL);
	check("<DFB1>{DFB1}{E}DoDoE", "000000111111........", NULL);
	/* an older PyTorch gives the first two one number; two profilers; one in a range of another one's */
	check("<FB1><FB1>{FB1}{}", "000001111122222..", NULL);
	check("<FB1>{FB1}{}<FB1>{FB1}{}", "0000011111..2222233333..", NULL);
	check("<FB1>{<FB1>{FB1}{}}{FB1}{}", "00000.1111122222...33333..", NULL);
	/* where nothing trains */
	check("<Do>{Do}{E}", "00001111...", ".d...d...d.");
	check("<FB1>{FB!", "000001111", ".fbo..fb.");
}

static void where_no_ranges_are_steps_are_inferred(void **state)
{
	check("FB1FB1<FB1>{FB1}{}FB1FB1", "000111222223333344444555", "fbofbo.fbo..fbo...fbofbo");
	check("[FB1FB1<FB1>{FB1}{}]FB1FB1", ".0001112222233333...444555", NULL);
	/* step() is never called, or no more; or only while an evaluation goes on */
	check("<FB1FB1FB1>", ".000111222.", NULL);
	check("<FB1>{FB1}{FB1FB1FB1}FB1", "0000011111.222333444.555", NULL);
	check("<FB1FB1FB1>{FB1}{FB1}{}", ".000111222.3333344444..", NULL);
	check("FB1<vo>{vo}{}FB1", "000........11111", NULL); /* as with ranges of another kind */
	check("FB1<FB1>{FB1}{}FB", "0001111122222....", NULL);
	check("FB1<FB>{FB}{FB}{}FB!", "00011112222333344444", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_evaluation_inside_of_a_range),
		cmocka_unit_test(steps_take_in_whole_ranges),
		cmocka_unit_test(a_range_with_several_steps_is_not_cut),
		cmocka_unit_test(ranges_of_a_profiler_are_the_steps),
		cmocka_unit_test(where_no_ranges_are_steps_are_inferred),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
