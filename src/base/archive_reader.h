/* SPDX-License-Identifier: Apache-2.0
 *
 * archive_reader.h: the files in a zip or tar (also compressed: gzip, zstd, xz), one after the other, without unpacking
 * them anywhere.
 *
 *     status = archive_open(path, NULL, &archive, err);
 *     while (archive_next(archive, &name, err) == STATUS_OK && name)
 *             ... input_open_member(archive, name, &input, err) ... input_close(input);
 *     archive_close(archive);
 *
 * Memory use does not depend on sizes. Reading fails if an archive decompresses to far more than its size; data read
 * before that is good.
 */
#ifndef BASE_ARCHIVE_READER_H
#define BASE_ARCHIVE_READER_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum of contents: ARCHIVE_FREE_BYTES plus ARCHIVE_RATIO_MAX bytes per byte of the archive. */
#define ARCHIVE_FREE_BYTES ((uint64_t)256 << 20)
#define ARCHIVE_RATIO_MAX 250u

struct archive_reader;
struct input_stream;

/* `input` (may be NULL) must outlive the archive. If it is given, the file is read from it: for a pipe, which can be
 * read only once. */
enum status archive_open(const char *path, struct input_stream *input, struct archive_reader **archive,
                         struct error *err) MUST_CHECK;
/* Moves to the next regular file. Its name is valid until the next call; NULL: there are no more. */
enum status archive_next(struct archive_reader *archive, const char **name, struct error *err) MUST_CHECK;
/* Reads up to `capacity` bytes of that file; *length is 0 at its end. */
enum status archive_read(struct archive_reader *archive, char *bytes, size_t capacity, size_t *length,
                         struct error *err) MUST_CHECK;
uint64_t archive_file_bytes(const struct archive_reader *archive); /* bytes of the archive read so far */
void archive_close(struct archive_reader *archive);                /* accepts NULL */

#endif
