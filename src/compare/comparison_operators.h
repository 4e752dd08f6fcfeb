/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_operators.h: private to compare/: handles two sides of which one has operators in all its steps, while
 * the other is compared by steps without operators.
 *
 * The cost of operators is subtracted from the steps that have them. The cost was measured in the same run, or in
 * another run that calls about the same number of operators per step. If it is unknown, the sides are not comparable.
 * The uncertainty of the cost widens all intervals of times.
 */
#ifndef COMPARE_COMPARISON_OPERATORS_H
#define COMPARE_COMPARISON_OPERATORS_H

#include "compare/comparison_build.h"

struct taken_prices { /* owns copies of the runs whose times were changed */
	struct compared_run *runs[SIDES];
};

/* Changes sides->runs before anything is computed from them. sides->prices.of says how much was subtracted;
 * sides->prices.is_unlike says that the cost is not known well enough. `sides` holds only its runs and options at this
 * time. */
void taken_prices_init(struct taken_prices *prices, struct compared_sides *sides);
void taken_prices_release(struct taken_prices *prices, const struct compared_sides *sides);

#endif
