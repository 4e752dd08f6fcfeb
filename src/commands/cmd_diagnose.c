/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_diagnose.c: `stepscope diagnose RUN`: problems of a run, how sure they are, and what to do.
 */
#include "commands/command.h"
#include "compare/canary_metrics.h"
#include "diagnosis/diagnosis.h"
#include "load/load_run.h"
#include "output/diagnosis/diagnosis_canary.h"
#include "output/diagnosis/findings.h"
#include "output/diagnosis/findings_sarif.h"
#include "output/result.h"

#include <string.h>

#define MAXIMUM_OUTPUT ((size_t)1 << 28)

static const char *steps, *window, *output, *rules_folder, *thresholds, *fail_on, *style_name;
static int64_t memory_bytes;
static bool is_list, is_json, is_sarif, has_times;

static const struct option options[] = {
	OPTION_GROUP("Diagnosis"),
	OPTION_FLAG("list", 0, &is_list, "list the rules and their thresholds"),
	OPTION_TEXT("rules", 0, &rules_folder, "DIR", "add the rules in DIR/*.sql"),
	OPTION_TEXT("thresholds", 0, &thresholds, "FILE", "YAML file with thresholds, such as SS101: {share: 0.1}"),
	OPTION_TEXT("steps", 0, &steps, "A-B", STEPS_HELP),
	OPTION_TEXT("window", 0, &window, "N", WINDOW_HELP),
	OPTION_GROUP("Form"),
	OPTION_FLAG("json", 0, &is_json, "print one JSON document: stepscope.diagnosis/1"),
	OPTION_FLAG("sarif", 0, &is_sarif, "print SARIF 2.1.0, for code-scanning viewers"),
	OPTION_TEXT("style", 0, &style_name, "NAME",
                    "canary: print the block QUICK DIAGNOSIS of rlhf-canary's notebook; RUN may be its metrics.json"),
	OPTION_FLAG("times", 0, &has_times,
                    "print also the CPU time of each rule, and of the tables computed for the rules"),
	OPTION_TEXT("output", 'o', &output, "FILE", "write to FILE instead of standard output"),
	OPTION_TEXT("fail-on", 0, &fail_on, "LEVEL",
                    "exit with 1 on findings of this level (problem; hint: any), with 5 if the verdict is unknown"),
	OPTION_BYTES("memory", 0, &memory_bytes, "SIZE", MEMORY_HELP("512M")),
	OPTION_END,
};

static enum status cmd_diagnose_check_usage(const struct options_result *arguments, struct error *err)
{
	if (check_operands(arguments, "diagnose", err))
		return err->status;
	if (fail_on && strcmp(fail_on, "problem") != 0 && strcmp(fail_on, "hint") != 0)
		return error_set(err, STATUS_USAGE, "option '--fail-on' wants problem or hint, got '%s'", fail_on);
	if (style_name && strcmp(style_name, "canary") != 0)
		return error_set(err, STATUS_USAGE, "option '--style' wants canary, got '%s'", style_name);
	if (is_json + is_sarif + !!style_name > 1)
		return error_set(err, STATUS_USAGE, "options '--json', '--sarif' and '--style' exclude each other");
	if (has_times && (is_sarif || style_name))
		return error_set(err, STATUS_USAGE, "option '--times' works with text and '--json' only");
	return STATUS_OK;
}

static enum status read_rules(struct rule_set *rules, struct error *err)
{
	enum status status = rule_set_init(rules, err);

	if (!status && rules_folder)
		status = rule_set_add_folder(rules, rules_folder, err);
	if (!status && thresholds)
		status = rule_set_read_thresholds(rules, thresholds, err);
	return status;
}

static enum status write_buffer(const struct buffer *text, struct error *err)
{
	return output ? write_text_file(output, text, err) : write_text(stdout, text, err);
}

static enum status list_rules(const struct rule_set *rules, struct error *err)
{
	const struct text_style style = {common.width, common.is_color, common.is_utf8};
	struct buffer text;
	enum status status;

	buffer_init(&text, MAXIMUM_OUTPUT);
	findings_rules(&text, rules, &style);
	status = write_buffer(&text, err);
	buffer_release(&text);
	return status;
}

/* Returns the command line of the run; NULL: not recorded. */
static const char *command_of(struct report *report)
{
	const struct table *run = report_table(report, "run");
	int column = table_find_column(run, "command");

	return run->row_count && column >= 0 ? table_text(run, 0, column) : NULL;
}

static enum status print(const struct diagnosis *diagnosis, struct report *report, const struct rule_set *rules,
                         const char *path, struct error *err)
{
	const struct text_style style = {common.width, common.is_color, common.is_utf8};
	struct buffer text;
	enum status status = STATUS_OK;

	buffer_init(&text, MAXIMUM_OUTPUT);
	if (is_json)
		findings_json(&text, diagnosis, report->name, has_times);
	else if (is_sarif)
		findings_sarif(&text, diagnosis, rules, path, command_of(report));
	else if (style_name)
		status = diagnosis_canary(&text, diagnosis, report, err);
	else
		findings_text(&text, diagnosis, &style);
	if (has_times && !is_json)
		findings_times(&text, diagnosis, &style);
	status = status ? status : write_buffer(&text, err);
	buffer_release(&text);
	return status;
}

/* Checks the findings for --fail-on. */
static enum status check_findings(const struct diagnosis *diagnosis, struct error *err)
{
	const struct table *findings = &diagnosis->findings;
	const char *verdict = table_get(&diagnosis->verdict, 0, VERDICT_VERDICT)->text;

	if (!fail_on)
		return STATUS_OK;
	for (int row = 0; row < findings->row_count; row++) {
		const char *severity = table_get(findings, row, FINDING_SEVERITY)->text;

		if (!strcmp(severity, "problem") || !strcmp(fail_on, "hint"))
			return error_set(err, STATUS_LIMIT, "%s: %s", table_get(findings, row, FINDING_RULE)->text,
			                 table_get(findings, row, FINDING_TITLE)->text);
	}
	if (!strcmp(verdict, "unknown"))
		return error_set(err, STATUS_INCONCLUSIVE, "the verdict is unknown: %s",
		                 table_get(&diagnosis->verdict, 0, VERDICT_SENTENCE)->text);
	return STATUS_OK;
}

static enum status diagnose(struct report *report, const struct rule_set *rules, const char *path, struct error *err)
{
	struct diagnosis diagnosis;
	enum status status = diagnosis_run(&diagnosis, report, rules, err);

	if (status)
		return status;
	status = print(&diagnosis, report, rules, path, err);
	status = status ? status : check_findings(&diagnosis, err);
	diagnosis_release(&diagnosis);
	return status;
}

/* Diagnoses a metrics.json of rlhf-canary, which has only the numbers of that block. */
static enum status diagnose_metrics(const char *path, struct error *err)
{
	struct compared_run run;
	struct buffer text;
	enum status status;

	if (steps || window || fail_on)
		return error_set(err, STATUS_USAGE,
		                 "'%s' is a metrics.json: '--steps', '--window' and '--fail-on' want a trace", path);
	status = canary_metrics_read(&run, path, err);
	if (status)
		return status;
	buffer_init(&text, MAXIMUM_OUTPUT);
	status = diagnosis_canary_metrics(&text, &run, err);
	status = status ? status : write_buffer(&text, err);
	buffer_release(&text);
	compared_run_release(&run);
	return status;
}

static enum status read_and_diagnose(const struct options_result *arguments, const struct rule_set *rules,
                                     struct error *err)
{
	struct analysis_options analysis = {0};
	struct loaded_run loaded;
	struct report report;
	/* an existing path, even for several files: SARIF uses it as location of findings without a line */
	const char *path = arguments->operand_count ? arguments->operands[0] : "latest";
	enum status status;

	if (style_name && arguments->operand_count == 1 && canary_metrics_probe(path))
		return diagnose_metrics(path, err);
	if (parse_steps(steps, &analysis, err) || parse_window(window, &analysis, err))
		return err->status;
	status = load_operands(&loaded, arguments, &analysis, memory_bytes, err);
	if (status)
		return status;
	report_init(&report, &loaded.model, &analysis, loaded.path);
	status = diagnose(&report, rules, path, err);
	tell_defects(&report);
	report_release(&report);
	loaded_run_release(&loaded);
	return status;
}

static int cmd_diagnose_run(const struct options_result *arguments, struct error *err)
{
	static struct rule_set rules; /* static, because it is large */
	enum status status = cmd_diagnose_check_usage(arguments, err);

	if (status)
		return status_exit(status);
	status = read_rules(&rules, err);
	if (!status)
		status = is_list ? list_rules(&rules, err) : read_and_diagnose(arguments, &rules, err);
	rule_set_release(&rules);
	return status_exit(status);
}

const struct command command_diagnose = {
	.name = "diagnose",
	.summary = "List the performance problems of a run, how certain each is, and its remedy",
	.usage = "stepscope diagnose [options] [RUN...]",
	.examples = "  stepscope diagnose latest\n"
		    "  stepscope diagnose runs/a --steps 20-99 --json > diagnosis.json\n"
		    "  stepscope diagnose trace.json.gz --rules my-rules --fail-on problem",
	.options = options,
	.run = cmd_diagnose_run,
};
