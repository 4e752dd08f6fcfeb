/* SPDX-License-Identifier: Apache-2.0
 *
 * read_file.c: see the header.
 */
#include "base/read_file.h"

#include <errno.h>
#include <stdio.h>

enum status read_file(struct buffer *text, const char *path, size_t wanted, struct error *err)
{
	FILE *file = fopen(path, "re");
	enum status status = STATUS_OK;
	char chunk[16384];
	size_t got;

	if (!file)
		return error_errno(err, STATUS_INPUT, errno, "cannot read '%s'", path);
	errno = 0;
	while (text->length < wanted && (got = fread(chunk, 1, sizeof(chunk), file)) > 0 &&
	       buffer_add(text, chunk, got))
		;
	if (ferror(file))
		status = error_errno(err, STATUS_INPUT, errno, "cannot read '%s'", path);
	else if (text->is_overflown)
		status = error_set(err, STATUS_INPUT, "'%s' is too large: at most %zu MiB", path, text->maximum >> 20);
	fclose(file);
	return status;
}
