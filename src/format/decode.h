/* SPDX-License-Identifier: Apache-2.0
 *
 * decode.h: decodes the data of an EVENTS block into events. For readers, not for the training process (it allocates).
 */
#ifndef FORMAT_DECODE_H
#define FORMAT_DECODE_H

#include "format/segment.h"

#include <stddef.h>

/* Reused from block to block. Zero-initialise it, and release it at the end. Events are valid until the next block is
 * decoded. */
struct decoder {
	struct segment_event *events;
	uint64_t *payload;
	uint8_t *raw;
	size_t event_capacity, payload_capacity, raw_capacity;
};

void decoder_release(struct decoder *decoder);

/* Returns the decompressed data of a block of any kind, block->raw_bytes long, valid until the next call. Returns NULL
 * if the data are invalid. */
const uint8_t *decoder_unpack(struct decoder *decoder, const struct stepscope_block *block, const uint8_t *data);

/* Decodes block->bytes of `data` into decoder->events (block->events of them). Returns false if the data are invalid;
 * nothing in them is trusted. */
bool decoder_run(struct decoder *decoder, const struct stepscope_block *block, const uint8_t *data);

#endif
