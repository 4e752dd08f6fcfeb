/* SPDX-License-Identifier: Apache-2.0
 *
 * archive_reader.h: the files in a zip or tar (also compressed: gzip, zstd, xz), one after the other, without unpacking them anywhere.
 *
 *     status = archive_open(path, NULL, &archive, err);
 *     while (archive_next(archive, &name, err) == STATUS_OK && name)
 *             ... input_open_member(archive, name, &input, err) ... input_close(input);
 *     archive_close(archive);
 *
 * Memory does not depend on the sizes. One that decompresses to very much more than its size is refused there: what came before is good.
 */
#ifndef BASE_ARCHIVE_READER_H
#define BASE_ARCHIVE_READER_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of contents that an archive may have: these, and so many for each byte of its own. */
#define ARCHIVE_FREE_BYTES ((uint64_t)256 << 20)
#define ARCHIVE_RATIO_MAX 250u

struct archive_reader;
struct input_stream;

/* `input`, which may be NULL and must outlive the archive, is where the file is read from when it can be read once only, as a pipe. */
enum status archive_open(const char *path, struct input_stream *input, struct archive_reader **archive,
                         struct error *err) MUST_CHECK;
/* The next regular file; its name is valid until the next call, NULL: there are no more. */
enum status archive_next(struct archive_reader *archive, const char **name, struct error *err) MUST_CHECK;
/* Of that file, up to `capacity` bytes; *length 0 at its end. */
enum status archive_read(struct archive_reader *archive, char *bytes, size_t capacity, size_t *length,
                         struct error *err) MUST_CHECK;
uint64_t archive_file_bytes(const struct archive_reader *archive); /* of the archive, so far */
void archive_close(struct archive_reader *archive);                /* accepts NULL */

#endif
