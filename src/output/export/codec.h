/* SPDX-License-Identifier: Apache-2.0
 *
 * codec.h: compression of a stream, used by compress.c. There is one file per codec; the build picks the gzip codec
 * whose library the machine has.
 */
#ifndef OUTPUT_EXPORT_CODEC_H
#define OUTPUT_EXPORT_CODEC_H

#include <stdbool.h>
#include <stddef.h>

/* Takes compressed bytes. Returns false to stop the codec. */
typedef bool (*codec_sink)(void *context, const char *bytes, size_t length);

struct codec {
	const char *suffix;  /* ".gz" */
	void *(*open)(void); /* NULL: out of memory */
	/* Compresses all of the input; is_last ends the stream. Returns false if the sink did or the library failed. */
	bool (*feed)(void *state, const char *bytes, size_t length, bool is_last, codec_sink sink, void *context);
	void (*close)(void *state);
};

extern const struct codec codec_gzip;
extern const struct codec codec_zstd;

#endif
