/* SPDX-License-Identifier: Apache-2.0
 *
 * near.h: doubles that are equal to within an absolute amount; cmocka's own check goes through float.
 */
#ifndef UNIT_NEAR_H
#define UNIT_NEAR_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define assert_double_equal(actual, expected, allowed)                                                                 \
	do {                                                                                                           \
		double actual_ = (actual), expected_ = (expected);                                                     \
		if (!(fabs(actual_ - expected_) <= (allowed)))                                                         \
			fail_msg("%s is %.17g, expected %.17g", #actual, actual_, expected_);                          \
	} while (0)

#endif
