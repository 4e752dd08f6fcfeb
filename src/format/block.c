/* SPDX-License-Identifier: Apache-2.0
 *
 * block.c: event words -> columns -> compressed block. decode.c does the reverse.
 */
#include "format/block.h"

#include "base/crc32c.h"
#include "format/payload.h"

#include <lz4.h>

#define DICTIONARY_ENTRIES (BLOCK_CODE_ESCAPE - BLOCK_CODE_DICTIONARY)
#define DICTIONARY_SLOTS 256u

struct encoder {
	uint32_t stream;
	uint64_t first_word;
	unsigned shift;
	uint32_t words, events;
	uint64_t first_tick, last_tick;
	uint64_t last_quantum;
	uint32_t symbol_bytes, high_bytes, data_bytes;
	uint32_t dictionary_count;
	uint32_t dictionary[DICTIONARY_ENTRIES];
	uint8_t slot_code[DICTIONARY_SLOTS]; /* hash of a head -> its code, 0 none */
	bool has_begin_words;
	struct payload_history history;
	uint8_t symbols[ENCODER_MAX_WORDS * 5];
	uint8_t low[ENCODER_MAX_WORDS];
	uint8_t mid[ENCODER_MAX_WORDS];
	uint8_t high[ENCODER_MAX_WORDS * 8];
	uint8_t data[ENCODER_MAX_WORDS * 10];
	uint8_t raw[BLOCK_MAX_EVENT_BYTES];
	char lz4[LZ4_STREAM_MINSIZE] __attribute__((aligned(8)));
};

size_t encoder_bytes(void)
{
	return (sizeof(struct encoder) + 63) & ~(size_t)63;
}

void encoder_begin(struct encoder *encoder, uint32_t stream, uint64_t first_word, unsigned shift)
{
	encoder->stream = stream;
	encoder->first_word = first_word;
	encoder->shift = shift;
	encoder->words = encoder->events = 0;
	encoder->first_tick = encoder->last_tick = encoder->last_quantum = 0;
	encoder->symbol_bytes = encoder->high_bytes = encoder->data_bytes = 0;
	encoder->dictionary_count = 0;
	memset(encoder->slot_code, 0, sizeof(encoder->slot_code));
	encoder->has_begin_words = false;
	memset(&encoder->history, 0, sizeof(encoder->history));
}

/* Writes the code of a head without a fixed code: its dictionary code, a new one, or the escape. */
static void put_rare_symbol(struct encoder *encoder, uint32_t head)
{
	uint32_t slot = (head * 2654435761u) >> 24;
	uint8_t *out = encoder->symbols + encoder->symbol_bytes;
	uint8_t code = encoder->slot_code[slot];
	if (code && encoder->dictionary[code - BLOCK_CODE_DICTIONARY] == head) {
		*out = code;
		encoder->symbol_bytes++;
		return;
	}
	if (!code && encoder->dictionary_count < DICTIONARY_ENTRIES) {
		code = (uint8_t)(BLOCK_CODE_DICTIONARY + encoder->dictionary_count);
		encoder->dictionary[encoder->dictionary_count++] = head;
		encoder->slot_code[slot] = code;
		*out = code;
		encoder->symbol_bytes++;
		return;
	}
	*out = BLOCK_CODE_ESCAPE;
	memcpy(out + 1, &head, 4);
	encoder->symbol_bytes += 5;
}

static inline void put_symbol(struct encoder *encoder, uint32_t head)
{
	uint32_t id = head >> 8;
	if ((head & 0xff) == STEPSCOPE_EVENT_BEGIN && id - 1 < BLOCK_CODE_DICTIONARY - 1)
		encoder->symbols[encoder->symbol_bytes++] = (uint8_t)id;
	else if (head == STEPSCOPE_EVENT_END)
		encoder->symbols[encoder->symbol_bytes++] = 0;
	else
		put_rare_symbol(encoder, head);
}

static inline void put_time(struct encoder *encoder, uint64_t tick)
{
	uint64_t quantum = tick >> encoder->shift;
	if (encoder->events == 0) {
		encoder->first_tick = tick;
		encoder->last_quantum = quantum;
	}
	/* time in a stream never runs backwards; if a clock does, the event moves to its predecessor's time */
	uint64_t delta = quantum > encoder->last_quantum ? quantum - encoder->last_quantum : 0;
	uint64_t rest = delta >> 8;
	encoder->low[encoder->events] = (uint8_t)delta;
	if (rest < 255) {
		encoder->mid[encoder->events] = (uint8_t)rest;
	} else {
		encoder->mid[encoder->events] = 255;
		encoder->high_bytes += payload_put_varint(encoder->high + encoder->high_bytes, rest - 255);
	}
	encoder->last_quantum += delta;
	if (tick > encoder->last_tick)
		encoder->last_tick = tick;
}

static inline void put_payload(struct encoder *encoder, uint32_t head, const uint64_t *payload, uint32_t count)
{
	encoder->has_begin_words |= (head & 15) == STEPSCOPE_EVENT_BEGIN;
	for (uint32_t i = 0; i < count; i++)
		encoder->data_bytes += payload_put(encoder->data + encoder->data_bytes, &encoder->history, head, i,
		                                   payload[i]);
}

static inline void put_event(struct encoder *encoder, uint32_t head, uint64_t tick, const uint64_t *payload)
{
	uint32_t count = head >> 4 & 15;
	put_symbol(encoder, head);
	put_time(encoder, tick);
	if (count)
		put_payload(encoder, head, payload, count);
	encoder->events++;
	encoder->words += 1 + count;
}

bool encoder_is_full(const struct encoder *encoder)
{
	return encoder->words + 16 > ENCODER_MAX_WORDS;
}

uint32_t encoder_events(const struct encoder *encoder)
{
	return encoder->events;
}

uint32_t encoder_words(const struct encoder *encoder)
{
	return encoder->words;
}

size_t encoder_add(struct encoder *encoder, const uint64_t *words, size_t count, uint64_t *base)
{
	size_t at = 0;
	while (at < count && !encoder_is_full(encoder)) {
		uint64_t word = __atomic_load_n(&words[at], __ATOMIC_ACQUIRE);
		if (word == 0)
			break;
		uint32_t head = (uint32_t)(word >> 32);
		uint32_t payload_count = head >> 4 & 15;
		if (payload_count + 1 > count - at)
			break;
		if ((head & 15) == STEPSCOPE_EVENT_TIME && payload_count >= 1) {
			*base = words[at + 1];
			encoder->words += 1 + payload_count;
		} else {
			uint64_t tick = *base + (uint32_t)((uint32_t)word - (uint32_t)*base);
			put_event(encoder, head, tick, words + at + 1);
		}
		at += 1 + payload_count;
	}
	return at;
}

bool encoder_add_event(struct encoder *encoder, uint32_t head, uint64_t tick, const uint64_t *payload)
{
	if (encoder_is_full(encoder))
		return false;
	put_event(encoder, head, tick, payload);
	return true;
}

static size_t gather_columns(struct encoder *encoder)
{
	uint8_t *out = encoder->raw;
	const uint32_t sizes[4] = {encoder->dictionary_count, encoder->symbol_bytes, encoder->high_bytes,
	                           encoder->data_bytes};
	const struct {
		const void *bytes;
		size_t length;
	} columns[] = {
		{sizes, sizeof(sizes)},
		{encoder->dictionary, encoder->dictionary_count * sizeof(uint32_t)},
		{encoder->symbols, encoder->symbol_bytes},
		{encoder->low, encoder->events},
		{encoder->mid, encoder->events},
		{encoder->high, encoder->high_bytes},
		{encoder->data, encoder->data_bytes},
	};
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		memcpy(out, columns[i].bytes, columns[i].length);
		out += columns[i].length;
	}
	return (size_t)(out - encoder->raw);
}

void block_seal(struct stepscope_block *block, const void *data)
{
	block->crc = 0;
	block->crc = crc32c(crc32c(0, block, sizeof(*block)), data, block->bytes);
}

size_t encoder_finish(struct encoder *encoder, uint8_t flags, void *out)
{
	if (encoder->words == 0)
		return 0;
	size_t raw_bytes = gather_columns(encoder);
	uint8_t *data = (uint8_t *)out + sizeof(struct stepscope_block);
	/* a compressed form that is not smaller is useless, so it gets less room than the raw form */
	int packed = LZ4_compress_fast_extState(encoder->lz4, (const char *)encoder->raw, (char *)data, (int)raw_bytes,
	                                        (int)raw_bytes - 1, 1);
	struct stepscope_block block = {
		.magic = STEPSCOPE_BLOCK_MAGIC,
		.bytes = packed > 0 ? (uint32_t)packed : (uint32_t)raw_bytes,
		.kind = STEPSCOPE_BLOCK_EVENTS,
		.encoding = packed > 0 ? STEPSCOPE_ENCODING_LZ4 : STEPSCOPE_ENCODING_RAW,
		.shift = (uint8_t)encoder->shift,
		.flags = (uint8_t)(flags | (encoder->has_begin_words ? STEPSCOPE_BLOCK_BEGIN_WORDS : 0)),
		.stream = encoder->stream,
		.raw_bytes = (uint32_t)raw_bytes,
		.first_word = encoder->first_word,
		.words = encoder->words,
		.events = encoder->events,
		.first_tick = encoder->first_tick,
		.last_tick = encoder->last_tick,
	};
	if (packed <= 0)
		memcpy(data, encoder->raw, raw_bytes);
	block_seal(&block, data);
	memcpy(out, &block, sizeof(block));
	return sizeof(block) + block.bytes;
}

size_t block_write(void *out, enum stepscope_block_kind kind, uint32_t stream, const void *data, size_t bytes)
{
	struct stepscope_block block = {
		.magic = STEPSCOPE_BLOCK_MAGIC,
		.bytes = (uint32_t)bytes,
		.kind = (uint8_t)kind,
		.stream = stream,
		.raw_bytes = (uint32_t)bytes,
	};
	assert(bytes <= STEPSCOPE_MAX_BLOCK_BYTES);
	block_seal(&block, data);
	memmove((uint8_t *)out + sizeof(block), data, bytes);
	memcpy(out, &block, sizeof(block));
	return sizeof(block) + bytes;
}

void block_mark_rescued(void *bytes, uint64_t pool)
{
	struct stepscope_block block;
	memcpy(&block, bytes, sizeof(block));
	block.flags |= STEPSCOPE_BLOCK_RESCUED;
	block.rescue = pool;
	block_seal(&block, (const uint8_t *)bytes + sizeof(block));
	memcpy(bytes, &block, sizeof(block));
}

void segment_header_seal(struct stepscope_segment_header *header)
{
	memcpy(header->magic, STEPSCOPE_SEGMENT_MAGIC, 8);
	header->header_bytes = sizeof(*header);
	header->crc = 0;
	header->crc = crc32c(0, header, sizeof(*header));
}

bool segment_header_is_good(const struct stepscope_segment_header *header)
{
	struct stepscope_segment_header copy = *header;
	copy.crc = 0;
	return memcmp(header->magic, STEPSCOPE_SEGMENT_MAGIC, 8) == 0 && header->header_bytes == sizeof(*header) &&
	       crc32c(0, &copy, sizeof(copy)) == header->crc;
}
