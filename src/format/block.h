/* SPDX-License-Identifier: Apache-2.0
 *
 * block.h: makes the blocks of a segment. No malloc: the recorder uses it inside the training process. The caller
 * provides the memory; one thread at a time may use a struct encoder.
 *
 * EVENTS data, before compression (all integers little-endian):
 *
 *    u32 dictionary entries | u32 bytes of symbols | u32 bytes of t_high | u32 bytes of data
 *    dictionary   u32 each: heads (id << 8 | n << 4 | type) that codes 200.. stand for, in order
 *    symbols      per event one code: 0 END of detail; 1..199 BEGIN of that id without payload; 200..254 dictionary;
 *                 255 a u32 head follows
 *    t_low        per event: low byte of the delta to the previous event, in units of 2^shift ticks
 *    t_mid        per event: next byte of the delta; 255: t_high has the rest
 *    t_high       LEB128: (delta >> 8) - 255
 *    data         payload words as differences to earlier words, see payload.h
 *
 * The first delta counts from block.first_tick >> shift. TIME events are not stored (their words count in block.words).
 */
#ifndef FORMAT_BLOCK_H
#define FORMAT_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stepscope/format.h>

#define ENCODER_MAX_WORDS 16384u /* maximum of one EVENTS block */
#define BLOCK_CODE_DICTIONARY 200u
#define BLOCK_CODE_ESCAPE 255u

/* Upper bound of the bytes of one EVENTS block, including its header. */
#define BLOCK_MAX_EVENT_BYTES (64u + 16u + ENCODER_MAX_WORDS * 15u + 4096u)

struct encoder;
size_t encoder_bytes(void); /* bytes of one encoder; the caller provides them 64-byte aligned and zeroed */

/* Starts a block for words [first_word, ...) of the stream. */
void encoder_begin(struct encoder *encoder, uint32_t stream, uint64_t first_word, unsigned shift);

/* Adds complete events from words[0..count) until a zero head word, the end, or a full block. *base is the tick that
 * the low halves refer to; TIME events update it. Returns the number of words consumed. May run while the owner
 * appends. */
size_t encoder_add(struct encoder *encoder, const uint64_t *words, size_t count, uint64_t *base);

/* Adds one event (for coarse copies). Returns false if the block is full. */
bool encoder_add_event(struct encoder *encoder, uint32_t head, uint64_t tick, const uint64_t *payload);

bool encoder_is_full(const struct encoder *encoder);
uint32_t encoder_events(const struct encoder *encoder);
uint32_t encoder_words(const struct encoder *encoder);

/* Writes the finished block to `out`, which has room for BLOCK_MAX_EVENT_BYTES. Returns its bytes, or 0 if it has no
 * words. */
size_t encoder_finish(struct encoder *encoder, uint8_t flags, void *out);

/* Writes a block of another kind, uncompressed. Returns its bytes (64 + bytes). `data` may already be in place after
 * the header. */
size_t block_write(void *out, enum stepscope_block_kind kind, uint32_t stream, const void *data, size_t bytes);

/* Sets block->crc for block->bytes of data. */
void block_seal(struct stepscope_block *block, const void *data);

/* Marks a finished block as written by the rescue of the pool number `pool`. */
void block_mark_rescued(void *block, uint64_t pool);

/* Set and check header->crc of a segment header. */
void segment_header_seal(struct stepscope_segment_header *header);
bool segment_header_is_good(const struct stepscope_segment_header *header);

#endif
