/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_files.c: see the header.
 */
#include "output/compare/compare_files.h"

#include "output/result.h"

#include <errno.h>
#include <stdlib.h>

#define MAXIMUM_OUTPUT ((size_t)1 << 28)

enum form {
	FORM_MARKDOWN,
	FORM_SUMMARY,
	FORM_JUNIT,
	FORM_SMALLER,
	FORM_BIGGER,
	FORM_CANARY,
	FORM_OUTPUT,
	FORM_ANNOTATIONS
};

static void write_form(struct buffer *out, enum form form, const struct compare_output *of)
{
	switch (form) {
	case FORM_MARKDOWN:
		compare_markdown(out, of, COMMENT_BYTES);
		break;
	case FORM_SUMMARY:
		compare_markdown(out, of, SUMMARY_BYTES);
		break;
	case FORM_JUNIT:
		compare_junit(out, of);
		break;
	case FORM_SMALLER:
	case FORM_BIGGER:
		compare_benchmark(out, of, form == FORM_BIGGER);
		break;
	case FORM_CANARY:
		compare_canary_report(out, of);
		break;
	case FORM_OUTPUT:
		compare_github_output(out, of);
		break;
	default:
		compare_annotations(out, of);
	}
}

static enum status write_file(const char *path, enum form form, const struct compare_output *of, struct error *err)
{
	struct buffer text;
	enum status status;

	if (!path)
		return STATUS_OK;
	buffer_init(&text, MAXIMUM_OUTPUT);
	write_form(&text, form, of);
	status = write_text_file(path, &text, err);
	buffer_release(&text);
	return status;
}

/* Appends to the file that the environment variable names, if it is set. */
static enum status append_file(const char *variable, enum form form, const struct compare_output *of, struct error *err)
{
	const char *path = getenv(variable);
	struct buffer text;
	enum status status;
	FILE *file;

	if (!path || !path[0])
		return STATUS_OK;
	file = fopen(path, "ae");
	if (!file)
		return error_errno(err, STATUS_IO, errno, "cannot append to '%s' (%s)", path, variable);
	buffer_init(&text, MAXIMUM_OUTPUT);
	write_form(&text, form, of);
	status = write_text(file, &text, err);
	buffer_release(&text);
	if (fclose(file) != 0 && !status)
		status = error_errno(err, STATUS_IO, errno, "cannot append to '%s' (%s)", path, variable);
	return status;
}

/* Runners read commands on stderr as well, and stdout is reserved for the result. */
static enum status annotate(const struct compare_output *of, struct error *err)
{
	struct buffer text;
	enum status status = STATUS_OK;

	buffer_init(&text, MAXIMUM_OUTPUT);
	write_form(&text, FORM_ANNOTATIONS, of);
	if (text.length)
		status = write_text(stderr, &text, err);
	buffer_release(&text);
	return status;
}

enum status compare_files_write(const struct compare_files *files, const struct compare_output *of, struct error *err)
{
	if (write_file(files->markdown, FORM_MARKDOWN, of, err) || write_file(files->junit, FORM_JUNIT, of, err) ||
	    write_file(files->smaller, FORM_SMALLER, of, err) || write_file(files->bigger, FORM_BIGGER, of, err) ||
	    write_file(files->canary, FORM_CANARY, of, err))
		return err->status;
	if (!files->is_github)
		return STATUS_OK;
	if (append_file("GITHUB_STEP_SUMMARY", FORM_SUMMARY, of, err) ||
	    append_file("GITHUB_OUTPUT", FORM_OUTPUT, of, err))
		return err->status;
	return annotate(of, err);
}
