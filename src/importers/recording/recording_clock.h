/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_clock.h: converts ticks to nanoseconds of the model's time line, using the anchors that recorders write
 * once a second. Processes of one boot that read the same clock share one line, so that their times agree.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_CLOCK_H
#define IMPORTERS_RECORDING_RECORDING_CLOCK_H

#include "model/model.h"

#include <assert.h>
#include <stepscope/format.h>

__extension__ typedef unsigned __int128 wide_uint; /* a scalar: products of two 64-bit numbers */

struct clock_piece { /* a straight line that starts here */
	uint64_t tick;
	int64_t raw_ns;
	uint64_t slope; /* ns per tick * 2^40 */
};

struct clock_line {
	uint8_t boot_id[16];
	uint32_t clock; /* enum stepscope_clock */
	uint32_t owner; /* index of the process if the line is not shared, otherwise MODEL_NONE */
	uint64_t tick_hz;
	struct stepscope_anchor *anchors;
	uint32_t anchor_count, anchor_capacity;
	struct clock_piece *pieces; /* at least one after clock_set_finish() */
	uint32_t piece_count;
	int64_t offset_ns; /* model time = raw + offset_ns */
	int64_t realtime_offset_ns;
	uint32_t rejected; /* anchors whose clock reads were disturbed */
	uint32_t jumps;    /* places where the rate changed by more than 1000 ppm, or time went back */
};

struct clock_set {
	struct clock_line **lines;
	uint32_t count;
};

struct clock_cursor {
	const struct clock_line *line;
	uint32_t piece;
};

/* Returns the line of that clock, creating it if needed. NANOSECONDS has one line per owner. */
struct clock_line *clock_set_line(struct clock_set *set, const uint8_t boot_id[16], uint32_t clock, uint32_t owner,
                                  uint64_t tick_hz);
void clock_line_add(struct clock_line *line, const struct stepscope_anchor *anchor);
/* Call after the last anchor. The CLOCK_MONOTONIC of `first` becomes the model's time; NULL: that of the first line
 * with anchors. */
void clock_set_finish(struct clock_set *set, struct clock_line *first);
void clock_set_release(struct clock_set *set);

/* The slow half of clock_ns(): finds the piece. */
void clock_seek(struct clock_cursor *cursor, uint64_t tick);
int64_t clock_extrapolate_back(const struct clock_line *line, uint64_t tick);

/* Returns start + ns, clamped so that the difference of two times cannot overflow. */
static inline int64_t clock_clamp(int64_t start_ns, wide_uint ns)
{
	const int64_t highest = INT64_MAX / 2;
	if (__builtin_expect(ns > (wide_uint)(highest / 2) || start_ns > highest / 2 || start_ns < -highest / 2, 0))
		return start_ns < -highest / 2 ? -highest / 2 : highest;
	return start_ns + (int64_t)ns;
}

/* Returns the model time of a tick. It never decreases while ticks do not. */
static inline int64_t clock_ns(struct clock_cursor *cursor, uint64_t tick)
{
	const struct clock_line *line = cursor->line;
	assert(line);
	const struct clock_piece *piece = &line->pieces[cursor->piece];
	if (__builtin_expect(tick < piece->tick || (cursor->piece + 1 < line->piece_count && tick >= piece[1].tick),
	                     0)) {
		if (tick < line->pieces[0].tick)
			return clock_extrapolate_back(line, tick);
		clock_seek(cursor, tick);
		piece = &line->pieces[cursor->piece];
	}
	wide_uint ns = ((wide_uint)(tick - piece->tick) * piece->slope) >> 40;
	return clock_clamp(line->offset_ns + piece->raw_ns, ns);
}

#endif
