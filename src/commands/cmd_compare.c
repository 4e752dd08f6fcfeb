/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_compare.c: `stepscope compare BASE NEW`: whether NEW is slower, how sure that is, and which parts make the
 * difference.
 */
#include "commands/command.h"
#include "commands/say.h"
#include "compare/canary_metrics.h"
#include "compare/comparison.h"
#include "load/job_files.h"
#include "load/load_run.h"
#include "output/compare/compare_files.h"
#include "output/compare/comparison_json.h"
#include "output/compare/comparison_text.h"
#include "output/result.h"
#include "output/text/csv.h"
#include "output/text/json.h"
#include "store/compare_baseline.h"
#include "store/key_numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAXIMUM_OUTPUT ((size_t)1 << 28)
#define RUNS_OF_LITTLE_NOISE 12 /* fewer runs do not show that the noise is small */
#define LEAST_NOISE 1e-3        /* of the speed of a run */

static const char *steps, *table_name, *output, *smallest, *tolerance, *noise;
static int64_t memory_bytes;
static bool is_json, is_csv, is_long, is_explained;
static const char *tier, *thresholds, *fail_on, *style_name, *called;
static struct compare_baseline baseline;
static struct compare_files files;

static const struct option options[] = {
	OPTION_GROUP("Comparison"),
	OPTION_TEXT("steps", 0, &steps, "A-B", STEPS_HELP),
	OPTION_TEXT("smallest", 0, &smallest, "PERCENT",
                    "ignore changes smaller than this, however certain (default: 1)"),
	OPTION_TEXT("tolerance", 0, &tolerance, "PERCENT", "change that \"no difference\" must rule out (default: 3)"),
	OPTION_TEXT("noise", 0, &noise, "PERCENT",
                    "variation between runs to assume if no repeats measure it, at most 100 (default: 1)"),
	OPTION_GROUP("Limits"),
	OPTION_TEXT("tier", 0, &tier, "NAME", "limits of rlhf-canary: default, smoke, perf or nightly"),
	OPTION_TEXT("thresholds", 0, &thresholds, "FILE",
                    "YAML file with limits, such as max_step_time_increase_pct: 5"),
	OPTION_TEXT("fail-on", 0, &fail_on, "WHAT",
                    "what makes the exit status 1 (5 if inconclusive): regression, limits or never "
                    "(default: limits if any are given, otherwise regression)"),
	OPTION_GROUP("Base from the run history"),
	OPTION_TEXT("baseline", 0, &baseline.word, "KEPT",
                    "base: best, last, last:N (the last N runs), or the number or name of a run; all "
                    "operands are then new runs"),
	OPTION_TEXT("history", 0, &baseline.history, "FILE", "history file, as in 'stepscope history'"),
	OPTION_TEXT("series", 0, &baseline.series, "NAME", "series to search (default: the series of the new run)"),
	OPTION_GROUP("For CI"),
	OPTION_TEXT("markdown", 0, &files.markdown, "FILE", "write a comment for a pull request, at most 65,000 bytes"),
	OPTION_TEXT("junit", 0, &files.junit, "FILE", "write JUnit XML with one test case per quantity and limit"),
	OPTION_TEXT("benchmark-smaller", 0, &files.smaller, "FILE",
                    "write the new side for github-action-benchmark, as customSmallerIsBetter"),
	OPTION_TEXT("benchmark-bigger", 0, &files.bigger, "FILE", "write the same as customBiggerIsBetter"),
	OPTION_TEXT("canary-report", 0, &files.canary, "FILE",
                    "write the limits as a ComparisonReport of rlhf-canary (JSON)"),
	OPTION_FLAG("github", 0, &files.is_github,
                    "write annotations to stderr, and the job summary and outputs to the files of GitHub's variables"),
	OPTION_TEXT("name", 0, &called, "NAME", "name of the comparison in these files (default: the series)"),
	OPTION_GROUP("Form"),
	OPTION_TEXT("style", 0, &style_name, "NAME", "canary: print the tables of rlhf-canary's notebook"),
	OPTION_FLAG("long", 0, &is_long, "list everything that contributes to the difference"),
	OPTION_TEXT("table", 't', &table_name, "NAME",
                    "print one table: verdict, metrics, limits, differences, explained_by, contributions, "
                    "memory, functions, telemetry or runs"),
	OPTION_FLAG("explain", 0, &is_explained, "with --table: print the definition of each column"),
	OPTION_FLAG("json", 0, &is_json,
                    "print one JSON document: stepscope.compare/1, or stepscope.table/1 with --table"),
	OPTION_FLAG("csv", 0, &is_csv, "with --table: print CSV"),
	OPTION_TEXT("output", 'o', &output, "FILE", "write to FILE instead of standard output"),
	OPTION_BYTES("memory", 0, &memory_bytes, "SIZE", MEMORY_HELP("512M")),
	OPTION_END,
};

/* ---- options ---- */

static enum status parse_percent(const char *text, const char *name, double most, double *ratio, struct error *err)
{
	char *end;
	double percent;

	if (!text)
		return STATUS_OK;
	percent = strtod(text, &end);
	while (*end == ' ')
		end++;
	if (end == text || (strcmp(end, "%") != 0 && *end) || !(percent >= 0) || !(percent <= most))
		return error_set(err, STATUS_USAGE, "option '--%s' wants a percentage such as 3, at most %g, got '%s'",
		                 name, most, text);
	*ratio = percent / 100;
	return STATUS_OK;
}

static enum status parse_options(struct comparison_options *compare, struct analysis_options *analysis,
                                 struct error *err)
{
	*compare = comparison_defaults;
	if (parse_percent(smallest, "smallest", 1000, &compare->smallest, err) ||
	    parse_percent(tolerance, "tolerance", 1000, &compare->tolerance, err) ||
	    parse_percent(noise, "noise", 100, &compare->assumed_noise, err) || parse_steps(steps, analysis, err))
		return err->status;
	if (compare->tolerance <= 0)
		return error_set(err, STATUS_USAGE, "option '--tolerance' wants more than 0");
	if (is_json && is_csv)
		return error_set(err, STATUS_USAGE, "options '--json' and '--csv' exclude each other");
	if ((is_csv || is_explained) && !table_name)
		return error_set(err, STATUS_USAGE, "options '--csv' and '--explain' want '--table'");
	return STATUS_OK;
}

static enum status parse_gate(enum gate_rule *rule, struct limits *limits, struct error *err)
{
	*rule = tier || thresholds ? GATE_LIMITS : GATE_REGRESSION;
	if (fail_on && !gate_rule_parse(fail_on, rule))
		return error_set(err, STATUS_USAGE, "option '--fail-on' wants regression, limits or never, got '%s'",
		                 fail_on);
	if (files.canary && !tier && !thresholds)
		return error_set(err, STATUS_USAGE, "option '--canary-report' wants '--tier' or '--thresholds'");
	if (*rule == GATE_LIMITS && !tier && !thresholds)
		return error_set(err, STATUS_USAGE, "option '--fail-on limits' wants '--tier' or '--thresholds'");
	if (!limits_init(limits, tier ? tier : "default"))
		return error_set(err, STATUS_USAGE, "option '--tier' wants %s, got '%s'", limit_tiers, tier);
	if (style_name && strcmp(style_name, "canary") != 0)
		return error_set(err, STATUS_USAGE, "option '--style' wants canary, got '%s'", style_name);
	return thresholds ? limits_read(limits, thresholds, err) : STATUS_OK;
}

static int count_of_standard_input(const struct options_result *arguments)
{
	int count = 0;

	for (int i = 0; i < arguments->operand_count; i++)
		count += !strcmp(arguments->operands[i], "-");
	return count;
}

/* Sets the number of operands that are the base. */
static enum status split_operands(const struct options_result *arguments, int *base_count, struct error *err)
{
	if (baseline.word) {
		*base_count = 0;
		if (steps)
			return error_set(
				err, STATUS_USAGE,
				"options '--baseline' and '--steps' exclude each other: the history keeps all steps of "
				"the base");
		if (arguments->operand_count && !arguments->has_terminator)
			return STATUS_OK;
		return error_set(err, STATUS_USAGE, "compare --baseline takes only the runs of the new side");
	}
	*base_count = arguments->has_terminator ? arguments->before_terminator : 1;
	for (int i = *base_count; arguments->has_terminator && i < arguments->operand_count; i++)
		if (arguments->operands[i][0] == '-' && arguments->operands[i][1] &&
		    access(arguments->operands[i], F_OK) != 0)
			return error_set(err, STATUS_USAGE, "options go before the runs, but '%s' is after '--'",
			                 arguments->operands[i]);
	if (count_of_standard_input(arguments) > 1)
		return error_set(err, STATUS_USAGE, "compare can read standard input ('-') only once");
	if (*base_count >= 1 && arguments->operand_count > *base_count &&
	    (arguments->has_terminator || arguments->operand_count == 2))
		return STATUS_OK;
	error_set(err, STATUS_USAGE, "compare takes two runs, or runs on both sides of '--'");
	error_hint(err, "for example 'stepscope compare base1 base2 -- new1 new2'");
	return STATUS_USAGE;
}

/* ---- reading ---- */

struct sides {
	struct compared_run *runs; /* the operands */
	int base_count, count;     /* the first base_count runs are the base, unless the base is from the history */
	struct compared_run *kept; /* from the history */
	int kept_count;
	struct history_scatter scatter; /* of the runs of which these are the best */
	struct arena arena;
	const char *series; /* series of the last run read, which is of the new side */
	const char **identities;
	struct job_file *files; /* the files of the runs */
};

/* Reads a metrics.json of rlhf-canary. */
static enum status read_metrics(struct sides *sides, const char *path, struct error *err)
{
	struct compared_run *run = &sides->runs[sides->count];
	enum status status = canary_metrics_read(run, path, err);

	if (status)
		return status;
	sides->series = canary_metrics_series(run);
	sides->identities[sides->count++] = canary_metrics_identity(run);
	return STATUS_OK;
}

/* Refuses a recording that is given twice: it shows nothing about how much runs differ. */
static enum status check_repeats(const struct sides *sides, int first, int end, struct error *err)
{
	for (int i = first; i < end; i++)
		for (int k = first; k < i; k++) {
			if (strcmp(sides->identities[i], sides->identities[k]) != 0)
				continue;
			error_set(err, STATUS_USAGE, "'%s' and '%s' are the same recording, not repeated runs",
			          sides->files[k].path, sides->files[i].path);
			error_hint(err,
			           "give each run once: the variation between runs decides how certain the answer is");
			return STATUS_USAGE;
		}
	return STATUS_OK;
}

/* Takes the numbers of a run and frees the model. */
static void take_run(struct sides *sides, int place, struct loaded_run *loaded, const struct analysis_options *analysis)
{
	struct report report;

	report_init(&report, &loaded->model, analysis, loaded->path);
	compared_run_init(&sides->runs[place], &report);
	sides->series = arena_dup(&sides->arena, key_numbers_series(&report));
	sides->identities[place] = arena_dup(&sides->arena, key_numbers_identity(&report));
	tell_defects(&report);
	report_release(&report);
	loaded_run_release(loaded);
}

static enum status read_run(struct sides *sides, const char *operand, const struct analysis_options *analysis,
                            struct error *err)
{
	const struct analysis_options whole = {0};
	struct loaded_run loaded;
	enum status status;

	sides->files[sides->count] = (struct job_file){.path = operand, .rank = -1};
	if (canary_metrics_probe(operand))
		return read_metrics(sides, operand, err);
	/* reads all of it, because competing load on the machine is not recorded per step */
	status = load_run(&loaded, operand, &whole, memory_bytes, err);
	if (status)
		return status;
	job_file_init(&sides->files[sides->count], operand, &loaded.model);
	take_run(sides, sides->count++, &loaded, analysis);
	return STATUS_OK;
}

/* Reads the files of the job that starts at `first` again, as one run. */
static enum status read_job(struct sides *sides, int first, const int *job, const struct analysis_options *analysis,
                            struct error *err)
{
	const struct analysis_options whole = {0};
	const char **paths = arena_array(&sides->arena, (size_t)sides->count, sizeof(*paths));
	struct compared_run *run = &sides->runs[first];
	uint32_t count = job_files_of(sides->files, first, sides->count, job, paths);
	struct loaded_run loaded;
	enum status status;

	if (count < 2)
		return STATUS_OK;
	status = load_files(&loaded, paths, count, &whole, memory_bytes, err);
	if (status)
		return status;
	compared_run_release(run);
	take_run(sides, first, &loaded, analysis);
	run->name = job_files_name(&run->arena, run->name, count);
	if (!common.is_quiet)
		say("stepscope: note: %u files of the %s side are ranks of one job and count as one run, '%s'\n", count,
		    first < sides->base_count ? "base" : "new", run->name);
	return STATUS_OK;
}

/* Keeps the first file of each job, into which the whole job was read. */
static void drop_joined(struct sides *sides, const int *job)
{
	int kept = 0, kept_of_base = 0;

	for (int i = 0; i < sides->count; i++) {
		if (job[i] != i) {
			compared_run_release(&sides->runs[i]);
			continue;
		}
		sides->runs[kept] = sides->runs[i];
		sides->files[kept] = sides->files[i];
		sides->identities[kept++] = sides->identities[i];
		kept_of_base += i < sides->base_count;
	}
	sides->count = kept;
	sides->base_count = kept_of_base;
}

/* Both sides may be ranks of the same job. That may be intended, so it is only a note. */
static void tell_one_job(const struct sides *sides)
{
	for (int i = 0; i < sides->base_count && !common.is_quiet; i++)
		for (int k = sides->base_count; k < sides->count; k++) {
			if (!job_files_are_one(&sides->files[i], &sides->files[k]))
				continue;
			say("stepscope: note: '%s' and '%s' are ranks of one job: they wait for one another, so "
			    "they differ as ranks, not as runs\n",
			    sides->files[i].path, sides->files[k].path);
			return;
		}
}

static enum status join_ranks(struct sides *sides, const struct analysis_options *analysis, struct error *err)
{
	int *job = arena_array(&sides->arena, (size_t)sides->count, sizeof(*job));
	enum status status = STATUS_OK;

	job_files_find(sides->files, 0, sides->base_count, job);
	job_files_find(sides->files, sides->base_count, sides->count, job);
	for (int i = 0; i < sides->count && !status; i++)
		if (job[i] == i)
			status = read_job(sides, i, job, analysis, err);
	if (status)
		return status;
	drop_joined(sides, job);
	tell_one_job(sides);
	return STATUS_OK;
}

static void sides_init(struct sides *sides, int operands, int base_count)
{
	*sides = (struct sides){.base_count = base_count};
	arena_init(&sides->arena, 0);
	sides->runs = arena_array(&sides->arena, (size_t)operands, sizeof(*sides->runs));
	sides->identities = arena_array(&sides->arena, (size_t)operands, sizeof(*sides->identities));
	sides->files = arena_array(&sides->arena, (size_t)operands, sizeof(*sides->files));
	sides->kept = arena_array(&sides->arena, BASELINE_RUNS, sizeof(*sides->kept));
}

static void sides_release(struct sides *sides)
{
	while (sides->count > 0)
		compared_run_release(&sides->runs[--sides->count]);
	while (sides->kept_count > 0)
		compared_run_release(&sides->kept[--sides->kept_count]);
	arena_release(&sides->arena);
}

static enum status read_baseline(struct sides *sides, const struct history_except *except, struct error *err)
{
	struct buffer note;
	enum status status;

	buffer_init(&note, BASELINE_NOTE);
	status = compare_baseline_load(&baseline, sides->series, except, sides->kept, &sides->kept_count,
	                               &sides->scatter, &note, err);
	if (note.length && !common.is_quiet)
		say("stepscope: note: %s\n", note.data);
	buffer_release(&note);
	return status;
}

/* Reads the base from the history last, because the series is known from the new side. */
static enum status read_sides(struct sides *sides, const struct options_result *arguments,
                              const struct analysis_options *analysis, struct error *err)
{
	struct history_except except;
	enum status status = STATUS_OK;

	for (int i = 0; i < arguments->operand_count && !status; i++)
		status = read_run(sides, arguments->operands[i], analysis, err);
	if (status || (status = join_ranks(sides, analysis, err)) ||
	    (status = check_repeats(sides, 0, sides->base_count, err)) ||
	    (status = check_repeats(sides, sides->base_count, sides->count, err)) || !baseline.word)
		return status;
	except = (struct history_except){sides->identities, sides->count};
	return read_baseline(sides, &except, err);
}

/* Uses the scatter of the history's runs. That of a few runs is never less than the noise assumed without a history. */
static void use_scatter(struct comparison_options *how, const struct history_scatter *scatter)
{
	how->best_of = scatter->runs;
	if (noise || !scatter->has_noise ||
	    (scatter->noise <= how->assumed_noise && scatter->runs < RUNS_OF_LITTLE_NOISE))
		return;
	how->assumed_noise = fmax(scatter->noise, LEAST_NOISE);
	how->is_noise_kept = true;
}

static void compare_sides(struct comparison *comparison, const struct sides *sides, struct comparison_options *how)
{
	const struct compared_run *new = sides->runs + sides->base_count;

	use_scatter(how, &sides->scatter);
	comparison_init(comparison, sides->kept_count ? sides->kept : sides->runs,
	                sides->kept_count ? sides->kept_count : sides->base_count, new,
	                sides->count - sides->base_count, how);
}

/* ---- writing ---- */

static const struct table *table_called(const struct comparison *comparison, const struct gate *gate, const char *name)
{
	const struct table *const tables[] = {
		&comparison->verdict,       &comparison->metrics, &comparison->differences, &comparison->explained_by,
		&comparison->contributions, &comparison->memory,  &comparison->functions,   &comparison->telemetry,
		&comparison->runs,          &gate->limits};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (!strcmp(tables[i]->name, name))
			return tables[i];
	return NULL;
}

static enum status cmd_compare_add_table(struct buffer *text, const struct comparison *comparison,
                                         const struct gate *gate, const struct text_style *style, struct error *err)
{
	const struct table *table = table_called(comparison, gate, table_name);
	struct json_writer json;

	if (!table) {
		error_set(err, STATUS_USAGE, "unknown table '%s'", table_name);
		error_hint(err, "the tables are verdict, metrics, limits, differences, explained_by, contributions, "
		                "memory, functions, telemetry and runs");
		return STATUS_USAGE;
	}
	if (is_csv) {
		csv_table(text, table);
	} else if (is_json) {
		json_writer_init(&json, text, JSON_PRETTY);
		json_table(&json, table);
		buffer_add_text(text, "\n");
	} else {
		text_table(text, table, &(struct text_view){.has_heading = true, .is_explained = is_explained}, style);
	}
	return STATUS_OK;
}

static enum status print(const struct comparison *comparison, const struct compare_output *of, struct error *err)
{
	const struct text_style style = {common.width, common.is_color, common.is_utf8};
	enum status status = STATUS_OK;
	struct buffer text;

	buffer_init(&text, MAXIMUM_OUTPUT);
	if (table_name)
		status = cmd_compare_add_table(&text, comparison, of->gate, &style, err);
	else if (style_name)
		compare_canary(&text, of);
	else if (is_json)
		comparison_json(&text, comparison, of->gate);
	else
		comparison_text(&text, comparison, &of->gate->limits, is_long, &style);
	if (!status)
		status = output ? write_text_file(output, &text, err) : write_text(stdout, &text, err);
	buffer_release(&text);
	return status;
}

/* With limits, prints the sentence about them. Without limits, the answer was already printed. A broken limit is not an
 * error. */
static enum status cmd_compare_judge(const struct gate *gate)
{
	struct error sentence;
	enum status status = gate_status(gate, &sentence);

	if (status && gate->limits.row_count)
		say("stepscope: %s: %s\n", gate_result_name(gate->result), gate->sentence);
	return status;
}

static enum status cmd_compare_answer(const struct comparison *comparison, const struct gate *gate, const char *series,
                                      struct error *err)
{
	const struct compare_output of = {comparison, gate, called ? called : series};
	enum status status = print(comparison, &of, err);

	if (!status)
		status = compare_files_write(&files, &of, err);
	return status ? status : cmd_compare_judge(gate);
}

/* ---- the command ---- */

static enum status cmd_compare_compare(const struct options_result *arguments, int base_count, struct error *err)
{
	struct comparison_options compare_options;
	struct analysis_options analysis = {0};
	struct comparison comparison;
	struct limits limits;
	struct sides sides;
	enum gate_rule rule;
	struct gate gate;
	enum status status = parse_options(&compare_options, &analysis, err);

	if (status || (status = parse_gate(&rule, &limits, err)))
		return status;
	sides_init(&sides, arguments->operand_count, base_count);
	status = read_sides(&sides, arguments, &analysis, err);
	if (!status) {
		compare_sides(&comparison, &sides, &compare_options);
		gate_init(&gate, &comparison, tier || thresholds ? &limits : NULL, rule);
		status = cmd_compare_answer(&comparison, &gate, sides.series, err);
		gate_release(&gate);
		comparison_release(&comparison);
	}
	sides_release(&sides);
	return status;
}

static int cmd_compare_run(const struct options_result *arguments, struct error *err)
{
	int base_count;
	enum status status = split_operands(arguments, &base_count, err);

	return status_exit(status ? status : cmd_compare_compare(arguments, base_count, err));
}

const struct command command_compare = {
	.name = "compare",
	.summary = "Show whether one run is slower than another, how certain that is, and why",
	.usage = "stepscope compare [options] BASE NEW\n       stepscope compare [options] BASE... -- NEW...\n       stepscope compare [options] --baseline KEPT NEW...",
	.examples = "  stepscope compare runs/main runs/mine\n"
		    "  stepscope compare runs/main.* -- runs/mine.*\n"
		    "  stepscope compare trace1.json.gz trace2.json.gz --json > comparison.json",
	.options = options,
	.run = cmd_compare_run,
};
