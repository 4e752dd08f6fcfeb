/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_gaps.h: the text between the values of events (`, "tid": `), remembered with what it means. Writers repeat themselves: mostly
 * what follows a value is what followed it in an event before, and one comparison takes the place of reading a key and looking it up.
 * What was not met, or needed a repair, is read the long way.
 */
#ifndef IMPORTERS_KINETO_GAPS_H
#define IMPORTERS_KINETO_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define KINETO_GAP_BYTES 48
#define KINETO_GAPS 255
#define KINETO_GAP_NEXT 4

enum kineto_gap_place {
	GAP_IN_ARGS = 1,
	GAP_IS_FIRST = 2, /* of the object */
};

struct kineto_gap {
	char text[KINETO_GAP_BYTES]; /* from behind a value or bracket to a value, or behind the bracket that closes */
	uint64_t mask;               /* a bit for each of its bytes */
	uint8_t length;
	uint8_t key_at, key_length;
	bool is_end;                   /* of the object */
	uint8_t place;                 /* bits by enum kineto_gap_place */
	uint8_t meaning;               /* enum kineto_field, or enum kineto_key of args */
	uint8_t next[KINETO_GAP_NEXT]; /* what came behind it last, the latest first; 0: nothing more yet */
};

struct kineto_gaps {
	struct kineto_gap list[KINETO_GAPS + 1]; /* [0]: before the event */
	uint32_t count;                          /* in use, but [0] */
	uint8_t last;                            /* where the event that is read has come to */
};

static inline bool kineto_gap_is_at(const struct kineto_gap *gap, const char *at)
{
#ifdef __SSE2__
	for (unsigned i = 0; i < gap->length; i += 16) { /* most are not longer than the first 16 */
		__m128i here = _mm_loadu_si128((const __m128i *)(const void *)(at + i)),
			there = _mm_loadu_si128((const __m128i *)(const void *)(gap->text + i));
		unsigned differ = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(here, there)) ^ 0xffff;
		if (differ & (unsigned)(gap->mask >> i))
			return false;
	}
	return true;
#else
	return memcmp(gap->text, at, gap->length) == 0;
#endif
}

/* The gap that is here; NULL: none that is known. KINETO_GAP_BYTES from `at` on must be readable. */
static inline const struct kineto_gap *kineto_gap_here(struct kineto_gaps *gaps, const char *at, uint8_t place)
{
	struct kineto_gap *last = &gaps->list[gaps->last];
	for (int i = 0; i < KINETO_GAP_NEXT && last->next[i]; i++) {
		uint8_t number = last->next[i];
		const struct kineto_gap *gap = &gaps->list[number];
		if (gap->place != place || !kineto_gap_is_at(gap, at))
			continue;
		for (; i > 0; i--)
			last->next[i] = last->next[i - 1];
		last->next[0] = number;
		gaps->last = number;
		return gap;
	}
	return NULL;
}

/* What was read the long way: *gap with its text, NULL when it is too long to be kept. */
void kineto_gap_add(struct kineto_gaps *gaps, const struct kineto_gap *gap);

#endif
