/* SPDX-License-Identifier: Apache-2.0
 *
 * compared_replay.c: see the header.
 */
#include "compare/cuts/compared_replay.h"

#include "analysis/what_if/replayed.h"

#include <math.h>

/* Where a cut stands in the order of parts. Causes that are known better come first. The device hides host time that no
 * wait shows, so waits for it come after the costs of the host. Launches are the usual time of the host. */
enum cut_order {
	ORDER_CAUSES,
	ORDER_WAITS,
	ORDER_LAUNCHES,
	ORDER_CHOICES, /* no waste */
	ORDER_BOUNDS,  /* they contain other cuts */
	ORDERS,
};

static enum cut_order order_of(enum replay_cut cut)
{
	if (replay_cuts[cut].is_bound)
		return ORDER_BOUNDS;
	if (replay_cuts[cut].is_choice)
		return ORDER_CHOICES;
	if (cut == CUT_LAUNCH)
		return ORDER_LAUNCHES;
	return cut == CUT_SYNC ? ORDER_WAITS : ORDER_CAUSES;
}

static void read_savings(struct compared_replay *replay, const struct what_if *what_if)
{
	for (enum replay_cut cut = 0; cut < CUT_COUNT; cut++) {
		const struct what_if_cut *from = &what_if->cuts[cut];

		if (from->is_there)
			replay->cuts[cut] = (struct compared_cut){.is_there = true,
			                                          .saving_ns = from->saving_ns,
			                                          .low_ns = from->low_ratio * what_if->step_ns,
			                                          .high_ns = from->high_ratio * what_if->step_ns};
	}
}

static void read_profiler(struct compared_cut *profiler, const struct what_if *what_if)
{
	double cost_ns = what_if->recorded_ns - what_if->step_ns;

	if (what_if->has_profiler)
		*profiler = (struct compared_cut){.is_there = true,
		                                  .saving_ns = cost_ns,
		                                  .low_ns = fmin(cost_ns, what_if->recorded_ns - what_if->high_ns),
		                                  .high_ns = fmax(cost_ns, what_if->recorded_ns - what_if->low_ns),
		                                  .part_ns = cost_ns};
}

/* Removes one cost after the other. With one more cost removed no step is longer: such a cost adds nothing. */
static void read_parts(struct compared_replay *replay, struct what_if *what_if)
{
	bool is_cut[CUT_COUNT] = {false};
	double before_ns = 0;

	for (enum cut_order order = 0; order < ORDERS; order++)
		for (enum replay_cut cut = 0; cut < CUT_COUNT; cut++) {
			struct what_if_cut together;

			if (!replay->cuts[cut].is_there || order_of(cut) != order)
				continue;
			is_cut[cut] = true;
			what_if_together(what_if, is_cut, &together);
			if (together.saving_ns < before_ns) {
				is_cut[cut] = false;
				continue;
			}
			replay->cuts[cut].part_ns = together.saving_ns - before_ns;
			before_ns = together.saving_ns;
		}
}

void compared_replay_read(struct compared_replay *replay, const struct report *report, struct arena *arena)
{
	struct report steady;
	struct what_if *what_if;

	*replay = (struct compared_replay){0};
	report_init(&steady, report->model, &report->context.options, report->path);
	report_leave_out_damage(&steady);
	report_leave_out_start_up(&steady);
	what_if = replayed_get(&steady.context);
	if (what_if->problem) {
		replay->problem = arena_dup(arena, what_if->problem);
	} else {
		replay->is_there = true;
		replay->recorded_ns = what_if->recorded_ns;
		read_profiler(&replay->profiler, what_if);
		replay->step_ns = what_if->step_ns;
		read_savings(replay, what_if);
		read_parts(replay, what_if);
	}
	report_release(&steady);
}
