/* SPDX-License-Identifier: Apache-2.0
 *
 * compress.h: the output of exporters. The caller formats into blocks; a second thread compresses and writes them.
 *
 *     status = output_open(path, &output, err);
 *     struct writer w = writer_begin(output);
 *     writer_text(&w, "...");
 *     writer_end(&w);
 *     status = output_close(output, &bytes, err);
 *
 * The suffix of the path decides: ".gz" is one gzip stream, ".zst" one zstd frame, "-" is stdout without compression.
 * A regular file appears under its name only after output_close() succeeded. Until then it has no name at all; if the
 * file system does not support that, it has a temporary name that output_close() and output_abort() remove. Devices,
 * pipes and the like are written directly. Only one thread may use an output.
 */
#ifndef OUTPUT_EXPORT_COMPRESS_H
#define OUTPUT_EXPORT_COMPRESS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OUTPUT_BLOCK_BYTES ((size_t)1 << 20)

struct output;

enum status output_open(const char *path, struct output **output, struct error *err) MUST_CHECK;
/* Opens an output that only counts bytes. */
struct output *output_open_nowhere(void);

/* Returns a block of OUTPUT_BLOCK_BYTES to fill. Waits while all blocks are being written. */
char *output_block(struct output *output);
/* Submits `length` bytes of the block from output_block(). */
void output_submit(struct output *output, size_t length);
/* Returns true after a write failed. Later blocks are discarded, so the caller may stop early. */
bool output_is_failed(struct output *output);
/* Returns the bytes submitted so far. */
uint64_t output_raw_bytes(const struct output *output);

/* Waits until everything is written and gives the file its name. Frees `output` in any case. */
enum status output_close(struct output *output, uint64_t *bytes_file, struct error *err) MUST_CHECK;
/* Discards the output and leaves no file. Accepts NULL. */
void output_abort(struct output *output);

/* Returns the length without a compression suffix: that of "trace.json" for "trace.json.gz". */
size_t output_stem_length(const char *path);

/* ---- a cursor in the current block; `at` may be used directly after writer_reserve() ---- */

struct writer {
	struct output *output;
	char *block, *at, *end;
};

static inline struct writer writer_begin(struct output *output)
{
	char *block = output_block(output);

	return (struct writer){output, block, block, block + OUTPUT_BLOCK_BYTES};
}

static inline void writer_flush(struct writer *w)
{
	output_submit(w->output, (size_t)(w->at - w->block));
	w->at = w->block = output_block(w->output);
	w->end = w->block + OUTPUT_BLOCK_BYTES;
}

/* Makes room for `bytes` (at most OUTPUT_BLOCK_BYTES) after w->at. */
static inline void writer_reserve(struct writer *w, size_t bytes)
{
	if (__builtin_expect((size_t)(w->end - w->at) < bytes, 0))
		writer_flush(w);
}

/* Writes bytes of any length. */
void writer_bytes(struct writer *w, const void *bytes, size_t length);
static inline void writer_text(struct writer *w, const char *text)
{
	writer_bytes(w, text, strlen(text));
}
void writer_printf(struct writer *w, const char *format, ...) PRINTF_LIKE(2, 3);

static inline void writer_end(struct writer *w)
{
	output_submit(w->output, (size_t)(w->at - w->block));
}

/* Returns the bytes written through w, including those in the current block. */
static inline uint64_t writer_count(const struct writer *w)
{
	return output_raw_bytes(w->output) + (uint64_t)(w->at - w->block);
}

#endif
