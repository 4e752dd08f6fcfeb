/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_telemetry.c: the table `telemetry`: the activity of GPUs on both sides, seen from outside. Differences
 * have the unit of the quantity and are not ratios: a busy share may be 0, and degrees have no natural ratio. If there
 * are repeated runs, their scatter is the noise. Otherwise the noise comes from the values of the runs, in stretches
 * that depend on each other, and from the assumed noise from run to run.
 */
#include "base/memory.h"
#include "base/statistics.h"
#include "compare/comparison_build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct table_column columns[TELEMETRY_CHANGE_COLUMNS] = {
	[TELEMETRY_CHANGE_OF] = {.name = "of",
                                 .type = TABLE_TEXT,
                                 .role = ROLE_KEY,
                                 .definition = "the GPU, or a process on it, named as in the report's table telemetry"},
	[TELEMETRY_CHANGE_QUANTITY] = {.name = "quantity",
                                       .type = TABLE_TEXT,
                                       .role = ROLE_KEY,
                                       .definition = "measured quantity, named as in nvidia-smi"},
	[TELEMETRY_CHANGE_UNIT] = {.name = "unit",
                                   .type = TABLE_TEXT,
                                   .definition = "unit of base, new, their difference and its interval"},
	[TELEMETRY_CHANGE_BASE] = {.name = "base",
                                   .type = TABLE_DOUBLE,
                                   .definition = "median of all values of a run, mean over the runs of the base"},
	[TELEMETRY_CHANGE_NEW] = {.name = "new", .type = TABLE_DOUBLE, .definition = "same for the new side"},
	[TELEMETRY_CHANGE_DELTA] = {.name = "delta",
                                    .title = "difference",
                                    .type = TABLE_DOUBLE,
                                    .definition = "new minus base"},
	[TELEMETRY_CHANGE_LOW] =
		{.name = "ci95_low",
                 .title = "low",
                 .type = TABLE_DOUBLE,
                 .definition =
                         "lower end of the 95 % interval of the difference. With four or more runs, from their "
                         "scatter (Student's t). With fewer, from the assumed noise from run to run and the larger of "
                         "two errors: a stationary bootstrap of blocks of values, or the scatter of the medians of "
                         "eight parts of the run"},
	[TELEMETRY_CHANGE_HIGH] = {.name = "ci95_high",
                                   .title = "high",
                                   .type = TABLE_DOUBLE,
                                   .definition = "upper end of this interval"},
	[TELEMETRY_CHANGE_P] = {.name = "p_value",
                                .title = "p",
                                .type = TABLE_DOUBLE,
                                .role = ROLE_EVIDENCE,
                                .definition = "probability of a difference of this size if there is no change, adjusted "
                                              "for the number of rows (Holm)",
                                .is_hidden = true},
	[TELEMETRY_CHANGE_RESULT] =
		{.name = "result",
                 .type = TABLE_TEXT,
                 .definition =
                         "changed, no difference, inconclusive, not comparable (another kind of GPU) or not measured"},
	[TELEMETRY_CHANGE_BASE_VALUES] = {.name = "base_count",
                                          .title = "values base",
                                          .type = TABLE_INT,
                                          .unit = UNIT_COUNT,
                                          .role = ROLE_EVIDENCE,
                                          .definition = "values of the base",
                                          .rules = RULE_NOT_NEGATIVE},
	[TELEMETRY_CHANGE_NEW_VALUES] = {.name = "new_count",
                                         .title = "values new",
                                         .type = TABLE_INT,
                                         .unit = UNIT_COUNT,
                                         .role = ROLE_EVIDENCE,
                                         .definition = "values of the new side",
                                         .rules = RULE_NOT_NEGATIVE},
	[TELEMETRY_CHANGE_BLOCK] = {.name = "block_values",
                                    .title = "block",
                                    .type = TABLE_DOUBLE,
                                    .unit = UNIT_COUNT,
                                    .role = ROLE_EVIDENCE,
                                    .definition = "mean length of the bootstrap's blocks, the longest of all runs",
                                    .is_hidden = true},
	[TELEMETRY_CHANGE_REASON] = {.name = "reason", .type = TABLE_TEXT, .definition = "reason for the result"},
};

/* ---- quantities of all runs, each once ---- */

struct telemetry_seen {
	const struct compared_telemetry *telemetry;
	int side;
	size_t run, order;
};

struct quantity {
	const struct compared_telemetry *first;
	struct run_values medians;
	double variance; /* of the difference, from the values of the runs */
	double block, low, high;
	double same_low, same_high; /* 90 % interval: is there no change? */
	int64_t values[SIDES];
	size_t runs[SIDES], order;
	bool is_other_unit;
};

struct quantities {
	const struct compared_sides *sides;
	struct arena *arena;
	struct quantity *rows;
	size_t count;
};

static int compare_seen(const void *left, const void *right)
{
	const struct telemetry_seen *a = left, *b = right;
	int order = strcmp(a->telemetry->of, b->telemetry->of);

	order = order ? order : strcmp(a->telemetry->quantity, b->telemetry->quantity);
	return order ? order : (a->order > b->order) - (a->order < b->order);
}

/* Sorts in the order of the files. */
static int compare_order(const void *left, const void *right)
{
	const struct quantity *a = left, *b = right;

	return (a->order > b->order) - (a->order < b->order);
}

static bool telemetry_is_same(const struct compared_telemetry *a, const struct compared_telemetry *b)
{
	return !strcmp(a->of, b->of) && !strcmp(a->quantity, b->quantity);
}

static bool has_same_unit(const struct compared_telemetry *a, const struct compared_telemetry *b)
{
	return !strcmp(a->unit ? a->unit : "", b->unit ? b->unit : "");
}

static void add_seen(struct quantities *quantities, const struct telemetry_seen *seen)
{
	const struct compared_telemetry *telemetry = seen->telemetry;
	double runs = (double)quantities->sides->count[seen->side];
	struct quantity *row = &quantities->rows[quantities->count];

	if (quantities->count && telemetry_is_same(row[-1].first, telemetry)) {
		row--;
	} else {
		*row = (struct quantity){.first = telemetry, .order = seen->order};
		run_values_init(&row->medians, quantities->sides, quantities->arena);
		quantities->count++;
	}
	row->is_other_unit |= !has_same_unit(row->first, telemetry);
	row->medians.of[seen->side][seen->run] = telemetry->median;
	row->variance += telemetry->error * telemetry->error / (runs * runs);
	row->block = fmax(row->block, telemetry->block);
	row->values[seen->side] += telemetry->count;
	row->runs[seen->side]++;
}

static size_t list_seen(struct telemetry_seen *list, const struct compared_sides *sides)
{
	size_t count = 0;

	for (int side = 0; side < SIDES; side++)
		for (size_t i = 0; i < sides->count[side]; i++)
			for (size_t t = 0; t < sides->runs[side][i].telemetry_count; t++) {
				list[count] = (struct telemetry_seen){&sides->runs[side][i].telemetry[t], side, i,
				                                      count};
				count++;
			}
	return count;
}

static void quantities_init(struct quantities *quantities, const struct compared_sides *sides, struct arena *arena)
{
	size_t most = 1, count;
	struct telemetry_seen *list;

	for (int side = 0; side < SIDES; side++)
		for (size_t i = 0; i < sides->count[side]; i++)
			most += sides->runs[side][i].telemetry_count;
	list = memory_resize(NULL, most, sizeof(*list));
	*quantities = (struct quantities){sides, arena, memory_resize(NULL, most, sizeof(*quantities->rows)), 0};
	count = list_seen(list, sides);
	qsort(list, count, sizeof(*list), compare_seen);
	for (size_t i = 0; i < count; i++)
		add_seen(quantities, &list[i]);
	qsort(quantities->rows, quantities->count, sizeof(*quantities->rows), compare_order);
	free(list);
}

static bool is_measured(const struct quantity *row, const struct compared_sides *sides)
{
	return row->runs[SIDE_BASE] == sides->count[SIDE_BASE] && row->runs[SIDE_NEW] == sides->count[SIDE_NEW] &&
	       !row->is_other_unit;
}

/* ---- certainty ---- */

/* Computes the interval without repeated runs: from the values, and the assumed noise from run to run. */
static void assume_noise(struct quantity *row, const struct compared_sides *sides)
{
	double change = run_values_change(&row->medians, sides), variance = row->variance, error;

	for (int side = 0; side < SIDES; side++) {
		double assumed = sides->options->assumed_noise * run_values_mean(&row->medians, sides, side);

		variance += assumed * assumed / (double)sides->count[side];
	}
	error = sqrt(variance);
	row->low = change - student_t_limit(SURE, INFINITY) * error;
	row->high = change + student_t_limit(SURE, INFINITY) * error;
	row->same_low = change - student_t_limit(SURE_OF_SAME, INFINITY) * error;
	row->same_high = change + student_t_limit(SURE_OF_SAME, INFINITY) * error;
	row->medians.outside = student_t_chance(change, error, INFINITY);
}

static void test_rows(const struct quantities *quantities)
{
	const struct compared_sides *sides = quantities->sides;

	for (size_t i = 0; i < quantities->count; i++) {
		struct quantity *row = &quantities->rows[i];

		if (!is_measured(row, sides))
			continue;
		if (has_repeats(sides)) {
			run_values_interval(&row->medians, sides, SURE, &row->low, &row->high);
			run_values_interval(&row->medians, sides, SURE_OF_SAME, &row->same_low, &row->same_high);
			row->medians.outside = run_values_outside(&row->medians, sides);
		} else {
			assume_noise(row, sides);
		}
	}
	run_values_adjust(&quantities->rows[0].medians, sizeof(quantities->rows[0]), quantities->count);
}

/* ---- the result ---- */

struct telemetry_result {
	enum compare_result result;
	enum result_reason reason;
	const char *names[SIDES]; /* of the GPUs, for REASON_OTHER_GPU */
};

/* Finds the name of the GPU on both sides. Returns true if the names differ. */
static bool is_other_gpu(const struct quantity *row, const struct compared_sides *sides, const char *names[SIDES],
                         struct arena *arena)
{
	static const char *const keys[] = {"name", "gpu_name"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *key = arena_printf(arena, "%s.%s", row->first->of, keys[i]);

		for (int side = 0; side < SIDES; side++)
			names[side] = compared_run_fact(&sides->runs[side][0], key);
		if (names[SIDE_BASE] && names[SIDE_NEW] && strcmp(names[SIDE_BASE], names[SIDE_NEW]) != 0)
			return true;
	}
	return false;
}

static struct telemetry_result telemetry_judge(const struct quantity *row, const struct compared_sides *sides,
                                               struct arena *arena)
{
	const struct tested_change tested = {run_values_change(&row->medians, sides), row->same_low, row->same_high,
	                                     row->medians.outside};
	double base = fabs(run_values_mean(&row->medians, sides, SIDE_BASE));
	struct telemetry_result result = {
		.result = tested_result(&tested, sides->options->smallest * base, sides->options->tolerance * base)};

	if (is_other_gpu(row, sides, result.names, arena)) {
		result.result = RESULT_NOT_COMPARABLE;
		result.reason = REASON_OTHER_GPU;
	} else if (!isfinite(row->low) || !isfinite(row->high)) {
		result.reason = REASON_TOO_LARGE;
	} else if (result.result == RESULT_CHANGED) {
		result.reason = REASON_NOT_ZERO;
	} else if (result.result == RESULT_INCONCLUSIVE) {
		result.reason = REASON_POSSIBLE;
	} else {
		result.reason = row->medians.outside >= SURE ? REASON_RULED_OUT : REASON_SMALL;
	}
	return result;
}

static struct telemetry_result telemetry_decide(const struct quantity *row, const struct compared_sides *sides,
                                                struct arena *arena)
{
	struct telemetry_result result = {.result = RESULT_NOT_MEASURED};

	if (is_measured(row, sides))
		return telemetry_judge(row, sides, arena);
	if (row->is_other_unit)
		result.reason = REASON_OTHER_UNIT;
	else if (!row->runs[SIDE_BASE])
		result.reason = REASON_ONLY_NEW;
	else
		result.reason = row->runs[SIDE_NEW] ? REASON_NOT_ALL_RUNS : REASON_ONLY_BASE;
	return result;
}

/* ---- rows ---- */

static const char *telemetry_reason(const struct quantity *row, const struct telemetry_result *result,
                                    const struct compared_sides *sides, struct arena *arena)
{
	bool is_told_same = result->reason == REASON_RULED_OUT;
	const char *unit = row->first->unit ? row->first->unit : "";
	const char *range = arena_printf(arena, "%+.4g to %+.4g%s%s", is_told_same ? row->same_low : row->low,
	                                 is_told_same ? row->same_high : row->high, *unit ? " " : "", unit);
	const char *what = NULL;

	if (result->reason == REASON_OTHER_GPU)
		what = arena_printf(arena, "%s -> %s", result->names[SIDE_BASE], result->names[SIDE_NEW]);
	return result_reason_text(result->reason, range, what, sides->options, arena);
}

static void set_finite(struct table *table, int row, int column, double value)
{
	if (isfinite(value))
		table_set_double(table, row, column, value);
	else
		table_set_missing(table, row, column, "the values are too large to compute with");
}

static void telemetry_set_change(struct table *table, int row, const struct quantity *quantity,
                                 const struct compared_sides *sides)
{
	set_finite(table, row, TELEMETRY_CHANGE_DELTA, run_values_change(&quantity->medians, sides));
	set_finite(table, row, TELEMETRY_CHANGE_LOW, quantity->low);
	set_finite(table, row, TELEMETRY_CHANGE_HIGH, quantity->high);
	set_finite(table, row, TELEMETRY_CHANGE_P, quantity->medians.outside);
}

static void set_side(struct table *table, int row, int side, const struct quantity *quantity,
                     const struct compared_sides *sides, const char *reason)
{
	table_set_int(table, row, TELEMETRY_CHANGE_BASE_VALUES + side, quantity->values[side]);
	if (quantity->runs[side] == sides->count[side] && !quantity->is_other_unit)
		set_finite(table, row, TELEMETRY_CHANGE_BASE + side, run_values_mean(&quantity->medians, sides, side));
	else
		table_set_missing(table, row, TELEMETRY_CHANGE_BASE + side, reason);
}

static void telemetry_add_row(struct table *table, const struct quantity *quantity,
                              const struct telemetry_result *result, const struct compared_sides *sides)
{
	const char *reason = telemetry_reason(quantity, result, sides, &table->arena);
	int row = table_row(table);

	table_set_text(table, row, TELEMETRY_CHANGE_OF, quantity->first->of);
	table_set_text(table, row, TELEMETRY_CHANGE_QUANTITY, quantity->first->quantity);
	table_set_text_or(table, row, TELEMETRY_CHANGE_UNIT, quantity->first->unit, "the file names no unit");
	table_set_double(table, row, TELEMETRY_CHANGE_BLOCK, quantity->block);
	for (int side = 0; side < SIDES; side++)
		set_side(table, row, side, quantity, sides, reason);
	if (is_measured(quantity, sides))
		telemetry_set_change(table, row, quantity, sides);
	else
		for (int column = TELEMETRY_CHANGE_DELTA; column <= TELEMETRY_CHANGE_P; column++)
			table_set_missing(table, row, column, reason);
	table_set_text(table, row, TELEMETRY_CHANGE_RESULT, compare_result_name(result->result));
	table_set_text(table, row, TELEMETRY_CHANGE_REASON, reason);
}

/* ---- the table ---- */

static bool has_telemetry(const struct compared_sides *sides, int side)
{
	for (size_t i = 0; i < sides->count[side]; i++)
		if (sides->runs[side][i].telemetry_count)
			return true;
	return false;
}

void comparison_add_telemetry(struct comparison *comparison, struct compared_sides *sides)
{
	struct table *table = &comparison->telemetry;
	enum compare_result *results;
	struct quantities quantities;

	table_init(table, "telemetry", "GPU telemetry",
	           "medians of the values that nvidia-smi measured during the runs");
	table_columns(table, columns, TELEMETRY_CHANGE_COLUMNS);
	comparison->telemetry_results = NULL;
	if (!has_telemetry(sides, SIDE_BASE) || !has_telemetry(sides, SIDE_NEW)) {
		table->empty = "a side has no GPU telemetry";
		return;
	}
	quantities_init(&quantities, sides, &table->arena);
	test_rows(&quantities);
	comparison->telemetry_results = results = arena_array(&table->arena, quantities.count, sizeof(*results));
	for (size_t i = 0; i < quantities.count; i++) {
		struct telemetry_result result = telemetry_decide(&quantities.rows[i], sides, &table->arena);

		telemetry_add_row(table, &quantities.rows[i], &result, sides);
		results[i] = result.result;
	}
	if (!has_repeats(sides))
		table->note = arena_printf(
			&table->arena,
			"too few runs to measure the noise: intervals assume %.3g %% from run to run, "
			"plus the scatter of the values",
			100 * sides->options->assumed_noise);
	free(quantities.rows);
}
