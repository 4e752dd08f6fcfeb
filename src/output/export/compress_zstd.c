/* SPDX-License-Identifier: Apache-2.0
 *
 * compress_zstd.c: zstd, level 1, one frame.
 */
#include "output/export/codec.h"

#include <stdlib.h>
#include <zstd.h>

#define OUT_BYTES ((size_t)256 * 1024)

struct zstd_state {
	ZSTD_CCtx *context;
	char out[OUT_BYTES];
};

static void *zstd_open(void)
{
	struct zstd_state *state = calloc(1, sizeof(*state));

	if (!state)
		return NULL;
	state->context = ZSTD_createCCtx();
	if (!state->context) {
		free(state);
		return NULL;
	}
	ZSTD_CCtx_setParameter(state->context, ZSTD_c_compressionLevel, 1);
	ZSTD_CCtx_setParameter(state->context, ZSTD_c_checksumFlag, 1);
	return state;
}

static bool zstd_feed(void *opaque, const char *bytes, size_t length, bool is_last, codec_sink sink, void *context)
{
	struct zstd_state *state = opaque;
	ZSTD_inBuffer in = {bytes, length, 0};
	size_t left;

	do {
		ZSTD_outBuffer out = {state->out, OUT_BYTES, 0};

		left = ZSTD_compressStream2(state->context, &out, &in, is_last ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left) || !sink(context, state->out, out.pos))
			return false;
	} while (in.pos < in.size || (is_last && left > 0));
	return true;
}

static void zstd_close(void *opaque)
{
	struct zstd_state *state = opaque;

	ZSTD_freeCCtx(state->context);
	free(state);
}

const struct codec codec_zstd = {".zst", zstd_open, zstd_feed, zstd_close};
