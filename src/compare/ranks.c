/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.c: both tests count the pairwise values (differences, or means) on one side of 0. A generating function gives
 * the number of orders, or of signs, for each value of the statistic; it is built one value at a time.
 */
#include "compare/ranks.h"

#include "base/memory.h"
#include "base/statistics.h"

#include <math.h>
#include <stdlib.h>

#define EXACT 50

/* The chances of the values 0, 1, ... `size` - 1 of a statistic. */
struct distribution {
	double *chance;
	size_t size;
};

/* Multiplies by 1 + x^n. */
static void add_sign(struct distribution *distribution, size_t n)
{
	for (size_t i = distribution->size; i-- > n;)
		distribution->chance[i] += distribution->chance[i - n];
}

/* Divides by 1 - x^n. */
static void add_order(struct distribution *distribution, size_t n)
{
	for (size_t i = n; i < distribution->size; i++)
		distribution->chance[i] += distribution->chance[i - n];
}

/* Multiplies by 1 - x^n. */
static void take_order(struct distribution *distribution, size_t n)
{
	for (size_t i = distribution->size; i-- > n;)
		distribution->chance[i] -= distribution->chance[i - n];
}

static void normalize(struct distribution *distribution)
{
	double sum = 0;

	for (size_t i = 0; i < distribution->size; i++)
		sum += distribution->chance[i];
	for (size_t i = 0; i < distribution->size; i++)
		distribution->chance[i] /= sum;
}

/* Fills a normal distribution with the statistic's mean and variance, in steps of one. */
static void fill_normal(struct distribution *distribution, double variance)
{
	double mean = (double)(distribution->size - 1) / 2;

	for (size_t i = 0; i < distribution->size; i++)
		distribution->chance[i] = exp(-((double)i - mean) * ((double)i - mean) / (2 * variance));
}

static struct distribution distribution_new(size_t largest)
{
	struct distribution distribution = {memory_resize(NULL, largest + 1, sizeof(double)), largest + 1};

	for (size_t i = 0; i <= largest; i++)
		distribution.chance[i] = i == 0;
	return distribution;
}

/* Returns how many of `count` sorted values the interval excludes at each end, so that it misses the shift at that end
 * in at most `tail` of the cases. */
static size_t cut_of(const struct distribution *distribution, size_t count, double tail)
{
	double below = 0;
	size_t cut = 0;

	for (; cut < (count - 1) / 2 && below + distribution->chance[cut] <= tail; cut++)
		below += distribution->chance[cut];
	return cut ? cut - 1 : 0;
}

/* Sorts the values and computes the intervals and the p value. Their number is the distribution's largest statistic. */
static void read_shift(struct shift *shift, double *values, size_t count, const struct distribution *distribution)
{
	size_t cut = cut_of(distribution, count, 0.025), same_cut = cut_of(distribution, count, 0.05);
	size_t negative = 0, positive = 0, least;
	double tail = 0;

	sort_doubles(values, count);
	for (size_t i = 0; i < count; i++) {
		negative += values[i] < 0;
		positive += values[i] > 0;
	}
	least = negative < positive ? negative : positive;
	least += (count - negative - positive) / 2;
	for (size_t i = 0; i <= least && i < distribution->size; i++)
		tail += distribution->chance[i];
	shift->middle = quantile(values, count, 0.5);
	shift->low = values[cut];
	shift->high = values[count - 1 - cut];
	shift->same_low = values[same_cut];
	shift->same_high = values[count - 1 - same_cut];
	shift->outside = fmin(1, 2 * tail);
}

void rank_sum_shift(struct shift *shift, const double *left, size_t left_count, const double *right, size_t right_count)
{
	size_t count = left_count * right_count;
	double *values = memory_resize(NULL, count, sizeof(*values));
	struct distribution distribution = distribution_new(count);

	for (size_t i = 0; i < count; i++)
		values[i] = right[i / left_count] - left[i % left_count];
	if (left_count <= EXACT && right_count <= EXACT) {
		for (size_t n = 1; n <= left_count; n++) {
			take_order(&distribution, right_count + n);
			add_order(&distribution, n);
		}
	} else {
		fill_normal(&distribution, (double)count * (double)(left_count + right_count + 1) / 12);
	}
	normalize(&distribution);
	read_shift(shift, values, count, &distribution);
	free(distribution.chance);
	free(values);
}

void signed_rank_shift(struct shift *shift, const double *differences, size_t count)
{
	size_t pairs = count * (count + 1) / 2, filled = 0;
	double *values = memory_resize(NULL, pairs, sizeof(*values));
	struct distribution distribution = distribution_new(pairs);

	for (size_t i = 0; i < count; i++)
		for (size_t j = i; j < count; j++)
			values[filled++] = (differences[i] + differences[j]) / 2;
	if (count <= EXACT) {
		for (size_t n = 1; n <= count; n++)
			add_sign(&distribution, n);
	} else {
		fill_normal(&distribution, (double)pairs * (double)(2 * count + 1) / 12);
	}
	normalize(&distribution);
	read_shift(shift, values, pairs, &distribution);
	free(distribution.chance);
	free(values);
}
