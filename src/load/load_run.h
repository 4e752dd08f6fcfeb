/* SPDX-License-Identifier: Apache-2.0
 *
 * load_run.h: shared by the commands that read a run: loading it and selecting steps.
 */
#ifndef LOAD_LOAD_RUN_H
#define LOAD_LOAD_RUN_H

#include "analysis/analysis.h"
#include "analysis/report.h"
#include "base/options.h"
#include "model/model.h"

struct loaded_run {
	const char *path; /* resolved; valid until the next call of command_run_path() */
	struct model model;
};

/* Resolves and loads a run. memory_bytes 0: the model's default. On failure nothing needs to be released. */
enum status load_run(struct loaded_run *run, const char *operand, const struct analysis_options *options,
                     int64_t memory_bytes, struct error *err) MUST_CHECK;
/* Loads files that are one run together; its path is that of the first file. On failure nothing needs to be
 * released. */
enum status load_files(struct loaded_run *run, const char *const *paths, uint32_t count,
                       const struct analysis_options *options, int64_t memory_bytes, struct error *err) MUST_CHECK;
/* Loads the operands of a command. No operand means the latest run. One operand is a run. Several are files of traces
 * that are one run together. */
enum status load_operands(struct loaded_run *run, const struct options_result *arguments,
                          const struct analysis_options *options, int64_t memory_bytes, struct error *err) MUST_CHECK;
/* Call it before load_operands(): several operands must be files, otherwise it is an error of usage. */
enum status check_operands(const struct options_result *arguments, const char *command, struct error *err) MUST_CHECK;
/* Refuses an output that is one of the operands: writing would destroy the input. */
enum status check_output(const struct options_result *arguments, const char *output, struct error *err) MUST_CHECK;
void loaded_run_release(struct loaded_run *run);

/* For --strict: returns true if the entry shows that the input differs from what its writer meant. */
bool ledger_is_defect(enum ledger_kind kind);

/* Prints numbers that cannot be true on stderr. */
void tell_defects(const struct report *report);

/* Parses "50-60" or "7". text NULL: all steps. */
enum status parse_steps(const char *text, struct analysis_options *options, struct error *err) MUST_CHECK;

/* Parses "2" or "2@4711": the second window of the profiler in process 4711. */
enum status parse_window(const char *text, struct analysis_options *options, struct error *err) MUST_CHECK;

#endif
