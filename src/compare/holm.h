/* SPDX-License-Identifier: Apache-2.0
 *
 * holm.h: many questions asked of the same runs: p values such that all of them together are wrong in at most as many cases
 * as one would be by itself (Holm 1979).
 */
#ifndef COMPARE_HOLM_H
#define COMPARE_HOLM_H

#include <stddef.h>

/* In place, in any order. NaN: not tested, does not count. */
void holm_adjust(double *outside, size_t count);

#endif
