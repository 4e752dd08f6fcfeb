/* SPDX-License-Identifier: Apache-2.0
 *
 * budget.c: see the header. The number of operators and a table decide how many steps have them, until differences between steps say what
 * they really cost. Both are weighed by how sure they are, so noise does not decide.
 */
#include "recorder/budget.h"

#define PERIOD_BITS 3        /* steps of a block, N > 1 */
#define PERIOD_BITS_OF_ALL 4 /* N = 1 */
#define LEAST_BLOCKS 4       /* for an interval; half of them count already */
#define WINDOW_BLOCKS 64     /* then what is old counts half */
#define WINDOW_STEPS 64      /* the same */
#define FEW_STEPS 8          /* so many are needed to know how long one is */
#define GIANT 16             /* times a usual step: such a step is left out, as long as they are rare */
#define RARE 50              /* one giant in so many steps */
#define BEGIN_STEPS 200      /* from here on the share must be kept */
#define DOUBT 1.5            /* the table may be wrong by so much */
#define BACKGROUND_PART 0.5
#define SAFE 1.5   /* times the interval */
#define MARGIN 1.1 /* by so much less must they cost before more steps get operators */
#define NORMAL 1.96
#define LEAST_INTERVAL 0.003

/* ---- which steps ---------------------------------------------------------------------------------------------------------- */

static uint64_t hash(unsigned salt, int64_t value)
{
	uint64_t x = (uint64_t)value * UINT64_C(0x9e3779b97f4a7c15) + (salt + 1) * UINT64_C(0xd1b54a32d192ed03);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* In each block of 2^bits numbers is one such. */
static bool is_drawn(int64_t number, unsigned bits)
{
	for (unsigned bit = 1; bit <= bits; bit++)
		if (((uint64_t)number >> (bit - 1) & 1) != (hash(bit, number >> bit) & 1))
			return false;
	return true;
}

/* One of each 16, never one that another N has. */
static bool is_left_out(int64_t number)
{
	return !is_drawn(number, 1) && ((uint64_t)number >> 1 & 7) == (hash(0, number >> 4) & 7);
}

bool budget_selects(int64_t number, unsigned bits)
{
	return bits ? is_drawn(number, bits) : !is_left_out(number);
}

/* ---- numbers -------------------------------------------------------------------------------------------------------------- */

/* Without the library of mathematics, which a program in C may not have loaded. */
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

/* Student's t for 95 %. */
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

/* ---- what a step takes ---------------------------------------------------------------------------------------------------- */

/* How long a step without operators is; 0: not known. The first ones may be much longer than usual. */
static double plain_ns(const struct budget *budget)
{
	if (budget->plain_count <= 0)
		return 0;
	return budget->plain_count < FEW_STEPS ? budget->plain_least : budget->plain_sum / budget->plain_count;
}

static double table_ns(const struct budget *budget)
{
	return budget->table_count > 0 ? budget->table_sum / budget->table_count : 0;
}

/* A compilation, a checkpoint, a machine that slept. Whether a step has operators plays no part in it, so what is left is compared
 * fairly. Where such steps are no exception they count. */
static bool is_giant(struct budget *budget, const struct budget_step *step)
{
	double usual = plain_ns(budget);
	if (usual <= 0 || step->ns <= GIANT * usual || budget->giants * RARE > budget->ended + RARE)
		return false;
	budget->giants++;
	return true;
}

static void note_plain(struct budget *budget, double ns)
{
	/* those so far were giants, as where the first steps compile */
	if (budget->plain_count < FEW_STEPS && budget->plain_least > GIANT * ns)
		budget->plain_count = budget->plain_sum = 0;
	if (budget->plain_count <= 0 || ns < budget->plain_least)
		budget->plain_least = ns;
	budget->plain_sum += ns;
	if (++budget->plain_count >= WINDOW_STEPS) {
		budget->plain_sum /= 2;
		budget->plain_count /= 2;
	}
}

static void note_duration(struct budget *budget, const struct budget_step *step)
{
	if (step->kind == BUDGET_WITHOUT)
		note_plain(budget, step->ns);
	else if (budget->bits == 0 && step->ns > 2 * step->table_ns) /* there are few others */
		note_plain(budget, step->ns - step->table_ns);
}

static void note_table(struct budget *budget, const struct budget_step *step)
{
	budget->with++;
	budget->table_spent += step->table_ns;
	budget->table_sum += step->table_ns;
	if (++budget->table_count >= WINDOW_STEPS) {
		budget->table_sum /= 2;
		budget->table_count /= 2;
	}
}

/* ---- differences ---------------------------------------------------------------------------------------------------------- */

static unsigned period_bits(unsigned bits)
{
	return bits ? PERIOD_BITS : PERIOD_BITS_OF_ALL;
}

static void halve(struct budget *budget)
{
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
	budget->design += variance;
	budget->design_freedom += freedom;
	if (budget->count >= WINDOW_BLOCKS)
		halve(budget);
}

/* How far apart steps of one kind are in this block says more of the doubt than how far apart blocks are: a rare slow step shows in
 * many blocks before it was once the one with operators. */
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

static void note_in_block(struct budget *budget, const struct budget_step *step, bool is_spoiling)
{
	struct budget_block *block = &budget->block;
	int64_t index = step->number >> period_bits(budget->bits);
	if (!block->is_begun || index != block->index || block->bits != budget->bits) {
		close_block(budget);
		*block = (struct budget_block){.index = index, .bits = budget->bits, .is_begun = true};
	}
	block->is_spoilt |= is_spoiling || step->kind == BUDGET_OTHER;
	if (block->is_spoilt)
		return;
	block->steps[step->kind]++;
	block->sum[step->kind] += step->ns;
	block->squares[step->kind] += step->ns * step->ns;
}

/* Of the mean difference, to one side. */
static double interval_ns(const struct budget *budget)
{
	double count = budget->count;
	double by_design = student(budget->design_freedom) * root(budget->design / count / count);
	double by_blocks = count < LEAST_BLOCKS ? 0 : student(count - 1) * root(budget->squares / (count - 1) / count);
	return larger(by_design, by_blocks);
}

/* ---- the cost ------------------------------------------------------------------------------------------------------------- */

/* The table and the differences together. That the table is wrong by as much as it says itself, or as the budget is, would be no surprise. */
static double weigh(const struct budget *budget, double table, double measured, double half)
{
	double doubt = larger(table, budget->share), error = half / NORMAL;
	double weight = doubt * doubt / (doubt * doubt + error * error);
	return table + weight * (measured - table);
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
	if (2 * budget->count < LEAST_BLOCKS)
		return cost;
	/* steps became shorter, or longer: the shorter ones are not to be forgotten */
	plain = smaller(plain, budget->plain_of_blocks / budget->count);
	half = interval_ns(budget) / plain;
	cost.measured = budget->mean / plain + background;
	cost.low = cost.measured - half;
	cost.high = cost.measured + half;
	cost.has_interval = budget->count >= LEAST_BLOCKS;
	cost.is_sure = cost.has_interval && half <= larger(cost.measured / 3, LEAST_INTERVAL);
	cost.ratio = larger(weigh(budget, table, budget->mean / plain, half), 0) + background;
	return cost;
}

/* ---- how many steps ------------------------------------------------------------------------------------------------------- */

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

/* Did the steps so far cost more than they might? Until it is paid back there are half as many. */
static bool is_in_debt(const struct budget *budget, double cost)
{
	double ended = (double)budget->ended, steps = ended < BEGIN_STEPS ? (ended + BEGIN_STEPS) / 2 : ended;
	/* steps that had more operators than others cost more */
	double with = table_ns(budget) > 0 ? budget->table_spent / table_ns(budget) : (double)budget->with;
	return cost * with > budget->share * steps;
}

/* Of what is doubtful the worse counts: there are more steps with operators only if the table allows them with room to spare, or what was
 * measured does, with a wider interval than the one that is printed, as it is asked again and again; then one change has to be seen before the
 * next one. */
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

static void decide(struct budget *budget)
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

/* ---- step by step --------------------------------------------------------------------------------------------------------- */

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
	bool is_odd = step->kind == BUDGET_OTHER || step->ns <= 0 || is_giant(budget, step);
	note_in_block(budget, step, is_begin || is_odd);
	if (!is_odd && budget->ended > 0)
		note_duration(budget, step);
	if (step->kind == BUDGET_WITH)
		note_table(budget, step);
	budget->ended++;
	decide(budget);
}

/* From the first question on: what came before is the start of that thread. It works a little in every step, too, which no other N would
 * change: so it does not count for more than a part of what the operators themselves should cost. */
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
