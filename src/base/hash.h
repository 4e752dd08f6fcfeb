/* SPDX-License-Identifier: Apache-2.0
 *
 * hash.h: hashes of numbers and texts, for slots of tables and for keys made of several numbers. It has no .c file,
 * because the recorder uses it too.
 *
 *     slot = (uint32_t)(hash_word(number) >> 32) & (slot_count - 1);
 *     found = number_map_add(&by_key, hash_two(module, line), count);
 *     entry->hash = (uint32_t)(hash_text(0, text, length) >> 32);
 *
 * Some results leave the process: they order rows, choose steps and name runs and tracks. So the results of these
 * functions must never change (tests/unit/base/test_hash.c). They do not protect against input chosen to collide.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_FACTOR UINT64_C(0x9e3779b97f4a7c15) /* 2^64 divided by the golden ratio: puts small numbers far apart */
#define HASH_TEXT_FACTOR UINT64_C(0xff51afd7ed558ccd) /* both factors are from the last step of MurmurHash3 */
#define HASH_TEXT_FACTOR_2 UINT64_C(0xc4ceb9fe1a85ec53)
#define HASH_BYTES UINT64_C(0xcbf29ce484222325) /* the hash of no bytes, start value of hash_byte() */
#define HASH_BYTES_FACTOR UINT64_C(0x100000001b3)

/* ---- numbers ---- */

/* Only the upper bits depend on all bits of the word: take the slot from them. Different words have different
 * hashes. */
static inline uint64_t hash_word(uint64_t word)
{
	return word * HASH_FACTOR;
}

/* Adds a word to a hash; start with 0. Different words have different results. */
static inline uint64_t hash_mix(uint64_t hash, uint64_t word)
{
	hash = hash_word(hash ^ word);
	return hash ^ hash >> 32;
}

static inline uint64_t hash_two(uint64_t first, uint64_t second)
{
	return hash_mix(hash_mix(0, first), second);
}

static inline uint64_t hash_words(const uint64_t *words, size_t count)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < count; i++)
		hash = hash_mix(hash, words[i]);
	return hash;
}

/* Each bit of the result depends on all bits of the word (the last step of splitmix64): for random choices. Costs twice
 * as much. */
static inline uint64_t hash_scatter(uint64_t word)
{
	word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
	return word ^ word >> 31;
}

/* ---- texts ---- */

static inline uint64_t hash_text_word(const char *text)
{
	uint64_t word;

	memcpy(&word, text, sizeof(word));
	return le64toh(word);
}

/* Returns the last bytes (fewer than 8) of a text of at least 8 bytes; they start at `text`. Instead of copying them,
 * it reads some of the bytes before them. */
static inline uint64_t hash_text_rest(const char *text, size_t count)
{
	return count ? hash_text_word(text + count - 8) >> 8 * (8 - count) : 0;
}

/* Hashes eight bytes at a time. All bytes count, because names share long prefixes. The seed is 0, the hash of the text
 * before this one, or a number that separates kinds of texts. The upper half of the result is the better one. */
static inline uint64_t hash_text(uint64_t seed, const char *text, size_t length)
{
	uint64_t hash = HASH_FACTOR ^ length ^ seed, word = 0;
	size_t left = length;

	for (; left >= 8; text += 8, left -= 8) {
		hash = (hash ^ hash_text_word(text)) * HASH_TEXT_FACTOR;
		hash ^= hash >> 32;
	}
	if (length >= 8)
		word = hash_text_rest(text, left);
	else
		memcpy(&word, text, left), word = le64toh(word);
	hash = (hash ^ word) * HASH_TEXT_FACTOR_2;
	hash ^= hash >> 29;
	return hash * HASH_TEXT_FACTOR;
}

/* FNV-1a, for texts that are changed while they are read, and for results that other programs know. */
static inline uint64_t hash_byte(uint64_t hash, uint8_t byte)
{
	return (hash ^ byte) * HASH_BYTES_FACTOR;
}

static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		hash = hash_byte(hash, ((const uint8_t *)bytes)[i]);
	return hash;
}

#endif
