/* SPDX-License-Identifier: Apache-2.0
 *
 * Binary search finds what a walk from the front finds.
 */
#include "base/lower_bound.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct place {
	int time;
};

static void it_finds_the_first_that_is_not_before(void **state)
{
	struct place places[9];
	for (uint32_t count = 0; count <= 9; count++)
		for (int time = -1; time < 10; time++) {
			uint32_t wanted = 0;
			for (uint32_t i = 0; i < count; i++)
				places[i].time = (int)i / 2 * 2; /* 0 0 2 2 4 4 ... */
			while (wanted < count && places[wanted].time < time)
				wanted++;
			uint32_t found = LOWER_BOUND(places, count, place, place->time < time);
			assert_int_equal(found, wanted);
		}
	(void)state;
}

static void an_empty_array_may_be_null(void **state)
{
	const struct place *none = NULL;
	assert_int_equal(LOWER_BOUND(none, 0, place, place->time < 1), 0);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_finds_the_first_that_is_not_before),
		cmocka_unit_test(an_empty_array_may_be_null),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
