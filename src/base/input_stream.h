/* SPDX-License-Identifier: Apache-2.0
 *
 * input_stream.h: the bytes of a file, decompressed when it is gzip (any number of members) or zstd; found by content.
 * Memory does not depend on the size of the file. "-" is standard input.
 */
#ifndef BASE_INPUT_STREAM_H
#define BASE_INPUT_STREAM_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INPUT_HEAD_BYTES ((size_t)512)
#define INPUT_LONG_HEAD_BYTES ((size_t)64 << 10)

struct archive_reader;
struct input_stream;

enum status input_open(const char *path, struct input_stream **input, struct error *err) MUST_CHECK;
/* The file that archive_next() gave last. The archive must outlive the stream, which is closed before the next one. */
enum status input_open_member(struct archive_reader *archive, const char *name, struct input_stream **input,
                              struct error *err) MUST_CHECK;
/* Up to `capacity` bytes; *length 0 at the end. Fails when the file cannot be read or the compressed data is damaged or
 * cut off; what came before is good. */
enum status input_read(struct input_stream *input, char *bytes, size_t capacity, size_t *length,
                       struct error *err) MUST_CHECK;
/* After input_read() failed on damaged data: to the next member of gzip, or frame of zstd, which is read from its beginning. False: there
 * is none, or it failed for another reason. What lies between is passed over. */
bool input_go_on(struct input_stream *input);
/* The first INPUT_HEAD_BYTES, or all there are, which stay to be read; before the first input_read(). */
enum status input_peek(struct input_stream *input, const char **bytes, size_t *length, struct error *err) MUST_CHECK;
/* The same of INPUT_LONG_HEAD_BYTES. */
enum status input_peek_long(struct input_stream *input, const char **bytes, size_t *length,
                            struct error *err) MUST_CHECK;
/* From now on what input_read() gives is counted and summed: two inputs with the same text have the same of both, compressed or not. */
void input_sum(struct input_stream *input);
struct input_text {
	uint64_t bytes;
	uint32_t sum; /* CRC-32C */
};
struct input_text input_summed(const struct input_stream *input);
/* "none", "gzip" or "zstd" */
const char *input_compression(const struct input_stream *input);
uint64_t input_file_bytes(const struct input_stream *input); /* read from the file so far */
void input_close(struct input_stream *input);                /* accepts NULL */

/* By the first bytes of the file, decompressed, best INPUT_HEAD_BYTES. */
bool archive_is_here(const char *head, size_t length);

#endif
