/* SPDX-License-Identifier: Apache-2.0
 *
 * compress_gzip_zlib.c: gzip by zlib, level 1, for machines without ISA-L.
 */
#include "output/export/codec.h"

#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#define OUT_BYTES ((size_t)256 * 1024)

struct gzip_state {
	z_stream stream;
	uint8_t out[OUT_BYTES];
};

static void *gzip_open(void)
{
	struct gzip_state *state = calloc(1, sizeof(*state));

	if (!state)
		return NULL;
	if (deflateInit2(&state->stream, 1, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(state);
		return NULL;
	}
	return state;
}

static bool gzip_feed(void *opaque, const char *bytes, size_t length, bool is_last, codec_sink sink, void *context)
{
	struct gzip_state *state = opaque;
	z_stream *stream = &state->stream;

	stream->next_in = (Bytef *)bytes;
	stream->avail_in = (uInt)length;
	do {
		stream->next_out = state->out;
		stream->avail_out = OUT_BYTES;
		if (deflate(stream, is_last ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_ERROR)
			return false;
		if (!sink(context, (const char *)state->out, OUT_BYTES - stream->avail_out))
			return false;
	} while (stream->avail_out == 0);
	return true;
}

static void gzip_close(void *opaque)
{
	struct gzip_state *state = opaque;

	deflateEnd(&state->stream);
	free(state);
}

const struct codec codec_gzip = {".gz", gzip_open, gzip_feed, gzip_close};
