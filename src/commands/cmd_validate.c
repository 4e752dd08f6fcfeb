/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_validate.c: `stepscope validate FILE...`: which readers would fail on these trace files, and why.
 */
#include "base/buffer.h"
#include "base/json_write.h"
#include "base/text.h"
#include "base/units.h"
#include "commands/command.h"
#include "importers/find_importer.h"
#include "output/result.h"
#include "output/validate/validate.h"

#include <inttypes.h>
#include <sys/stat.h>

#define MAXIMUM_OUTPUT ((size_t)1 << 28)

static bool is_json, is_rules;

static const struct option options[] = {
	OPTION_FLAG("json", 0, &is_json, "print one JSON document: stepscope.validate/1"),
	OPTION_FLAG("rules", 0, &is_rules, "list the rules instead of checking files"),
	OPTION_END,
};

static void print_rules(struct buffer *out)
{
	for (int i = 0; i < VALIDATE_RULE_COUNT; i++)
		buffer_printf(out, "%-4s %-5s  %s (%s)\n", validate_rules[i].id,
		              validate_rules[i].is_error ? "error" : "note", validate_rules[i].text,
		              validate_rules[i].reader);
}

/* ---- text ---- */

static void print_finding(struct buffer *out, const struct validate_row *rule, const struct validate_finding *finding)
{
	char count[UNITS_BYTES];

	buffer_printf(out, "  %-4s %-5s  %s\n", rule->id, rule->is_error ? "error" : "note", rule->text);
	buffer_printf(out, "              %s %s, first at byte %" PRIu64, units_count(count, (double)finding->count),
	              finding->count == 1 ? "time" : "times", finding->first_offset);
	if (finding->detail[0]) {
		buffer_add_text(out, " (");
		text_clean(out, finding->detail, strlen(finding->detail));
		buffer_add_text(out, ")");
	}
	buffer_printf(out, "; affects %s\n", rule->reader);
}

static void count_rules(const struct validation *validation, int *errors, int *notes)
{
	*errors = *notes = 0;
	for (int i = 0; i < VALIDATE_RULE_COUNT; i++) {
		if (validation->findings[i].count)
			++*(validate_rules[i].is_error ? errors : notes);
	}
}

static const char *cmd_validate_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void print_validation(struct buffer *out, const char *path, const struct validation *validation,
                             const struct error *failure)
{
	char events[UNITS_BYTES], spans[UNITS_BYTES], bytes[UNITS_BYTES];
	int errors, notes;

	count_rules(validation, &errors, &notes);
	text_clean(out, path, strlen(path));
	if (!validation->form) {
		buffer_printf(out, ":\n  unreadable: %s\n", failure->text);
		return;
	}
	buffer_printf(out, ": %s, %s, %s event%s, %s span%s, %s\n", validation->format, validation->form,
	              units_count(events, (double)validation->events), cmd_validate_plural(validation->events),
	              units_count(spans, (double)validation->spans), cmd_validate_plural(validation->spans),
	              units_bytes(bytes, (double)validation->bytes));
	for (int i = 0; i < VALIDATE_RULE_COUNT; i++)
		if (validation->findings[i].count)
			print_finding(out, &validate_rules[i], &validation->findings[i]);
	if (validation->is_partly_checked)
		buffer_printf(out, "  not all pairs of events were compared: more than %u spans\n",
		              VALIDATE_MOST_SPANS);
	if (failure)
		buffer_printf(out, "  unreadable: %s; before that, %d rule%s broken\n", failure->text, errors,
		              errors == 1 ? " is" : "s are");
	else if (errors)
		buffer_printf(out, "  %d rule%s broken\n", errors, cmd_validate_plural((uint64_t)errors));
	else
		buffer_printf(out, "  ok%s\n", notes ? ", with notes" : "");
}

/* ---- JSON ---- */

static void write_finding(struct json_writer *json, const struct validate_row *rule,
                          const struct validate_finding *finding)
{
	json_object_begin(json);
	json_key(json, "id"), json_string(json, rule->id);
	json_key(json, "level"), json_string(json, rule->is_error ? "error" : "note");
	json_key(json, "count"), json_uint(json, finding->count);
	json_key(json, "first_offset_bytes"), json_uint(json, finding->first_offset);
	json_key(json, "detail");
	if (finding->detail[0])
		json_string(json, finding->detail);
	else
		json_null(json);
	json_key(json, "message"), json_string(json, rule->text);
	json_key(json, "reader"), json_string(json, rule->reader);
	json_object_end(json);
}

static void json_text_or_null(struct json_writer *json, const char *key, const char *text)
{
	json_key(json, key);
	if (text)
		json_string(json, text);
	else
		json_null(json);
}

static void write_validation(struct json_writer *json, const char *path, const struct validation *validation,
                             const struct error *failure)
{
	json_object_begin(json);
	json_key(json, "path"), json_string(json, path);
	json_text_or_null(json, "format", validation->form ? validation->format : NULL);
	json_text_or_null(json, "form", validation->form);
	json_text_or_null(json, "compression", validation->compression);
	json_key(json, "size_bytes"), json_uint(json, validation->bytes);
	json_key(json, "events"), json_uint(json, validation->events);
	json_key(json, "spans"), json_uint(json, validation->spans);
	json_key(json, "flows"), json_uint(json, validation->flows);
	json_key(json, "is_ok"), json_bool(json, !failure && !validation_has_errors(validation));
	json_key(json, "is_partly_checked"), json_bool(json, validation->is_partly_checked);
	json_text_or_null(json, "error", failure ? failure->text : NULL);
	json_key(json, "rules");
	json_array_begin(json);
	for (int i = 0; i < VALIDATE_RULE_COUNT; i++)
		if (validation->findings[i].count)
			write_finding(json, &validate_rules[i], &validation->findings[i]);
	json_array_end(json);
	json_object_end(json);
}

/* ---- run ---- */

/* Refuses a run, which another command checks. */
static enum status refuse_directory(const char *path, struct error *err)
{
	struct stat info;

	if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
		return STATUS_OK;
	error_set(err, STATUS_INPUT, "'%s' is a directory, and validate checks trace files", path);
	error_hint(err,
	           "give the files in it; for a run, 'stepscope report --strict %s' lists missing and damaged data",
	           path);
	return STATUS_INPUT;
}

/* Refuses files of other kinds, some of which are JSON, too. Standard input can be read only once; its missing events
 * are reported later. */
static enum status refuse_other_kind(const char *path, struct error *err)
{
	const char *kind = strcmp(path, "-") != 0 ? other_kind_of_file(path) : NULL;

	if (!kind)
		return STATUS_OK;
	error_set(err, STATUS_INPUT, "'%s' is %s, not a Chrome or Perfetto trace", path, kind);
	error_hint(err, "validate checks only those two; 'stepscope report' reads this file");
	return STATUS_INPUT;
}

/* Checks a file. Returns the worst result: unreadable, then broken, then fine. main prints the first failure. */
static enum status check_file(const char *path, struct buffer *out, struct json_writer *json, struct error *err)
{
	static struct validation validation;
	struct error failure = {.status = STATUS_OK};
	enum status status = refuse_directory(path, &failure);

	if (status == STATUS_OK)
		status = refuse_other_kind(path, &failure);
	if (status == STATUS_OK)
		status = validate_file(path, &validation, &failure);
	else
		validation = (struct validation){0};

	if (json)
		write_validation(json, path, &validation, status == STATUS_OK ? NULL : &failure);
	else
		print_validation(out, path, &validation, status == STATUS_OK ? NULL : &failure);
	if (status != STATUS_OK && err->status == STATUS_OK) {
		*err = failure;
		if (!strstr(failure.text, path))
			error_set(err, failure.status, "cannot read '%s' to its end: %s", path, failure.text);
	}
	if (status != STATUS_OK)
		return status;
	return validation_has_errors(&validation) ? STATUS_LIMIT : STATUS_OK;
}

static enum status check_all(const struct options_result *arguments, struct buffer *out, struct error *err)
{
	struct json_writer json;
	enum status worst = STATUS_OK;

	json_writer_init(&json, out, JSON_PRETTY);
	if (is_json) {
		json_object_begin(&json);
		json_key(&json, "schema"), json_string(&json, "stepscope.validate/1");
		json_key(&json, "files");
		json_array_begin(&json);
	}
	for (int i = 0; i < arguments->operand_count; i++) {
		enum status status = check_file(arguments->operands[i], out, is_json ? &json : NULL, err);

		if (status_exit(status) > status_exit(worst))
			worst = status;
	}
	if (is_json) {
		json_array_end(&json);
		json_object_end(&json);
		buffer_add_byte(out, '\n');
	}
	return worst;
}

static int cmd_validate_run(const struct options_result *arguments, struct error *err)
{
	enum status status = STATUS_OK, written;
	struct error write_error;
	struct buffer out;

	if (arguments->operand_count == 0 && !is_rules) {
		status = error_set(err, STATUS_USAGE, "validate wants at least one file");
		error_hint(err, "for example 'stepscope validate trace.json.gz'");
		return status_exit(status);
	}
	buffer_init(&out, MAXIMUM_OUTPUT);
	if (is_rules)
		print_rules(&out);
	else
		status = check_all(arguments, &out, err);
	written = write_text(stdout, &out, &write_error);
	buffer_release(&out);
	if (written != STATUS_OK) {
		*err = write_error;
		return status_exit(written);
	}
	return status_exit(status);
}

const struct command command_validate = {
	.name = "validate",
	.summary = "Check whether the readers of trace files can load them",
	.usage = "stepscope validate [options] FILE...",
	.examples = "  stepscope validate trace.json.gz\n"
		    "  stepscope validate --json traces/*.gz\n"
		    "  stepscope validate --rules",
	.options = options,
	.run = cmd_validate_run,
};
