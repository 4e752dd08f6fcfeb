/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_clock.c: builds straight pieces from anchors. CLOCK_MONOTONIC_RAW is interpolated, since no time daemon
 * adjusts it; the other two clocks only place the line. Anchors come from files, so they are not trusted.
 */
#include "importers/recording/recording_clock.h"

#include "base/compare_numbers.h"
#include "base/memory.h"
#include "base/merge_sort.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SLOPE_SHIFT 40
#define WIDE_WINDOW 10                        /* times the median */
#define APART_NS ((int64_t)250 * 1000000)     /* pieces shorter than this only magnify the error of the readings */
#define APART_SHORT_NS ((int64_t)5 * 1000000) /* if the recording has nothing longer */
#define HIGHEST_NS (INT64_MAX / 4)            /* 73 years: an anchor beyond this is nonsense */

struct clock_line *clock_set_line(struct clock_set *set, const uint8_t boot_id[16], uint32_t clock, uint32_t owner,
                                  uint64_t tick_hz)
{
	if (clock != STEPSCOPE_CLOCK_NANOSECONDS)
		owner = MODEL_NONE;
	for (uint32_t i = 0; i < set->count; i++) {
		struct clock_line *line = set->lines[i];
		if (line->clock == clock && line->owner == owner && memcmp(line->boot_id, boot_id, 16) == 0)
			return line;
	}
	struct clock_line *line = memory_resize(NULL, 1, sizeof *line);
	bool is_ns = clock == STEPSCOPE_CLOCK_MONOTONIC || clock == STEPSCOPE_CLOCK_NANOSECONDS;
	*line = (struct clock_line){
		.clock = clock, .owner = owner, .tick_hz = is_ns || !tick_hz ? 1000000000 : tick_hz};
	memcpy(line->boot_id, boot_id, 16);
	set->lines = memory_resize(set->lines, set->count + 1, sizeof(struct clock_line *));
	set->lines[set->count++] = line;
	return line;
}

void clock_line_add(struct clock_line *line, const struct stepscope_anchor *anchor)
{
	if (anchor->raw_ns < 0 || anchor->raw_ns > HIGHEST_NS || anchor->realtime_ns < 0 ||
	    anchor->realtime_ns > HIGHEST_NS || anchor->monotonic_ns < 0 || anchor->monotonic_ns > HIGHEST_NS) {
		line->rejected++;
		return;
	}
	MEMORY_GROW(line->anchors, line->anchor_count, line->anchor_capacity, 16);
	line->anchors[line->anchor_count++] = *anchor;
}

static int compare_anchors(const void *left, const void *right)
{
	const struct stepscope_anchor *a = left, *b = right;
	return (a->tick > b->tick) - (a->tick < b->tick);
}

/* An anchor that was interrupted between its clock reads has a wide window. */
static void reject_wide(struct clock_line *line)
{
	uint32_t n = line->anchor_count, kept = 0;
	if (n < 3)
		return;
	uint32_t *windows = memory_resize(NULL, n, sizeof *windows);
	for (uint32_t i = 0; i < n; i++)
		windows[i] = line->anchors[i].window_ticks;
	qsort(windows, n, sizeof *windows, compare_uint32);
	uint64_t limit = (uint64_t)windows[n / 2] * WIDE_WINDOW + 1;
	free(windows);
	for (uint32_t i = 0; i < n; i++)
		if (line->anchors[i].window_ticks <= limit)
			line->anchors[kept++] = line->anchors[i];
	line->rejected += n - kept;
	line->anchor_count = kept;
}

/* Returns the nearest Q40 slope between two anchors; 0 if time or ticks do not go forward, or if the rate is
 * unreasonable. */
static uint64_t slope_between(const struct stepscope_anchor *a, const struct stepscope_anchor *b)
{
	if (b->tick <= a->tick || b->raw_ns <= a->raw_ns)
		return 0;
	wide_uint slope = ((wide_uint)(uint64_t)(b->raw_ns - a->raw_ns) << SLOPE_SHIFT) / (b->tick - a->tick);
	return slope < (wide_uint)1 << 62 ? (uint64_t)slope : 0;
}

/* Keeps anchors that go forward and are at least `apart_ns` apart. Of two that are too near, keeps the one with the
 * smaller window. Returns the number kept in `out`. */
static uint32_t thin_out(struct clock_line *line, int64_t apart_ns, struct stepscope_anchor *out)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < line->anchor_count; i++) {
		const struct stepscope_anchor *anchor = &line->anchors[i];
		if (!kept) {
			out[kept++] = *anchor;
			continue;
		}
		const struct stepscope_anchor *last = &out[kept - 1];
		if (anchor->raw_ns < last->raw_ns) {
			line->jumps++;
			continue;
		}
		if (anchor->raw_ns - last->raw_ns >= apart_ns) {
			if (slope_between(last, anchor))
				out[kept++] = *anchor;
		} else if (anchor->window_ticks < last->window_ticks &&
		           (kept == 1 || slope_between(&out[kept - 2], anchor))) {
			out[kept - 1] = *anchor;
		}
	}
	return kept;
}

static void count_rate_jumps(struct clock_line *line)
{
	for (uint32_t i = 1; i + 1 < line->piece_count; i++) {
		uint64_t a = line->pieces[i - 1].slope, b = line->pieces[i].slope;
		uint64_t difference = a > b ? a - b : b - a;
		bool is_long = line->pieces[i + 1].raw_ns - line->pieces[i].raw_ns >= APART_NS &&
		               line->pieces[i].raw_ns - line->pieces[i - 1].raw_ns >= APART_NS;
		line->jumps += is_long && difference > a / 1000;
	}
}

static uint64_t nominal_slope(const struct clock_line *line)
{
	return (uint64_t)((((wide_uint)1000000000) << SLOPE_SHIFT) / line->tick_hz);
}

static void make_pieces(struct clock_line *line)
{
	merge_sort(line->anchors, line->anchor_count, sizeof *line->anchors, compare_anchors);
	reject_wide(line);
	line->pieces = memory_resize(NULL, line->anchor_count + 1, sizeof *line->pieces);
	if (!line->anchor_count) {
		line->pieces[0] = (struct clock_piece){0, 0, nominal_slope(line)};
		line->piece_count = 1;
		return;
	}
	struct stepscope_anchor *kept = memory_resize(NULL, line->anchor_count, sizeof *kept);
	uint32_t jumps = line->jumps, n = thin_out(line, APART_NS, kept);
	if (n < 3) {
		line->jumps = jumps;
		n = thin_out(line, APART_SHORT_NS, kept);
	}
	assert(n > 0 && n <= line->anchor_count);
	for (uint32_t i = 0; i < n; i++)
		line->pieces[i] = (struct clock_piece){kept[i].tick, kept[i].raw_ns,
		                                       i + 1 < n ? slope_between(&kept[i], &kept[i + 1]) : 0};
	line->pieces[n - 1].slope = n > 1 ? line->pieces[n - 2].slope : nominal_slope(line);
	line->piece_count = n;
	free(kept);
	count_rate_jumps(line);
}

/* Places the line on the model's time. Another machine or another boot has only the wall clock in common with
 * `base`. */
static void place_line(struct clock_line *line, const struct clock_line *base)
{
	if (!base || !line->anchor_count) {
		line->offset_ns = base && memcmp(line->boot_id, base->boot_id, 16) == 0 ? base->offset_ns : 0;
		line->realtime_offset_ns = base && line->offset_ns ? base->realtime_offset_ns : 0;
		return;
	}
	const struct stepscope_anchor *anchor = &line->anchors[0], *first = &base->anchors[0];
	int64_t wall_ns = first->realtime_ns - first->monotonic_ns;
	if (memcmp(line->boot_id, base->boot_id, 16) == 0)
		line->offset_ns = first->monotonic_ns - first->raw_ns;
	else
		line->offset_ns = anchor->realtime_ns - anchor->raw_ns - wall_ns;
	line->realtime_offset_ns = anchor->realtime_ns - anchor->raw_ns - line->offset_ns;
}

void clock_set_finish(struct clock_set *set, struct clock_line *first)
{
	for (uint32_t i = 0; i < set->count; i++)
		make_pieces(set->lines[i]);
	struct clock_line *base = first && first->anchor_count ? first : NULL;
	for (uint32_t i = 0; i < set->count && !base; i++)
		if (set->lines[i]->anchor_count)
			base = set->lines[i];
	if (base)
		place_line(base, base);
	for (uint32_t i = 0; i < set->count; i++)
		if (set->lines[i] != base)
			place_line(set->lines[i], base);
}

void clock_set_release(struct clock_set *set)
{
	for (uint32_t i = 0; i < set->count; i++) {
		free(set->lines[i]->anchors);
		free(set->lines[i]->pieces);
		free(set->lines[i]);
	}
	free(set->lines);
	*set = (struct clock_set){0};
}

void clock_seek(struct clock_cursor *cursor, uint64_t tick)
{
	const struct clock_line *line = cursor->line;
	uint32_t low = 0, high = line->piece_count;
	assert(high > 0); /* clock_set_finish() makes at least one piece */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (line->pieces[middle].tick <= tick)
			low = middle;
		else
			high = middle;
	}
	cursor->piece = low;
}

int64_t clock_extrapolate_back(const struct clock_line *line, uint64_t tick)
{
	const struct clock_piece *first = &line->pieces[0];
	assert(line->piece_count > 0 && tick <= first->tick);
	wide_uint ns = ((wide_uint)(first->tick - tick) * first->slope) >> SLOPE_SHIFT;
	int64_t start_ns = clock_clamp(first->raw_ns + line->offset_ns, 0);
	return ns > (wide_uint)(INT64_MAX / 4) ? -(INT64_MAX / 4) : clock_clamp(start_ns - (int64_t)ns, 0);
}
