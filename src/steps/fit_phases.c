/* SPDX-License-Identifier: Apache-2.0
 *
 * fit_phases.c: see fit_phases.h. Phases are found as if there were no calls of Python, so that a trace with stacks
 * has the phases of one without; a forward begins with its first operator, deep inside of calls that end before it does.
 */
#include "steps/fit_phases.h"

#include "base/lower_bound.h"
#include "steps/inference.h"

#include <string.h>

struct fitting {
	const struct train_range *ranges;
	uint32_t range_count;
	struct inference *phases;
	struct inference fitted;
	int64_t low_ns, high_ns; /* how far the phase may grow */
};

/* The innermost range around the moment, of those that begin before limit_ns. */
static uint32_t range_at(const struct fitting *fitting, int64_t time_ns, int64_t limit_ns)
{
	uint32_t low = LOWER_BOUND(fitting->ranges, fitting->range_count, item, item->start_ns < limit_ns);
	uint32_t at = low ? low - 1 : NO_RANGE;
	while (at != NO_RANGE && fitting->ranges[at].end_ns <= time_ns)
		at = fitting->ranges[at].parent;
	return at;
}

static void fit_phases_add_piece(struct fitting *fitting, uint8_t what, int64_t start_ns, int64_t end_ns)
{
	if (start_ns < end_ns)
		inference_add(&fitting->fitted, what, start_ns, end_ns);
}

/* Ranges that the phase begins in and that end in it: it begins with them, or a piece ends with each. Inner ones come first, and begin last.
 * Returns where the last piece begins. */
static int64_t fit_start(struct fitting *fitting, const struct inferred *phase)
{
	const struct train_range *ranges = fitting->ranges;
	uint32_t at = range_at(fitting, phase->start_ns, phase->start_ns);
	int64_t start_ns = phase->start_ns;
	for (; at != NO_RANGE && ranges[at].end_ns < phase->end_ns && ranges[at].start_ns >= fitting->low_ns;
	     at = ranges[at].parent)
		start_ns = ranges[at].start_ns;
	for (; at != NO_RANGE && ranges[at].end_ns < phase->end_ns; at = ranges[at].parent) {
		fit_phases_add_piece(fitting, phase->what, start_ns, ranges[at].end_ns);
		start_ns = ranges[at].end_ns;
	}
	return start_ns;
}

/* The same for those that begin in it and end behind it, from start_ns on. Inner ones come first, and end first. */
static void fit_end(struct fitting *fitting, const struct inferred *phase, int64_t start_ns)
{
	const struct train_range *ranges = fitting->ranges;
	uint32_t at = range_at(fitting, phase->end_ns, phase->end_ns);
	int64_t end_ns = phase->end_ns;
	for (; at != NO_RANGE && ranges[at].start_ns > phase->start_ns && ranges[at].end_ns <= fitting->high_ns;
	     at = ranges[at].parent)
		end_ns = ranges[at].end_ns;
	for (; at != NO_RANGE && ranges[at].start_ns > phase->start_ns; at = ranges[at].parent) {
		fit_phases_add_piece(fitting, phase->what, ranges[at].start_ns, end_ns);
		end_ns = ranges[at].start_ns;
	}
	fit_phases_add_piece(fitting, phase->what, start_ns, end_ns);
}

/* The phase behind number i and what lies in it, or the end of what is around it. */
static int64_t find_high(const struct fitting *fitting, size_t i)
{
	const struct inference *phases = fitting->phases;
	for (size_t k = i + 1; k < phases->count; k++)
		if (phases->list[k].start_ns >= phases->list[i].end_ns)
			return phases->list[k].start_ns;
	return INT64_MAX;
}

void fit_phases(struct inference *phases, const struct train_range *ranges, uint32_t range_count, const int64_t *bounds,
                uint32_t bound_count)
{
	struct fitting fitting = {.ranges = ranges, .range_count = range_count, .phases = phases};
	int64_t last_end_ns = INT64_MIN, fitted_ns = INT64_MIN; /* of the last one that lies in no other */
	uint32_t bound = 0;
	inference_cut_phases(phases, bounds, bound_count);
	for (size_t i = 0; i < phases->count; i++) {
		const struct inferred *phase = &phases->list[i];
		bool is_inside = phase->start_ns < last_end_ns;
		while (bound < bound_count && bounds[bound] <= phase->start_ns)
			bound++;
		fitting.low_ns = is_inside ? phase->start_ns : fitted_ns;
		fitting.high_ns = is_inside ? phase->end_ns : find_high(&fitting, i);
		if (bound && bounds[bound - 1] > fitting.low_ns)
			fitting.low_ns = bounds[bound - 1];
		if (bound < bound_count && bounds[bound] < fitting.high_ns)
			fitting.high_ns = bounds[bound];
		size_t before = fitting.fitted.count;
		fit_end(&fitting, phase, fit_start(&fitting, phase));
		for (size_t k = before; k < fitting.fitted.count && !is_inside; k++)
			if (fitting.fitted.list[k].end_ns > fitted_ns)
				fitted_ns = fitting.fitted.list[k].end_ns;
		last_end_ns = is_inside ? last_end_ns : phase->end_ns;
	}
	inference_release(phases);
	*phases = fitting.fitted;
}
