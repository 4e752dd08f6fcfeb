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

#define ALIKE_CALLS 0.1 /* of the operators in a step: by so much they may differ for the price to be the same */

#define LEAST_LEFT 0.1 /* of the price: less is left of no step */

struct price { /* of a step */
	bool is_known;
	bool is_bound; /* all that is known is that it is less than ns + half_ns */
	double ns, half_ns;
};

/* ---- kinds ---- */

enum steps_kind {
	STEPS_UNKNOWN, /* no recording, or no steps */
	STEPS_WITHOUT, /* operators */
	STEPS_WITH
};

/* A run that was kept before this was noted has operators in its steps, as all recordings had. */
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

/* ---- prices ---- */

static double operators_number_of(const struct compared_run *run, const char *name)
{
	const struct compared_value *value = compared_run_value(run, name);

	return value && value->has_value ? value->value : NAN;
}

static double most_ns(const struct price *price)
{
	return fmax(0, price->ns) + price->half_ns;
}

/* What is told as a number, as report does it, is better than a bound; of two of a kind the surer one. */
static bool is_better(const struct price *price, const struct price *other)
{
	if (!price->is_known || !other->is_known)
		return price->is_known;
	if (price->is_bound != other->is_bound)
		return other->is_bound;
	return price->is_bound ? most_ns(price) < most_ns(other) : price->half_ns < other->half_ns;
}

/* Measured in the run. */
static struct price own_price(const struct compared_run *run)
{
	struct price price = {.ns = operators_number_of(run, COMPARED_PRICE),
	                      .half_ns = operators_number_of(run, COMPARED_PRICE_HALF)};

	price.is_known = !isnan(price.ns) && !isnan(price.half_ns);
	price.is_bound = price.is_known && !operator_cost_is_told(price.ns, price.half_ns);
	return price;
}

/* That of another run stands for it where a step calls about as many operators; by how much they differ, the price may. */
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

/* Counted, not measured: give or take as much. */
static struct price counted_price(const struct compared_run *run)
{
	double ratio = operators_number_of(run, COMPARED_COUNTED), ns = ratio / (1 + ratio) * operators_mean_step(run);

	return (struct price){.is_known = !isnan(ns), .ns = ns, .half_ns = ns};
}

/* Of the run, else of the surest other one, else as it was counted, else a bound. */
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

/* ---- taking it off ---- */

static void scale_steps(struct compared_run *copy, double factor)
{
	struct compared_step *steps = memory_resize(NULL, copy->steps_count + 1, sizeof(*steps));

	memcpy(steps, copy->steps, copy->steps_count * sizeof(*steps));
	for (size_t i = 0; i < copy->steps_count; i++) {
		steps[i].dur_ns *= factor;
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

/* Recording operators makes no kernel longer. */
static bool is_of_program(const struct compared_part *part)
{
	return !strcmp(part->level, COMPARED_KERNEL) || !strncmp(part->level, COMPARED_MEMORY, strlen(COMPARED_MEMORY));
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

static const char *const side_words[SIDES] = {"the base", "the new side"};

static const char *ordinal(const char *number, struct arena *arena)
{
	if (!strcmp(number, "1"))
		return "1st";
	return !strcmp(number, "2") ? "2nd" : arena_printf(arena, "%.12sth", number);
}

/* "every 8th step of ", "every 8th to 16th step of ": it changed while the program ran. */
static const char *every_words(const char *every, struct arena *arena)
{
	char least[12], most[12];

	if (!strcmp(every, "1"))
		return "nearly all steps of ";
	if (sscanf(every, "%11s to %11s", least, most) != 2)
		return arena_printf(arena, "every %s step of ", ordinal(every, arena));
	return arena_printf(arena, "every %s to %s step of ", ordinal(least, arena), ordinal(most, arena));
}

/* "in every 8th step of the new side" */
static const char *operators_describe(const struct compared_sides *sides, int side, struct arena *arena)
{
	const struct compared_run *run = &sides->runs[side][0];
	const char *kind = compared_run_fact(run, COMPARED_OPERATORS), *every = compared_run_fact(run, COMPARED_EVERY);

	if (kind && !strcmp(kind, COMPARED_SOME) && every)
		return arena_printf(arena, "in %s%s", every_words(every, arena), side_words[side]);
	if (kind && !strcmp(kind, COMPARED_SOME))
		return arena_printf(arena, "in some steps of %s, and the others are compared", side_words[side]);
	if (kind && !strcmp(kind, COMPARED_NONE))
		return arena_printf(arena, "in no step of %s", side_words[side]);
	return arena_printf(arena, "in all steps of %s", side_words[side]);
}

/* What was done to the runs of a side, as shares of what is left of a step. */
struct taking {
	double off, changed; /* sum over those of which something was taken; how many */
	double doubt, bound; /* the largest; of what is only known to be less */
};

static void note_price(struct compared_sides *sides, int side, const struct taking *taking, struct arena *arena)
{
	const char *before = sides->price ? arena_printf(arena, "%s; ", sides->price) : "";
	const char *where = operators_describe(sides, side, arena);

	if (taking->changed > 0)
		sides->price = arena_printf(arena,
		                            "%soperators were recorded %s: %.1f %% (+- %.1f) were taken off its times",
		                            before, where, 100 * taking->off / taking->changed, 100 * taking->doubt);
	else
		sides->price = arena_printf(
			arena, "%soperators were recorded %s: they cost less than %.1f %%, which is in its times",
			before, where, ceil(1000 * fmax(taking->bound, 0.001)) / 10);
}

/* Of a run with operators; a copy, whose times are its own then. False: what it pays for them is not known well enough. */
static bool take_run(struct taking *taking, const struct compared_sides *sides, struct compared_run *copy,
                     const char **why, struct arena *arena)
{
	struct price price = find_price(sides, copy);
	double mean_ns = operators_mean_step(copy), left_ns = mean_ns - price.ns;

	if (!price.is_known || left_ns < LEAST_LEFT * price.ns)
		return false;
	if (price.is_bound) {
		double bound = most_ns(&price) / mean_ns;

		*why = arena_printf(arena, ", and all that is known of their cost is that it is less than %.1f %%",
		                    ceil(1000 * bound) / 10);
		taking->bound = fmax(taking->bound, bound);
		return bound <= sides->options->smallest; /* such changes do not count */
	}
	operators_take_off(copy, price.ns);
	taking->off += price.ns / left_ns;
	taking->doubt = fmax(taking->doubt, price.half_ns / left_ns);
	taking->changed++;
	return true;
}

/* Changes the runs with operators of a side. False: what they pay for them is not known, or too little of it; `why` says of what. */
static bool take_side(struct taken_prices *prices, struct compared_sides *sides, int side, const char **why)
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
		if (operators_kind_of(&runs[i]) == STEPS_WITH &&
		    !take_run(&taking, sides, &prices->runs[side][i], why, &prices->arena))
			return false;
	sides->doubt += log1p(fmax(taking.doubt, taking.bound));
	note_price(sides, side, &taking, &prices->arena);
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
	const char *why = "";
	bool is_known = true;

	*prices = (struct taken_prices){0};
	arena_init(&prices->arena, 0);
	sides->doubt = 0;
	sides->unlike = sides->price = NULL;
	if ((!has_kind(sides, SIDE_BASE, STEPS_WITH) && !has_kind(sides, SIDE_NEW, STEPS_WITH)) ||
	    (!has_kind(sides, SIDE_BASE, STEPS_WITHOUT) && !has_kind(sides, SIDE_NEW, STEPS_WITHOUT)))
		return;
	for (int side = 0; side < SIDES && is_known; side++)
		is_known = take_side(prices, sides, side, &why);
	if (!is_known) {
		release_runs(prices, sides);
		sides->doubt = 0;
		sides->price = NULL;
		sides->unlike = arena_printf(
			&prices->arena,
			"operators were recorded %s and %s%s: record both sides with --budget none, or "
			"both without it",
			operators_describe(sides, SIDE_BASE, &prices->arena),
			operators_describe(sides, SIDE_NEW, &prices->arena), why);
		return;
	}
	for (int side = 0; side < SIDES; side++)
		if (prices->runs[side])
			sides->runs[side] = prices->runs[side];
}

void taken_prices_release(struct taken_prices *prices, const struct compared_sides *sides)
{
	release_runs(prices, sides);
	arena_release(&prices->arena);
}
