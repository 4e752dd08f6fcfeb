/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict_sentences_facts.c: the words of a verdict about the runs: what differs between the sides, what could not be
 * compared, and which runs are damaged.
 */
#include "base/template.h"
#include "compare/verdict_sentences.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FACTS_LISTED 4 /* most differences of work in a sentence */

/* ---- the words ---- */

static const char *const side_words[SIDES] = {"the base", "the new side"};
static const char *const side_names[SIDES] = {"base", "new"};

static const char
	operators_place[] = "in {steps} of {side}[{others} (only the others are compared)]"; /* {others}: a condition */
static const char operators_unlike[] = "operators were recorded {base} and {new}[; their cost is only known to "
				       "be less than {most} %]: record both sides with --budget none, or both "
				       "without it";

static const char *const prices[] = {
	[PRICE_OFF] = "operators were recorded {where}: their cost, {off} % (+- {doubt}), was subtracted from its "
		      "times",
	[PRICE_IN] = "operators were recorded {where}: their cost, less than {most} %, is included in its times",
};

static const char *const explanations[] = {
	[EXPLAINED_BY_WORK] = "the work per step changed: {work}",
	[EXPLAINED_BY_FACTS] = "these facts differ: {facts}",
};

static const char work_unknown[] =
	"whether both sides do the same work per step is unknown: neither input sizes (stepscope run --with shapes, or "
	"record_shapes=True of torch.profiler) nor tokens or samples per step were recorded";

static const char unchecked_on_both[] = "{kind} (the sides record different facts: {base}, {new})";
static const char unchecked_on_one[] = "{kind} (recorded only in {side}: {one})";
static const char unchecked_step[] = "the definition of a step";
static const char unchecked_step_because[] =
	"the definition of a step (in a metrics.json, steps exclude the time between steps, such as waits for data; on "
	"the other side they include it, unless the program marks its steps differently)";

static const char damaged_run[] = "{side} '{run}': {damage}[, and {more} more runs on this side]";
static const char failed_run[] = "{side} '{run}' did not complete: {end}";
static const char failed_status[] = "its status is '{status}'";

/* ---- operators that were recorded on one side only ---- */

static const char *ordinal_text(const char *number, struct arena *arena)
{
	static const char ends[] = "thstndrd"; /* two letters for each last digit from 0 to 3 */
	unsigned long value = strtoul(number, NULL, 10), last = value % 10;
	bool is_teen = value % 100 / 10 == 1;

	return arena_printf(arena, "%.12s%.2s", number, last <= 3 && !is_teen ? &ends[2 * last] : ends);
}

/* Returns "every 8th step", or "every 8th to 16th step" if it changed while the program ran. */
static const char *operators_every(const char *every, struct arena *arena)
{
	char least[12], most[12];

	if (!strcmp(every, "1"))
		return "nearly all steps";
	if (sscanf(every, "%11s to %11s", least, most) != 2)
		return arena_printf(arena, "every %s step", ordinal_text(every, arena));
	return arena_printf(arena, "every %s to %s step", ordinal_text(least, arena), ordinal_text(most, arena));
}

/* Returns "in every 8th step of the new side". */
static const char *operators_where(const struct compared_sides *sides, int side, struct arena *arena)
{
	const struct compared_run *run = &sides->runs[side][0];
	const char *kind = compared_run_fact(run, COMPARED_OPERATORS), *every = compared_run_fact(run, COMPARED_EVERY);
	bool is_some = kind && !strcmp(kind, COMPARED_SOME), is_none = kind && !strcmp(kind, COMPARED_NONE);
	const struct template_text texts[] = {
		{"steps", is_none    ? "no step"
	                  : !is_some ? "all steps"
	                  : every    ? operators_every(every, arena)
	                             : "some steps"},
		{"side", side_words[side]},
		{"others", is_some && !every ? "" : NULL},
	};

	return WRITE_TEXTS(arena, operators_place, texts);
}

/* Returns a share of a step that is known to be larger than the price, in per cent. */
static const char *most_text(double ratio, struct arena *arena)
{
	return arena_printf(arena, "%.1f", ceil(1000 * ratio) / 10);
}

const char *operators_unlike_text(const struct compared_sides *sides, struct arena *arena)
{
	const struct template_text texts[] = {
		{"base", operators_where(sides, SIDE_BASE, arena)},
		{"new", operators_where(sides, SIDE_NEW, arena)},
		{"most", sides->prices.has_bound ? most_text(sides->prices.bound_ratio, arena) : NULL},
	};

	return WRITE_TEXTS(arena, operators_unlike, texts);
}

const char *operators_price_text(const struct compared_sides *sides, struct arena *arena)
{
	const char *list = NULL;

	for (int side = 0; side < SIDES; side++) {
		const struct taken_price *price = &sides->prices.of[side];
		const struct template_text texts[] = {
			{"where", operators_where(sides, side, arena)},
			{"off", arena_printf(arena, "%.1f", 100 * price->ratio)},
			{"doubt", arena_printf(arena, "%.1f", 100 * price->doubt_ratio)},
			{"most", most_text(fmax(price->ratio, 0.001), arena)},
		};

		if (price->taken != PRICE_NONE)
			list = sentences_join(arena, list, "; ", WRITE_TEXTS(arena, prices[price->taken], texts));
	}
	return list;
}

/* ---- differences ---- */

/* Returns "micro-batch 2 -> 1". */
static const char *difference_text(const struct table *differences, int row, struct arena *arena)
{
	return arena_printf(arena, "%s %.60s -> %.60s", table_text(differences, row, DIFFERENCE_FACT),
	                    table_text(differences, row, DIFFERENCE_BASE),
	                    table_text(differences, row, DIFFERENCE_NEW));
}

const char *work_changes_text(const struct comparison *comparison, struct arena *arena)
{
	const struct table *differences = &comparison->differences;
	const char *list = NULL;
	int count = 0;

	for (int row = 0; row < differences->row_count; row++)
		if (comparison->difference_kinds[row] == FACT_WORK && count++ < FACTS_LISTED)
			list = sentences_join(arena, list, ", ", difference_text(differences, row, arena));
	return count > FACTS_LISTED ? arena_printf(arena, "%s and %d more", list, count - FACTS_LISTED) : list;
}

/* Returns the differences that matter; NULL if there are none. */
static const char *facts_text(const struct table *differences, struct arena *arena)
{
	const char *list = NULL;

	for (int row = 0; row < differences->row_count; row++)
		if (table_get(differences, row, DIFFERENCE_MATTERS)->b)
			list = sentences_join(arena, list, ", ", difference_text(differences, row, arena));
	return list;
}

const char *verdict_explanation_text(const struct verdict_words *words)
{
	const struct template_text texts[] = {
		{"work", work_changes_text(words->comparison, words->arena)},
		{"facts", facts_text(&words->comparison->differences, words->arena)},
	};
	enum verdict_explanation explanation = words->verdict->explanation;

	return explanation == EXPLAINED_BY_NOTHING ? NULL : WRITE_TEXTS(words->arena, explanations[explanation], texts);
}

/* ---- facts that could not be compared ---- */

const char *verdict_work_text(const struct verdict_words *words)
{
	return words->sides->work.is_unknown ? work_unknown : NULL;
}

static const char *fact_text(const struct compared_fact *fact, struct arena *arena)
{
	return fact ? arena_printf(arena, "%.60s %.60s", fact->name, fact->value) : NULL;
}

/* Returns NULL if facts of this kind were compared, or no side notes one. */
static const char *unchecked_kind(const struct compared_sides *sides, int kind, struct arena *arena)
{
	const char *base = fact_text(sides->work.unchecked[kind][SIDE_BASE], arena);
	const char *new = fact_text(sides->work.unchecked[kind][SIDE_NEW], arena);
	const struct template_text texts[] = {
		{"kind", fact_kind_names[kind]},
		{"side", side_words[base ? SIDE_BASE : SIDE_NEW]},
		{"one", base ? base : new},
		{"base", base},
		{"new", new},
	};

	if (!base && !new)
		return NULL;
	return WRITE_TEXTS(arena, base && new ? unchecked_on_both : unchecked_on_one, texts);
}

const char *verdict_unchecked_text(const struct verdict_words *words)
{
	const char *list = NULL;

	for (int kind = 0; kind < FACT_KINDS; kind++) {
		const char *unchecked = unchecked_kind(words->sides, kind, words->arena);

		if (unchecked)
			list = sentences_join(words->arena, list, "; ", unchecked);
	}
	if (words->sides->work.is_step_unchecked)
		list = sentences_join(words->arena, list, "; ", unchecked_step_because);
	return list;
}

const char *unchecked_kinds_text(const struct verdict_words *words)
{
	const char *list = NULL;

	for (int kind = 0; kind < FACT_KINDS; kind++)
		if (words->sides->work.unchecked[kind][SIDE_BASE] || words->sides->work.unchecked[kind][SIDE_NEW])
			list = sentences_join(words->arena, list, ", ", fact_kind_names[kind]);
	if (words->sides->work.is_step_unchecked)
		list = sentences_join(words->arena, list, ", ", unchecked_step);
	return list;
}

/* ---- runs that are damaged or failed ---- */

static const char *damage_of_side(const struct verdict_words *words, int side)
{
	const struct verdict_trouble *damage = &words->verdict->damage[side];
	const struct compared_run *run = &words->sides->runs[side][damage->first];
	const struct template_text texts[] = {
		{"side", side_names[side]},
		{"run", arena_printf(words->arena, "%.60s", run->name)},
		{"damage", arena_printf(words->arena, "%.200s", compared_run_trouble(run, words->arena))},
		{"more", damage->count > 1 ? arena_printf(words->arena, "%zu", damage->count - 1) : NULL},
	};

	return WRITE_TEXTS(words->arena, damaged_run, texts);
}

const char *verdict_damage_text(const struct verdict_words *words)
{
	const char *list = NULL;

	for (int side = 0; side < SIDES; side++)
		if (words->verdict->damage[side].count)
			list = sentences_join(words->arena, list, "; ", damage_of_side(words, side));
	return list;
}

static const char *failure_of_side(const struct verdict_words *words, int side)
{
	const struct compared_run *run = &words->sides->runs[side][words->verdict->failure[side].first];
	const char *end = compared_run_fact(run, COMPARED_END), *status = compared_run_fact(run, COMPARED_STATUS);
	const struct template_text of_status = {"status", status ? arena_printf(words->arena, "%.40s", status) : NULL};
	const struct template_text texts[] = {
		{"side", side_names[side]},
		{"run", arena_printf(words->arena, "%.60s", run->name)},
		{"end", end ? arena_printf(words->arena, "%.200s", end)
	                    : template_write(words->arena, failed_status, &of_status, 1)},
	};

	return WRITE_TEXTS(words->arena, failed_run, texts);
}

const char *verdict_failure_text(const struct verdict_words *words)
{
	if (words->verdict->failure[SIDE_NEW].count)
		return failure_of_side(words, SIDE_NEW);
	return words->verdict->failure[SIDE_BASE].count ? failure_of_side(words, SIDE_BASE) : NULL;
}
