/* SPDX-License-Identifier: Apache-2.0
 *
 * history_scatter.c: measures how much the speeds of a series' runs differ while the program is unchanged.
 */
#include "base/compare_numbers.h"
#include "base/memory.h"
#include "store/database.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_RUNS 4
#define DIFFERENCES_PER_CHANGE 16

/* In the order in which runs were added. ?1 is the series. */
static const char
	speeds[] = "SELECT runs.identity, rate.value, median.value FROM runs "
		   "LEFT JOIN numbers AS rate ON rate.run = runs.run AND rate.key = 'tokens_per_s' "
		   "LEFT JOIN numbers AS median ON median.run = runs.run AND median.key = 'step_time_p50_ns' "
		   "WHERE (?1 IS NULL OR runs.series = ?1) AND coalesce(rate.value, median.value) > 0 ORDER BY runs.run";

struct levels {
	double *of; /* logarithms */
	size_t count, capacity;
	bool are_rates; /* as for `best`: if any run of the series has a rate, only rates count */
};

static void history_scatter_add_level(struct levels *levels, sqlite3_stmt *statement)
{
	bool is_rate = sqlite3_column_double(statement, 1) > 0;

	if (is_rate && !levels->are_rates)
		levels->count = 0;
	levels->are_rates |= is_rate;
	if (is_rate != levels->are_rates)
		return;
	MEMORY_GROW(levels->of, levels->count, levels->capacity, 64);
	levels->of[levels->count++] = log(sqlite3_column_double(statement, is_rate ? 1 : 2));
}

/* Compares neighbouring runs, because the program changes over a history. Each change of the program makes one large
 * difference, so the largest 1 of DIFFERENCES_PER_CHANGE differences is left out. */
static double noise_of(struct levels *levels)
{
	size_t count = levels->count - 1, kept = count - count / DIFFERENCES_PER_CHANGE;
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		levels->of[i] = fabs(levels->of[i + 1] - levels->of[i]);
	qsort(levels->of, count, sizeof(*levels->of), compare_double);
	for (size_t i = 0; i < kept; i++)
		sum += levels->of[i] * levels->of[i];
	return sqrt(sum / (double)kept / 2);
}

enum status history_scatter(struct history *history, const char *series, const struct history_except *except,
                            struct history_scatter *scatter, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	struct levels levels = {0};
	enum status status = database_prepare(history, &statement, err, speeds, "t", series);

	while (database_step(history, &statement, &status, err)) {
		if (!history_is_excepted(column_text_or_empty(statement, 0), except))
			history_scatter_add_level(&levels, statement);
	}
	*scatter = (struct history_scatter){.runs = levels.count};
	if (levels.of && levels.count >= LEAST_RUNS) {
		scatter->has_noise = true;
		scatter->noise = noise_of(&levels);
	}
	free(levels.of);
	return status;
}
