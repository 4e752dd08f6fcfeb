/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_gaps.h: remembers the text between the values of events (`, "tid": `) and its meaning. Writers repeat
 * themselves: the text after a value is mostly the same as in an earlier event. One comparison then replaces reading a
 * key and looking it up. If a value is nearly always the same, it becomes part of the gap (`, "pid": 12, "tid": 12,
 * "ts": `), and one comparison reads several members. New texts, and those that need a repair, are read the long way.
 *
 *     kineto_gap_restart(gaps, false);                    // before an event
 *     number = kineto_gap_here(gaps, at);                 // repeat; 0: read the gap and kineto_gap_add() it, otherwise
 *     kineto_gap_pass(gaps, number, text, length, value); // with the value before the gap
 */
#ifndef IMPORTERS_KINETO_KINETO_GAPS_H
#define IMPORTERS_KINETO_KINETO_GAPS_H

#include "importers/kineto/kineto_value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define KINETO_GAP_BYTES 192 /* a multiple of 16 */
#define KINETO_GAP_MEMBERS 9
#define KINETO_GAPS 511
#define KINETO_GAP_NEXT 12
#define KINETO_CONSTANT_BYTES 32

struct kineto_gap_member { /* a key */
	uint8_t key_at, key_length;
	/* index of its value in kineto_event.values; KINETO_PLACE_OTHER: an unknown arg, which gets a new entry */
	uint8_t place;
	uint8_t value_at;
	struct kineto_value value; /* if the value is in the gap, too; its `at` is not used */
};

#define KINETO_PLACE_OTHER 255

struct kineto_gap {
	char text[KINETO_GAP_BYTES]; /* from a value or bracket to the next value, or to the event's end; no NUL */
	uint32_t mask;               /* one bit for each of the first 16 bytes that it has */
	uint8_t length;
	bool is_end;                  /* the event ends here */
	uint8_t args_begin, args_end; /* offset of the opening bracket, and after the closing one; 0: not in it */
	uint8_t member_count;
	bool is_joined;  /* made of other gaps */
	bool is_settled; /* no more learning: its value is not constant, or cannot be joined */
	/* gaps that follow it: frequent ones first, but a longer gap before its own prefixes */
	uint16_t next[KINETO_GAP_NEXT];
	struct kineto_gap_member members[KINETO_GAP_MEMBERS]; /* the value of the last one comes next, unless is_end */
	/* the value after the gap, as last seen */
	char constant[KINETO_CONSTANT_BYTES];
	uint8_t constant_length;
	uint8_t score, tries; /* score: how often it was equal, less how often it differed; tries: both */
	uint64_t set;         /* bits by place of members */
};

#define KINETO_GAP_LOST KINETO_GAPS /* the position in the event is unknown */

struct kineto_gaps {
	struct kineto_gap list[KINETO_GAPS + 1]; /* [0]: before the event; the last one: KINETO_GAP_LOST */
	uint32_t count;                          /* in use, without these two */
	uint16_t last, before;                   /* the gap that the current event has reached, and the one before */
};

static inline void kineto_gap_restart(struct kineto_gaps *gaps, bool is_lost)
{
	gaps->last = gaps->before = is_lost ? KINETO_GAP_LOST : 0;
	gaps->list[0].is_settled = true; /* no value follows it */
}

#ifdef __SSE2__
/* Returns the bits of the bytes that are equal, of 16. */
static inline unsigned kineto_equal_bytes(const char *a, const char *b)
{
	__m128i left = _mm_loadu_si128((const __m128i *)(const void *)a),
		right = _mm_loadu_si128((const __m128i *)(const void *)b);
	return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(left, right));
}
#endif

static inline bool kineto_gap_is_at(const struct kineto_gap *gap, const char *at)
{
#ifdef __SSE2__
	if (~kineto_equal_bytes(gap->text, at) & gap->mask)
		return false;
	for (unsigned i = 16; i < gap->length; i += 16) {
		unsigned differ = ~kineto_equal_bytes(gap->text + i, at + i), left = gap->length - i;
		if (differ << (left < 16 ? 32 - left : 16))
			return false;
	}
	return true;
#else
	return strncmp(gap->text, at, gap->length) == 0;
#endif
}

static inline bool kineto_gap_begins_like(const struct kineto_gap *gap, const struct kineto_gap *other)
{
	return gap->length > other->length && memcmp(gap->text, other->text, other->length) == 0;
}

/* Returns the number of the gap at `at`; 0: no known gap. The text must end in a NUL that KINETO_PADDING bytes
 * follow. */
static inline uint16_t kineto_gap_here(struct kineto_gaps *gaps, const char *at)
{
	uint16_t *next = gaps->list[gaps->last].next;
	for (int i = 0; i < KINETO_GAP_NEXT && next[i]; i++) {
		uint16_t number = next[i];
		const struct kineto_gap *gap = &gaps->list[number];
		if (!kineto_gap_is_at(gap, at))
			continue;
		if (i && !kineto_gap_begins_like(&gaps->list[next[i - 1]], gap)) {
			next[i] = next[i - 1];
			next[i - 1] = number;
		}
		return number;
	}
	return 0;
}

/* Learns whether the value between the last gap and this one is always the same. text: the value as written. */
void kineto_gap_learn(struct kineto_gaps *gaps, uint16_t number, const char *text, size_t length,
                      const struct kineto_value *value);

/* Moves on to the gap found at this place, after such a value. */
static inline void kineto_gap_pass(struct kineto_gaps *gaps, uint16_t number, const char *text, size_t length,
                                   const struct kineto_value *value)
{
	if (!gaps->list[gaps->last].is_settled)
		kineto_gap_learn(gaps, number, text, length, value);
	gaps->before = gaps->last;
	gaps->last = number;
}

/* Moves on to a gap that was read the long way: *gap with its text; NULL if it cannot be kept. */
void kineto_gap_add(struct kineto_gaps *gaps, const struct kineto_gap *gap);

#endif
