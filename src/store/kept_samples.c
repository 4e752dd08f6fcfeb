/* SPDX-License-Identifier: Apache-2.0
 *
 * kept_samples.c: samples that the history keeps of a run: functions of sampled stacks, and telemetry of GPUs.
 */
#include "store/kept_samples.h"

#include "store/database.h"

/* ---- writing ---- */

static enum status write_functions(const struct history *history, int64_t number, const struct compared_run *run,
                                   struct error *err)
{
	enum status status = STATUS_OK;

	for (size_t i = 0; i < run->functions_count && !status; i++) {
		const struct compared_function *function = &run->functions[i];

		status = database_change(history, err, "INSERT INTO functions VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
		                         "iitttdddd", number, (int64_t)i, function->what, function->name,
		                         function->file, function->self, function->total, function->self_ratio,
		                         function->total_ratio);
	}
	return status;
}

static enum status write_telemetry(const struct history *history, int64_t number, const struct compared_run *run,
                                   struct error *err)
{
	enum status status = STATUS_OK;

	for (size_t i = 0; i < run->telemetry_count && !status; i++) {
		const struct compared_telemetry *telemetry = &run->telemetry[i];

		status = database_change(history, err, "INSERT INTO telemetry VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
		                         "iitttdddi", number, (int64_t)i, telemetry->of, telemetry->quantity,
		                         telemetry->unit, telemetry->median, telemetry->error, telemetry->block,
		                         telemetry->count);
	}
	return status;
}

enum status kept_samples_write(const struct history *history, int64_t number, const struct compared_run *run,
                               struct error *err)
{
	enum status status = write_functions(history, number, run, err);

	return status ? status : write_telemetry(history, number, run, err);
}

/* ---- reading ---- */

static enum status read_functions(const struct history *history, int64_t number, struct compared_run *run,
                                  struct error *err)
{
	sqlite3_stmt *statement = NULL;
	enum status status = database_prepare(history, &statement, err,
	                                      "SELECT what, name, file, self, total, self_ratio, total_ratio "
	                                      "FROM functions WHERE run = ? ORDER BY place",
	                                      "i", number);

	while (database_step(history, &statement, &status, err)) {
		const struct compared_function function = {
			.what = column_text_or_empty(statement, 0),
			.name = column_text_or_empty(statement, 1),
			.file = column_text(statement, 2),
			.self = sqlite3_column_double(statement, 3),
			.total = sqlite3_column_double(statement, 4),
			.self_ratio = sqlite3_column_double(statement, 5),
			.total_ratio = sqlite3_column_double(statement, 6),
		};

		if (database_has_numbers(history, statement, 3, 4, &status, err))
			compared_run_add_function(run, &function);
	}
	return status;
}

static enum status read_telemetry(const struct history *history, int64_t number, struct compared_run *run,
                                  struct error *err)
{
	sqlite3_stmt *statement = NULL;
	enum status status = database_prepare(history, &statement, err,
	                                      "SELECT gpu, quantity, unit, median, error, block, count "
	                                      "FROM telemetry WHERE run = ? ORDER BY place",
	                                      "i", number);

	while (database_step(history, &statement, &status, err)) {
		const struct compared_telemetry telemetry = {
			.of = column_text_or_empty(statement, 0),
			.quantity = column_text_or_empty(statement, 1),
			.unit = column_text(statement, 2),
			.median = sqlite3_column_double(statement, 3),
			.error = sqlite3_column_double(statement, 4),
			.block = sqlite3_column_double(statement, 5),
			.count = sqlite3_column_int64(statement, 6),
		};

		if (database_has_numbers(history, statement, 3, 4, &status, err))
			compared_run_add_telemetry(run, &telemetry);
	}
	return status;
}

enum status kept_samples_read(const struct history *history, int64_t number, struct compared_run *run,
                              struct error *err)
{
	enum status status = read_functions(history, number, run, err);

	return status ? status : read_telemetry(history, number, run, err);
}
