/* SPDX-License-Identifier: Apache-2.0 */
/* Small seeded random numbers (splitmix64): the same seed gives the same run on every machine. */
#ifndef TRAINER_RANDOM_H
#define TRAINER_RANDOM_H

#include <math.h>
#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* A stream of its own for every (seed, a, b). */
static inline uint64_t random_stream(uint64_t seed, uint64_t a, uint64_t b)
{
	uint64_t state = seed;
	state = random_next(&state) ^ a;
	state = random_next(&state) ^ b;
	return random_next(&state);
}

/* Uniform in (0, 1). */
static inline double random_uniform(uint64_t *state)
{
	return ((double)(random_next(state) >> 11) + 0.5) * 0x1p-53;
}

/* Normal distribution with mean 0 and deviation 1 (Box-Muller, one of the pair). */
static inline double random_normal(uint64_t *state)
{
	double radius = sqrt(-2.0 * log(random_uniform(state)));
	return radius * cos(6.283185307179586 * random_uniform(state));
}

#endif
