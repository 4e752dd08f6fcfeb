/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_differences.c: the table `differences`: facts that differ between the sides, and whether step times can
 * still be compared. A fact that one side lacks is not a difference, because it may only not have been noted.
 */
#include "compare/comparison_build.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAME_AMOUNT 0.01    /* tokens per step that differ by less are the same */
#define SAME_CLOCK 0.02     /* clocks that differ by less are the same */
#define SAME_PERIOD 0.1     /* periods of telemetry that differ by less are the same */
#define MOST_IN_COMMON 0.02 /* of the time of operators, in two unrelated programs */

static const struct table_column columns[DIFFERENCE_COLUMNS] = {
	[DIFFERENCE_KIND] = {.name = "kind",
                             .type = TABLE_TEXT,
                             .role = ROLE_KEY,
                             .definition = "work (of a step), hardware, software, settings (of the program), recording "
                                           "or clock (mean over the run)"},
	[DIFFERENCE_FACT] = {.name = "fact",
                             .type = TABLE_TEXT,
                             .role = ROLE_KEY,
                             .definition = "name of the fact that differs"},
	[DIFFERENCE_BASE] = {.name = "base",
                             .type = TABLE_TEXT,
                             .definition = "value of the base: all distinct values of its runs; for clocks, their "
                                           "mean"},
	[DIFFERENCE_NEW] = {.name = "new", .type = TABLE_TEXT, .definition = "value of the new side"},
	[DIFFERENCE_RATIO] = {.name = "factor", .type = TABLE_DOUBLE, .definition = "new divided by base, for numbers"},
	[DIFFERENCE_MATTERS] = {.name = "matters",
                                .type = TABLE_BOOL,
                                .definition = "whether step times cannot be compared without accounting for this "
                                              "difference"},
	[DIFFERENCE_MEANING] = {.name = "meaning", .type = TABLE_TEXT, .definition = "consequence for the comparison"},
};

/* ---- the value of a side ---- */

static bool is_listed(const char *list, const char *value)
{
	size_t length = strlen(value);

	for (const char *at = list; (at = strstr(at, value)); at += length ? length : 1)
		if ((at == list || at[-1] == ' ') && (!at[length] || at[length] == ','))
			return true;
	return false;
}

/* Lists the distinct values of the side's runs; NULL if a run does not have the fact. */
static const char *side_value(const struct compared_sides *sides, int side, const char *name, struct arena *arena)
{
	const char *list = NULL;

	for (size_t i = 0; i < sides->count[side]; i++) {
		const char *value = compared_run_fact(&sides->runs[side][i], name);

		if (!value)
			return NULL;
		if (!list)
			list = value;
		else if (!is_listed(list, value))
			list = arena_printf(arena, "%s, %s", list, value);
	}
	return list;
}

static bool parse(const char *text, double *value)
{
	char *end;

	errno = 0;
	*value = strtod(text, &end);
	return end != text && !*end && !errno && isfinite(*value);
}

/* Returns the mean over the side's runs; NULL if a run does not have the fact as a number. */
static const char *side_mean(const struct compared_sides *sides, int side, const char *name, struct arena *arena)
{
	double sum = 0, value;

	for (size_t i = 0; i < sides->count[side]; i++) {
		const char *text = compared_run_fact(&sides->runs[side][i], name);

		if (!text || !parse(text, &value))
			return NULL;
		sum += value;
	}
	return arena_printf(arena, "%.10g", sum / (double)sides->count[side]);
}

static bool is_number_pair(const char *base, const char *new, double *factor)
{
	double left, right;

	if (!parse(base, &left) || !parse(new, &right) || left <= 0)
		return false;
	*factor = right / left;
	return true;
}

/* ---- meaning of a difference ---- */

/* Returns true for facts about the amount of work; other facts describe its kind. */
static bool is_amount(const char *name)
{
	static const char *const words[] = {"tokens",  "samples",  "batch",   "accum",  "flops_per",    "inputs of ",
	                                    "context", "sequence", "seq_len", "length", COMPARED_PASSES};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(name, words[i]))
			return true;
	return false;
}

/* Returns true if both sides know the amount; `is_same` tells whether it is equal. */
static bool find_amount(const struct compared_sides *sides, const char *name, struct arena *arena, bool *is_same)
{
	const char *base = side_value(sides, SIDE_BASE, name, arena), *new = side_value(sides, SIDE_NEW, name, arena);
	double factor;

	if (!base || !new || !is_number_pair(base, new, &factor))
		return false;
	*is_same = fabs(factor - 1) <= SAME_AMOUNT;
	return true;
}

struct amounts {
	bool is_known, is_same;
};

static struct amounts find_amounts(struct compared_sides *sides, struct arena *arena)
{
	struct amounts amounts = {false, true};
	enum step_amount amount = PER_TOKEN;

	amounts.is_known = find_amount(sides, "tokens per step", arena, &amounts.is_same);
	if (!amounts.is_known) {
		amounts.is_known = find_amount(sides, "samples per step", arena, &amounts.is_same);
		amount = PER_SAMPLE;
	}
	sides->work.amount = amounts.is_known && !amounts.is_same ? amount : PER_STEP;
	return amounts;
}

static const char *meaning_of(const struct compared_fact *fact, const struct amounts *amounts)
{
	switch (fact->kind) {
	case FACT_WORK:
		if (!is_amount(fact->name))
			return "the work per step is not the same";
		if (amounts->is_known && amounts->is_same)
			return "the same work per step, divided differently";
		return amounts->is_known ? "the work per step is not the same; times are compared per amount of work"
		                         : "the work per step is not the same, and its amount is not known";
	case FACT_HARDWARE:
		return "not the same machine";
	case FACT_SOFTWARE:
		return "not the same software";
	case FACT_SETTINGS:
		return "the program's settings differ";
	case FACT_CLOCK:
		return "computation takes a different time, regardless of the program";
	default:
		return "recorded differently";
	}
}

static bool does_matter(const struct compared_fact *fact, const struct amounts *amounts)
{
	if (fact->kind == FACT_WORK)
		return !is_amount(fact->name) || !amounts->is_known || !amounts->is_same;
	return fact->kind == FACT_HARDWARE || fact->kind == FACT_SOFTWARE;
}

/* ---- nothing in common ---- */

static const char *part_name(const struct compared_part *part)
{
	return part->family ? part->family : part->name;
}

static bool has_part(const struct compared_run *run, const struct compared_part *wanted)
{
	for (size_t i = 0; i < run->parts_count; i++) {
		const struct compared_part *part = &run->parts[i];

		if (part->has_calls && !strcmp(part->level, wanted->level) &&
		    !strcmp(part_name(part), part_name(wanted)))
			return true;
	}
	return false;
}

struct overlap {
	double whole_ns, common_ns;
	const struct compared_part *costliest;
};

static struct overlap find_overlap(const struct compared_run *run, const struct compared_run *other, const char *level)
{
	struct overlap overlap = {0};

	for (size_t i = 0; i < run->parts_count; i++) {
		const struct compared_part *part = &run->parts[i];

		if (!part->has_calls || strcmp(part->level, level) != 0 || !(part->amount > 0))
			continue;
		overlap.whole_ns += part->amount;
		overlap.common_ns += has_part(other, part) ? part->amount : 0;
		if (!overlap.costliest || part->amount > overlap.costliest->amount)
			overlap.costliest = part;
	}
	return overlap;
}

static bool differences_is_own(const struct overlap *overlap)
{
	return overlap->costliest && overlap->common_ns <= MOST_IN_COMMON * overlap->whole_ns;
}

/* Returns true if both sides have the level, and hardly any of its parts are on both. */
static bool is_foreign(const struct compared_sides *sides, const char *level, struct overlap overlaps[SIDES])
{
	for (int side = 0; side < SIDES; side++)
		overlaps[side] = find_overlap(&sides->runs[side][0], &sides->runs[!side][0], level);
	return differences_is_own(&overlaps[SIDE_BASE]) && differences_is_own(&overlaps[SIDE_NEW]);
}

/* ---- rows ---- */

struct difference_rows {
	struct table *table;
	enum fact_kind *kinds; /* by row */
	struct compared_sides *sides;
	struct amounts amounts;
};

static int differences_new_row(struct difference_rows *rows, enum fact_kind kind)
{
	int row = table_row(rows->table);

	rows->kinds[row] = kind;
	table_set_text(rows->table, row, DIFFERENCE_KIND, fact_kind_names[kind]);
	return row;
}

/* Returns the relative difference up to which numbers count as equal. */
static double same_within(const struct compared_fact *fact)
{
	if (fact->kind == FACT_CLOCK)
		return SAME_CLOCK;
	if (!strcmp(fact->name, COMPARED_PERIOD))
		return SAME_PERIOD;
	return fact->kind == FACT_WORK && strstr(fact->name, " per step") ? SAME_AMOUNT : 0;
}

static void differences_add_row(struct difference_rows *rows, const struct compared_fact *fact)
{
	const struct amounts *amounts = &rows->amounts;
	struct compared_sides *sides = rows->sides;
	struct table *table = rows->table;
	/* clocks always differ a little from run to run */
	const char *(*const value_of)(const struct compared_sides *, int, const char *,
	                              struct arena *) = fact->kind == FACT_CLOCK ? side_mean : side_value;
	const char *base = value_of(sides, SIDE_BASE, fact->name, &table->arena);
	const char *new = value_of(sides, SIDE_NEW, fact->name, &table->arena);
	bool matters = does_matter(fact, amounts), is_numeric;
	double factor = 0;
	int row;

	if (!base || !new || !strcmp(base, new))
		return;
	is_numeric = is_number_pair(base, new, &factor);
	if (is_numeric && fabs(factor - 1) <= same_within(fact))
		return;
	row = differences_new_row(rows, fact->kind);
	table_set_text(table, row, DIFFERENCE_FACT, fact->name);
	table_set_text(table, row, DIFFERENCE_BASE, base);
	table_set_text(table, row, DIFFERENCE_NEW, new);
	if (is_numeric)
		table_set_double(table, row, DIFFERENCE_RATIO, factor);
	else
		table_set_missing(table, row, DIFFERENCE_RATIO, "not a number");
	table_set_bool(table, row, DIFFERENCE_MATTERS, matters);
	if (fact->kind == FACT_CLOCK && factor > 0)
		table_set_text(table, row, DIFFERENCE_MEANING,
		               arena_printf(&table->arena,
		                            "the clock alone may make computation take %.2f times as "
		                            "long",
		                            1 / factor));
	else
		table_set_text(table, row, DIFFERENCE_MEANING, meaning_of(fact, amounts));
	sides->work.is_comparable &= !matters;
	if (fact->kind != FACT_WORK || (is_amount(fact->name) && amounts->is_known))
		return;
	sides->work.wants_amount = is_amount(fact->name) && (sides->work.is_same || sides->work.wants_amount);
	sides->work.is_same = false;
}

/* Adds a row if the sides are different programs that have no operators in common. If kernels were recorded on both
 * sides, they must differ as well: a compiled model has its own operators, but the same kinds of kernels. */
static void add_foreign(struct difference_rows *rows)
{
	struct compared_sides *sides = rows->sides;
	struct table *table = rows->table;
	struct overlap operators[SIDES], kernels[SIDES];
	int row;

	if (!is_foreign(sides, "operator", operators) ||
	    (!is_foreign(sides, "kernel", kernels) && kernels[SIDE_BASE].costliest && kernels[SIDE_NEW].costliest))
		return;
	row = differences_new_row(rows, FACT_WORK);
	table_set_text(table, row, DIFFERENCE_FACT, "operators");
	for (int side = 0; side < SIDES; side++)
		table_set_text(table, row, DIFFERENCE_BASE + side,
		               arena_printf(&table->arena, "%s, ...", operators[side].costliest->name));
	table_set_missing(table, row, DIFFERENCE_RATIO, "not a number");
	table_set_bool(table, row, DIFFERENCE_MATTERS, !rows->amounts.is_known);
	table_set_text(table, row, DIFFERENCE_MEANING, "the sides have no operators in common");
	sides->work.is_comparable &= rows->amounts.is_known;
	sides->work.is_same &= rows->amounts.is_known;
	sides->work.wants_amount &= rows->amounts.is_known;
}

/* Returns true if the run has operators in steps, because these have inputs. */
static bool has_operators(const struct compared_run *run)
{
	for (size_t i = 0; i < run->parts_count && run->steps_count; i++)
		if (!strcmp(run->parts[i].level, "operator"))
			return true;
	return false;
}

/* Returns true if both sides note an amount of work. The number of passes does not count: it does not say how much work
 * a pass is. */
static bool tells_amount(const struct compared_sides *sides)
{
	const struct compared_run *base = &sides->runs[SIDE_BASE][0], *new = &sides->runs[SIDE_NEW][0];

	for (size_t i = 0; i < base->facts_count; i++) {
		const struct compared_fact *fact = &base->facts[i];

		if (fact->kind == FACT_WORK && is_amount(fact->name) && strcmp(fact->name, COMPARED_PASSES) != 0 &&
		    compared_run_fact(new, fact->name))
			return true;
	}
	return false;
}

/* ---- facts that could not be compared ---- */

/* The number of ranks or of passes does not say how much work a step has. */
static bool tells_of(const struct compared_fact *fact, enum fact_kind kind)
{
	return fact->kind == kind && strcmp(fact->name, "ranks") != 0 && strcmp(fact->name, COMPARED_PASSES) != 0;
}

static const struct compared_fact *first_fact(const struct compared_run *run, enum fact_kind kind)
{
	for (size_t i = 0; i < run->facts_count; i++)
		if (tells_of(&run->facts[i], kind))
			return &run->facts[i];
	return NULL;
}

static bool is_checked(const struct compared_sides *sides, enum fact_kind kind)
{
	const struct compared_run *base = &sides->runs[SIDE_BASE][0], *new = &sides->runs[SIDE_NEW][0];

	if (kind == FACT_WORK && sides->work.is_unknown) /* the verdict's column `work` says so already */
		return true;
	for (size_t i = 0; i < base->facts_count; i++)
		if (tells_of(&base->facts[i], kind) && compared_run_fact(new, base->facts[i].name))
			return true;
	return false;
}

static bool has_summary(const struct compared_run *run)
{
	return !run->steps_count && run->summary.steps;
}

static void find_unchecked(struct compared_sides *sides)
{
	const struct compared_run *base = &sides->runs[SIDE_BASE][0], *new = &sides->runs[SIDE_NEW][0];

	for (int kind = 0; kind < FACT_KINDS; kind++) {
		bool is_told = kind <= FACT_SOFTWARE && !is_checked(sides, (enum fact_kind)kind);

		for (int side = 0; side < SIDES; side++)
			sides->work.unchecked[kind][side] = is_told ? first_fact(&sides->runs[side][0],
			                                                         (enum fact_kind)kind)
			                                            : NULL;
	}
	sides->work.is_step_unchecked = (has_summary(base) && new->steps_count) ||
	                                (base->steps_count && has_summary(new));
}

void comparison_add_differences(struct comparison *comparison, struct compared_sides *sides)
{
	const struct compared_run *first = &sides->runs[SIDE_BASE][0];
	struct table *table = &comparison->differences;
	struct difference_rows rows = {.table = table, .sides = sides};

	table_init(table, "differences", "Differences between the sides",
	           "facts with different values on the two sides");
	table_columns(table, columns, DIFFERENCE_COLUMNS);
	rows.kinds = arena_array(&table->arena, first->facts_count + 1, sizeof(*rows.kinds));
	rows.amounts = find_amounts(sides, &table->arena);
	comparison->difference_kinds = rows.kinds;
	sides->work.is_comparable = !sides->prices.is_unlike;
	sides->work.is_same = true;
	for (int kind = FACT_WORK; kind <= FACT_CLOCK; kind++)
		for (size_t i = 0; i < first->facts_count; i++)
			if ((int)first->facts[i].kind == kind)
				differences_add_row(&rows, &first->facts[i]);
	add_foreign(&rows);
	sides->work.is_unknown = sides->work.is_same && !tells_amount(sides) &&
	                         has_operators(&sides->runs[SIDE_BASE][0]) && has_operators(&sides->runs[SIDE_NEW][0]);
	find_unchecked(sides);
	if (!table->row_count)
		table->empty = "no fact recorded on both sides differs";
}
