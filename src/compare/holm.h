/* SPDX-License-Identifier: Apache-2.0
 *
 * holm.h: adjusts p values if the same runs answer several questions. All answers together are then wrong in at most
 * as many cases as one answer alone (Holm 1979).
 */
#ifndef COMPARE_HOLM_H
#define COMPARE_HOLM_H

#include <stddef.h>

/* Adjusts the p values in place, in any order. NaN means not tested and does not count. */
void holm_adjust(double *outside, size_t count);

#endif
