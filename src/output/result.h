/* SPDX-License-Identifier: Apache-2.0
 *
 * result.h: what a command answers, on stdout or in a file, which is replaced at once or not at all. It may be larger than memory:
 * result.text flows (base/buffer.h).
 *
 *     struct result result;
 *     status = result_open(&result, path, err);
 *     if (!status) {
 *             csv_table(&result.text, table);
 *             status = result_close(&result, STATUS_OK, err);
 *     }
 */
#ifndef OUTPUT_RESULT_H
#define OUTPUT_RESULT_H

#include "base/buffer.h"
#include "base/error.h"

#include <limits.h>
#include <stdio.h>

struct result {
	struct buffer text;
	FILE *file;
	const char *path;         /* NULL: stdout */
	char temporary[PATH_MAX]; /* what is to replace the file; "": it is a device or a pipe, or stdout */
	int problem;              /* errno of the write that failed, 0: none did */
};

/* path NULL: stdout. On failure nothing needs to be closed. Until it is closed it must stay where it is. */
enum status result_open(struct result *result, const char *path, struct error *err) MUST_CHECK;
/* Writes the rest. `status`: whether the text is as it should be; where it is not, or on failure, a file stays as it was. */
enum status result_close(struct result *result, enum status status, struct error *err) MUST_CHECK;

/* The same of a text that is all there; a buffer that hit its maximum is an error. */
enum status write_text(FILE *file, const struct buffer *text, struct error *err) MUST_CHECK;
enum status write_text_file(const char *path, const struct buffer *text, struct error *err) MUST_CHECK;

#endif
