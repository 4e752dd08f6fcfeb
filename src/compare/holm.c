/* SPDX-License-Identifier: Apache-2.0
 *
 * holm.c: see the header.
 */
#include "compare/holm.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

struct test {
	double outside;
	size_t place;
};

static int compare_tests(const void *left, const void *right)
{
	const struct test *a = left, *b = right;

	return (a->outside > b->outside) - (a->outside < b->outside);
}

void holm_adjust(double *outside, size_t count)
{
	struct test *tests = memory_resize(NULL, count + 1, sizeof(*tests));
	size_t tested = 0;
	double largest = 0;

	for (size_t i = 0; i < count; i++)
		if (!isnan(outside[i]))
			tests[tested++] = (struct test){outside[i], i};
	qsort(tests, tested, sizeof(*tests), compare_tests);
	for (size_t i = 0; i < tested; i++) {
		largest = fmax(largest, fmin(1, tests[i].outside * (double)(tested - i)));
		outside[tests[i].place] = largest;
	}
	free(tests);
}
