/* SPDX-License-Identifier: Apache-2.0
 *
 * compared_ranks.c: how long ranks wait for each late rank in a step, from the tables `ranks` and `rank_phases`. The
 * level of phases alone would blame the waiting ranks, because they spend the time in communication.
 */
#include "compare/compared.h"
#include "model/cell_words.h"

#include <string.h>

/* Both as in rule SS602. */
#define PHASE_SHARE 0.25 /* of the wait of the others: a phase that differs by less is not where the rank is late */
#define LATE_SHARE 0.05  /* of a step: if a rank is later than the next by more, its phase is named */

/* Returns the phase in which this rank is the slowest with the largest spread; NULL: none has a spread above least_ns. */
static const char *late_phase(struct report *report, const char *process, double least_ns)
{
	const struct table *phases = report_table(report, "rank_phases");
	const char *latest = NULL;
	double most_ns = least_ns;

	for (int row = 0; row < phases->row_count; row++) {
		const char *phase = compared_text_at(phases, row, "phase");
		const char *slowest = compared_text_at(phases, row, "slowest");
		double spread_ns = compared_number_at(phases, row, "spread_ns");

		if (!strcmp(phase, CELL_PHASE_STEP) || !strcmp(phase, CELL_PHASE_COMMUNICATION) || !slowest ||
		    strcmp(slowest, process) != 0 || spread_ns <= most_ns)
			continue;
		most_ns = spread_ns;
		latest = phase;
	}
	return latest;
}

static const char *late_name(struct compared_run *run, struct report *report, const struct table *ranks, int row)
{
	const char *process = compared_text_at(ranks, row, "process"), *phase = NULL;

	if (compared_number_at(ranks, row, "excess_ns") > LATE_SHARE * compared_number_at(ranks, row, "mean_ns"))
		phase = late_phase(report, process, PHASE_SHARE * compared_number_at(ranks, row, "caused_ns"));
	return phase ? arena_printf(&run->arena, "%s, in %s", process, phase) : process;
}

/* Returns false for processes without a rank, because their names are pids, which differ in every run. */
static bool are_comparable(const struct table *ranks)
{
	int rank = table_find_column(ranks, "rank"), caused = table_find_column(ranks, "caused_ns");

	for (int row = 0; row < ranks->row_count; row++)
		if (!table_get(ranks, row, rank)->has_value || !table_get(ranks, row, caused)->has_value)
			return false;
	return ranks->row_count > 1;
}

void compared_read_ranks(struct compared_run *run, struct report *report)
{
	const struct table *ranks = report_table(report, "ranks");
	double others = ranks->row_count > 1 ? (double)(ranks->row_count - 1) / ranks->row_count : 0;

	if (!run->steps_count || !are_comparable(ranks))
		return;
	for (int row = 0; row < ranks->row_count; row++) /* 0 is added, too: it is known that no rank waited */
		compared_run_add_part(run, &(struct compared_part){
						   .level = COMPARED_LATE_RANK,
						   .name = late_name(run, report, ranks, row),
						   .amount = others * compared_number_at(ranks, row, "caused_ns"),
					   });
}
