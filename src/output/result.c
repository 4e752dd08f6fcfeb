/* SPDX-License-Identifier: Apache-2.0
 *
 * result.c: see the header.
 */
#include "output/result.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAXIMUM_TEXT ((size_t)1 << 31) /* between two points at which it may flow */

enum status write_text(FILE *file, const struct buffer *text, struct error *err)
{
	if (text->is_overflown)
		return error_set(err, STATUS_ENVIRONMENT, "the result is too large");
	if (fwrite(text->data, 1, text->length, file) != text->length || fflush(file) != 0)
		return error_errno(err, STATUS_IO, errno, "cannot write the result");
	return STATUS_OK;
}

/* A device or a pipe is written directly: renaming would replace /dev/null by a file. */
static enum status result_open_file(struct result *result, struct error *err)
{
	const char *path = result->path;
	size_t room = sizeof(result->temporary);
	struct stat info;
	bool is_special = stat(path, &info) == 0 && !S_ISREG(info.st_mode);

	if (is_special && S_ISDIR(info.st_mode))
		return error_errno(err, STATUS_IO, EISDIR, "cannot write '%s'", path);
	if (!is_special && snprintf(result->temporary, room, "%s.tmp.%d", path, (int)getpid()) >= (int)room)
		return error_set(err, STATUS_USAGE, "the name of the output file is too long");
	result->file = fopen(is_special ? path : result->temporary, is_special ? "we" : "wxe");
	if (!result->file)
		return error_errno(err, STATUS_IO, errno, "cannot write '%s'", path);
	return STATUS_OK;
}

/* Closes the file and renames it, or removes it if `status`, the result of writing, is a failure. */
static enum status close_file(struct result *result, enum status status, struct error *err)
{
	if (!result->path)
		return status;
	if (fclose(result->file) != 0 && !status)
		status = error_errno(err, STATUS_IO, errno, "cannot write '%s'", result->path);
	if (result->temporary[0] && !status && rename(result->temporary, result->path) != 0)
		status = error_errno(err, STATUS_IO, errno, "cannot write '%s'", result->path);
	if (result->temporary[0] && status)
		unlink(result->temporary);
	return status;
}

static bool result_take(void *context, const char *bytes, size_t length)
{
	struct result *result = context;

	if (fwrite(bytes, 1, length, result->file) == length)
		return true;
	result->problem = errno;
	return false;
}

enum status result_open(struct result *result, const char *path, struct error *err)
{
	*result = (struct result){.path = path, .file = stdout};
	if (path && result_open_file(result, err))
		return err->status;
	buffer_init(&result->text, MAXIMUM_TEXT);
	result->text.flow = result_take;
	result->text.flow_context = result;
	return STATUS_OK;
}

enum status result_close(struct result *result, enum status status, struct error *err)
{
	if (!status && result->problem)
		status = error_errno(err, STATUS_IO, result->problem, "cannot write the result");
	else if (!status)
		status = write_text(result->file, &result->text, err);
	buffer_release(&result->text);
	return close_file(result, status, err);
}

enum status write_text_file(const char *path, const struct buffer *text, struct error *err)
{
	struct result result = {.path = path};
	enum status status = result_open_file(&result, err);

	return status ? status : close_file(&result, write_text(result.file, text, err), err);
}
