/* SPDX-License-Identifier: Apache-2.0
 *
 * key_numbers.c: see the header. The numbers are data: a statement over the tables, and the column that holds the
 * reason if the statement returns NULL.
 */
#include "store/key_numbers.h"

#include "base/crc32c.h"
#include "query/query.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static const struct key_number {
	const char *key, *title;
	enum table_unit unit;
	const char *definition;
	const char *sql;
	const char *table, *column; /* the column with the reason */
	bool is_in_list;
} key_numbers[] = {
	{"steps", "steps", UNIT_COUNT, "complete steps of the job", "SELECT steps FROM run", "run", "steps", true},
	{"step_time_p50_ns", "median step", UNIT_NS, "median duration of a step",
         "SELECT p50_ns FROM step_time LIMIT 1", "step_time", "p50_ns", true},
	{"step_time_mean_ns", "mean step", UNIT_NS, "mean duration of a step", "SELECT mean_ns FROM step_time LIMIT 1",
         "step_time", "mean_ns", false},
	{"step_time_std_ns", "deviation of steps", UNIT_NS, "standard deviation of the duration of steps",
         "SELECT std_ns FROM step_time LIMIT 1", "step_time", "std_ns", false},
	{"step_time_p95_ns", "step p95", UNIT_NS, "95th percentile of the duration of steps",
         "SELECT p95_ns FROM step_time LIMIT 1", "step_time", "p95_ns", false},
	{"step_time_p99_ns", "step p99", UNIT_NS, "99th percentile of the duration of steps",
         "SELECT p99_ns FROM step_time LIMIT 1", "step_time", "p99_ns", false},
	{"step_time_min_ns", "shortest step", UNIT_NS, "duration of the shortest step",
         "SELECT min_ns FROM step_time LIMIT 1", "step_time", "min_ns", false},
	{"step_time_max_ns", "longest step", UNIT_NS, "duration of the longest step",
         "SELECT max_ns FROM step_time LIMIT 1", "step_time", "max_ns", false},
	{"tokens_per_s", "tokens/s", UNIT_COUNT, "tokens of the steps per second of their duration",
         "SELECT tokens_per_s FROM step_time LIMIT 1", "step_time", "tokens_per_s", true},
	{"samples_per_s", "samples/s", UNIT_COUNT, "samples of the steps per second of their duration",
         "SELECT samples_per_s FROM step_time LIMIT 1", "step_time", "samples_per_s", false},
	{"device_memory_peak_bytes", "device memory", UNIT_BYTES, "largest peak memory of one process on one device",
         "SELECT CASE WHEN count(*) = count(peak_bytes) THEN max(peak_bytes) END FROM memory "
         "WHERE category = 'all' AND device NOT LIKE 'host%'",
         "memory", "peak_bytes", true},
	{"host_memory_peak_bytes", "host memory", UNIT_BYTES,
         "largest peak of the host memory that one process allocated",
         "SELECT CASE WHEN count(*) = count(peak_bytes) THEN max(peak_bytes) END FROM memory "
         "WHERE category = 'all' AND device LIKE 'host%'",
         "memory", "peak_bytes", false},
	{"resident_peak_bytes", "resident memory", UNIT_BYTES, "largest resident memory of one process",
         "SELECT max(rss_peak_bytes) FROM processes", "processes", "rss_peak_bytes", false},
	{"loss_last", "last loss", UNIT_NONE,
         "last value of the metric 'loss', as mean over the processes that reported it",
         "SELECT avg(last) FROM metrics WHERE name = 'loss'", "metrics", "last", false},
	{"values_not_finite", "values not finite", UNIT_COUNT, "values of metrics that were NaN or infinite",
         "SELECT sum(nan_count) FROM metrics", "metrics", "nan_count", false},
	{"incomplete_steps", "incomplete steps", UNIT_COUNT, "steps without a recorded end",
         "SELECT incomplete_steps FROM run", "run", "incomplete_steps", false},
	{"lost_events", "dropped events", UNIT_COUNT, "events that the recorder had no space for",
         "SELECT lost_events FROM run", "run", "lost_events", false},
	{"overhead_ratio", "recording cost", UNIT_RATIO, "cost of recording", "SELECT overhead_ratio FROM run", "run",
         "overhead_ratio", false},
};

#define KEY_COUNT (int)(sizeof(key_numbers) / sizeof(key_numbers[0]))

void key_numbers_columns(struct table *table)
{
	for (int i = 0; i < KEY_COUNT; i++) {
		const struct key_number *number = &key_numbers[i];
		const struct table_column column = {.name = number->key,
		                                    .title = number->title,
		                                    .type = TABLE_DOUBLE,
		                                    .unit = number->unit,
		                                    .definition = number->definition,
		                                    .is_hidden = !number->is_in_list};

		table_column(table, &column);
	}
}

static const char *reason_of(struct report *report, const struct key_number *number)
{
	const struct table *table = report_table(report, number->table);
	int column = table_find_column(table, number->column);

	assert(column >= 0);
	for (int row = 0; row < table->row_count; row++) {
		if (!table_get(table, row, column)->has_value && table_get(table, row, column)->reason)
			return table_get(table, row, column)->reason;
	}
	if (!table->row_count && table->empty)
		return table->empty;
	return "the run has no such value";
}

static enum status pick(struct query *query, struct table *numbers, int column, struct error *err)
{
	struct table answer;
	double value;
	enum status status = query_begin(query, key_numbers[column].sql, err);

	if (!status)
		status = query_fetch(query, &answer, 1, err);
	if (status)
		return status;
	if (answer.row_count && table_number(&answer, 0, 0, &value))
		table_set_double(numbers, 0, column, value);
	else
		table_set_missing(numbers, 0, column, reason_of(query->report, &key_numbers[column]));
	table_release(&answer);
	return STATUS_OK;
}

enum status key_numbers_pick(struct table *numbers, struct report *report, struct error *err)
{
	const struct query_limits no_limits = {0};
	struct query query;
	enum status status = query_init(&query, report, &no_limits, err);

	table_init(numbers, "key_numbers", "Key numbers", "numbers of a run that the history shows");
	key_numbers_columns(numbers);
	table_row(numbers);
	for (int i = 0; i < KEY_COUNT && !status; i++)
		status = pick(&query, numbers, i, err);
	query_release(&query);
	if (status)
		table_release(numbers);
	return status;
}

/* Finds a key number by the name that comparisons use for it. */
static bool find_known(const struct compared_run *run, const char *key, double *value)
{
	static const char *const names[][2] = {{"step_time_mean_ns", "step_time_mean"},
	                                       {"step_time_p95_ns", "step_time_p95"},
	                                       {"tokens_per_s", "tokens_per_s"},
	                                       {"device_memory_peak_bytes", "device_memory"},
	                                       {"loss_last", "final_loss"},
	                                       {"values_not_finite", "not_finite"}};

	if (!strcmp(key, "steps"))
		*value = (double)run->summary.steps;
	else if (!strcmp(key, "step_time_p50_ns"))
		*value = run->summary.median_ns;
	else
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			const struct compared_value *known = strcmp(names[i][0], key) != 0
			                                             ? NULL
			                                             : compared_run_value(run, names[i][1]);

			if (known && known->has_value)
				return *value = known->value, true;
		}
	return !strcmp(key, "steps") || !strcmp(key, "step_time_p50_ns");
}

void key_numbers_of_run(struct table *numbers, const struct compared_run *run)
{
	double value = 0;

	table_init(numbers, "key_numbers", "Key numbers", "numbers of a run that the history shows");
	key_numbers_columns(numbers);
	table_row(numbers);
	for (int i = 0; i < KEY_COUNT; i++) {
		if (find_known(run, key_numbers[i].key, &value))
			table_set_double(numbers, 0, i, value);
		else
			table_set_missing(numbers, 0, i, "the file does not contain it");
	}
}

static const char *key_numbers_text_of(struct report *report, const char *column)
{
	const struct table *run = report_table(report, "run");
	const struct table_cell *cell = table_get(run, 0, table_find_column(run, column));

	return cell->has_value ? cell->text : "";
}

static int64_t key_numbers_number_of(struct report *report, const char *column)
{
	const struct table *run = report_table(report, "run");
	const struct table_cell *cell = table_get(run, 0, table_find_column(run, column));

	return cell->has_value ? cell->i : 0;
}

/* Returns a checksum of the samples. Profiles of stacks and tables of nvidia-smi note neither when nor where they were
 * made, so only their values tell them apart. */
static const char *samples_of(struct report *report)
{
	const struct model *model = report->model;
	uint32_t sum = 0;
	bool has_any = model->samples_count > 0;

	for (uint32_t i = 0; i < model->samples_count; i++)
		sum = crc32c(sum, &model->samples[i].weight, sizeof(model->samples[i].weight));
	for (uint32_t i = 0; i < model->series_count; i++) {
		const struct value_series *series = model->series[i];

		if (!series->subject)
			continue;
		sum = crc32c(sum, series->value, series->count * sizeof(*series->value));
		has_any = true;
	}
	return has_any ? arena_printf(&report->arena, "|%08" PRIx32, sum) : "";
}

const char *key_numbers_identity(struct report *report)
{
	return arena_printf(&report->arena, "%s|%s|%s|%" PRId64 "|%" PRId64 "|%" PRId64 "%s",
	                    key_numbers_text_of(report, "created"), key_numbers_text_of(report, "host"),
	                    key_numbers_text_of(report, "program"), key_numbers_number_of(report, "duration_ns"),
	                    key_numbers_number_of(report, "steps"), key_numbers_number_of(report, "events"),
	                    samples_of(report));
}

/* Returns the last part of a path without its endings: "train" for "/bin/train.py". */
static const char *plain_name(struct arena *arena, const char *path, size_t length)
{
	const char *copy = arena_dup_n(arena, path, length), *slash = strrchr(copy, '/');
	const char *base = slash && slash[1] ? slash + 1 : copy;
	size_t kept = strcspn(base, ".");

	return arena_dup_n(arena, base, kept ? kept : strlen(base));
}

/* Returns "train" for "python -u train.py --epochs 3" and "python -m train", or NULL if there is no script. */
static const char *script_name(struct arena *arena, const char *command)
{
	bool is_module = false;

	while (*command) {
		size_t length = strcspn(command, " ");

		if (is_module || (length > 3 && !strncmp(command + length - 3, ".py", 3)))
			return plain_name(arena, command, length);
		is_module = length == 2 && !strncmp(command, "-m", 2);
		command += length + strspn(command + length, " ");
	}
	return NULL;
}

/* Groups the runs of one program; for Python the program is the script. */
const char *key_numbers_series(struct report *report)
{
	const char *program = key_numbers_text_of(report, "program"), *found;

	found = plain_name(&report->arena, program, strlen(program));
	if (!strncmp(found, "python", 6))
		found = script_name(&report->arena, key_numbers_text_of(report, "command"));
	return found && found[0] ? found : plain_name(&report->arena, report->name, strlen(report->name));
}
