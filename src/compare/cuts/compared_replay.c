/* SPDX-License-Identifier: Apache-2.0
 *
 * compared_replay.c: see the header.
 */
#include "compare/cuts/compared_replay.h"

#include "analysis/what_if/replayed.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define RECORDED_STEP "replay_recorded_ns" /* names of values */
#define STEP "replay_step_ns"
#define PROFILER "profiler" /* name of parts, beside those of cuts */

/* Numbers of a cut are parts. Their level is COMPARED_REPLAY and one of these, their family is the place of the cut. */
static const struct cut_number {
	const char *level;
	size_t offset;
} cut_numbers[] = {
	{COMPARED_REPLAY "saving", offsetof(struct compared_cut, saving_ns)},
	{COMPARED_REPLAY "low", offsetof(struct compared_cut, low_ns)},
	{COMPARED_REPLAY "high", offsetof(struct compared_cut, high_ns)},
	{COMPARED_REPLAY "part", offsetof(struct compared_cut, part_ns)},
};
#define CUT_NUMBERS (sizeof(cut_numbers) / sizeof(cut_numbers[0]))

/* Where a cut stands in the order of parts. Causes that are known better come first. The device hides host time that no
 * wait shows, so waits for it come after the costs of the host. Launches are the usual time of the host. */
enum cut_order {
	ORDER_OUTSIDE,  /* removed from all others: no part of their step */
	ORDER_REMEDIES, /* of waits for data: `data` contains them */
	ORDER_CAUSES,
	ORDER_STRETCHES, /* of the host, or of some steps, whatever their cause */
	ORDER_WAITS,
	ORDER_LAUNCHES,
	ORDER_CHOICES, /* no waste */
	ORDER_BOUNDS,  /* they contain other cuts */
	ORDERS,
};

static enum cut_order order_of(enum replay_cut cut)
{
	if (replay_cuts[cut].is_outside)
		return ORDER_OUTSIDE;
	if (replay_cuts[cut].is_bound)
		return ORDER_BOUNDS;
	if (replay_cuts[cut].is_choice)
		return ORDER_CHOICES;
	switch (cut) {
	case CUT_WORKERS:
	case CUT_HANDOVER:
		return ORDER_REMEDIES;
	case CUT_HOST:
	case CUT_BETWEEN:
	case CUT_ONCE:
	case CUT_PERIODIC:
	case CUT_GROWTH:
		return ORDER_STRETCHES;
	case CUT_SYNC:
		return ORDER_WAITS;
	case CUT_LAUNCH:
		return ORDER_LAUNCHES;
	default:
		return ORDER_CAUSES;
	}
}

static struct compared_cut saving_of(const struct what_if_cut *from)
{
	double with_ns = from->step_ns + from->saving_ns;

	return (struct compared_cut){.is_there = from->is_there,
	                             .saving_ns = from->saving_ns,
	                             .low_ns = from->low_ratio * with_ns,
	                             .high_ns = from->high_ratio * with_ns};
}

/* outside_ns: what else is removed from all. */
static struct compared_cut profiler_of(const struct what_if *what_if, double outside_ns)
{
	double cost_ns = what_if->recorded_ns - what_if->step_ns - outside_ns;
	struct compared_cut profiler = {what_if->has_cost, cost_ns, cost_ns, cost_ns, cost_ns};

	if (what_if->has_profiler) {
		profiler.low_ns = fmin(cost_ns, what_if->recorded_ns - what_if->high_ns - outside_ns);
		profiler.high_ns = fmax(cost_ns, what_if->recorded_ns - what_if->low_ns - outside_ns);
	}
	return profiler;
}

/* Returns the time of costs that are removed from all others, and makes them parts. */
static double read_outside(struct compared_cut cuts[CUT_COUNT])
{
	double sum_ns = 0;

	for (enum replay_cut cut = 0; cut < CUT_COUNT; cut++)
		if (cuts[cut].is_there && order_of(cut) == ORDER_OUTSIDE) {
			cuts[cut].part_ns = cuts[cut].saving_ns;
			sum_ns += cuts[cut].part_ns;
		}
	return sum_ns;
}

/* Removes one cost after the other. With one more cost removed no step is longer: such a cost adds nothing. */
static void read_parts(struct compared_cut cuts[CUT_COUNT], struct what_if *what_if)
{
	bool is_cut[CUT_COUNT] = {false};
	double before_ns = 0;

	for (enum cut_order order = ORDER_OUTSIDE + 1; order < ORDERS; order++)
		for (enum replay_cut cut = 0; cut < CUT_COUNT; cut++) {
			struct what_if_cut together;

			if (!cuts[cut].is_there || order_of(cut) != order)
				continue;
			is_cut[cut] = true;
			what_if_together(what_if, is_cut, &together);
			if (together.saving_ns < before_ns) {
				is_cut[cut] = false;
				continue;
			}
			cuts[cut].part_ns = together.saving_ns - before_ns;
			before_ns = together.saving_ns;
		}
}

/* ---- in the run ---- */

static void add_numbers(struct compared_run *run, const struct compared_cut *cut, const char *name, const char *place)
{
	for (size_t i = 0; i < CUT_NUMBERS && cut->is_there; i++)
		compared_run_add_part(run,
		                      &(struct compared_part){
					      .level = cut_numbers[i].level,
					      .name = name,
					      .family = place,
					      .amount = *(const double *)((const char *)cut + cut_numbers[i].offset),
				      });
}

static void read_cuts(struct compared_run *run, struct what_if *what_if)
{
	struct compared_cut cuts[CUT_COUNT], profiler;

	for (enum replay_cut cut = 0; cut < CUT_COUNT; cut++)
		cuts[cut] = saving_of(&what_if->cuts[cut]);
	profiler = profiler_of(what_if, what_if->is_quiet ? read_outside(cuts) : 0);
	read_parts(cuts, what_if);
	compared_run_add_value(run, RECORDED_STEP, what_if->recorded_ns);
	compared_run_add_value(run, STEP, what_if->step_ns);
	add_numbers(run, &profiler, PROFILER, NULL);
	for (enum replay_cut cut = 0; cut < CUT_COUNT; cut++)
		add_numbers(run, &cuts[cut], replay_cuts[cut].name, replay_cuts[cut].place);
}

void compared_read_replay(struct compared_run *run, const struct report *report)
{
	struct report steady;
	struct what_if *what_if;

	report_init(&steady, report->model, &report->context.options, report->path);
	report_leave_out_damage(&steady);
	report_leave_out_start_up(&steady);
	what_if = replayed_get(&steady.context);
	if (what_if->problem)
		compared_run_add_missing(run, RECORDED_STEP, what_if->problem);
	else
		read_cuts(run, what_if);
	report_release(&steady);
}

/* Returns where a part belongs; NULL: a later version wrote a cut that this one does not know. */
static struct compared_cut *replay_cut_at(struct compared_replay *replay, const struct compared_part *part)
{
	enum replay_cut cut = replay_cut_find(part->name, part->family);

	if (!strcmp(part->name, PROFILER))
		return &replay->profiler;
	return cut < CUT_COUNT ? &replay->cuts[cut] : NULL;
}

static void replay_take_number(struct compared_replay *replay, const struct compared_part *part)
{
	struct compared_cut *cut = replay_cut_at(replay, part);

	for (size_t i = 0; i < CUT_NUMBERS && cut; i++)
		if (!strcmp(part->level, cut_numbers[i].level)) {
			*(double *)((char *)cut + cut_numbers[i].offset) = part->amount;
			cut->is_there = true;
		}
}

struct compared_replay compared_replay_of(const struct compared_run *run)
{
	const struct compared_value *recorded = compared_run_value(run, RECORDED_STEP),
				    *step = compared_run_value(run, STEP);
	struct compared_replay replay = {.problem = recorded && !recorded->has_value ? recorded->reason : NULL};

	if (!recorded || !recorded->has_value || !step || !step->has_value)
		return replay;
	replay.is_there = true;
	replay.recorded_ns = recorded->value;
	replay.step_ns = step->value;
	for (size_t i = 0; i < run->parts_count; i++)
		replay_take_number(&replay, &run->parts[i]);
	return replay;
}
