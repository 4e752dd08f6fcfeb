/* SPDX-License-Identifier: Apache-2.0
 *
 * codec.h: a way to compress a stream, used by compress.c. One file per codec; the build picks the gzip one that the
 * machine has a library for.
 */
#ifndef OUTPUT_EXPORT_CODEC_H
#define OUTPUT_EXPORT_CODEC_H

#include <stdbool.h>
#include <stddef.h>

/* Takes compressed bytes; false stops the codec. */
typedef bool (*codec_sink)(void *context, const char *bytes, size_t length);

struct codec {
	const char *suffix;  /* ".gz" */
	void *(*open)(void); /* NULL: out of memory */
	/* Compresses all of the input; is_last ends the stream. False when the sink said so or the library failed. */
	bool (*feed)(void *state, const char *bytes, size_t length, bool is_last, codec_sink sink, void *context);
	void (*close)(void *state);
};

extern const struct codec codec_gzip;
extern const struct codec codec_zstd;

#endif
