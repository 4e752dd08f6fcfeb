/* SPDX-License-Identifier: Apache-2.0
 *
 * growth.h: whether a quantity grows from step to step. Looks at the last half of the steps, so that growth during
 * warm-up does not count, and at no more than GROWTH_POINTS of them.
 *
 *     struct growth growth;
 *     growth_init(&growth, steps);
 *     for (uint32_t ordinal = 0; ordinal < steps; ordinal++)
 *             growth_add(&growth, ordinal, bytes);
 *     text = growth_verdict(&growth, &arena);
 *     growth_release(&growth);
 */
#ifndef ANALYSIS_MEMORY_GROWTH_H
#define ANALYSIS_MEMORY_GROWTH_H

#include "base/arena.h"
#include "base/statistics.h"

#include <stdint.h>

#define GROWTH_POINTS 512u
#define GROWTH_LEAST_STEPS 8u /* least number of steps for a verdict */

struct growth {
	uint32_t steps, first, every; /* points: those of [first, steps) that are a multiple of every before the last */
	double *x, *y;
	uint32_t count;
};

/* Returns the first step that is looked at, out of `steps`. */
uint32_t growth_first(uint32_t steps);
void growth_init(struct growth *growth, uint32_t steps);
void growth_release(struct growth *growth);
/* Adds the quantity at the end of a step. Ordinals ascend. */
void growth_add(struct growth *growth, uint32_t ordinal, double value);
/* Adds 0 for all steps before this one that were not added. */
void growth_fill(struct growth *growth, uint32_t ordinal);
/* Returns true if this step is looked at. */
bool growth_wants(const struct growth *growth, uint32_t ordinal);

/* Returns false with fewer than three steps. */
bool growth_slope(const struct growth *growth, struct slope *slope);

/* Returns true if the verdict is that memory grows. */
bool growth_grows(const struct growth *growth);
/* Returns "grows by 1.2 MiB per step", "does not grow" or "cannot tell: < 8 steps". */
const char *growth_verdict(const struct growth *growth, struct arena *arena);

#endif
