/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_collectives.c: the tables `rank_collectives` (a row per rank: who comes last, who waits, and the offsets of the
 * clocks) and `collective_times` (a row per collective: waiting for the last rank, and exchanging).
 */
#include "analysis/analysis_context.h"
#include "analysis/ranks/collective_waits.h"
#include "analysis/shared/intervals.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/input_steps.h"
#include "analysis/step_times/step_kinds.h"
#include "base/clamped.h"
#include "base/hash.h"
#include "base/memory.h"
#include "model/number_map.h"
#include "table/bound.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *unmatched_note(const struct collective_matches *matches, struct arena *arena)
{
	const char *note = "";

	if (matches->unmatched)
		note = arena_printf(arena, "; %s not matched (in one rank only, or in different numbers)",
		                    counted(arena, matches->unmatched, "execution"));
	if (matches->unnamed)
		note = arena_printf(arena, "%s; %s not matched (the names of their process groups were not recorded)",
		                    note, counted(arena, matches->unnamed, "execution"));
	return note;
}

static const char *clock_note(const struct collective_matches *matches, uint32_t processes, struct arena *arena)
{
	int64_t most_ns = 0;
	uint32_t changing = 0;

	for (uint32_t i = 0; i < processes; i++) {
		most_ns = matches->clocks[i].residual_ns > most_ns ? matches->clocks[i].residual_ns : most_ns;
		changing += matches->clocks[i].has_change;
	}
	if (matches->has_one_clock)
		return arena_printf(arena, "all ranks share the clock of one machine%s",
		                    unmatched_note(matches, arena));
	return arena_printf(arena,
	                    "rank clocks were aligned at the ends of %s%s; these ends still differ by %.1f us, "
	                    "so shorter times mean nothing%s",
	                    counted(arena, matches->group_count, "collective"),
	                    changing ? arena_printf(arena, " (piecewise for %s, because of drift or clock changes)",
	                                            counted(arena, changing, "rank"))
	                             : "",
	                    (double)most_ns / 1000, unmatched_note(matches, arena));
}

/* The steps of a collective are those in which all its ranks recorded it. */
static const char *rank_collectives_add_part(const char *note, struct analysis_context *context, struct arena *arena)
{
	const char *part = step_kinds_whole_note(analysis_context_step_times(context), arena);

	return part ? arena_printf(arena, "%s; %s", part, note) : note;
}

/* ---- ranks ---- */

enum {
	RANK_PROCESS,
	RANK_COLLECTIVES,
	RANK_LATE,
	RANK_LAST,
	RANK_LAST_RATIO,
	RANK_CAUSED,
	RANK_WAITS,
	RANK_WAITS_TOTAL,
	RANK_WAITS_FOR,
	RANK_AHEAD,
	RANK_CHANGE,
	RANK_RESIDUAL,
	RANK_COLUMNS,
};

static const struct table_column rank_columns[RANK_COLUMNS] = {
	[RANK_PROCESS] = PROCESS_COLUMN,
	[RANK_COLLECTIVES] = {.name = "collectives",
                              .type = TABLE_INT,
                              .unit = UNIT_COUNT,
                              .role = ROLE_EVIDENCE,
                              .definition = "number of collectives recorded in this rank and in other ranks",
                              .rules = RULE_NOT_NEGATIVE},
	[RANK_LATE] = {.name = "late_mean_ns",
                       .title = "late",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_NS,
                       .definition = "mean time from the arrival of the first rank to its own arrival",
                       .rules = RULE_NOT_NEGATIVE},
	[RANK_LAST] = {.name = "last_count",
                       .title = "last",
                       .type = TABLE_INT,
                       .unit = UNIT_COUNT,
                       .definition = "number of collectives at which it arrives last",
                       .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                       .other = "collectives"},
	[RANK_LAST_RATIO] = {.name = "last_ratio",
                             .title = "last %",
                             .type = TABLE_DOUBLE,
                             .unit = UNIT_RATIO,
                             .role = ROLE_SHARE,
                             .definition = "share of collectives at which it arrives last",
                             .denominator = "its collectives",
                             .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[RANK_CAUSED] =
		{.name = "caused_total_ns",
                 .title = "makes wait",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition = "total wait of all other ranks in the collectives at which it arrives last; the rank "
                               "at fault has the largest value",
                 .rules = RULE_NOT_NEGATIVE},
	[RANK_WAITS] = {.name = "waits_mean_ns",
                        .title = "waits",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_NS,
                        .definition = "mean time that it waits in a collective for the last rank to arrive. If it is in "
                                      "several at once, the wait counts once, in the one whose last rank arrived first",
                        .rules = RULE_NOT_NEGATIVE},
	[RANK_WAITS_TOTAL] = {.name = "waits_total_ns",
                              .title = "waits, all",
                              .type = TABLE_INT,
                              .unit = UNIT_NS,
                              .definition = "sum of these waits over all collectives",
                              .rules = RULE_NOT_NEGATIVE},
	[RANK_WAITS_FOR] = {.name = "waits_for",
                            .type = TABLE_TEXT,
                            .definition = "rank that it waits for longest, and the total wait"},
	[RANK_AHEAD] = {.name = "clock_ahead_ns",
                        .title = "clock ahead",
                        .type = TABLE_INT,
                        .unit = UNIT_NS,
                        .definition = "how far its clock is ahead of the others', measured at the ends of collectives, "
                                      "which are taken as simultaneous; the other columns are corrected by it. If it "
                                      "changes, the median; 0 if threads of one machine executed all collectives"},
	[RANK_CHANGE] = {.name = "clock_change_ns",
                         .title = "change",
                         .type = TABLE_INT,
                         .unit = UNIT_NS,
                         .role = ROLE_EVIDENCE,
                         .definition = "increase of clock_ahead_ns from its first collective to its last, if its clock "
                                       "drifts or was set: each time is corrected by the offset around it; 0: one offset "
                                       "corrects all times equally well"},
	[RANK_RESIDUAL] =
		{.name = "clock_residual_ns",
                 .title = "residual",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .role = ROLE_EVIDENCE,
                 .definition = "median distance of the ends of its collectives from the others' after the correction",
                 .rules = RULE_NOT_NEGATIVE},
};

#define PROCESSES_PAIRED 4096 /* with more processes the table does not say who waits for whom */

struct rank_sums {
	double late_ns;
	int64_t matches, last, caused_ns, waits_ns;
};

/* All data that was read corrects the clocks; the rows cover only the chosen steps. */
static bool is_told(const struct collective_run *run, const struct analysis_options *options)
{
	return !is_part_of_run(options) ||
	       (run->step >= options->filter.first_step && run->step <= options->filter.last_step);
}

/* waits: index is process that waits * processes + process that is waited for. */
static void sum_ranks(const struct collective_matches *matches, const struct analysis_options *options,
                      struct rank_sums *sums, int64_t *waits, uint32_t processes)
{
	struct collective_waits once;

	collective_waits_find(&once, matches, processes);
	for (uint32_t g = 0; g < matches->group_count; g++) {
		const struct collective_run *runs = &matches->list[matches->groups[g].first];
		uint32_t count = matches->groups[g].count;
		struct collective_arrival arrival = collective_matches_arrival(matches, &matches->groups[g]);

		if (!is_told(runs, options))
			continue;
		sums[arrival.last_process].last += arrival.first_ns < arrival.last_ns; /* otherwise all come at once */
		for (uint32_t i = 0; i < count; i++) {
			int64_t wait_ns = once.list[matches->groups[g].first + i].wait_ns;

			sums[runs[i].process].matches++;
			sums[runs[i].process].late_ns += (double)intervals_length(arrival.first_ns, runs[i].start_ns);
			clamped_add(&sums[runs[i].process].waits_ns, wait_ns);
			clamped_add(&sums[arrival.last_process].caused_ns, wait_ns);
			if (waits)
				clamped_add(&waits[(size_t)runs[i].process * processes + arrival.last_process],
				            wait_ns);
		}
	}
	collective_waits_release(&once);
}

static void set_waits_for(struct table *table, int row, const struct model *model, const int64_t *waits)
{
	uint32_t longest = 0;

	if (!waits) {
		table_set_missing(table, row, RANK_WAITS_FOR,
		                  "the input has too many processes to compute waits for each pair");
		return;
	}
	for (uint32_t i = 1; i < model->processes_count; i++)
		longest = waits[i] > waits[longest] ? i : longest;
	if (waits[longest] > 0)
		table_set_text(table, row, RANK_WAITS_FOR,
		               arena_printf(&table->arena, "%s (%.3f ms)", process_label(model, longest, &table->arena),
		                            (double)waits[longest] / 1e6));
	else
		table_set_missing(table, row, RANK_WAITS_FOR, "it waits for no rank");
}

static void add_rank(struct table *table, const struct model *model, const struct collective_matches *matches,
                     uint32_t process, const struct rank_sums *sums, const int64_t *waits)
{
	const struct rank_clock *clock = &matches->clocks[process];
	int row = table_row(table);

	table_set_text(table, row, RANK_PROCESS, process_label(model, process, &table->arena));
	table_set_int(table, row, RANK_COLLECTIVES, sums->matches);
	table_set_double(table, row, RANK_LATE, sums->late_ns / sums->matches);
	table_set_int(table, row, RANK_LAST, sums->last);
	table_set_double(table, row, RANK_LAST_RATIO, (double)sums->last / sums->matches);
	table_set_int(table, row, RANK_CAUSED, sums->caused_ns);
	table_set_double(table, row, RANK_WAITS, (double)sums->waits_ns / sums->matches);
	table_set_int(table, row, RANK_WAITS_TOTAL, sums->waits_ns);
	set_waits_for(table, row, model, waits);
	table_set_int(table, row, RANK_AHEAD, clock->ahead_ns);
	if (clock->matches >= COLLECTIVES_FOLLOWED)
		table_set_int(table, row, RANK_CHANGE, clock->has_change ? clock->change_ns : 0);
	else
		table_set_missing(table, row, RANK_CHANGE, "it has too few collectives to detect a change");
	table_set_int(table, row, RANK_RESIDUAL, clock->residual_ns);
}

static void add_ranks(struct table *table, const struct model *model, const struct analysis_options *options,
                      const struct collective_matches *matches)
{
	uint32_t processes = model->processes_count;
	size_t pairs = processes <= PROCESSES_PAIRED ? (size_t)processes * processes : 0;
	struct rank_sums *sums = memory_resize(NULL, processes, sizeof(*sums));
	int64_t *waits = pairs ? memory_resize(NULL, pairs, sizeof(*waits)) : NULL;

	memset(sums, 0, processes * sizeof(*sums));
	if (waits)
		memset(waits, 0, pairs * sizeof(*waits));
	sum_ranks(matches, options, sums, waits, processes);
	for (uint32_t i = 0; i < processes; i++)
		if (sums[i].matches)
			add_rank(table, model, matches, i, &sums[i], waits ? waits + (size_t)i * processes : NULL);
	free(sums);
	free(waits);
}

static enum status run_ranks(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct collective_matches matches;

	collective_matches_find(&matches, context);
	table_init(table, "rank_collectives", "Ranks at collectives",
	           "which ranks arrive late at the collectives that no rank leaves before all have "
	           "arrived, and which ranks wait for them");
	table_columns(table, rank_columns, RANK_COLUMNS);
	if (!matches.reason) {
		add_ranks(table, model, &context->options, &matches);
		table->note = rank_collectives_add_part(clock_note(&matches, model->processes_count, &table->arena),
		                                        context, &table->arena);
	}
	table->empty = matches.reason ? matches.reason : "the selected steps have no collective of several ranks";
	collective_matches_release(&matches);
	return STATUS_OK;
}

const struct analysis analysis_rank_collectives = {
	.name = "rank_collectives",
	.row = "rank",
	.question = "which rank do the others wait for?",
	.run = run_ranks,
	.is_of_operators = true,
};

/* ---- collectives ---- */

enum {
	TIMES_COLLECTIVE,
	TIMES_GROUP,
	TIMES_MEMBERS,
	TIMES_BYTES,
	TIMES_RANKS,
	TIMES_COUNT,
	TIMES_MEAN,
	TIMES_SKEW,
	TIMES_SKEW_MAX,
	TIMES_EXCHANGE,
	TIMES_EXCHANGE_RATIO,
	TIMES_ALG_RATE,
	TIMES_BUS_RATE,
	TIMES_COLUMNS,
};

static const struct table_column times_columns[TIMES_COLUMNS] = {
	[TIMES_COLLECTIVE] = {.name = "collective",
                              .type = TABLE_TEXT,
                              .role = ROLE_KEY,
                              .definition = "kind of collective"},
	[TIMES_GROUP] = {.name = "group",
                         .type = TABLE_TEXT,
                         .role = ROLE_KEY,
                         .definition = "name of its process group"},
	[TIMES_MEMBERS] = {.name = "group_members",
                           .title = "members",
                           .type = TABLE_TEXT,
                           .role = ROLE_EVIDENCE,
                           .definition = "ranks of the process group"},
	[TIMES_BYTES] = {.name = "bytes",
                         .type = TABLE_INT,
                         .unit = UNIT_BYTES,
                         .role = ROLE_KEY,
                         .definition = "size of each, as in the table communication; mean over the ranks"},
	[TIMES_RANKS] = {.name = "recorded_ranks",
                         .title = "ranks",
                         .type = TABLE_INT,
                         .unit = UNIT_COUNT,
                         .role = ROLE_KEY,
                         .definition = "number of ranks in which it was recorded"},
	[TIMES_COUNT] = {.name = "count",
                         .type = TABLE_INT,
                         .unit = UNIT_COUNT,
                         .definition = "number of times that all these ranks executed it",
                         .rules = RULE_NOT_NEGATIVE,
                         .more = MORE_SUM},
	[TIMES_MEAN] = {.name = "mean_ns",
                        .title = "mean",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_NS,
                        .definition = "mean duration in a rank, including waits",
                        .rules = RULE_NOT_NEGATIVE},
	[TIMES_SKEW] = {.name = "skew_mean_ns",
                        .title = "skew",
                        .type = TABLE_DOUBLE,
                        .unit = UNIT_NS,
                        .definition = "mean time from the arrival of the first rank to that of the last",
                        .rules = RULE_NOT_NEGATIVE},
	[TIMES_SKEW_MAX] = {.name = "skew_max_ns",
                            .title = "skew max",
                            .type = TABLE_INT,
                            .unit = UNIT_NS,
                            .definition = "longest time from the arrival of the first rank to that of the last",
                            .rules = RULE_NOT_NEGATIVE,
                            .more = MORE_MOST},
	[TIMES_EXCHANGE] = {.name = "exchange_mean_ns",
                            .title = "exchange",
                            .type = TABLE_DOUBLE,
                            .unit = UNIT_NS,
                            .definition = "mean time from the arrival of the last rank until the first rank leaves: data "
                                          "moves, and no rank waits for another",
                            .rules = RULE_NOT_NEGATIVE},
	[TIMES_EXCHANGE_RATIO] = {.name = "exchange_ratio",
                                  .title = "exchange %",
                                  .type = TABLE_DOUBLE,
                                  .unit = UNIT_RATIO,
                                  .role = ROLE_SHARE,
                                  .definition = "share of the mean duration without waits",
                                  .denominator = "mean duration",
                                  .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[TIMES_ALG_RATE] = {.name = "algorithm_bytes_per_s",
                            .title = "algbw",
                            .type = TABLE_DOUBLE,
                            .unit = UNIT_BYTES_PER_SECOND,
                            .definition = "bytes divided by exchange_mean_ns"},
	[TIMES_BUS_RATE] = {.name = "bus_bytes_per_s",
                            .title = "busbw",
                            .type = TABLE_DOUBLE,
                            .unit = UNIT_BYTES_PER_SECOND,
                            .definition = COMMUNICATION_BUS_RATE_DEFINITION},
};

struct collective_times {
	struct communication_size size; /* of its first run; bytes: mean over the ranks */
	const char *group, *members;
	uint32_t ranks;
	int64_t count, runs, skew_max_ns;
	double time_ns, skew_ns, exchange_ns;
};

static double mean_bytes(const struct collective_run *runs, uint32_t count)
{
	double bytes = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!runs[i].size.has_bytes)
			return -1;
		bytes += runs[i].size.bytes;
	}
	return bytes / count;
}

struct times_list {
	struct collective_times *items;
	uint32_t count;
	struct number_map by_key; /* size and ranks, within the current kind and group */
};

static struct collective_times *times_of(struct times_list *list, const struct collective_run *run, uint32_t ranks,
                                         double bytes)
{
	uint64_t key;
	uint32_t found;
	struct collective_times *times;

	memcpy(&key, &bytes, sizeof(key));
	found = number_map_add(&list->by_key, hash_two(key, ranks), list->count);
	times = &list->items[found];
	if (found < list->count)
		return times;
	list->count++;
	*times = (struct collective_times){
		.size = run->size, .group = run->group, .members = run->members, .ranks = ranks};
	times->size.has_bytes = bytes >= 0;
	times->size.bytes = bytes;
	return times;
}

static void add_match(struct collective_times *times, const struct collective_matches *matches,
                      const struct collective_match *match)
{
	const struct collective_run *runs = &matches->list[match->first];
	struct collective_arrival arrival = collective_matches_arrival(matches, match);
	int64_t skew_ns = intervals_length(arrival.first_ns, arrival.last_ns);

	times->count++;
	times->runs += match->count;
	times->skew_ns += (double)skew_ns;
	times->skew_max_ns = skew_ns > times->skew_max_ns ? skew_ns : times->skew_max_ns;
	if (arrival.end_ns > arrival.last_ns)
		times->exchange_ns += (double)intervals_length(arrival.last_ns, arrival.end_ns);
	for (uint32_t i = 0; i < match->count; i++)
		times->time_ns += (double)intervals_length(runs[i].start_ns, runs[i].end_ns);
}

static void add_times(struct table *table, const struct collective_times *times)
{
	double mean_ns = times->time_ns / (double)times->runs, exchange_ns = times->exchange_ns / (double)times->count;
	struct communication_size size = times->size;
	int row = table_row(table);

	table_set_text(table, row, TIMES_COLLECTIVE, size.collective);
	table_set_text_or(table, row, TIMES_GROUP, times->group[0] ? times->group : NULL, "the trace does not say it");
	table_set_text_or(table, row, TIMES_MEMBERS, times->members[0] ? times->members : NULL,
	                  "the trace does not say it");
	if (size.has_bytes && size.bytes < 0x1p63)
		table_set_int(table, row, TIMES_BYTES, (int64_t)size.bytes);
	else
		table_set_missing(table, row, TIMES_BYTES, "the trace does not say it for all ranks");
	table_set_int(table, row, TIMES_RANKS, times->ranks);
	table_set_int(table, row, TIMES_COUNT, times->count);
	table_set_double(table, row, TIMES_MEAN, mean_ns);
	table_set_double(table, row, TIMES_SKEW, times->skew_ns / (double)times->count);
	table_set_int(table, row, TIMES_SKEW_MAX, times->skew_max_ns);
	table_set_double(table, row, TIMES_EXCHANGE, exchange_ns);
	if (mean_ns > 0)
		table_set_double(table, row, TIMES_EXCHANGE_RATIO, exchange_ns < mean_ns ? exchange_ns / mean_ns : 1);
	else
		table_set_missing(table, row, TIMES_EXCHANGE_RATIO, "it took no measurable time");
	table_set_missing(table, row, TIMES_ALG_RATE,
	                  "its bytes are unknown, or its ranks never executed it at the same time");
	table_set_missing(table, row, TIMES_BUS_RATE,
	                  "its bytes are unknown, or its ranks never executed it at the same time");
	if (!size.has_bytes || exchange_ns <= 0)
		return;
	size.ranks = size.ranks ? size.ranks : times->ranks;
	table_set_double(table, row, TIMES_ALG_RATE, size.bytes / (exchange_ns / 1e9));
	table_set_double(table, row, TIMES_BUS_RATE,
	                 size.bytes / (exchange_ns / 1e9) * communication_bus_factor(&size));
}

static bool is_alike(const struct collective_run *a, const struct collective_run *b)
{
	return !strcmp(a->size.collective, b->size.collective) && !strcmp(a->group, b->group) &&
	       !strcmp(a->members, b->members);
}

/* Returns true if its size is unknown because its step has no inputs. */
static bool is_in_step_without_inputs(const struct model *model, const struct collective_run *run)
{
	const struct model_step *step = step_times_step_at(model, run->process, run->start_ns);

	return step && step->has_detail && !step->has_shapes;
}

/* Collectives of a kind and group are adjacent. is_part: not all steps have inputs, so collectives in the others have
 * no size. Returns the number of those. */
static uint32_t add_all_times(struct table *table, const struct model *model, const struct analysis_options *options,
                              const struct collective_matches *matches, bool is_part)
{
	struct times_list list = {.items = memory_resize(NULL, (size_t)matches->group_count + 1, sizeof(*list.items))};
	uint32_t left_out = 0;

	for (uint32_t g = 0; g < matches->group_count; g++) {
		const struct collective_run *runs = &matches->list[matches->groups[g].first];
		uint32_t ranks = matches->groups[g].count;

		if (g && !is_alike(runs, &matches->list[matches->groups[g - 1].first]))
			number_map_release(&list.by_key);
		if (!is_told(runs, options))
			continue;
		double bytes = mean_bytes(runs, ranks);
		if (is_part && bytes < 0 && is_in_step_without_inputs(model, runs))
			left_out++;
		else
			add_match(times_of(&list, runs, ranks, bytes), matches, &matches->groups[g]);
	}
	table_bound(table, TIMES_SKEW);
	for (uint32_t i = 0; i < list.count; i++)
		add_times(table, &list.items[i]);
	table_add_more(table, TIMES_COLLECTIVE);
	table_sort(table, TIMES_SKEW, false);
	number_map_release(&list.by_key);
	free(list.items);
	return left_out;
}

static enum status run_times(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct collective_matches matches;

	collective_matches_find(&matches, context);
	table_init(table, "collective_times", "Collectives over the ranks",
	           "collectives over all their ranks: waiting for the last rank, and exchanging data");
	table_columns(table, times_columns, TIMES_COLUMNS);
	if (!matches.reason) {
		bool is_part = input_steps_are_part(analysis_context_step_times(context), model);
		uint32_t left_out = add_all_times(table, model, &context->options, &matches, is_part);

		table->note = rank_collectives_add_part(clock_note(&matches, model->processes_count, &table->arena),
		                                        context, &table->arena);
		if (left_out)
			table->note = arena_printf(&table->arena,
			                           "%s; not counted: %s in steps without inputs, which give the sizes",
			                           table->note, counted(&table->arena, left_out, "collective"));
	}
	table->empty = matches.reason ? matches.reason : "the selected steps have no collective of several ranks";
	collective_matches_release(&matches);
	return STATUS_OK;
}

const struct analysis analysis_collective_times = {
	.name = "collective_times",
	.row = "collective and size",
	.question = "do collectives wait for ranks or exchange data?",
	.run = run_times,
	.is_of_operators = true,
};
