/* SPDX-License-Identifier: Apache-2.0
 *
 * decode.h: the data of an EVENTS block back to events. For readers, not for the training process (it allocates).
 */
#ifndef FORMAT_DECODE_H
#define FORMAT_DECODE_H

#include "format/segment.h"

#include <stddef.h>

/* Reused from block to block; zero-initialise, release at the end. The events of the last block are valid until the next. */
struct decoder {
	struct segment_event *events;
	uint64_t *payload;
	uint8_t *raw;
	size_t event_capacity, payload_capacity, raw_capacity;
};

void decoder_release(struct decoder *decoder);

/* The data of a block of any kind, decompressed: block->raw_bytes, valid until the next call. NULL: it makes no sense. */
const uint8_t *decoder_unpack(struct decoder *decoder, const struct stepscope_block *block, const uint8_t *data);

/* Decodes block->bytes of `data` into decoder->events (block->events of them). False when they do not make sense; nothing
 * is trusted. */
bool decoder_run(struct decoder *decoder, const struct stepscope_block *block, const uint8_t *data);

#endif
