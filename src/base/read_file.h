/* SPDX-License-Identifier: Apache-2.0
 *
 * read_file.h: a whole small file as text. The maximum of the buffer is that of the file.
 */
#ifndef BASE_READ_FILE_H
#define BASE_READ_FILE_H

#include "base/buffer.h"
#include "base/error.h"

/* Adds about as many bytes as are wanted, or all when the file is smaller. STATUS_INPUT: it cannot be read, or is larger than the
 * buffer may be. */
enum status read_file(struct buffer *text, const char *path, size_t wanted, struct error *err) MUST_CHECK;

#endif
