/* SPDX-License-Identifier: Apache-2.0
 *
 * archive_reader_none.c: see archive_reader.h; built where libarchive is missing.
 */
#include "base/archive_reader.h"

enum status archive_open(const char *path, struct input_stream *input, struct archive_reader **archive,
                         struct error *err)
{
	*archive = NULL;
	error_set(err, STATUS_ENVIRONMENT, "cannot read '%s': this stepscope was built without libarchive", path);
	error_hint(err, "unpack it and give the directory, or build with libarchive-dev");
	return STATUS_ENVIRONMENT;
}

enum status archive_next(struct archive_reader *archive, const char **name, struct error *err)
{
	*name = NULL;
	return STATUS_OK;
}

enum status archive_read(struct archive_reader *archive, char *bytes, size_t capacity, size_t *length,
                         struct error *err)
{
	*length = 0;
	return STATUS_OK;
}

uint64_t archive_file_bytes(const struct archive_reader *archive)
{
	return 0;
}

void archive_close(struct archive_reader *archive) {}
