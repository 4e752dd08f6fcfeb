/* SPDX-License-Identifier: Apache-2.0
 *
 * payload.h: payload words of events as differences to earlier words, for the encoder and the decoder. A word takes 1
 * to 10 bytes.
 *
 *   any word            LEB128 of the zigzag difference to the same word of the last event of that type
 *   first of a BEGIN    the sequence number: 0 is "none" (all ones) and keeps the previous number; otherwise the zigzag
 *                       difference, plus one if it is smaller than the difference of "none"
 *   second of a BEGIN   its halves: inputs relative to the last BEGIN of that id, stack relative to the last BEGIN
 */
#ifndef FORMAT_PAYLOAD_H
#define FORMAT_PAYLOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stepscope/format.h>

#define PAYLOAD_INPUTS 1024u

struct payload_history {
	uint64_t words[STEPSCOPE_EVENT_TYPES][15];
	uint32_t inputs[PAYLOAD_INPUTS]; /* indexed by id */
	uint32_t stack;
};

static inline uint64_t payload_zigzag(uint64_t delta)
{
	return delta << 1 ^ (0 - (delta >> 63));
}

static inline uint64_t payload_unzigzag(uint64_t zigzag)
{
	return zigzag >> 1 ^ (0 - (zigzag & 1));
}

static inline uint32_t payload_put_varint(uint8_t *out, uint64_t value)
{
	uint32_t n = 0;
	while (value >= 0x80) {
		out[n++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	out[n++] = (uint8_t)value;
	return n;
}

static inline bool payload_get_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
	uint64_t result = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (*at == end)
			return false;
		uint8_t byte = *(*at)++;
		result |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*value = result;
			return true;
		}
	}
	return false;
}

static inline uint32_t payload_put_difference(uint8_t *out, uint64_t *previous, uint64_t word)
{
	uint64_t delta = word - *previous;
	*previous = word;
	return payload_put_varint(out, payload_zigzag(delta));
}

static inline bool payload_get_difference(const uint8_t **at, const uint8_t *end, uint64_t *previous, uint64_t *word)
{
	uint64_t zigzag;
	if (!payload_get_varint(at, end, &zigzag))
		return false;
	*word = *previous += payload_unzigzag(zigzag);
	return true;
}

/* Writes half of a word: the difference of 32 bits as a signed number. */
static inline uint32_t payload_put_half(uint8_t *out, uint32_t *previous, uint32_t half)
{
	int32_t delta = (int32_t)(half - *previous);
	*previous = half;
	return payload_put_varint(out, payload_zigzag((uint64_t)(int64_t)delta));
}

static inline bool payload_get_half(const uint8_t **at, const uint8_t *end, uint32_t *previous)
{
	uint64_t zigzag;
	if (!payload_get_varint(at, end, &zigzag))
		return false;
	*previous += (uint32_t)payload_unzigzag(zigzag);
	return true;
}

static inline uint32_t payload_put_sequence(uint8_t *out, uint64_t *previous, uint64_t word)
{
	uint64_t none = payload_zigzag(UINT64_MAX - *previous);
	if (word == UINT64_MAX)
		return payload_put_varint(out, 0);
	uint64_t zigzag = payload_zigzag(word - *previous);
	*previous = word;
	return payload_put_varint(out, zigzag < none ? zigzag + 1 : zigzag);
}

static inline bool payload_get_sequence(const uint8_t **at, const uint8_t *end, uint64_t *previous, uint64_t *word)
{
	uint64_t code, none = payload_zigzag(UINT64_MAX - *previous);
	if (!payload_get_varint(at, end, &code))
		return false;
	*word = UINT64_MAX;
	if (code != 0)
		*word = *previous += payload_unzigzag(code <= none ? code - 1 : code);
	return true;
}

/* Write and read word `i` of an event. `is_plain`: the block does not have STEPSCOPE_BLOCK_BEGIN_WORDS. */
static inline uint32_t payload_put(uint8_t *out, struct payload_history *history, uint32_t head, uint32_t i,
                                   uint64_t word)
{
	uint32_t type = head & 15;
	if (type != STEPSCOPE_EVENT_BEGIN || i > 1)
		return payload_put_difference(out, &history->words[type][i], word);
	if (i == 0)
		return payload_put_sequence(out, &history->words[type][0], word);
	uint32_t n = payload_put_half(out, &history->inputs[(head >> 8) % PAYLOAD_INPUTS], (uint32_t)word);
	return n + payload_put_half(out + n, &history->stack, (uint32_t)(word >> 32));
}

static inline bool payload_get(const uint8_t **at, const uint8_t *end, struct payload_history *history, uint32_t head,
                               uint32_t i, bool is_plain, uint64_t *word)
{
	uint32_t type = head & 15;
	if (type != STEPSCOPE_EVENT_BEGIN || i > 1 || is_plain)
		return payload_get_difference(at, end, &history->words[type][i], word);
	if (i == 0)
		return payload_get_sequence(at, end, &history->words[type][0], word);
	uint32_t *inputs = &history->inputs[(head >> 8) % PAYLOAD_INPUTS];
	if (!payload_get_half(at, end, inputs) || !payload_get_half(at, end, &history->stack))
		return false;
	*word = *inputs | (uint64_t)history->stack << 32;
	return true;
}

#endif
