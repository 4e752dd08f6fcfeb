/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_gaps.h: the text between the values of events (`, "tid": `), remembered with what it means. Writers repeat themselves: mostly
 * what follows a value is what followed it in an event before, and one comparison takes the place of reading a key and looking it up.
 * Where a value is nearly always the same, it becomes part of the gap (`, "pid": 12, "tid": 12, "ts": `), and one comparison reads several
 * members. What was not met, or needed a repair, is read the long way.
 *
 *     kineto_gap_restart(gaps, false);                    // before an event
 *     number = kineto_gap_here(gaps, at);                 // again and again: 0, then kineto_gap_add() what is there, or
 *     kineto_gap_pass(gaps, number, text, length, value); // with the value in front of it
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

#define KINETO_GAP_BYTES 192 /* whole pieces of 16 */
#define KINETO_GAP_MEMBERS 9
#define KINETO_GAPS 511
#define KINETO_GAP_NEXT 12
#define KINETO_CONSTANT_BYTES 32

struct kineto_gap_member { /* a key */
	uint8_t key_at, key_length;
	uint8_t place; /* of its value among kineto_event.values; KINETO_PLACE_OTHER: of its own, as an arg that is not known */
	uint8_t value_at;
	struct kineto_value value; /* where that is in the gap, too; its `at` is not used */
};

#define KINETO_PLACE_OTHER 255

struct kineto_gap {
	char text[KINETO_GAP_BYTES]; /* from behind a value or bracket to a value, or behind the event; no NUL */
	uint32_t mask;               /* bits of the first 16 bytes that it has */
	uint8_t length;
	bool is_end;                  /* of the event */
	uint8_t args_begin, args_end; /* where that is: at the bracket, behind the other one; 0: not in it */
	uint8_t member_count;
	bool is_joined;                 /* of others */
	bool is_settled;                /* its value was not the same often enough */
	uint16_t next[KINETO_GAP_NEXT]; /* what came behind it: often ones first, but those that begin like another before that */
	struct kineto_gap_member members[KINETO_GAP_MEMBERS]; /* the last one's value comes next, unless it is the end */
	/* that value, as it was lately */
	char constant[KINETO_CONSTANT_BYTES];
	uint8_t constant_length;
	uint8_t score, tries; /* how often more it was that than another; times in all */
	uint64_t set;         /* bits by place of members */
};

#define KINETO_GAP_LOST KINETO_GAPS /* nothing is known of what comes */

struct kineto_gaps {
	struct kineto_gap list[KINETO_GAPS + 1]; /* [0]: before the event; the last one: KINETO_GAP_LOST */
	uint32_t count;                          /* in use, but these */
	uint16_t last, before;                   /* where the event that is read has come to, and the one before that */
};

static inline void kineto_gap_restart(struct kineto_gaps *gaps, bool is_lost)
{
	gaps->last = gaps->before = is_lost ? KINETO_GAP_LOST : 0;
	gaps->list[0].is_settled = true; /* no value is behind it */
}

#ifdef __SSE2__
/* Bits of those that are, of 16. */
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

/* The gap that is here; 0: none that is known. A NUL stands where the text ends, and KINETO_PADDING bytes behind it. */
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

/* Whether the value between the last gap and this one is always the same. text: as it stands there. */
void kineto_gap_learn(struct kineto_gaps *gaps, uint16_t number, const char *text, size_t length,
                      const struct kineto_value *value);

/* Goes on to a gap that is here, behind such a value. */
static inline void kineto_gap_pass(struct kineto_gaps *gaps, uint16_t number, const char *text, size_t length,
                                   const struct kineto_value *value)
{
	if (!gaps->list[gaps->last].is_settled)
		kineto_gap_learn(gaps, number, text, length, value);
	gaps->before = gaps->last;
	gaps->last = number;
}

/* Goes on to what was read the long way: *gap with its text, NULL when it cannot be kept. */
void kineto_gap_add(struct kineto_gaps *gaps, const struct kineto_gap *gap);

#endif
