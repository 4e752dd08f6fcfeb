/* SPDX-License-Identifier: Apache-2.0
 *
 * pool_sample.h: a small pool as a killed process leaves it, and the segment it belongs to, for the tests of the rescue.
 */
#ifndef POOL_SAMPLE_H
#define POOL_SAMPLE_H

#include <stddef.h>
#include <stdint.h>
#include <stepscope/format.h>

#define POOL_SAMPLE_CHUNKS 2u
#define POOL_SAMPLE_SLOTS_OFFSET 4096u
#define POOL_SAMPLE_SYMBOLS_OFFSET (POOL_SAMPLE_SLOTS_OFFSET + 2 * 256u)
#define POOL_SAMPLE_CHUNKS_OFFSET (POOL_SAMPLE_SYMBOLS_OFFSET + 512u)
#define POOL_SAMPLE_BYTES (POOL_SAMPLE_CHUNKS_OFFSET + POOL_SAMPLE_CHUNKS * STEPSCOPE_CHUNK_BYTES)

/* Pool of process 4242, whose segment is at `segment_path`: two streams; stream 1 has 100 pairs of "work" and 5 drops. */
void pool_sample_make(uint8_t pool[POOL_SAMPLE_BYTES], const char *segment_path);

/* Writes that segment: header, builtin names, and the first `words` words of stream 1. */
void pool_sample_write_segment(const char *path, uint64_t words);

void pool_sample_write(const char *path, const void *bytes, size_t length);

#endif
