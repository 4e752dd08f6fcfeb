/* SPDX-License-Identifier: Apache-2.0
 *
 * decode.c: see block.h for the columns. Every column is bounded before it is read.
 */
#include "format/decode.h"

#include "format/block.h"
#include "format/payload.h"

#include <lz4.h>

struct columns {
	uint32_t dictionary_count;
	const uint8_t *dictionary, *symbols, *symbols_end, *low, *mid, *high, *high_end, *data, *data_end;
};

void decoder_release(struct decoder *decoder)
{
	free(decoder->events);
	free(decoder->payload);
	free(decoder->raw);
	*decoder = (struct decoder){0};
}

static bool ensure(void **memory, size_t *capacity, size_t wanted, size_t element)
{
	if (*capacity >= wanted)
		return true;
	void *grown = realloc(*memory, wanted * element);
	if (!grown)
		return false;
	*memory = grown;
	*capacity = wanted;
	return true;
}

const uint8_t *decoder_unpack(struct decoder *decoder, const struct stepscope_block *block, const uint8_t *data)
{
	if (block->encoding == STEPSCOPE_ENCODING_RAW)
		return block->raw_bytes == block->bytes ? data : NULL;
	if (block->encoding != STEPSCOPE_ENCODING_LZ4 || block->raw_bytes > STEPSCOPE_MAX_BLOCK_BYTES)
		return NULL;
	if (!ensure((void **)&decoder->raw, &decoder->raw_capacity, block->raw_bytes + 1u, 1))
		return NULL;
	int length = LZ4_decompress_safe((const char *)data, (char *)decoder->raw, (int)block->bytes,
	                                 (int)block->raw_bytes);
	return length == (int)block->raw_bytes ? decoder->raw : NULL;
}

static bool decode_split(struct columns *columns, const struct stepscope_block *block, const uint8_t *raw)
{
	uint32_t sizes[4];
	if (block->raw_bytes < sizeof(sizes))
		return false;
	memcpy(sizes, raw, sizeof(sizes));
	uint64_t total = sizeof(sizes) + 4 * (uint64_t)sizes[0] + sizes[1] + sizes[2] + sizes[3] +
	                 2 * (uint64_t)block->events;
	if (sizes[0] > 255 || total != block->raw_bytes)
		return false;
	columns->dictionary_count = sizes[0];
	columns->dictionary = raw + sizeof(sizes);
	columns->symbols = columns->dictionary + 4 * (size_t)sizes[0];
	columns->symbols_end = columns->symbols + sizes[1];
	columns->low = columns->symbols_end;
	columns->mid = columns->low + block->events;
	columns->high = columns->mid + block->events;
	columns->high_end = columns->high + sizes[2];
	columns->data = columns->high_end;
	columns->data_end = columns->data + sizes[3];
	return true;
}

static inline bool get_head(struct columns *columns, uint32_t *head)
{
	if (columns->symbols == columns->symbols_end)
		return false;
	uint8_t code = *columns->symbols++;
	if (code == 0) {
		*head = STEPSCOPE_EVENT_END;
	} else if (code < BLOCK_CODE_DICTIONARY) {
		*head = (uint32_t)code << 8 | STEPSCOPE_EVENT_BEGIN;
	} else if (code < BLOCK_CODE_ESCAPE) {
		uint32_t index = code - BLOCK_CODE_DICTIONARY;
		if (index >= columns->dictionary_count)
			return false;
		memcpy(head, columns->dictionary + 4 * (size_t)index, 4);
	} else {
		if (columns->symbols_end - columns->symbols < 4)
			return false;
		memcpy(head, columns->symbols, 4);
		columns->symbols += 4;
	}
	return true;
}

static inline bool get_delta(struct columns *columns, uint32_t index, uint64_t *delta)
{
	uint64_t rest = columns->mid[index];
	if (rest == 255) {
		uint64_t more;
		if (!payload_get_varint(&columns->high, columns->high_end, &more))
			return false;
		rest += more;
	}
	*delta = rest << 8 | columns->low[index];
	return true;
}

static bool get_payload(struct columns *columns, struct payload_history *history, bool is_plain,
                        const struct segment_event *event, uint64_t *out)
{
	uint32_t head = event->id << 8 | event->type;
	for (uint32_t i = 0; i < event->payload_count; i++)
		if (!payload_get(&columns->data, columns->data_end, history, head, i, is_plain, &out[i]))
			return false;
	return true;
}

bool decoder_run(struct decoder *decoder, const struct stepscope_block *block, const uint8_t *data)
{
	struct columns columns;
	struct payload_history history = {0};
	bool is_plain = !(block->flags & STEPSCOPE_BLOCK_BEGIN_WORDS);
	if (block->events > block->words) /* an event has at least one word */
		return false;
	const uint8_t *raw = block->shift < 32 ? decoder_unpack(decoder, block, data) : NULL;
	if (!raw || !decode_split(&columns, block, raw))
		return false;
	/* a payload word takes at least one byte of data, so this is enough */
	size_t payload_words = (size_t)(columns.data_end - columns.data);
	if (!ensure((void **)&decoder->events, &decoder->event_capacity, block->events + 1u,
	            sizeof(*decoder->events)) ||
	    !ensure((void **)&decoder->payload, &decoder->payload_capacity, payload_words + 1,
	            sizeof(*decoder->payload)))
		return false;

	uint64_t quantum = block->first_tick >> block->shift;
	uint64_t *payload = decoder->payload, *payload_end = payload + payload_words;
	for (uint32_t i = 0; i < block->events; i++) {
		struct segment_event *event = &decoder->events[i];
		uint32_t head;
		uint64_t delta;
		if (!get_head(&columns, &head) || !get_delta(&columns, i, &delta))
			return false;
		quantum += delta;
		event->tick = quantum << block->shift;
		if (event->tick < block->first_tick) /* rounded down below the exact first tick */
			event->tick = block->first_tick;
		event->type = head & 15;
		event->payload_count = head >> 4 & 15;
		event->id = head >> 8;
		event->payload = payload;
		if (event->payload_count > payload_end - payload ||
		    !get_payload(&columns, &history, is_plain, event, payload))
			return false;
		payload += event->payload_count;
	}
	return columns.symbols == columns.symbols_end && columns.data == columns.data_end;
}
