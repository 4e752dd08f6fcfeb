/* SPDX-License-Identifier: Apache-2.0
 *
 * read_file.h: reads a whole small file as text. The buffer's maximum limits the size of the file.
 */
#ifndef BASE_READ_FILE_H
#define BASE_READ_FILE_H

#include "base/buffer.h"
#include "base/error.h"

/* Adds about `wanted` bytes, or the whole file if it is smaller. STATUS_INPUT: the file cannot be read, or is larger
 * than the buffer's maximum. */
enum status read_file(struct buffer *text, const char *path, size_t wanted, struct error *err) MUST_CHECK;

#endif
