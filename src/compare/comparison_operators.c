/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_operators.c: see the header.
 */
#include "compare/comparison_operators.h"

#include "analysis/evidence/operator_cost.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIKE_CALLS 0.1 /* of the operators in a step: with a larger difference, a cost of another run is not used */

#define LEAST_LEFT 0.1 /* of the cost: at least this much of a step must remain */

struct price { /* cost of operators, per step */
	bool is_known;
	bool is_bound; /* only an upper bound is known: ns + half_ns */
	double ns, half_ns;
};

/* ---- kinds ---- */

enum steps_kind {
	STEPS_UNKNOWN, /* not a recording, or no steps */
	STEPS_WITHOUT, /* without operators */
	STEPS_WITH
};

/* Old runs of a history do not note this; all recordings had operators in their steps at that time. */
static enum steps_kind operators_kind_of(const struct compared_run *run)
{
	const char *kind = compared_run_fact(run, COMPARED_OPERATORS);

	if (!kind)
		return run->steps_count && compared_run_fact(run, "version") ? STEPS_WITH : STEPS_UNKNOWN;
	return !strcmp(kind, COMPARED_NONE) || !strcmp(kind, COMPARED_SOME) ? STEPS_WITHOUT : STEPS_WITH;
}

static bool has_kind(const struct compared_sides *sides, int side, enum steps_kind kind)
{
	for (size_t i = 0; i < sides->count[side]; i++)
		if (operators_kind_of(&sides->runs[side][i]) == kind)
			return true;
	return false;
}

/* ---- costs ---- */

static double operators_number_of(const struct compared_run *run, const char *name)
{
	const struct compared_value *value = compared_run_value(run, name);

	return value && value->has_value ? value->value : NAN;
}

static double most_ns(const struct price *price)
{
	return fmax(0, price->ns) + price->half_ns;
}

/* Returns true if the first cost is better: a number is better than a bound, and of two of a kind the more certain
 * one. */
static bool is_better(const struct price *price, const struct price *other)
{
	if (!price->is_known || !other->is_known)
		return price->is_known;
	if (price->is_bound != other->is_bound)
		return other->is_bound;
	return price->is_bound ? most_ns(price) < most_ns(other) : price->half_ns < other->half_ns;
}

/* Returns the cost measured in the run itself. */
static struct price own_price(const struct compared_run *run)
{
	struct price price = {.ns = operators_number_of(run, COMPARED_PRICE),
	                      .half_ns = operators_number_of(run, COMPARED_PRICE_HALF)};

	price.is_known = !isnan(price.ns) && !isnan(price.half_ns);
	price.is_bound = price.is_known && !operator_cost_is_told(price.ns, price.half_ns);
	return price;
}

/* Returns the cost measured in another run, if a step there calls about the same number of operators. The difference of
 * these numbers widens the interval. */
static struct price price_like(const struct compared_run *run, const struct compared_run *other)
{
	double calls = operators_number_of(run, COMPARED_CALLS), others = operators_number_of(other, COMPARED_CALLS);
	struct price price = own_price(other);

	price.is_known &= calls > 0 && others > 0 && fabs(log(calls / others)) <= ALIKE_CALLS;
	if (!price.is_known)
		return price;
	price.half_ns += fabs(price.ns) * fabs(log(calls / others));
	price.is_bound = !operator_cost_is_told(price.ns, price.half_ns);
	return price;
}

static double operators_mean_step(const struct compared_run *run)
{
	double sum = 0;

	for (size_t i = 0; i < run->steps_count; i++)
		sum += run->steps[i].dur_ns / (double)run->steps_count;
	return sum;
}

/* Returns the cost computed from the number of events. It was not measured, so its interval is as wide as the cost. */
static struct price counted_price(const struct compared_run *run)
{
	double ratio = operators_number_of(run, COMPARED_COUNTED), ns = ratio / (1 + ratio) * operators_mean_step(run);

	return (struct price){.is_known = !isnan(ns), .ns = ns, .half_ns = ns};
}

/* Returns the run's own cost, otherwise the most certain cost of another run, the computed one, or a bound, in this
 * order. */
static struct price find_price(const struct compared_sides *sides, const struct compared_run *run)
{
	struct price best = own_price(run), counted = counted_price(run);

	if (best.is_known && !best.is_bound)
		return best;
	for (int side = 0; side < SIDES; side++) {
		for (size_t i = 0; i < sides->count[side]; i++) {
			struct price price = price_like(run, &sides->runs[side][i]);

			if (is_better(&price, &best))
				best = price;
		}
	}
	return counted.is_known && (!best.is_known || best.is_bound) ? counted : best;
}

/* ---- subtracting the cost ---- */

static void scale_steps(struct compared_run *copy, double factor)
{
	struct compared_step *steps = memory_resize(NULL, copy->steps_count + 1, sizeof(*steps));

	memcpy(steps, copy->steps, copy->steps_count * sizeof(*steps));
	for (size_t i = 0; i < copy->steps_count; i++) {
		steps[i].dur_ns *= factor;
		steps[i].host_ns *= factor;
		steps[i].cpu_ns *= factor;
		steps[i].running_ns *= factor;
		for (int phase = 0; phase < PHASE_COUNT; phase++)
			steps[i].phase_ns[phase] *= factor;
	}
	copy->steps = steps;
}

static void scale_values(struct compared_run *copy, double factor)
{
	static const struct {
		const char *name;
		bool is_rate;
	} times[] = {
		{"step_time_mean", false}, {"step_time_p95", false}, {"tokens_per_s", true}, {"samples_per_s", true}};
	struct compared_value *values = memory_resize(NULL, copy->values_count + 1, sizeof(*values));

	memcpy(values, copy->values, copy->values_count * sizeof(*values));
	for (size_t i = 0; i < copy->values_count; i++)
		for (size_t k = 0; k < sizeof(times) / sizeof(times[0]); k++)
			if (!strcmp(values[i].name, times[k].name))
				values[i].value *= times[k].is_rate ? 1 / factor : factor;
	copy->values = values;
}

/* Returns true for parts that recording does not make longer: kernels, memory and replays. */
static bool is_of_program(const struct compared_part *part)
{
	return !strcmp(part->level, COMPARED_KERNEL) ||
	       !strncmp(part->level, COMPARED_MEMORY, strlen(COMPARED_MEMORY)) ||
	       !strncmp(part->level, COMPARED_REPLAY, strlen(COMPARED_REPLAY));
}

static void scale_parts(struct compared_run *copy, double factor)
{
	struct compared_part *parts = memory_resize(NULL, copy->parts_count + 1, sizeof(*parts));

	memcpy(parts, copy->parts, copy->parts_count * sizeof(*parts));
	for (size_t i = 0; i < copy->parts_count; i++)
		if (!is_of_program(&parts[i]))
			parts[i].amount *= factor;
	copy->parts = parts;
}

static void operators_take_off(struct compared_run *copy, double price_ns)
{
	double factor = 1 - price_ns / operators_mean_step(copy);

	scale_steps(copy, factor);
	scale_values(copy, factor);
	scale_parts(copy, factor);
	copy->is_changed = true;
}

/* The subtractions for the runs of a side, as shares of the rest of a step. */
struct taking {
	double off, changed; /* sum over the changed runs; their number */
	double doubt, bound; /* the largest of these; the largest bound of costs that are only known by a bound */
};

static struct taken_price taken_price(const struct taking *taking)
{
	if (taking->changed > 0)
		return (struct taken_price){PRICE_OFF, taking->off / taking->changed, taking->doubt};
	return (struct taken_price){PRICE_IN, taking->bound, 0};
}

/* Subtracts the cost of operators from the copy of a run. Returns false if it is not known well enough. */
static bool take_run(struct taking *taking, struct compared_sides *sides, struct compared_run *copy)
{
	struct price price = find_price(sides, copy);
	double mean_ns = operators_mean_step(copy), left_ns = mean_ns - price.ns;

	if (!price.is_known || left_ns < LEAST_LEFT * price.ns)
		return false;
	if (price.is_bound) {
		double bound = most_ns(&price) / mean_ns;

		sides->prices.has_bound = true;
		sides->prices.bound_ratio = bound;
		taking->bound = fmax(taking->bound, bound);
		return bound <= sides->options->smallest; /* such changes do not count */
	}
	operators_take_off(copy, price.ns);
	taking->off += price.ns / left_ns;
	taking->doubt = fmax(taking->doubt, price.half_ns / left_ns);
	taking->changed++;
	return true;
}

/* Subtracts the cost from all runs of a side that have operators. Returns false if it is not known well enough for one
 * of them. */
static bool take_side(struct taken_prices *prices, struct compared_sides *sides, int side)
{
	const struct compared_run *runs = sides->runs[side];
	size_t count = sides->count[side];
	struct taking taking = {0};

	if (!has_kind(sides, side, STEPS_WITH))
		return true;
	prices->runs[side] = memory_resize(NULL, count, sizeof(*prices->runs[side]));
	memcpy(prices->runs[side], runs, count * sizeof(*prices->runs[side]));
	for (size_t i = 0; i < count; i++)
		prices->runs[side][i].is_changed = false;
	for (size_t i = 0; i < count; i++)
		if (operators_kind_of(&runs[i]) == STEPS_WITH && !take_run(&taking, sides, &prices->runs[side][i]))
			return false;
	sides->prices.doubt += log1p(fmax(taking.doubt, taking.bound));
	sides->prices.of[side] = taken_price(&taking);
	return true;
}

static void release_runs(struct taken_prices *prices, const struct compared_sides *sides)
{
	for (int side = 0; side < SIDES; side++) {
		for (size_t i = 0; prices->runs[side] && i < sides->count[side]; i++) {
			if (!prices->runs[side][i].is_changed)
				continue;
			free(prices->runs[side][i].steps);
			free(prices->runs[side][i].values);
			free(prices->runs[side][i].parts);
		}
		free(prices->runs[side]);
		prices->runs[side] = NULL;
	}
}

void taken_prices_init(struct taken_prices *prices, struct compared_sides *sides)
{
	*prices = (struct taken_prices){0};
	if ((!has_kind(sides, SIDE_BASE, STEPS_WITH) && !has_kind(sides, SIDE_NEW, STEPS_WITH)) ||
	    (!has_kind(sides, SIDE_BASE, STEPS_WITHOUT) && !has_kind(sides, SIDE_NEW, STEPS_WITHOUT)))
		return;
	for (int side = 0; side < SIDES && !sides->prices.is_unlike; side++)
		sides->prices.is_unlike = !take_side(prices, sides, side);
	if (sides->prices.is_unlike) {
		release_runs(prices, sides);
		sides->prices.doubt = 0;
		sides->prices.of[SIDE_BASE] = sides->prices.of[SIDE_NEW] = (struct taken_price){0};
		return;
	}
	for (int side = 0; side < SIDES; side++)
		if (prices->runs[side])
			sides->runs[side] = prices->runs[side];
}

void taken_prices_release(struct taken_prices *prices, const struct compared_sides *sides)
{
	release_runs(prices, sides);
}
