/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_bytes.h: the four loops that process most of a trace's bytes, 16 bytes at a time if the processor can.
 * KINETO_PADDING bytes after the text must be readable.
 */
#ifndef IMPORTERS_KINETO_KINETO_BYTES_H
#define IMPORTERS_KINETO_KINETO_BYTES_H

#include "importers/kineto/kineto_value.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define KINETO_PADDING 16

static inline bool kineto_is_blank(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static inline const char *kineto_past_blanks(const char *at)
{
	if (!kineto_is_blank(*at) || !kineto_is_blank(*++at))
		return at;
#ifdef __SSE2__
	for (;; at += 16) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
		__m128i blanks = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(' ')),
		                                           _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'))),
		                              _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t')),
		                                           _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\r'))));
		unsigned others = ~(unsigned)_mm_movemask_epi8(blanks) & 0xffff;
		if (others)
			return at + __builtin_ctz(others);
	}
#else
	while (kineto_is_blank(*at))
		at++;
	return at;
#endif
}

/* Returns the first byte that cannot be part of a number or of a word such as true, -Infinity, N/A. */
static inline const char *kineto_past_word(const char *at)
{
#ifdef __SSE2__
	for (;; at += 16) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
		__m128i digits = _mm_sub_epi8(bytes, _mm_set1_epi8('-')), /* - . / 0 ... 9 */
			letters = _mm_sub_epi8(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), _mm_set1_epi8('a'));
		__m128i words = _mm_or_si128(_mm_cmpeq_epi8(_mm_min_epu8(digits, _mm_set1_epi8('9' - '-')), digits),
		                             _mm_cmpeq_epi8(_mm_min_epu8(letters, _mm_set1_epi8('z' - 'a')), letters));
		words = _mm_or_si128(words, _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('+')),
		                                         _mm_cmpeq_epi8(bytes, _mm_set1_epi8('_'))));
		unsigned others = ~(unsigned)_mm_movemask_epi8(words) & 0xffff;
		if (others)
			return at + __builtin_ctz(others);
	}
#else
	while ((*at >= '-' && *at <= '9') || ((*at | 0x20) >= 'a' && (*at | 0x20) <= 'z') || *at == '+' || *at == '_')
		at++;
	return at;
#endif
}

/* Returns the next quote, backslash or control character. Sets TEXT_IS_NOT_ASCII if the bytes before it are not
 * ASCII. */
static inline const char *kineto_past_plain(const char *at, uint8_t *flags)
{
#ifdef __SSE2__
	for (;; at += 16) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
		__m128i controls = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
		__m128i stops = _mm_or_si128(controls, _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
		                                                    _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))));
		unsigned stop = (unsigned)_mm_movemask_epi8(stops), high = (unsigned)_mm_movemask_epi8(bytes);
		if (stop)
			high &= (stop & -stop) - 1;
		if (high)
			*flags |= TEXT_IS_NOT_ASCII;
		if (stop)
			return at + __builtin_ctz(stop);
	}
#else
	for (; (unsigned char)*at >= 0x20 && *at != '"' && *at != '\\'; at++)
		if ((unsigned char)*at >= 0x80)
			*flags |= TEXT_IS_NOT_ASCII;
	return at;
#endif
}

/* Returns the next bracket of any kind, quote or NUL. */
static inline const char *kineto_past_contents(const char *at)
{
#ifdef __SSE2__
	for (;; at += 16) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
		__m128i lower = _mm_or_si128(bytes, _mm_set1_epi8(0x20)); /* [ and { differ in this bit */
		__m128i brackets = _mm_or_si128(_mm_cmpeq_epi8(lower, _mm_set1_epi8('{')),
		                                _mm_cmpeq_epi8(lower, _mm_set1_epi8('}')));
		__m128i others = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
		                              _mm_cmpeq_epi8(bytes, _mm_setzero_si128()));
		unsigned stop = (unsigned)_mm_movemask_epi8(_mm_or_si128(brackets, others));
		if (stop)
			return at + __builtin_ctz(stop);
	}
#else
	while (*at && *at != '"' && *at != '[' && *at != ']' && *at != '{' && *at != '}')
		at++;
	return at;
#endif
}

#endif
