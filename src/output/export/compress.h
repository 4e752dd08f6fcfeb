/* SPDX-License-Identifier: Apache-2.0
 *
 * compress.h: where exporters write to. The caller formats into blocks, a second thread compresses and writes them.
 *
 *     status = output_open(path, &output, err);
 *     struct writer w = writer_begin(output);
 *     writer_text(&w, "...");
 *     writer_end(&w);
 *     status = output_close(output, &bytes, err);
 *
 * The suffix of the path decides: ".gz" is one gzip stream, ".zst" one zstd frame, "-" is stdout without compression.
 * A regular file appears under its name only when output_close() succeeded: until then it has no name at all (or, where
 * the file system cannot do that, a temporary one that output_close() and output_abort() remove). Devices, pipes and
 * the like are written to directly. One thread may use an output.
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
/* An output that only counts. */
struct output *output_open_nowhere(void);

/* A block of OUTPUT_BLOCK_BYTES to fill; waits while all are on their way. */
char *output_block(struct output *output);
/* Hands `length` bytes of the block from output_block() over. */
void output_submit(struct output *output, size_t length);
/* True after a write failed: what follows is thrown away, so the caller may stop early. */
bool output_is_failed(struct output *output);
/* Bytes submitted so far. */
uint64_t output_raw_bytes(const struct output *output);

/* Waits until everything is written and gives the file its name. `output` is gone afterwards in any case. */
enum status output_close(struct output *output, uint64_t *bytes_file, struct error *err) MUST_CHECK;
/* Leaves no file behind. Accepts NULL. */
void output_abort(struct output *output);

/* "trace.json.gz" -> length of "trace.json": without the suffix that only means compression. */
size_t output_stem_length(const char *path);

/* ---- a cursor in the current block; `at` may be used directly after writer_reserve() ---------------------------------- */

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

/* Makes sure that `bytes` (at most OUTPUT_BLOCK_BYTES) fit behind w->at. */
static inline void writer_reserve(struct writer *w, size_t bytes)
{
	if (__builtin_expect((size_t)(w->end - w->at) < bytes, 0))
		writer_flush(w);
}

/* Any length. */
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

/* Bytes written through w, those in the current block included. */
static inline uint64_t writer_count(const struct writer *w)
{
	return output_raw_bytes(w->output) + (uint64_t)(w->at - w->block);
}

#endif
