/* SPDX-License-Identifier: Apache-2.0
 *
 * result.h: the result of a command, on stdout or in a file. A file is replaced as a whole or not at all. The result
 * may be larger than memory, because result.text flows (base/buffer.h).
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
	char temporary[PATH_MAX]; /* replaces the file in the end; "" for a device, a pipe or stdout */
	int problem;              /* errno of a failed write, 0: no write failed */
};

/* path NULL means stdout. On failure nothing needs to be closed. An open result must not be moved. */
enum status result_open(struct result *result, const char *path, struct error *err) MUST_CHECK;
/* Writes the rest. If `status` or the writing is a failure, a file stays as it was. */
enum status result_close(struct result *result, enum status status, struct error *err) MUST_CHECK;

/* Write a text that is complete. A buffer that exceeded its maximum is an error. */
enum status write_text(FILE *file, const struct buffer *text, struct error *err) MUST_CHECK;
enum status write_text_file(const char *path, const struct buffer *text, struct error *err) MUST_CHECK;

#endif
