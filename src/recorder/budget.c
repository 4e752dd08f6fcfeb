/* SPDX-License-Identifier: Apache-2.0
 *
 * budget.c: see the header. The number of operators and a table decide how many steps have operators, until differences
 * between steps show the real cost. Both estimates are weighted by their certainty, so that noise does not decide.
 */
#include "recorder/budget.h"

#include "base/hash.h"

#define PERIOD_BITS 3        /* log2 of the steps of a block, N > 1 */
#define PERIOD_BITS_OF_ALL 4 /* the same for N = 1 */
#define LEAST_BLOCKS 4       /* blocks needed for an interval */
#define WINDOW_BLOCKS 64     /* after this many blocks, older ones count half */
#define WINDOW_STEPS 64      /* the same for steps */
#define FEW_STEPS 8          /* number of steps that show how long a step is */
#define SOME_STEPS 4         /* number in a row that shows that steps are shorter now */
#define GIANT 4              /* times a usual step: the block is left out, as long as such blocks are rare */
#define RARE 4               /* rare: one in this many blocks */
#define FIRST_BLOCKS 4       /* blocks that may be left out before that rate is known */
#define SHORTER 2            /* steps that were this many times longer belong to another phase of the program */
#define LITTLE 0.25          /* weight, in steps, of an expected cost */
#define BEGIN_STEPS 200      /* number of steps after which the share must be kept */
#define DOUBT 1.5            /* factor by which the table may be wrong */
#define BACKGROUND_PART 0.5
#define SAFE 1.5   /* factor of the interval */
#define MARGIN 1.1 /* cost must be lower by this factor before more steps get operators */
#define NORMAL 1.96
#define LEAST_INTERVAL 0.003

/* ---- which steps ------------------------------------------------------------------------------------------------- */

static uint64_t hash(unsigned salt, int64_t value)
{
	return hash_scatter(hash_word((uint64_t)value) + (salt + 1) * UINT64_C(0xd1b54a32d192ed03));
}

/* Returns true for one number in each block of 2^bits numbers. */
static bool is_drawn(int64_t number, unsigned bits)
{
	for (unsigned bit = 1; bit <= bits; bit++)
		if (((uint64_t)number >> (bit - 1) & 1) != (hash(bit, number >> bit) & 1))
			return false;
	return true;
}

/* Returns true for one number in 16, which no set with a larger N contains. */
static bool is_left_out(int64_t number)
{
	return !is_drawn(number, 1) && ((uint64_t)number >> 1 & 7) == (hash(0, number >> 4) & 7);
}

bool budget_selects(int64_t number, unsigned bits)
{
	return bits ? is_drawn(number, bits) : !is_left_out(number);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* Returns the square root, without libm, which a C program may not have loaded. */
static double root(double square)
{
	double guess = square > 1 ? square : 1;
	if (square <= 0)
		return 0;
	for (int i = 0; i < 200; i++) {
		double next = (guess + square / guess) / 2;
		if (next >= guess)
			break;
		guess = next;
	}
	return guess;
}

/* Returns Student's t for 95 %. */
static double student(double freedom)
{
	static const double few[] = {12.71, 12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
	return freedom < 11 ? few[freedom < 1 ? 1 : (int)freedom] : NORMAL + 2.65 / freedom;
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

/* ---- duration of a step ------------------------------------------------------------------------------------------ */

static void sort(double *values, unsigned count)
{
	for (unsigned i = 1; i < count; i++)
		for (unsigned k = i; k > 0 && values[k] < values[k - 1]; k--) {
			double less = values[k];
			values[k] = values[k - 1];
			values[k - 1] = less;
		}
}

/* Returns the duration of a step without operators, or 0 if it is unknown. The first steps, or some steps in a row
 * while another process needs the machine, may be much longer than usual. Therefore this is the median of the means of
 * groups of steps. */
static double plain_ns(const struct budget *budget)
{
	return budget->groups ? budget->usual_ns : budget->group.count ? budget->group.least : 0;
}

static double middle_group(const struct budget *budget)
{
	double sorted[BUDGET_GROUPS];
	unsigned count = budget->groups < BUDGET_GROUPS ? (unsigned)budget->groups : BUDGET_GROUPS;
	for (unsigned i = 0; i < count; i++)
		sorted[i] = budget->group_ns[i];
	sort(sorted, count);
	return sorted[(count - 1) / 2];
}

static double table_ns(const struct budget *budget)
{
	return budget->table_count > 0 ? budget->table_sum / budget->table_count : 0;
}

/* Returns true for a step that is far too long: a compilation, a checkpoint, a machine that slept. The test does not
 * depend on whether the step has operators, so the remaining steps compare fairly. If such steps are not rare, they
 * count. */
static bool is_giant(const struct budget *budget, const struct budget_step *step)
{
	/* the usual duration is not known in the first steps */
	double usual = plain_ns(budget), most = (budget->groups ? GIANT : GIANT * GIANT) * usual;
	return usual > 0 && step->ns > most + DOUBT * step->table_ns &&
	       RARE * (budget->odd_blocks - FIRST_BLOCKS) <= budget->blocks;
}

/* Discards measurements from a time when steps took much longer, such as the first steps: they say nothing about the
 * steps now. */
static void forget_longer(struct budget *budget)
{
	if (budget->usual_of_blocks > SHORTER * budget->count * plain_ns(budget))
		budget->count = budget->mean = budget->squares = budget->plain_of_blocks = budget->usual_of_blocks =
			budget->design = budget->design_freedom = 0;
}

/* Lowers the expected cost after steps became shorter. The next step with operators shows if they do less work or if
 * the machine is free again. It comes soon, as long as N is not larger by then. */
static void expect_shorter(struct budget *budget, double factor)
{
	double table = table_ns(budget);
	budget->table_count = table > 0 ? LITTLE : 0;
	budget->table_sum = table * factor * LITTLE;
}

static void close_group(struct budget *budget)
{
	budget->group_ns[budget->groups++ % BUDGET_GROUPS] = budget->group.sum / budget->group.count;
	budget->usual_ns = middle_group(budget);
	budget->group = budget->run = (struct budget_group){0};
	forget_longer(budget);
}

/* Returns true if several steps in a row are much shorter. Otherwise older steps would make operators look cheap for
 * long. */
static bool is_shorter_now(struct budget *budget, double ns)
{
	struct budget_group *run = &budget->run;
	if (SHORTER * ns >= plain_ns(budget))
		*run = (struct budget_group){0};
	else
		*run = (struct budget_group){.count = run->count + 1, .sum = run->sum + ns};
	return run->count >= SOME_STEPS;
}

static void note_plain(struct budget *budget, double ns)
{
	struct budget_group *group = &budget->group;
	/* the steps so far were giants, for example because the first steps compile */
	if (!budget->groups && group->count && group->least > GIANT * ns) {
		expect_shorter(budget, ns / group->least);
		*group = (struct budget_group){0};
	}
	group->least = group->count ? smaller(group->least, ns) : ns;
	group->sum += ns;
	group->count++;
	if (budget->groups && is_shorter_now(budget, ns)) {
		expect_shorter(budget, budget->run.sum / budget->run.count / plain_ns(budget));
		*group = budget->run;
		budget->groups = 0;
		close_group(budget);
	} else if (group->count >= FEW_STEPS)
		close_group(budget);
}

static void note_duration(struct budget *budget, const struct budget_step *step)
{
	if (step->kind == BUDGET_WITHOUT)
		note_plain(budget, step->ns);
	else if (budget->bits == 0 && step->ns > 2 * step->table_ns) /* few steps have no operators */
		note_plain(budget, step->ns - step->table_ns);
}

static void note_table(struct budget *budget, const struct budget_step *step, bool is_usual)
{
	budget->with++;
	budget->table_spent += step->table_ns;
	if (!is_usual)
		return;
	budget->table_sum += step->table_ns;
	if (++budget->table_count >= WINDOW_STEPS) {
		budget->table_sum /= 2;
		budget->table_count /= 2;
	}
}

/* ---- differences ------------------------------------------------------------------------------------------------- */

static unsigned period_bits(unsigned bits)
{
	return bits ? PERIOD_BITS : PERIOD_BITS_OF_ALL;
}

static void halve(struct budget *budget)
{
	budget->usual_of_blocks /= 2;
	budget->count /= 2;
	budget->squares /= 2;
	budget->plain_of_blocks /= 2;
	budget->design /= 2;
	budget->design_freedom /= 2;
}

static void note_difference(struct budget *budget, double plain, double difference, double variance, double freedom)
{
	double distance = difference - budget->mean;
	budget->count++;
	budget->mean += distance / budget->count;
	budget->squares += distance * (difference - budget->mean);
	budget->plain_of_blocks += plain;
	budget->usual_of_blocks += plain_ns(budget);
	budget->design += variance;
	budget->design_freedom += freedom;
	if (budget->count >= WINDOW_BLOCKS)
		halve(budget);
}

/* The variance within a block is a better measure of uncertainty than the variance between blocks. A rare slow step
 * affects many blocks before it happens to be the step with operators. */
static void close_block(struct budget *budget)
{
	const struct budget_block *block = &budget->block;
	double a = block->steps[BUDGET_WITHOUT], b = block->steps[BUDGET_WITH];
	if (block->is_spoilt || !block->is_begun || a < 1 || b < 1 || a + b != (double)(1u << period_bits(block->bits)))
		return;
	double within = 0;
	for (int kind = 0; kind < 2; kind++)
		within += block->squares[kind] - block->sum[kind] * block->sum[kind] / block->steps[kind];
	double variance = larger(within, 0) / (a + b - 2) * (1 / a + 1 / b);
	double plain = block->sum[BUDGET_WITHOUT] / a;
	note_difference(budget, plain, block->sum[BUDGET_WITH] / b - plain, variance, a + b - 2);
}

static void count_block(struct budget *budget)
{
	if (!budget->block.is_begun)
		return;
	budget->odd_blocks += budget->block.has_giant;
	if (++budget->blocks >= WINDOW_BLOCKS) {
		budget->blocks /= 2;
		budget->odd_blocks /= 2;
	}
}

static void note_in_block(struct budget *budget, const struct budget_step *step, bool is_spoiling, bool is_giant)
{
	struct budget_block *block = &budget->block;
	int64_t index = step->number >> period_bits(budget->bits);
	if (!block->is_begun || index != block->index || block->bits != budget->bits) {
		close_block(budget);
		count_block(budget);
		*block = (struct budget_block){.index = index, .bits = budget->bits, .is_begun = true};
	}
	block->has_giant |= is_giant;
	block->is_spoilt |= is_spoiling || is_giant || step->kind == BUDGET_OTHER;
	if (block->is_spoilt)
		return;
	block->steps[step->kind]++;
	block->sum[step->kind] += step->ns;
	block->squares[step->kind] += step->ns * step->ns;
}

/* Returns half the width of the confidence interval of the mean difference. */
static double interval_ns(const struct budget *budget)
{
	double count = budget->count;
	double by_design = student(budget->design_freedom) * root(budget->design / count / count);
	double by_blocks = student(count - 1) * root(budget->squares / (count - 1) / count);
	return larger(by_design, by_blocks);
}

/* ---- the cost ---------------------------------------------------------------------------------------------------- */

/* Combines the table and the measured differences. The table is assumed to be off by up to its own value or the
 * budget's share. An uncertain mean moves the result at most as far as the table may be wrong, unless its whole
 * interval lies outside that range. */
static double weigh(const struct budget *budget, double table, double measured, double half, bool is_sure)
{
	double doubt = larger(table, budget->share), error = half / NORMAL;
	double weight = doubt * doubt / (doubt * doubt + error * error);
	double both = table + weight * (measured - table);
	if (is_sure)
		return both;
	both = smaller(both, larger(DOUBT * table, measured - half));
	return larger(both, smaller(table / DOUBT, measured + half));
}

struct budget_cost budget_cost(const struct budget *budget)
{
	struct budget_cost cost = {0};
	double plain = plain_ns(budget), table, half, background;
	if (plain <= 0 || budget->table_count <= 0)
		return cost;
	cost.is_known = true;
	table = table_ns(budget) / plain;
	background = budget->background_ns / plain;
	cost.ratio = table + background;
	/* a block has one step with operators, and so no variance of those: with few blocks, one slow step makes any
	 * difference */
	if (budget->count < LEAST_BLOCKS)
		return cost;
	double of_blocks = budget->plain_of_blocks / budget->count, usual_half;
	half = interval_ns(budget) / of_blocks;
	cost.measured = budget->mean / of_blocks + background;
	cost.low = cost.measured - half;
	cost.high = cost.measured + half;
	cost.has_interval = true;
	cost.is_sure = half <= larger(cost.measured / 3, LEAST_INTERVAL);
	/* if the length of steps changed, the shorter length counts */
	plain = smaller(plain, of_blocks);
	usual_half = half * of_blocks / plain;
	cost.ratio = larger(weigh(budget, table, budget->mean / plain, usual_half, cost.is_sure), 0) + background;
	return cost;
}

/* ---- how many steps ---------------------------------------------------------------------------------------------- */

static double allowed(const struct budget *budget, unsigned bits)
{
	return budget->share * (double)(1u << bits);
}

static unsigned fewer_steps(const struct budget *budget, unsigned bits, double cost)
{
	while (bits < BUDGET_MOST_BITS && cost > allowed(budget, bits))
		bits++;
	return bits;
}

static unsigned more_steps(const struct budget *budget, unsigned bits, double cost)
{
	while (bits > 0 && cost * MARGIN <= allowed(budget, bits - 1))
		bits--;
	return bits;
}

/* Returns true if the steps so far cost more than allowed. Until the debt is paid back, the number of steps with
 * operators is halved. */
static bool is_in_debt(const struct budget *budget, double cost)
{
	double ended = (double)budget->ended, steps = ended < BEGIN_STEPS ? (ended + BEGIN_STEPS) / 2 : ended;
	/* steps with more operators than others cost more */
	double with = table_ns(budget) > 0 ? budget->table_spent / table_ns(budget) : (double)budget->with;
	return cost * with > budget->share * steps;
}

/* Chooses more steps with operators. If the cost is uncertain, the higher estimate counts: the table must allow more
 * steps with room to spare, or the upper bound of the measurement must. That bound uses a wider interval than the
 * printed one, because the question is asked again and again. One change must be measured before the next one. */
static void choose_more(struct budget *budget, const struct budget_cost *cost, double table)
{
	unsigned least = 0;
	if (cost->has_interval && budget->count >= 2 * LEAST_BLOCKS) {
		double bound = cost->measured + SAFE * (cost->high - cost->measured);
		least = bound < table && budget->epoch_own > 0 ? budget->epoch_own - 1 : 0;
		table = smaller(bound, table);
	}
	unsigned bits = more_steps(budget, budget->wanted, table);
	budget->wanted = bits < least && least < budget->wanted ? least : bits < least ? budget->wanted : bits;
}

static void budget_decide(struct budget *budget)
{
	struct budget_cost cost = budget_cost(budget);
	if (budget->is_fixed || !cost.is_known)
		return;
	double worst = larger(cost.ratio, DOUBT * table_ns(budget) / plain_ns(budget));
	choose_more(budget, &cost, worst);
	budget->wanted = fewer_steps(budget, budget->wanted, cost.has_interval ? cost.ratio : worst);
	budget->own = budget->wanted + (is_in_debt(budget, cost.ratio) && budget->wanted < BUDGET_MOST_BITS);
	if (budget->bits < budget->own)
		budget->bits = budget->own;
}

/* ---- step by step ------------------------------------------------------------------------------------------------ */

void budget_start(struct budget *budget, double share, int64_t every)
{
	*budget = (struct budget){.share = share, .is_fixed = every > 0};
	while (budget->bits < BUDGET_MOST_BITS && every > INT64_C(1) << budget->bits)
		budget->bits++;
	budget->own = budget->wanted = budget->bits;
}

bool budget_is_epoch(const struct budget *budget, int64_t number)
{
	return !budget->has_epoch || number >> BUDGET_EPOCH != budget->epoch;
}

void budget_enter(struct budget *budget, int64_t number, int others)
{
	bool is_epoch = budget_is_epoch(budget, number);
	budget->epoch = number >> BUDGET_EPOCH;
	budget->has_epoch = true;
	if (!is_epoch || budget->is_fixed)
		return;
	budget->bits = budget->epoch_own = budget->own;
	if (others > (int)budget->bits && others <= BUDGET_MOST_BITS)
		budget->bits = (unsigned)others;
}

bool budget_wants(const struct budget *budget, int64_t number)
{
	return budget->ended >= BUDGET_SKIPPED && budget_selects(number, budget->bits);
}

void budget_end(struct budget *budget, const struct budget_step *step)
{
	bool is_begin = budget->ended < BUDGET_SKIPPED;
	bool is_odd = step->kind == BUDGET_OTHER || step->ns <= 0, is_long = !is_odd && is_giant(budget, step);
	note_in_block(budget, step, is_begin || is_odd, is_long);
	if (!is_odd && !is_long && budget->ended > 0)
		note_duration(budget, step);
	if (step->kind == BUDGET_WITH)
		note_table(budget, step, !is_long);
	budget->ended++;
	budget_decide(budget);
}

/* The first reading only sets the start, because it includes the start of that thread. The thread also works a little
 * in every step, which no other N would change. Therefore it counts at most as a part of the expected cost of the
 * operators. */
void budget_note_background(struct budget *budget, double ns)
{
	int64_t with = budget->with - budget->asked_with;
	if (budget->asked_ns <= 0) {
		budget->asked_ns = ns;
		budget->asked_with = budget->with;
	} else if (with > 0) {
		budget->background_ns = smaller((ns - budget->asked_ns) / (double)with,
		                                BACKGROUND_PART * table_ns(budget));
	}
}
