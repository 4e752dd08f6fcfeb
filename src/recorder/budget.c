/* SPDX-License-Identifier: Apache-2.0
 *
 * budget.c: see the header. The number of operators and a table decide how many steps have them, until differences between steps say what
 * they really cost. Both are weighed by how sure they are, so noise does not decide.
 */
#include "recorder/budget.h"

#include "base/hash.h"

#define PERIOD_BITS 3        /* steps of a block, N > 1 */
#define PERIOD_BITS_OF_ALL 4 /* N = 1 */
#define LEAST_BLOCKS 4       /* for an interval */
#define WINDOW_BLOCKS 64     /* then what is old counts half */
#define WINDOW_STEPS 64      /* the same */
#define FEW_STEPS 8          /* so many are needed to know how long one is */
#define SOME_STEPS 4         /* so many in a row, to see that they are shorter now */
#define GIANT 4              /* times a usual step: its block is left out, as long as such blocks are rare */
#define RARE 4               /* one of so many blocks */
#define FIRST_BLOCKS 4       /* so many may be left out before anybody knows */
#define SHORTER 2            /* times as long as usual was a usual step: then it was another program */
#define LITTLE 0.25          /* of a step: what it weighs then */
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
	return hash_scatter(hash_word((uint64_t)value) + (salt + 1) * UINT64_C(0xd1b54a32d192ed03));
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

static void sort(double *values, unsigned count)
{
	for (unsigned i = 1; i < count; i++)
		for (unsigned k = i; k > 0 && values[k] < values[k - 1]; k--) {
			double less = values[k];
			values[k] = values[k - 1];
			values[k - 1] = less;
		}
}

/* How long a step without operators is; 0: not known. The first ones may be much longer than usual, and so may some in a row, when somebody else
 * needs the machine: of means of some steps each it is the one in the middle. */
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

/* A compilation, a checkpoint, a machine that slept. Whether a step has operators plays no part in it, so what is left is compared
 * fairly. Where such steps are no exception they count. */
static bool is_giant(const struct budget *budget, const struct budget_step *step)
{
	/* of the first steps nobody knows what is usual */
	double usual = plain_ns(budget), most = (budget->groups ? GIANT : GIANT * GIANT) * usual;
	return usual > 0 && step->ns > most + DOUBT * step->table_ns &&
	       RARE * (budget->odd_blocks - FIRST_BLOCKS) <= budget->blocks;
}

/* What was measured while steps took much longer, as those at the begin may, says nothing of how they are now. */
static void forget_longer(struct budget *budget)
{
	if (budget->usual_of_blocks > SHORTER * budget->count * plain_ns(budget))
		budget->count = budget->mean = budget->squares = budget->plain_of_blocks = budget->usual_of_blocks =
			budget->design = budget->design_freedom = 0;
}

/* Whether steps became shorter because they do less or because the machine is free again, the next one with operators tells; it comes soon as
 * long as N is not larger by then. */
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

/* Some in a row: older ones would say for long that operators cost little. */
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
	/* those so far were giants, as where the first steps compile */
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
	else if (budget->bits == 0 && step->ns > 2 * step->table_ns) /* there are few others */
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

/* ---- differences ---------------------------------------------------------------------------------------------------------- */

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

/* Of the mean difference, to one side. */
static double interval_ns(const struct budget *budget)
{
	double count = budget->count;
	double by_design = student(budget->design_freedom) * root(budget->design / count / count);
	double by_blocks = student(count - 1) * root(budget->squares / (count - 1) / count);
	return larger(by_design, by_blocks);
}

/* ---- the cost ------------------------------------------------------------------------------------------------------------- */

/* The table and the differences together. That the table is wrong by as much as it says itself, or as the budget is, would be no surprise. A doubtful
 * mean does not move it any further than the table may be wrong, unless all of its interval lies there. */
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
	/* of one step with operators a block does not tell how far apart they are: of a few blocks one slow step makes any difference */
	if (budget->count < LEAST_BLOCKS)
		return cost;
	double of_blocks = budget->plain_of_blocks / budget->count, usual_half;
	half = interval_ns(budget) / of_blocks;
	cost.measured = budget->mean / of_blocks + background;
	cost.low = cost.measured - half;
	cost.high = cost.measured + half;
	cost.has_interval = true;
	cost.is_sure = half <= larger(cost.measured / 3, LEAST_INTERVAL);
	/* steps became shorter, or longer: the shorter ones are not to be forgotten */
	plain = smaller(plain, of_blocks);
	usual_half = half * of_blocks / plain;
	cost.ratio = larger(weigh(budget, table, budget->mean / plain, usual_half, cost.is_sure), 0) + background;
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
	bool is_odd = step->kind == BUDGET_OTHER || step->ns <= 0, is_long = !is_odd && is_giant(budget, step);
	note_in_block(budget, step, is_begin || is_odd, is_long);
	if (!is_odd && !is_long && budget->ended > 0)
		note_duration(budget, step);
	if (step->kind == BUDGET_WITH)
		note_table(budget, step, !is_long);
	budget->ended++;
	budget_decide(budget);
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
