/* SPDX-License-Identifier: Apache-2.0
 *
 * validate.c: the table of rules, and the detection of the kind of file.
 */
#include "output/validate/validate.h"

#include "base/input_stream.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

const struct validate_row validate_rules[VALIDATE_RULE_COUNT] = {
#define X(id, is_error, reader, text) {#id, is_error, reader, text},
	VALIDATE_RULES(X)
#undef X
};

void validate_count(struct validation *validation, enum validate_rule rule, uint64_t offset, const char *detail)
{
	struct validate_finding *finding = &validation->findings[rule];

	if (finding->count++ && finding->first_offset <= offset)
		return;
	finding->first_offset = offset;
	snprintf(finding->detail, sizeof(finding->detail), "%s", detail ? detail : "");
}

bool validation_has_errors(const struct validation *validation)
{
	for (int i = 0; i < VALIDATE_RULE_COUNT; i++)
		if (validation->findings[i].count && validate_rules[i].is_error)
			return true;
	return false;
}

static void check_name(const char *path, struct validation *validation)
{
	if (strcmp(path, "-") != 0 && !text_ends_with(path, ".json") && !text_ends_with(path, ".gz"))
		validate_count(validation, VALIDATE_H1, 0, path);
}

/* JSON starts with a bracket after blanks. A Perfetto trace starts with the tag of its first packet, a line feed. */
static char first_letter(const char *head, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!strchr(" \t\r\n", head[i]) || head[i] == '\0')
			return head[i];
	return '\0';
}

static enum status validate_refuse(const char *path, const char *problem, bool has_contents, struct error *err)
{
	error_set(err, STATUS_INPUT, "'%s' is not a Chrome or Perfetto trace: %s", path, problem);
	if (has_contents)
		error_hint(err, "only these formats are checked; 'stepscope report' also reads other files");
	return STATUS_INPUT;
}

static enum status recognise(const char *path, struct input_stream *input, struct validation *validation, char *first,
                             struct error *err)
{
	const char *head;
	size_t length;
	enum status status = input_peek(input, &head, &length, err);

	validation->compression = input_compression(input);
	if (status != STATUS_OK)
		return status;
	*first = first_letter(head, length);
	validation->format = *first == '{' || *first == '[' ? "chrome" : "perfetto";
	if (strcmp(validation->format, "chrome") == 0 || (length >= 2 && head[0] == '\n'))
		return STATUS_OK;
	return validate_refuse(path, length ? "it starts with neither {, [ nor a packet" : "it is empty", length > 0,
	                       err);
}

static enum status validate_input(const char *path, struct input_stream *input, struct validation *validation,
                                  struct error *err)
{
	char first;
	enum status status = recognise(path, input, validation, &first, err);

	if (status != STATUS_OK)
		return status;
	if (strcmp(validation->compression, "zstd") == 0)
		validate_count(validation, VALIDATE_P10, 0, NULL);
	if (strcmp(validation->format, "perfetto") == 0)
		return validate_perfetto(input, validation, err);
	check_name(path, validation);
	status = validate_chrome(input, validation, err);
	if (status == STATUS_INPUT && !validation->form) {
		struct error problem = *err;

		return validate_refuse(path, problem.text, true, err);
	}
	return status;
}

enum status validate_file(const char *path, struct validation *validation, struct error *err)
{
	struct input_stream *input;
	enum status status;

	memset(validation, 0, sizeof(*validation));
	status = input_open(path, &input, err);
	if (status != STATUS_OK)
		return status;
	status = validate_input(path, input, validation, err);
	input_close(input);
	return status;
}
