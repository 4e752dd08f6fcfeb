/* SPDX-License-Identifier: Apache-2.0
 *
 * inflate_zlib.c: gzip read by zlib.
 */
#include "base/inflate.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

struct inflater {
	z_stream stream;
};

struct inflater *inflater_new(void)
{
	struct inflater *inflater = calloc(1, sizeof *inflater);
	if (inflater && inflateInit2(&inflater->stream, 15 + 16) != Z_OK) {
		free(inflater);
		inflater = NULL;
	}
	return inflater;
}

void inflater_free(struct inflater *inflater)
{
	if (inflater)
		inflateEnd(&inflater->stream);
	free(inflater);
}

void inflater_reset(struct inflater *inflater)
{
	inflateReset(&inflater->stream);
}

enum inflate_result inflater_run(struct inflater *inflater, const char *in, size_t *in_length, char *out,
                                 size_t *out_length)
{
	z_stream *stream = &inflater->stream;
	uInt in_bytes = *in_length > UINT_MAX ? UINT_MAX : (uInt)*in_length,
	     out_bytes = *out_length > UINT_MAX ? UINT_MAX : (uInt)*out_length;
	stream->next_in = (Bytef *)(uintptr_t)in; /* the library only reads it */
	stream->avail_in = in_bytes;
	stream->next_out = (Bytef *)out;
	stream->avail_out = out_bytes;
	int result = inflate(stream, Z_NO_FLUSH);
	*in_length = in_bytes - stream->avail_in;
	*out_length = out_bytes - stream->avail_out;
	if (result == Z_STREAM_END)
		return INFLATE_MEMBER_END;
	return result == Z_OK || result == Z_BUF_ERROR ? INFLATE_GOES_ON : INFLATE_IS_DAMAGED;
}
