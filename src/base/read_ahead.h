/* SPDX-License-Identifier: Apache-2.0
 *
 * read_ahead.h: an input stream that a second thread reads and decompresses ahead, 1 MiB at most. One thread may read
 * it. No other code may touch the input between read_ahead_open() and read_ahead_close().
 *
 *     status = read_ahead_open(input, &ahead, err);
 *     while (read_ahead_read(ahead, bytes, sizeof bytes, &length, err) == STATUS_OK && length) ...
 *     read_ahead_close(ahead);
 *     input_close(input);
 */
#ifndef BASE_READ_AHEAD_H
#define BASE_READ_AHEAD_H

#include "base/input_stream.h"

struct read_ahead;

enum status read_ahead_open(struct input_stream *input, struct read_ahead **result, struct error *err) MUST_CHECK;
/* Works like input_read(). */
enum status read_ahead_read(struct read_ahead *ahead, char *bytes, size_t capacity, size_t *length,
                            struct error *err) MUST_CHECK;
/* Works like input_file_bytes(), for data already returned or ready to be. */
uint64_t read_ahead_file_bytes(struct read_ahead *ahead);
void read_ahead_close(struct read_ahead *ahead); /* accepts NULL */

#endif
