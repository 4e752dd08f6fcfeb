/* SPDX-License-Identifier: Apache-2.0
 *
 * growth.h: does a quantity grow from step to step? Looks at the last half of the steps, so that what grows while a program warms up
 * is no growth, and at no more than GROWTH_POINTS of them.
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

#include "analysis/shared/statistics.h"
#include "base/arena.h"

#include <stdint.h>

#define GROWTH_POINTS 512u
#define GROWTH_LEAST_STEPS 8u /* for a verdict */

struct growth {
	uint32_t steps, first, every; /* looked at: every one of [first, steps) whose distance from the last one fits */
	double *x, *y;
	uint32_t count;
};

/* The first step that is looked at, of so many. */
uint32_t growth_first(uint32_t steps);
void growth_init(struct growth *growth, uint32_t steps);
void growth_release(struct growth *growth);
/* The quantity at the end of a step; the last one given for an ordinal counts. Ordinals go up. */
void growth_add(struct growth *growth, uint32_t ordinal, double value);
/* All steps before this one that were not given: 0. */
void growth_fill(struct growth *growth, uint32_t ordinal);
/* Is this step looked at? */
bool growth_wants(const struct growth *growth, uint32_t ordinal);

/* False: fewer than three steps. */
bool growth_slope(const struct growth *growth, struct slope *slope);

/* "grows by 1.2 MiB per step", "does not grow", "cannot tell: < 8 steps". */
const char *growth_verdict(const struct growth *growth, struct arena *arena);

#endif
