/* SPDX-License-Identifier: Apache-2.0
 *
 * kept_run.c: writes the data that a comparison needs of a run (compare/compared_run.h) into the history and reads it
 * back. Nothing is recomputed: a run that was read back compares like the original.
 */
#include "store/kept_run.h"

#include "base/crc32c.h"
#include "base/memory.h"
#include "store/database.h"
#include "store/kept_samples.h"

#include <math.h>
#include <string.h>

/* ---- checksum ---- */

/* Returns the index of the first step to keep: of many steps only the last ones are kept. */
static size_t first_kept(const struct compared_run *run)
{
	return run->steps_count > HISTORY_STEPS ? run->steps_count - HISTORY_STEPS : 0;
}

/* Adds the number as SQLite returns it: NaN becomes NULL, and -0 becomes 0. */
static uint32_t sum_number(uint32_t sum, bool has_value, double value)
{
	const char is_known = has_value && !isnan(value);

	value = is_known ? value + 0.0 : 0;
	return crc32c(crc32c(sum, &is_known, 1), &value, sizeof(value));
}

static uint32_t sum_text(uint32_t sum, const char *text)
{
	return crc32c(sum, text, strlen(text) + 1);
}

static uint32_t sum_step(uint32_t sum, const struct compared_step *step)
{
	sum = sum_number(sum, true, (double)step->number);
	sum = sum_number(sum, true, step->dur_ns);
	sum = sum_number(sum, step->has_cpu, step->cpu_ns);
	sum = sum_number(sum, step->has_cpu, step->running_ns);
	sum = sum_number(sum, step->has_tokens, step->tokens);
	sum = sum_number(sum, step->has_samples, step->samples);
	for (int phase = 0; phase < PHASE_COUNT; phase++)
		sum = sum_number(sum, step->has_phases, step->phase_ns[phase]);
	return sum;
}

static uint32_t sum_samples(uint32_t sum, const struct compared_run *run)
{
	for (size_t i = 0; i < run->functions_count; i++) {
		const struct compared_function *function = &run->functions[i];

		sum = sum_text(sum_text(sum, function->what), function->name);
		sum = sum_number(sum, true, function->self);
		sum = sum_number(sum, true, function->total);
		sum = sum_number(sum, true, function->self_ratio);
		sum = sum_number(sum, true, function->total_ratio);
	}
	for (size_t i = 0; i < run->telemetry_count; i++) {
		const struct compared_telemetry *telemetry = &run->telemetry[i];

		sum = sum_text(sum_text(sum, telemetry->of), telemetry->quantity);
		sum = sum_number(sum, true, telemetry->median);
		sum = sum_number(sum, true, telemetry->error);
	}
	return sum;
}

/* Returns the checksum of the run's numbers, because a damaged file can still be a valid database. */
static uint32_t sum_run(const struct compared_run *run)
{
	uint32_t sum = 0;

	sum = sum_number(sum, run->summary.steps, (double)run->summary.steps);
	sum = sum_number(sum, run->summary.steps, run->summary.median_ns);
	sum = sum_number(sum, run->summary.steps, run->summary.error);
	sum = sum_number(sum, run->summary.steps, run->summary.tokens);
	for (size_t i = first_kept(run); i < run->steps_count; i++)
		sum = sum_step(sum, &run->steps[i]);
	for (size_t i = 0; i < run->values_count; i++)
		sum = sum_number(sum_text(sum, run->values[i].name), run->values[i].has_value, run->values[i].value);
	for (size_t i = 0; i < run->parts_count; i++) {
		sum = sum_text(sum_text(sum, run->parts[i].level), run->parts[i].name);
		sum = sum_number(sum, true, run->parts[i].amount);
		sum = sum_number(sum, run->parts[i].has_calls, run->parts[i].calls);
	}
	return sum_samples(sum, run);
}

/* ---- writing ---- */

static enum status write_facts(const struct history *history, int64_t number, const struct compared_run *run,
                               struct error *err)
{
	enum status status = STATUS_OK;

	for (size_t i = 0; i < run->facts_count && !status; i++)
		status = database_change(history, err, "INSERT INTO facts VALUES(?, ?, ?, ?, ?)", "iittt", number,
		                         (int64_t)i, fact_kind_names[run->facts[i].kind], run->facts[i].name,
		                         run->facts[i].value);
	return status;
}

static enum status write_values(const struct history *history, int64_t number, const struct compared_run *run,
                                struct error *err)
{
	enum status status = STATUS_OK;

	for (size_t i = 0; i < run->values_count && !status; i++) {
		const struct compared_value *value = &run->values[i];

		status = database_change(history, err, "INSERT INTO metrics VALUES(?, ?, ?, ?, ?)",
		                         value->has_value ? "iitdt" : "iitnt", number, (int64_t)i, value->name,
		                         value->value, value->has_value ? NULL : value->reason);
	}
	return status;
}

static enum status write_parts(const struct history *history, int64_t number, const struct compared_run *run,
                               struct error *err)
{
	enum status status = STATUS_OK;

	for (size_t i = 0; i < run->parts_count && !status; i++) {
		const struct compared_part *part = &run->parts[i];

		status = database_change(history, err, "INSERT INTO parts VALUES(?, ?, ?, ?, ?, ?, ?)",
		                         part->has_calls ? "iitttdd" : "iitttdn", number, (int64_t)i, part->level,
		                         part->name, part->family, part->amount, part->calls);
	}
	return status;
}

static int bind_optional(sqlite3_stmt *statement, int place, bool has_value, double value)
{
	return has_value ? sqlite3_bind_double(statement, place, value) : sqlite3_bind_null(statement, place);
}

/* Uses one prepared statement for all steps, because there may be thousands. */
static bool write_step(sqlite3_stmt *statement, const struct compared_step *step, int64_t place)
{
	sqlite3_bind_int64(statement, 2, place);
	sqlite3_bind_int64(statement, 3, step->number);
	sqlite3_bind_double(statement, 4, step->dur_ns);
	bind_optional(statement, 5, step->has_cpu, step->cpu_ns);
	bind_optional(statement, 6, step->has_cpu, step->running_ns);
	bind_optional(statement, 7, step->has_tokens, step->tokens);
	bind_optional(statement, 8, step->has_samples, step->samples);
	for (int phase = 0; phase < PHASE_COUNT; phase++)
		bind_optional(statement, 9 + phase, step->has_phases, step->phase_ns[phase]);
	return sqlite3_step(statement) == SQLITE_DONE && sqlite3_reset(statement) == SQLITE_OK;
}

static enum status write_steps(const struct history *history, int64_t number, const struct compared_run *run,
                               struct error *err)
{
	sqlite3_stmt *statement = NULL;
	enum status status = database_prepare(
		history, &statement, err, "INSERT INTO steps VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		"i", number);

	for (size_t i = first_kept(run); i < run->steps_count && !status; i++) {
		if (!write_step(statement, &run->steps[i], (int64_t)i))
			status = database_error(history, err);
	}
	sqlite3_finalize(statement);
	return status;
}

enum status kept_run_write(const struct history *history, int64_t number, const struct compared_run *run,
                           struct error *err)
{
	if (write_facts(history, number, run, err) || write_values(history, number, run, err) ||
	    write_parts(history, number, run, err))
		return err->status;
	if (write_steps(history, number, run, err) || kept_samples_write(history, number, run, err))
		return err->status;
	return database_change(history, err, "INSERT INTO numbers VALUES(?, 'checksum', ?, NULL)", "id", number,
	                       (double)sum_run(run));
}

/* ---- reading ---- */

static const char *own_text(struct compared_run *run, sqlite3_stmt *statement, int column)
{
	const char *text = column_text(statement, column);

	return text ? arena_dup(&run->arena, text) : NULL;
}

static enum status read_head(struct history *history, int64_t number, struct compared_run *run, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	enum status status = database_prepare(
		history, &statement, err,
		"SELECT created, created_ns, no_steps, warm_up, warm_up_reason, summary_steps, summary_median_ns, "
		"summary_error, summary_tokens FROM runs WHERE run = ?",
		"i", number);

	while (database_step(history, &statement, &status, err)) {
		database_has_numbers(history, statement, 1, 1, &status, err);
		database_has_numbers(history, statement, 3, 1, &status, err);
		run->created = own_text(run, statement, 0);
		run->has_created = sqlite3_column_type(statement, 1) != SQLITE_NULL;
		run->created_ns = sqlite3_column_int64(statement, 1);
		run->no_steps = own_text(run, statement, 2);
		run->warm_up = sqlite3_column_int64(statement, 3);
		run->warm_up_reason = own_text(run, statement, 4);
		database_has_numbers(history, statement, 5, 4, &status, err);
		run->summary.steps = sqlite3_column_int64(statement, 5);
		run->summary.median_ns = sqlite3_column_double(statement, 6);
		run->summary.error = sqlite3_column_double(statement, 7);
		run->summary.tokens = sqlite3_column_double(statement, 8);
	}
	return status;
}

static enum status read_facts(struct history *history, int64_t number, struct compared_run *run, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	enum status status = database_prepare(history, &statement, err,
	                                      "SELECT kind, name, value FROM facts WHERE run = ? ORDER BY place", "i",
	                                      number);

	while (database_step(history, &statement, &status, err)) {
		int kind = 0;

		while (kind < FACT_KINDS && strcmp(fact_kind_names[kind], column_text_or_empty(statement, 0)) != 0)
			kind++;
		if (kind < FACT_KINDS) /* otherwise a later version wrote it, and this one does not know it */
			compared_run_add_fact(run, (enum fact_kind)kind, column_text_or_empty(statement, 1),
			                      column_text_or_empty(statement, 2));
	}
	return status;
}

static enum status kept_run_read_values(struct history *history, int64_t number, struct compared_run *run,
                                        struct error *err)
{
	sqlite3_stmt *statement = NULL;
	enum status status = database_prepare(history, &statement, err,
	                                      "SELECT name, value, reason FROM metrics WHERE run = ? ORDER BY place",
	                                      "i", number);

	while (database_step(history, &statement, &status, err)) {
		if (!database_has_numbers(history, statement, 1, 1, &status, err))
			continue;
		if (sqlite3_column_type(statement, 1) != SQLITE_NULL)
			compared_run_add_value(run, column_text_or_empty(statement, 0),
			                       sqlite3_column_double(statement, 1));
		else
			compared_run_add_missing(run, column_text_or_empty(statement, 0),
			                         column_text_or_empty(statement, 2));
	}
	return status;
}

static enum status read_parts(struct history *history, int64_t number, struct compared_run *run, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	enum status status = database_prepare(
		history, &statement, err,
		"SELECT level, name, family, amount, calls FROM parts WHERE run = ? ORDER BY place", "i", number);

	while (database_step(history, &statement, &status, err)) {
		const struct compared_part part = {
			.level = column_text_or_empty(statement, 0),
			.name = column_text_or_empty(statement, 1),
			.family = column_text(statement, 2),
			.amount = sqlite3_column_double(statement, 3),
			.has_calls = sqlite3_column_type(statement, 4) != SQLITE_NULL,
			.calls = sqlite3_column_double(statement, 4),
		};

		if (database_has_numbers(history, statement, 3, 2, &status, err))
			compared_run_add_part(run, &part);
	}
	return status;
}

static void kept_run_add_step(struct compared_run *run, const struct compared_step *step)
{
	MEMORY_GROW(run->steps, run->steps_count, run->steps_capacity, 64);
	run->steps[run->steps_count++] = *step;
}

static struct compared_step step_of(sqlite3_stmt *statement)
{
	struct compared_step step = {
		.number = sqlite3_column_int64(statement, 0),
		.dur_ns = sqlite3_column_double(statement, 1),
		.has_cpu = sqlite3_column_type(statement, 2) != SQLITE_NULL,
		.cpu_ns = sqlite3_column_double(statement, 2),
		.running_ns = sqlite3_column_double(statement, 3),
		.has_tokens = sqlite3_column_type(statement, 4) != SQLITE_NULL,
		.tokens = sqlite3_column_double(statement, 4),
		.has_samples = sqlite3_column_type(statement, 5) != SQLITE_NULL,
		.samples = sqlite3_column_double(statement, 5),
		.has_phases = sqlite3_column_type(statement, 6) != SQLITE_NULL,
	};

	for (int phase = 0; phase < PHASE_COUNT; phase++)
		step.phase_ns[phase] = sqlite3_column_double(statement, 6 + phase);
	return step;
}

static enum status read_steps(struct history *history, int64_t number, struct compared_run *run, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	enum status status = database_prepare(
		history, &statement, err,
		"SELECT step, duration_ns, cpu_ns, running_ns, tokens, samples, other_ns, data_ns, forward_ns, backward_ns, optimizer_ns, "
		"communication_ns, checkpoint_ns, evaluation_ns FROM steps WHERE run = ? ORDER BY place",
		"i", number);

	while (database_step(history, &statement, &status, err)) {
		const struct compared_step step = step_of(statement);

		if (database_has_numbers(history, statement, 0, 6 + PHASE_COUNT, &status, err))
			kept_run_add_step(run, &step);
	}
	return status;
}

static enum status check_sum(const struct history *history, int64_t number, const struct compared_run *run,
                             struct error *err)
{
	sqlite3_stmt *statement = NULL;
	bool is_right = false;
	enum status status = database_prepare(
		history, &statement, err, "SELECT value FROM numbers WHERE run = ? AND key = 'checksum'", "i", number);

	while (database_step(history, &statement, &status, err))
		is_right = sqlite3_column_int64(statement, 0) == (int64_t)sum_run(run);
	if (!status && !is_right)
		status = database_damaged(history, "a number of the run has changed since it was added", err);
	return status;
}

enum status kept_run_read(struct history *history, int64_t number, struct compared_run *run, struct error *err)
{
	*run = (struct compared_run){0};
	arena_init(&run->arena, 0);
	if (!read_head(history, number, run, err) && !read_facts(history, number, run, err) &&
	    !kept_run_read_values(history, number, run, err) && !read_parts(history, number, run, err) &&
	    !read_steps(history, number, run, err) && !kept_samples_read(history, number, run, err) &&
	    !check_sum(history, number, run, err))
		return STATUS_OK;
	compared_run_release(run);
	return err->status;
}
