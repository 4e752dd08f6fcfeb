/* SPDX-License-Identifier: Apache-2.0
 *
 * input_stream.h: reads the bytes of a file and decompresses gzip (any number of members) and zstd, detected by
 * content. Memory use does not depend on the size of the file. "-" is standard input.
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
/* Opens the file that archive_next() gave last. The archive must outlive the stream. Close the stream before the next
 * archive_next(). */
enum status input_open_member(struct archive_reader *archive, const char *name, struct input_stream **input,
                              struct error *err) MUST_CHECK;
/* Reads up to `capacity` bytes; *length is 0 at the end. Fails if the file cannot be read, or if the compressed data is
 * damaged or cut off. Data read before that is good. */
enum status input_read(struct input_stream *input, char *bytes, size_t capacity, size_t *length,
                       struct error *err) MUST_CHECK;
/* After input_read() failed on damaged data: skips to the start of the next gzip member or zstd frame. Returns false if
 * there is none, or if the failure has another reason. */
bool input_go_on(struct input_stream *input);
/* Returns the first INPUT_HEAD_BYTES, or all bytes of a shorter file. input_read() returns them again. Call it before
 * the first input_read(). */
enum status input_peek(struct input_stream *input, const char **bytes, size_t *length, struct error *err) MUST_CHECK;
/* Does the same for INPUT_LONG_HEAD_BYTES. */
enum status input_peek_long(struct input_stream *input, const char **bytes, size_t *length,
                            struct error *err) MUST_CHECK;
/* From now on, counts and sums the bytes that input_read() returns. Inputs with the same text have the same result,
 * compressed or not. */
void input_sum(struct input_stream *input);
struct input_text {
	uint64_t bytes;
	uint32_t sum; /* CRC-32C */
};
struct input_text input_summed(const struct input_stream *input);
/* "none", "gzip" or "zstd" */
const char *input_compression(const struct input_stream *input);
uint64_t input_file_bytes(const struct input_stream *input); /* bytes read from the file so far */
void input_close(struct input_stream *input);                /* accepts NULL */

/* Returns true if the decompressed file starts like an archive. Pass INPUT_HEAD_BYTES if available. */
bool archive_is_here(const char *head, size_t length);

#endif
