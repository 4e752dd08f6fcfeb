/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict_sentences_cuts.c: the words of a verdict about the costs that replays remove.
 */
#include "base/template.h"
#include "base/units.h"
#include "compare/verdict_sentences.h"

#include <math.h>

#define NAMED_ROWS 4
#define LEAST_PART 0.05 /* of the difference: smaller parts are not named */

/* ---- the words ---- */

static const char *const side_words[SIDES] = {"base", "new"};
static const char words_missing[] = "{side}[ '{run}'] cannot be replayed: {problem}";
static const char words_without_events[] = "only its numbers were kept";
static const char words_rest[] = "[{parts}; ]{rest} of the difference are explained by no cut";
static const char words_more[] = "{parts}; the cuts explain {rest} more than the difference";
static const char words_cut_row[] = "{cut}[ ({place})] {sign}{amount}";
static const char words_promised[] = "{promised} by {cuts}, came {came}";
static const char words_cut_name[] = "`{cut}`[ ({place})]";

/* ---- gaps ---- */

const char *replay_missing_text(const struct compared_sides *sides, int side, size_t run, const char *problem,
                                struct arena *arena)
{
	const char *name = sides->runs[side][run].name;
	const struct template_text texts[] = {
		{"side", side_words[side]},
		{"run", sides->count[side] > 1 ? arena_printf(arena, "%.60s", name) : NULL},
		{"problem", problem ? problem : words_without_events},
	};

	return WRITE_TEXTS(arena, words_missing, texts);
}

static const char *time_text(double ns, struct arena *arena)
{
	char text[UNITS_BYTES];

	return arena_printf(arena, "%s%s", ns < 0 ? "-" : "", units_time(text, fabs(ns)));
}

static const char *cut_row_text(const struct table *explained, int row, double part_ns, struct arena *arena)
{
	char amount[UNITS_BYTES];
	const struct template_text texts[] = {
		{"cut", table_text(explained, row, EXPLAINED_CUT)},
		{"place", table_text(explained, row, EXPLAINED_PLACE)},
		{"sign", part_ns < 0 ? "-" : "+"},
		{"amount", units_time(amount, fabs(part_ns))},
	};

	return WRITE_TEXTS(arena, words_cut_row, texts);
}

/* "data +35.04 ms, launch -1.20 ms": the largest parts. */
static const char *cut_rows_text(const struct table *explained, double difference_ns, struct arena *arena)
{
	const char *list = NULL;
	int named = 0;

	for (int row = 0; row < explained->row_count && named < NAMED_ROWS; row++) {
		double part_ns;

		if (!table_number(explained, row, EXPLAINED_PART, &part_ns) ||
		    fabs(part_ns) < LEAST_PART * fabs(difference_ns))
			continue;
		list = sentences_join(arena, list, ", ", cut_row_text(explained, row, part_ns, arena));
		named++;
	}
	return list;
}

const char *verdict_by_cut_text(const struct verdict_words *words)
{
	const struct comparison_cuts *cuts = &words->comparison->cuts;
	double difference_ns = cuts->new_ns - cuts->base_ns;
	double rest_ns = difference_ns < 0 ? -cuts->unexplained_ns : cuts->unexplained_ns;
	const char *parts;

	if (cuts->reason)
		return cuts->is_either ? cuts->reason : NULL;
	if (fabs(difference_ns) < words->sides->options->smallest * cuts->base_ns)
		return NULL;
	parts = cut_rows_text(&words->comparison->explained_by, difference_ns, words->arena);
	const struct template_text texts[] = {
		{"parts", parts},
		{"rest", time_text(fabs(rest_ns), words->arena)},
	};
	return parts && rest_ns < 0 ? WRITE_TEXTS(words->arena, words_more, texts)
	                            : WRITE_TEXTS(words->arena, words_rest, texts);
}

const char *verdict_promised_text(const struct verdict_words *words)
{
	const struct comparison_cuts *cuts = &words->comparison->cuts;
	const struct table *explained = &words->comparison->explained_by;
	const char *list = NULL;
	double promised_ns;

	for (int row = 0; row < explained->row_count; row++) {
		const struct template_text name[] = {
			{"cut", table_text(explained, row, EXPLAINED_CUT)},
			{"place", table_text(explained, row, EXPLAINED_PLACE)},
		};

		if (table_number(explained, row, EXPLAINED_PROMISED, &promised_ns))
			list = sentences_join(words->arena, list, ", ",
			                      WRITE_TEXTS(words->arena, words_cut_name, name));
	}
	if (!list)
		return NULL;
	const struct template_text texts[] = {
		{"promised", time_text(cuts->promised_ns, words->arena)},
		{"cuts", list},
		{"came", time_text(cuts->came_ns, words->arena)},
	};
	return WRITE_TEXTS(words->arena, words_promised, texts);
}
