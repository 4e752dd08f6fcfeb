/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_operators.h: private to compare/: sides of which one has operators in all its steps, and the other was compared by steps without.
 *
 * From the steps with operators is taken what a step pays for them, as it was measured in the program itself, or on the other side where that calls
 * about as many operators in a step. Else the sides are not comparable. How sure that price is widens all intervals of times.
 */
#ifndef COMPARE_COMPARISON_OPERATORS_H
#define COMPARE_COMPARISON_OPERATORS_H

#include "compare/comparison_build.h"

struct taken_prices { /* owns copies of runs whose times were changed */
	struct compared_run *runs[SIDES];
};

/* Changes sides->runs before anything is computed from them. sides->price says what was taken off, sides->is_unlike
 * that nothing could be. The sides are empty but for their runs and options. */
void taken_prices_init(struct taken_prices *prices, struct compared_sides *sides);
void taken_prices_release(struct taken_prices *prices, const struct compared_sides *sides);

#endif
