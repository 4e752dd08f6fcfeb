/* SPDX-License-Identifier: Apache-2.0
 *
 * test_budget.c: which steps have operators, and that what they cost stays in the budget and is said rightly, in programs of many kinds with
 * a clock of their own.
 */
#include "recorder/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SEEDS 200
#define SHARE 0.03

/* ---- which steps ---- */

static void one_step_of_each_block_is_selected(void **state)
{
	(void)state;
	for (unsigned bits = 1; bits <= BUDGET_MOST_BITS; bits++)
		for (int64_t block = -20; block < 20; block++) {
			int count = 0;

			for (int64_t i = 0; i < INT64_C(1) << bits; i++)
				count += budget_selects(block * (INT64_C(1) << bits) + i, bits);
			assert_int_equal(count, 1);
		}
}

/* Ranks of one job may have different versions of the recorder, and agree without a message. */
static void every_version_selects_the_same_steps(void **state)
{
	static const int64_t of_eight[] = {4, 15, 18, 24, 39, 40, 50, 57};

	(void)state;
	for (int64_t number = 0, next = 0; number < 64; number++) {
		bool is_expected = next < 8 && of_eight[next] == number;

		assert_int_equal(budget_selects(number, 3), is_expected);
		next += is_expected;
	}
}

static void the_sets_are_nested(void **state)
{
	(void)state;
	for (int64_t number = -5000; number < 5000; number++)
		for (unsigned bits = 1; bits <= BUDGET_MOST_BITS; bits++)
			if (budget_selects(number, bits))
				assert_true(budget_selects(number, bits - 1));
}

static void two_of_each_32_are_left_out_when_all_are_selected(void **state)
{
	(void)state;
	for (int64_t block = -50; block < 50; block++) {
		int count = 0;

		for (int64_t i = 0; i < 32; i++)
			count += !budget_selects(block * 32 + i, 0);
		assert_int_equal(count, 2);
	}
}

/* Whatever the period, each place in it is selected equally often: within five standard deviations. */
static void no_period_is_met_or_avoided(void **state)
{
	static const int periods[] = {2, 3, 4, 5, 7, 8, 10, 16, 50, 64, 100};
	const int64_t steps = 1 << 20;

	(void)state;
	for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++)
		for (unsigned bits = 0; bits <= 4; bits++) {
			double per_place = (double)steps / periods[i];
			double share = bits ? 1.0 / (1 << bits) : 1.0 / 16; /* those that are left out */
			double expected = per_place * share;
			int64_t counts[100] = {0};

			for (int64_t number = 0; number < steps; number++)
				counts[number % periods[i]] += budget_selects(number, bits) == (bits > 0);
			for (int place = 0; place < periods[i]; place++) {
				double distance = (double)counts[place] - expected;

				if (distance * distance > 25 * expected)
					fail_msg("period %d, N %d, place %d: %d, expected %.0f", periods[i], 1 << bits,
					         place, (int)counts[place], expected);
			}
		}
}

/* ---- programs ---- */

struct program {
	const char *name;
	double (*plain_ns)(int64_t index, int64_t steps); /* without noise */
	double noise;                                     /* standard deviation, as a share */
	bool is_changing;                                 /* no one truth to be in the interval */
};

static uint64_t seed_now;

static double uniform(void)
{
	seed_now ^= seed_now << 13;
	seed_now ^= seed_now >> 7;
	seed_now ^= seed_now << 17;
	return (double)(seed_now >> 11) / 9007199254740992.0;
}

static double normal(void)
{
	return (uniform() + uniform() + uniform() - 1.5) * 2;
}

static double even(int64_t index, int64_t steps)
{
	(void)index, (void)steps;
	return 20e6;
}

static double alternating(int64_t index, int64_t steps)
{
	(void)steps;
	return index % 2 ? 20e6 : 45e6;
}

static double slow_4th(int64_t index, int64_t steps)
{
	(void)steps;
	return index % 4 == 3 ? 60e6 : 20e6;
}

static double slow_8th(int64_t index, int64_t steps)
{
	(void)steps;
	return index % 8 == 3 ? 60e6 : 20e6;
}

static double slow_10th(int64_t index, int64_t steps)
{
	(void)steps;
	return index % 10 == 9 ? 60e6 : 20e6;
}

static double compiling(int64_t index, int64_t steps)
{
	(void)steps;
	return index == 0 ? 8e9 : index == 1 ? 3e9 : 20e6;
}

static double slow_start(int64_t index, int64_t steps)
{
	(void)steps;
	return index < 40 ? 20e6 * (1 + 2 * (double)(40 - index) / 40) : 20e6;
}

static double growing(int64_t index, int64_t steps)
{
	return 20e6 * (1 + (double)index / (double)steps);
}

static double stalling(int64_t index, int64_t steps)
{
	(void)steps;
	return index % 97 == 60 ? 2e9 : 20e6;
}

#define BURST 10 /* steps of 20 times the usual length */

static double burst_at_start(int64_t index, int64_t steps)
{
	(void)steps;
	return index < BURST ? 400e6 : 20e6;
}

static double burst_in_between(int64_t index, int64_t steps)
{
	return index >= steps / 4 && index < steps / 4 + BURST ? 400e6 : 20e6;
}

/* Some of the steps: what has operators may be slow where nothing beside it is. */
static double uneven_burst(int64_t index, int64_t steps)
{
	bool is_in = index >= steps / 8 && index < steps / 8 + 4 * BURST;

	return is_in && index * 7 % 5 < 2 ? 400e6 : 20e6;
}

static double late_burst_of_4th(int64_t index, int64_t steps)
{
	return index >= steps / 4 && index < steps / 4 + BURST ? 20 * slow_4th(index, steps) : slow_4th(index, steps);
}

static double compiling_late(int64_t index, int64_t steps)
{
	return index == steps / 3 ? 8e9 : compiling(index, steps);
}

static const struct program programs[] = {
	{"even", even, 0.02, false},
	{"noisy", even, 0.15, false},
	{"alternating", alternating, 0.02, false},
	{"slow 4th", slow_4th, 0.02, false},
	{"slow 8th", slow_8th, 0.02, false},
	{"slow 10th", slow_10th, 0.02, false},
	{"compile", compiling, 0.02, false},
	{"slow start", slow_start, 0.02, true},
	{"growing", growing, 0.02, true},
	{"stalls", stalling, 0.02, false},
	{"burst at the start", burst_at_start, 0.02, false},
	{"burst in between", burst_in_between, 0.02, false},
	{"uneven burst", uneven_burst, 0.02, false},
	{"burst, slow 4th", late_burst_of_4th, 0.02, false},
	{"compile again", compiling_late, 0.02, false},
};
#define PROGRAMS (sizeof(programs) / sizeof(programs[0]))

struct run {
	double cost;      /* of a step's operators, as a share of a usual step */
	bool is_constant; /* the same in all steps; else by their length */
	double table;     /* what the table says of the truth */
	double inputs;    /* what those of a step's operators cost beside that, in the steps that have them */
	int64_t steps;
	uint64_t seed;
	void (*look)(const struct budget *budget, int64_t index); /* behind each step; NULL: nothing to see */
};

struct result {
	double spent; /* share of the time */
	double truth; /* what all steps with operators would cost */
	struct budget_cost cost;
	unsigned bits;
	int64_t with;
};

static double usual_ns(const struct program *program, int64_t steps)
{
	return program->plain_ns(steps / 2 * 8 + 1, steps * 8) > 0 ? 20e6 : 0;
}

static struct result simulate(const struct program *program, const struct run *run)
{
	struct budget budget;
	struct result result = {0};
	int64_t first = (int64_t)(run->seed * 7919 % 100000) * 16;
	double plain_sum = 0, spent_sum = 0, cost_sum = 0, cost_plain = 0;

	seed_now = run->seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	budget_start(&budget, SHARE, 0);
	for (int64_t i = 0; i < run->steps; i++) {
		double bare = program->plain_ns(i, run->steps);
		double plain = bare * (1 + program->noise * normal());
		double length = run->is_constant ? usual_ns(program, run->steps) : bare;
		double cost = run->cost * (length > 200e6 ? 20e6 : length) * (1 + 0.1 * normal());

		budget_enter(&budget, first + i, -1);
		bool has = budget_wants(&budget, first + i);
		double mean = cost + cost * run->inputs / (1 << BUDGET_INPUT_BITS);
		if (budget_selects(first + i, budget.bits + BUDGET_INPUT_BITS))
			cost += cost * run->inputs;
		plain_sum += plain;
		spent_sum += has ? cost : 0;
		if (bare <= 200e6) {
			cost_sum += mean;
			cost_plain += plain;
		}
		budget_end(&budget, &(struct budget_step){.number = first + i,
		                                          .ns = plain + (has ? cost : 0),
		                                          .kind = has ? BUDGET_WITH : BUDGET_WITHOUT,
		                                          .table_ns = cost * run->table});
		if (run->look)
			run->look(&budget, i);
	}
	result.spent = spent_sum / plain_sum;
	result.truth = cost_sum / cost_plain;
	result.cost = budget_cost(&budget);
	result.bits = budget.bits;
	result.with = budget.with;
	return result;
}

static const double costs[] = {0.01, 0.05, 0.18, 0.6};
static const double tables[] = {0.7, 1.5};
static const int64_t lengths[] = {200, 800};
#define EACH(index, list) for (size_t index = 0; index < sizeof(list) / sizeof((list)[0]); index++)

static void check_program(const struct program *program, const struct run *how, int *all_inside, int *all_known)
{
	struct run run = *how;
	int over = 0, inside = 0, known = 0;
	double worst = 0;

	for (run.seed = 1; run.seed <= SEEDS; run.seed++) {
		struct result result = simulate(program, &run);

		worst = result.spent > worst ? result.spent : worst;
		over += result.spent > SHARE + 0.01;
		known += result.cost.has_interval;
		inside += result.cost.has_interval && result.cost.low <= result.truth &&
		          result.truth <= result.cost.high;
	}
	/* one of the 200 may have had bad luck in a program that varies much */
	if (over > 1 || worst > SHARE + 0.02)
		fail_msg("%s, cost %g%s, table %g, %d steps: worst %g, %d over", program->name, run.cost,
		         run.is_constant ? " in each" : "", run.table, (int)run.steps, worst, over);
	if (known >= SEEDS / 2 && (!program->is_changing || !run.is_constant) && inside * 20 < known * 17)
		fail_msg("%s, cost %g%s, table %g, %d steps: truth in the interval %d times of %d", program->name,
		         run.cost, run.is_constant ? " in each" : "", run.table, (int)run.steps, inside, known);
	*all_inside += inside;
	*all_known += known;
}

/* The budget by a point, and the truth in 9 of 10 intervals. */
static void the_budget_is_kept_and_the_truth_is_in_the_interval(void **state)
{
	(void)state;
	EACH(p, programs)
	{
		int inside = 0, known = 0;

		EACH(c, costs)
		EACH(t, tables)
		EACH(l, lengths)
		for (int is_constant = 0; is_constant < 2; is_constant++)
			check_program(&programs[p],
			              &(struct run){.cost = costs[c],
			                            .table = tables[t],
			                            .steps = lengths[l],
			                            .is_constant = is_constant},
			              &inside, &known);
		if (!programs[p].is_changing && inside * 10 < known * 9)
			fail_msg("%s: truth in the interval %d times of %d", programs[p].name, inside, known);
	}
}

/* ---- bursts ---- */

static struct {
	int64_t end;      /* of the burst */
	unsigned most;    /* N from the burst on */
	unsigned behind;  /* N 256 steps behind it */
	double most_said; /* of the cost, as the sentence at exit would say it */
} seen;

static void look(const struct budget *budget, int64_t index)
{
	struct budget_cost cost = budget_cost(budget);
	double said = cost.is_sure ? cost.measured : cost.ratio;

	if (index >= seen.end && budget->bits > seen.most)
		seen.most = budget->bits;
	if (index == seen.end + 256)
		seen.behind = budget->bits;
	if (index >= BURST && cost.is_known && said > seen.most_said)
		seen.most_said = said;
}

static unsigned needed(double cost)
{
	unsigned bits = 0;

	while (cost > SHARE * (double)(1u << bits))
		bits++;
	return bits;
}

/* What a few steps of another length say is no cost: nobody would believe the figure, and N would be large for long. */
static void a_burst_is_no_cost(void **state)
{
	static const struct {
		double (*plain_ns)(int64_t index, int64_t steps);
		int64_t end;
	} bursts[] = {{burst_at_start, BURST}, {burst_in_between, 200 + BURST}, {uneven_burst, 100 + 4 * BURST}};

	(void)state;
	EACH(b, bursts)
	EACH(c, costs)
	EACH(t, tables)
	{
		const struct program program = {"burst", bursts[b].plain_ns, 0.02, false};
		struct run run = {
			.cost = costs[c], .table = tables[t], .is_constant = true, .steps = 800, .look = look};
		unsigned need = needed(costs[c]);
		int back = 0;

		seen.end = bursts[b].end;
		for (run.seed = 1; run.seed <= SEEDS; run.seed++) {
			simulate(&programs[0], &run);
			unsigned without = seen.behind > need ? seen.behind : need;

			seen.most = 0;
			seen.most_said = 0;
			simulate(&program, &run);
			back += seen.behind >= need && seen.behind <= without + 1;
			if (seen.most > need + 3 || seen.most_said > 2.5 * costs[c] + 0.01)
				fail_msg("burst %zu, cost %g, table %g: N up to %u instead of %u, %.0f %% were said", b,
				         costs[c], tables[t], 1u << seen.most, 1u << need, 100 * seen.most_said);
		}
		if (back * 10 < SEEDS * 9)
			fail_msg("burst %zu, cost %g, table %g: N back to %u in %d of %d", b, costs[c], tables[t],
			         1u << need, back, SEEDS);
	}
}

/* A quarter of the steps that were chosen costs more: so do all of them on the mean, which is what is kept and said. */
static void a_part_of_the_steps_costs_more(void **state)
{
	static const double inputs[] = {0.5, 2};

	(void)state;
	EACH(p, programs)
	{
		int inside = 0, known = 0;

		EACH(n, inputs)
		for (size_t c = 1; c < 3; c++)
			check_program(&programs[p],
			              &(struct run){.cost = costs[c],
			                            .table = 1,
			                            .steps = 800,
			                            .inputs = inputs[n],
			                            .is_constant = true},
			              &inside, &known);
		if (!programs[p].is_changing && inside * 10 < known * 9)
			fail_msg("%s: truth in the interval %d times of %d", programs[p].name, inside, known);
	}
}

/* Noise changes nothing: where steps are too different, the table decides. */
static void cheap_operators_are_in_all_steps_but_those_left_out(void **state)
{
	(void)state;
	EACH(p, programs)
	{
		struct run run = {.cost = 0.005, .table = 1, .steps = 320, .seed = 3};
		struct result result = simulate(&programs[p], &run);

		assert_int_equal(result.bits, 0);
		assert_true(result.with > 250);
	}
}

static void a_fixed_number_does_not_change(void **state)
{
	struct budget budget;

	(void)state;
	budget_start(&budget, SHARE, 5);
	for (int64_t i = 0; i < 1000; i++) {
		budget_enter(&budget, i, 9);
		bool has = budget_wants(&budget, i);
		assert_true(has == (i >= BUDGET_SKIPPED && budget_selects(i, 3)));
		budget_end(&budget,
		           &(struct budget_step){.number = i, .ns = has ? 9e6 : 1e6, .kind = has, .table_ns = 1e6});
	}
	assert_int_equal(budget.bits, 3);
}

/* Of two processes the one with the larger N decides for both, from the next multiple of 64 on. */
static void others_are_followed_at_multiples_of_64(void **state)
{
	struct budget budget;

	(void)state;
	budget_start(&budget, SHARE, 0);
	for (int64_t i = 0; i < 320; i++) {
		budget_enter(&budget, i, i >= 100 && i < 200 ? 4 : -1);
		assert_int_equal(budget.bits, i >= 128 && i < 256 ? 4 : 0);
		budget_end(&budget, &(struct budget_step){
					    .number = i, .ns = 1e6, .kind = budget_wants(&budget, i), .table_ns = 1e3});
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_step_of_each_block_is_selected),
		cmocka_unit_test(every_version_selects_the_same_steps),
		cmocka_unit_test(the_sets_are_nested),
		cmocka_unit_test(two_of_each_32_are_left_out_when_all_are_selected),
		cmocka_unit_test(no_period_is_met_or_avoided),
		cmocka_unit_test(the_budget_is_kept_and_the_truth_is_in_the_interval),
		cmocka_unit_test(a_burst_is_no_cost),
		cmocka_unit_test(a_part_of_the_steps_costs_more),
		cmocka_unit_test(cheap_operators_are_in_all_steps_but_those_left_out),
		cmocka_unit_test(a_fixed_number_does_not_change),
		cmocka_unit_test(others_are_followed_at_multiples_of_64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
