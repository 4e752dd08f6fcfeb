/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_cuts.c: see the header. The difference of the step, divided by the costs that a replay can remove.
 *
 * The difference is that of the steps replayed with nothing removed. Its parts are the changes of the parts of both sides
 * (compare/cuts/compared_replay.h) and of the profiler's own cost. No cut explains the rest: it is the change of the step
 * without all these costs.
 */
#include "compare/cuts/comparison_cuts.h"

#include "compare/cuts/compared_replay.h"
#include "compare/verdict_sentences.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_NS 0.01
#define LEAST_PROMISE 0.02 /* of a step: diagnose has no finding of a cut that saves less */
#define MOST_LONGER 0.5    /* of a saving of the base: by more the step has not become longer */
#define MOST_LEFT 0.25     /* of a saving of the base: with less, the new side no longer has the cost */

static const struct table_column columns[EXPLAINED_COLUMNS] = {
	[EXPLAINED_CUT] = {.name = "cut",
                           .type = TABLE_TEXT,
                           .role = ROLE_KEY,
                           .definition = "the cost that the replays leave out; '" EXPLAINED_PROFILER
                                         "' is the own cost of the profiler, or of our recorder"},
	[EXPLAINED_PLACE] = {.name = "place",
                             .type = TABLE_TEXT,
                             .role = ROLE_KEY,
                             .definition = "where, if the cut is only of one place"},
	[EXPLAINED_BASE] = {.name = "base_saving_ns",
                            .title = "base saves",
                            .type = TABLE_DOUBLE,
                            .unit = UNIT_NS,
                            .definition = "how much shorter a mean step of the base is without this cost alone, mean "
                                          "over its runs; 0 if there is nothing to remove"},
	[EXPLAINED_NEW] = {.name = "new_saving_ns",
                           .title = "new saves",
                           .type = TABLE_DOUBLE,
                           .unit = UNIT_NS,
                           .definition = "same for the new side"},
	[EXPLAINED_CHANGE] = {.name = "change_ns",
                              .title = "change",
                              .type = TABLE_DOUBLE,
                              .unit = UNIT_NS,
                              .definition = "new minus base. Several cuts may save the same time, so changes do not "
                                            "sum to the difference"},
	[EXPLAINED_LOW] = {.name = "change_low_ns",
                           .title = "from",
                           .type = TABLE_DOUBLE,
                           .unit = UNIT_NS,
                           .role = ROLE_EVIDENCE,
                           .definition = "lower end of the 95 % interval of the change, from the intervals of both "
                                         "savings"},
	[EXPLAINED_HIGH] = {.name = "change_high_ns",
                            .title = "to",
                            .type = TABLE_DOUBLE,
                            .unit = UNIT_NS,
                            .role = ROLE_EVIDENCE,
                            .definition = "upper end of this interval"},
	[EXPLAINED_PART] =
		{.name = "part_ns",
                 .title = "part",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_NS,
                 .definition =
                         "part of the difference: the change of the saving that remains after the "
                         "costs that are known better are removed; 0 for a choice that both sides made, or that saves neither much. Parts and `unexplained_ns` sum to "
                         "the difference of the replayed steps"},
	[EXPLAINED_PROMISED] = {.name = "promised_ns",
                                .title = "promised",
                                .type = TABLE_DOUBLE,
                                .unit = UNIT_NS,
                                .definition = "saving that the base promised, if the new side no longer has the cost"},
	[EXPLAINED_CAME] =
		{.name = "came_ns",
                 .title = "came",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_NS,
                 .definition = "how much shorter the step became, without the parts of all other costs. If several "
                               "promised costs are gone, each has a share by its part"},
};

struct explained { /* one row */
	const char *cut, *place;
	bool is_promise, is_of_both;
	struct compared_cut of[SIDES];
	double part_ns, change_ns;
};

struct explained_rows {
	struct explained of[CUT_COUNT + 1]; /* and that of the profiler */
	int count;
};

/* ---- sides ---- */

static void sum_cut(struct compared_cut *sum, const struct compared_cut *cut, double weight)
{
	sum->is_there |= cut->is_there;
	sum->saving_ns += weight * cut->saving_ns;
	sum->low_ns += weight * cut->low_ns;
	sum->high_ns += weight * cut->high_ns;
	sum->part_ns += weight * cut->part_ns;
}

/* Returns the mean of all runs of a side. Without a replay of each run, returns why there is none. */
static const char *mean_replay(struct compared_replay *mean, const struct compared_sides *sides, int side,
                               struct arena *arena)
{
	double weight = 1.0 / (double)sides->count[side];

	*mean = (struct compared_replay){.is_there = true};
	for (size_t i = 0; i < sides->count[side]; i++) {
		const struct compared_replay replay = compared_replay_of(&sides->runs[side][i]);

		if (!replay.is_there)
			return replay_missing_text(sides, side, i, replay.problem, arena);
		mean->recorded_ns += weight * replay.recorded_ns;
		mean->step_ns += weight * replay.step_ns;
		sum_cut(&mean->profiler, &replay.profiler, weight);
		for (enum replay_cut cut = 0; cut < CUT_COUNT; cut++)
			sum_cut(&mean->cuts[cut], &replay.cuts[cut], weight);
	}
	return NULL;
}

/* ---- rows ---- */

/* A cost that is gone because the step became longer is hidden, not removed. */
static bool is_promise(const struct compared_replay *replays, enum replay_cut cut)
{
	const struct compared_replay *base = &replays[SIDE_BASE], *new = &replays[SIDE_NEW];
	double saving_ns = base->cuts[cut].saving_ns;

	return !replay_cuts[cut].is_bound && saving_ns > LEAST_PROMISE * base->step_ns &&
	       new->cuts[cut].saving_ns < MOST_LEFT *saving_ns &&new->step_ns - base->step_ns < MOST_LONGER *saving_ns;
}

static bool is_small(const struct compared_replay *replay, enum replay_cut cut)
{
	return replay->cuts[cut].saving_ns < LEAST_PROMISE * replay->step_ns;
}

/* A choice that both sides made does not explain why they differ, and neither does one that alone saves neither of them
 * much. */
static bool is_of_both(const struct compared_replay *replays, enum replay_cut cut)
{
	double base_ns = replays[SIDE_BASE].cuts[cut].part_ns, new_ns = replays[SIDE_NEW].cuts[cut].part_ns;

	return fmin(base_ns, new_ns) >= MOST_LEFT * fmax(base_ns, new_ns) ||
	       (is_small(&replays[SIDE_BASE], cut) && is_small(&replays[SIDE_NEW], cut));
}

/* Rounding errors of sums are no change. */
static double difference(double base_ns, double new_ns)
{
	return fabs(new_ns - base_ns) < LEAST_NS ? 0 : new_ns - base_ns;
}

static void add_row(struct explained_rows *rows, struct explained row)
{
	row.change_ns = difference(row.of[SIDE_BASE].saving_ns, row.of[SIDE_NEW].saving_ns);
	row.part_ns = row.is_of_both ? 0 : difference(row.of[SIDE_BASE].part_ns, row.of[SIDE_NEW].part_ns);
	if (row.of[SIDE_BASE].is_there || row.of[SIDE_NEW].is_there)
		rows->of[rows->count++] = row;
}

static void add_rows(struct explained_rows *rows, const struct compared_replay *replays)
{
	for (enum replay_cut cut = 0; cut < CUT_COUNT; cut++)
		add_row(rows, (struct explained){.cut = replay_cuts[cut].name,
		                                 .place = replay_cuts[cut].place,
		                                 .is_promise = is_promise(replays, cut),
		                                 .is_of_both = replay_cuts[cut].is_choice && is_of_both(replays, cut),
		                                 .of = {replays[SIDE_BASE].cuts[cut], replays[SIDE_NEW].cuts[cut]}});
	add_row(rows, (struct explained){.cut = EXPLAINED_PROFILER,
	                                 .of = {replays[SIDE_BASE].profiler, replays[SIDE_NEW].profiler}});
}

/* The largest part comes first. */
static int compare_rows(const void *one, const void *other)
{
	const struct explained *a = one, *b = other;

	if (fabs(a->part_ns) != fabs(b->part_ns))
		return fabs(a->part_ns) > fabs(b->part_ns) ? -1 : 1;
	return strcmp(a->cut, b->cut) ? strcmp(a->cut, b->cut)
	                              : strcmp(a->place ? a->place : "", b->place ? b->place : "");
}

/* ---- what came ---- */

/* Sums the promises. A single promise is that of its replay; several may save the same time, so their parts count. */
static void add_promises(struct comparison_cuts *cuts, const struct explained_rows *rows)
{
	double alone_ns = 0;

	cuts->came_ns = cuts->base_ns - cuts->new_ns;
	for (int i = 0; i < rows->count; i++) {
		const struct explained *row = &rows->of[i];

		if (!row->is_promise) {
			cuts->came_ns += row->part_ns;
			continue;
		}
		cuts->promised_count++;
		cuts->promised_ns += row->of[SIDE_BASE].part_ns;
		alone_ns = row->of[SIDE_BASE].saving_ns;
	}
	if (cuts->promised_count == 1)
		cuts->promised_ns = alone_ns;
}

static double came_by(const struct comparison_cuts *cuts, const struct explained *row)
{
	if (cuts->promised_count == 1)
		return cuts->came_ns;
	return cuts->promised_ns > 0 ? cuts->came_ns * row->of[SIDE_BASE].part_ns / cuts->promised_ns : 0;
}

/* ---- the table ---- */

/* Both intervals are independent of each other. */
static double half_width(const struct explained *row, bool is_low)
{
	const struct compared_cut *base = &row->of[SIDE_BASE], *new = &row->of[SIDE_NEW];

	return is_low ? hypot(base->high_ns - base->saving_ns, new->saving_ns - new->low_ns)
	              : hypot(base->saving_ns - base->low_ns, new->high_ns - new->saving_ns);
}

static void set_promise(struct table *table, int number, const struct comparison_cuts *cuts,
                        const struct explained *row)
{
	if (row->is_promise) {
		table_set_double(table, number, EXPLAINED_PROMISED, row->of[SIDE_BASE].saving_ns);
		table_set_double(table, number, EXPLAINED_CAME, came_by(cuts, row));
	} else {
		for (int column = EXPLAINED_PROMISED; column <= EXPLAINED_CAME; column++)
			table_set_missing(
				table, number, column,
				"the base promises less than a fiftieth of a step, or the new side still has the cost");
	}
}

static void set_row(struct table *table, const struct comparison_cuts *cuts, const struct explained *row)
{
	int number = table_row(table);

	table_set_text(table, number, EXPLAINED_CUT, row->cut);
	table_set_text_or(table, number, EXPLAINED_PLACE, row->place, "everywhere");
	table_set_double(table, number, EXPLAINED_BASE, row->of[SIDE_BASE].saving_ns);
	table_set_double(table, number, EXPLAINED_NEW, row->of[SIDE_NEW].saving_ns);
	table_set_double(table, number, EXPLAINED_CHANGE, row->change_ns);
	table_set_double(table, number, EXPLAINED_LOW, row->change_ns - half_width(row, true));
	table_set_double(table, number, EXPLAINED_HIGH, row->change_ns + half_width(row, false));
	table_set_double(table, number, EXPLAINED_PART, row->part_ns);
	set_promise(table, number, cuts, row);
}

static void explain(struct comparison *comparison, const struct compared_replay *replays)
{
	struct comparison_cuts *cuts = &comparison->cuts;
	struct explained_rows rows = {.count = 0};

	add_rows(&rows, replays);
	qsort(rows.of, (size_t)rows.count, sizeof(*rows.of), compare_rows);
	cuts->base_ns = replays[SIDE_BASE].recorded_ns;
	cuts->new_ns = replays[SIDE_NEW].recorded_ns;
	cuts->unexplained_ns = cuts->new_ns - cuts->base_ns;
	for (int i = 0; i < rows.count; i++)
		cuts->unexplained_ns -= rows.of[i].part_ns;
	add_promises(cuts, &rows);
	for (int i = 0; i < rows.count; i++)
		set_row(&comparison->explained_by, cuts, &rows.of[i]);
}

void comparison_add_cuts(struct comparison *comparison, const struct compared_sides *sides)
{
	struct table *table = &comparison->explained_by;
	struct compared_replay replays[SIDES];
	const char *reasons[SIDES];

	table_init(
		table, "explained_by", "Difference by cut",
		"what each cost that a replay can remove takes on both sides, and its part of the difference of a step");
	table_columns(table, columns, EXPLAINED_COLUMNS);
	for (int side = 0; side < SIDES; side++)
		reasons[side] = mean_replay(&replays[side], sides, side, &table->arena);
	comparison->cuts = (struct comparison_cuts){
		.reason = reasons[SIDE_BASE] ? reasons[SIDE_BASE] : reasons[SIDE_NEW],
		.is_either = !reasons[SIDE_BASE] || !reasons[SIDE_NEW],
	};
	table->empty = comparison->cuts.reason;
	if (!table->empty)
		explain(comparison, replays);
}
