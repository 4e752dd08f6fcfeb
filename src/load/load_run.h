/* SPDX-License-Identifier: Apache-2.0
 *
 * load_run.h: what commands that read a run have in common: loading it and selecting steps.
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

/* Resolves and loads. memory_bytes 0: the model's default. On failure nothing needs to be released. */
enum status load_run(struct loaded_run *run, const char *operand, const struct analysis_options *options,
                     int64_t memory_bytes, struct error *err) MUST_CHECK;
/* Files that are one run together; its path is that of the first one. On failure nothing needs to be released. */
enum status load_files(struct loaded_run *run, const char *const *paths, uint32_t count,
                       const struct analysis_options *options, int64_t memory_bytes, struct error *err) MUST_CHECK;
/* What a command's operands name: none: the latest run; one run; or files of traces, which are one run together. */
enum status load_operands(struct loaded_run *run, const struct options_result *arguments,
                          const struct analysis_options *options, int64_t memory_bytes, struct error *err) MUST_CHECK;
/* Before it: two operands are two files, or an error of usage. */
enum status check_operands(const struct options_result *arguments, const char *command, struct error *err) MUST_CHECK;
void loaded_run_release(struct loaded_run *run);

/* For --strict: the input is not as its writer meant it. */
bool ledger_is_defect(enum ledger_kind kind);

/* On stderr: numbers that cannot be true. */
void tell_defects(const struct report *report);

/* "50-60" or "7"; text NULL: all steps. */
enum status parse_steps(const char *text, struct analysis_options *options, struct error *err) MUST_CHECK;

/* "2" or "2@4711": the second window of the profiler in process 4711. */
enum status parse_window(const char *text, struct analysis_options *options, struct error *err) MUST_CHECK;

#endif
