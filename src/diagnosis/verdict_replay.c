/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict_replay.c: see verdict_replay.h. Cuts that make the same verdict are replayed at once. The first verdict is that
 * of the largest sure saving: the lower end of its interval.
 */
#include "diagnosis/verdict_replay.h"

#include "analysis/what_if/replayed.h"
#include "base/units.h"
#include "diagnosis/finding_cut.h"
#include "diagnosis/verdict_place.h"

#include <math.h>
#include <string.h>

#define BOUND_RATIO 0.20       /* a run is bound by a cost that takes so much of a step */
#define SAME_RATIO 0.9         /* two savings that are alike */
#define WORTH_RATIO 0.05       /* less is nothing to fix */
#define LARGE_BOUND_RATIO 0.15 /* guide 000: an optimizer that takes more is large */
#define EXPLAINED_RATIO 0.80   /* a healthy step is known by so much */

struct group { /* cuts that make one verdict */
	const char *verdict;
	bool is_cut[CUT_COUNT];
	struct what_if_cut saving;
	const char *rule; /* of the user, that says the saving; NULL: it is replayed */
};

struct groups {
	struct group of[2 * CUT_COUNT];
	int count;
};

static void add_to_group(struct groups *groups, const char *verdict, enum replay_cut cut)
{
	int i = 0;

	while (i < groups->count && strcmp(groups->of[i].verdict, verdict) != 0)
		i++;
	if (i == groups->count)
		groups->of[groups->count++] = (struct group){.verdict = verdict};
	groups->of[i].is_cut[cut] = true;
}

/* A rule of the user may say a saving itself, of its own verdict. */
static void add_of_user(struct groups *groups, const struct diagnosis *diagnosis, int row)
{
	const struct table *findings = &diagnosis->findings;
	double ratio, saving_ns, confidence, step_ns = diagnosis->what_if->step_ns;

	if (groups->count == 2 * CUT_COUNT || !table_number(findings, row, FINDING_CONFIDENCE, &confidence) ||
	    confidence <= 0 || !table_number(findings, row, FINDING_RATIO, &ratio) ||
	    !table_number(findings, row, FINDING_SAVING, &saving_ns))
		return;
	groups->of[groups->count++] = (struct group){.verdict = table_text(findings, row, FINDING_VERDICT),
	                                             .rule = table_text(findings, row, FINDING_RULE),
	                                             .saving = {.is_there = true,
	                                                        .step_ns = fmax(0, step_ns - saving_ns),
	                                                        .saving_ns = saving_ns,
	                                                        .saving_ratio = ratio,
	                                                        .low_ratio = ratio,
	                                                        .high_ratio = ratio}};
}

static void find_groups(struct groups *groups, struct diagnosis *diagnosis)
{
	for (int row = 0; row < diagnosis->findings.row_count; row++) {
		enum replay_cut cut = finding_cut_of(&diagnosis->findings, row);

		const char *verdict = table_text(&diagnosis->findings, row, FINDING_VERDICT);

		if (cut < CUT_COUNT && verdict)
			add_to_group(groups, verdict, cut);
	}
	for (int i = 0; i < groups->count; i++)
		what_if_together(diagnosis->what_if, groups->of[i].is_cut, &groups->of[i].saving);
	for (int row = 0; row < diagnosis->findings.row_count; row++)
		if (finding_cut_of(&diagnosis->findings, row) == CUT_COUNT &&
		    table_text(&diagnosis->findings, row, FINDING_VERDICT))
			add_of_user(groups, diagnosis, row);
}

/* Launches are the usual time of the host. Another cause is better known, but for long stretches of the host. */
static bool is_known_better(const struct group *group, const struct group *launches)
{
	return launches->is_cut[CUT_LAUNCH] && !group->is_cut[CUT_LAUNCH] && !group->is_cut[CUT_HOST];
}

/* What one rank alone waits for is both data and a slow rank: the rank says more. */
static bool is_one_of_ranks(const struct group *group, const struct group *other)
{
	return group->is_cut[CUT_RANK] && other->is_cut[CUT_DATA] &&
	       group->saving.saving_ratio >= SAME_RATIO * other->saving.saving_ratio;
}

/* Returns true if `group` comes before `other`: it takes a fifth of a step and the other does not, or more of it is sure.
 * Launches come before a cause that is better known if they are sure to save more than it does. */
static bool comes_before(const struct group *group, const struct group *other)
{
	bool is_large = group->saving.saving_ratio >= BOUND_RATIO;

	if (!other)
		return true;
	if (is_large != (other->saving.saving_ratio >= BOUND_RATIO))
		return is_large;
	if (is_one_of_ranks(group, other))
		return true;
	if (is_one_of_ranks(other, group))
		return false;
	if (is_known_better(group, other))
		return other->saving.low_ratio <= group->saving.saving_ratio;
	if (is_known_better(other, group))
		return group->saving.low_ratio > other->saving.saving_ratio;
	if (group->saving.low_ratio != other->saving.low_ratio)
		return group->saving.low_ratio > other->saving.low_ratio;
	return group->saving.saving_ratio > other->saving.saving_ratio;
}

/* The first two groups; NULL: there is none. */
static void find_first(const struct groups *groups, const struct group **first, const struct group **second)
{
	*first = *second = NULL;
	for (int i = 0; i < groups->count; i++) {
		const struct group *group = &groups->of[i];

		if (comes_before(group, *first)) {
			*second = *first;
			*first = group;
		} else if (comes_before(group, *second)) {
			*second = group;
		}
	}
}

/* A part of the model is worth a word only if it is large. */
static double least_of(enum replay_cut cut, double least_ratio)
{
	return replay_cuts[cut].is_bound ? LARGE_BOUND_RATIO : least_ratio;
}

/* The cut with the largest saving of those that are found, with choices. CUT_COUNT: none saves that much. */
static enum replay_cut largest_cut(const struct diagnosis *diagnosis, double least_ratio)
{
	const struct what_if_cut *cuts = diagnosis->what_if->cuts;
	enum replay_cut found = CUT_COUNT;

	for (int row = 0; row < diagnosis->findings.row_count; row++) {
		enum replay_cut cut = finding_cut_of(&diagnosis->findings, row);

		if (cut < CUT_COUNT && !replay_cuts[cut].is_outside &&
		    cuts[cut].saving_ratio >= least_of(cut, least_ratio) &&
		    (found == CUT_COUNT || cuts[cut].saving_ratio > cuts[found].saving_ratio))
			found = cut;
	}
	return found;
}

/* "59.5 % of a step (46.7 % to 72.4 %)" */
static const char *saving_text(struct arena *arena, const struct what_if_cut *cut)
{
	char best[UNITS_BYTES], low[UNITS_BYTES], high[UNITS_BYTES];

	units_ratio(best, cut->saving_ratio);
	units_ratio(low, cut->low_ratio);
	units_ratio(high, cut->high_ratio);
	return arena_printf(arena, "%s of a step (%s to %s)", best, low, high);
}

/* The noun of the largest cut of the group. */
static const char *noun_of(const struct diagnosis *diagnosis, const struct group *group)
{
	enum replay_cut largest = CUT_COUNT;

	for (enum replay_cut cut = 0; cut < CUT_COUNT; cut++)
		if (group->is_cut[cut] && (largest == CUT_COUNT || diagnosis->what_if->cuts[cut].saving_ns >
		                                                           diagnosis->what_if->cuts[largest].saving_ns))
			largest = cut;
	return replay_cuts[largest].noun;
}

static void decide_bound_by_user(struct replay_verdict *verdict, const struct group *first, struct arena *arena)
{
	char share[UNITS_BYTES];

	units_ratio(share, first->saving.saving_ratio);
	*verdict = (struct replay_verdict){
		.verdict = first->verdict,
		.is_bound = true,
		.ratio = first->saving.saving_ratio,
		.margin_ratio = first->saving.saving_ratio - BOUND_RATIO,
		.sentence = arena_printf(arena, "%s would save up to %s of a step", first->rule, share),
	};
}

static void decide_bound(struct replay_verdict *verdict, const struct diagnosis *diagnosis, const struct group *first,
                         const struct group *second, const struct table *ranks, struct arena *arena)
{
	const char *place = verdict_rank_place(&diagnosis->findings, first->verdict, ranks);
	double next_ratio = second ? fmin(second->saving.saving_ratio, first->saving.saving_ratio) : 0;
	char now[UNITS_BYTES], then[UNITS_BYTES], next[UNITS_BYTES];

	if (first->rule) {
		decide_bound_by_user(verdict, first, arena);
		return;
	}
	units_time(now, diagnosis->what_if->step_ns);
	units_time(then, first->saving.step_ns);
	units_ratio(next, second ? second->saving.saving_ratio : 0);
	*verdict = (struct replay_verdict){
		.verdict = first->verdict,
		.is_bound = true,
		.ratio = first->saving.saving_ratio,
		.margin_ratio = first->saving.saving_ratio - fmax(BOUND_RATIO, next_ratio),
		.sentence = arena_printf(
			arena, "without %s%s%s%s a step takes %s instead of %s, a saving of %s%s%s%s%s",
			noun_of(diagnosis, first), place ? " (" : "", place ? place : "", place ? ")" : "", then, now,
			saving_text(arena, &first->saving), second ? "; next " : "", second ? second->verdict : "",
			second ? " " : "", second ? next : ""),
	};
}

/* Nothing takes a fifth of a step, or it is a choice or comes in some steps only. */
static void decide_compute(struct replay_verdict *verdict, const struct diagnosis *diagnosis, enum replay_cut cut,
                           struct arena *arena)
{
	const struct what_if_cut *saving = &diagnosis->what_if->cuts[cut];

	*verdict = (struct replay_verdict){
		.verdict = "compute-bound",
		.ratio = saving->saving_ratio,
		.margin_ratio = fabs(BOUND_RATIO - saving->saving_ratio),
		.sentence = arena_printf(arena, "%s; without %s%s it is shorter by %s%s",
	                                 saving->saving_ratio < BOUND_RATIO || replay_cuts[cut].is_choice ||
	                                                 replay_cuts[cut].is_bound
	                                         ? "no waste takes a fifth of a step"
	                                         : "no cause takes a fifth of each step",
	                                 replay_cuts[cut].noun, replay_cuts[cut].is_choice ? ", a choice," : "",
	                                 replay_cuts[cut].is_bound ? "at most " : "", saving_text(arena, saving)),
	};
}

static void decide_healthy(struct replay_verdict *verdict, const struct diagnosis *diagnosis, struct arena *arena)
{
	enum replay_cut cut = largest_cut(diagnosis, 0);
	double ratio = cut < CUT_COUNT ? diagnosis->what_if->cuts[cut].saving_ratio : 0;

	*verdict = (struct replay_verdict){
		.verdict = "healthy",
		.ratio = ratio,
		.margin_ratio = fmax(0, WORTH_RATIO - ratio),
		.sentence = cut < CUT_COUNT
	                            ? arena_printf(arena, "no waste takes a twentieth of a step; the largest: %s, %s",
	                                           replay_cuts[cut].noun,
	                                           saving_text(arena, &diagnosis->what_if->cuts[cut]))
	                            : "no waste takes a fiftieth of a step",
	};
}

bool replay_verdict_decide(struct replay_verdict *verdict, struct diagnosis *diagnosis, const struct table *ranks,
                           double unseen_ratio)
{
	struct arena *arena = &diagnosis->findings.arena;
	const struct group *first, *second;
	struct groups groups = {.count = 0};
	enum replay_cut cut = largest_cut(diagnosis, WORTH_RATIO);

	find_groups(&groups, diagnosis);
	find_first(&groups, &first, &second);
	if (first && first->saving.saving_ratio >= BOUND_RATIO)
		decide_bound(verdict, diagnosis, first, second, ranks, arena);
	else if (cut < CUT_COUNT)
		decide_compute(verdict, diagnosis, cut, arena);
	else if (unseen_ratio > 1 - EXPLAINED_RATIO)
		return false;
	else
		decide_healthy(verdict, diagnosis, arena);
	return true;
}

bool replay_verdict_together(struct diagnosis *diagnosis, struct what_if_cut *together)
{
	bool is_cut[CUT_COUNT] = {false}, is_any = false;

	for (int row = 0; row < diagnosis->findings.row_count && diagnosis->what_if; row++) {
		enum replay_cut cut = finding_cut_of(&diagnosis->findings, row);

		if (cut < CUT_COUNT && !replay_cuts[cut].is_choice && !replay_cuts[cut].is_bound &&
		    !replay_cuts[cut].is_outside)
			is_cut[cut] = is_any = true;
	}
	if (is_any)
		what_if_together(diagnosis->what_if, is_cut, together);
	return is_any;
}

/* ---- without a replay ---- */

static bool is_cut_off(const struct model *model)
{
	for (uint32_t i = 0; i < model->ledger_count; i++)
		if (model->ledger[i].kind == LEDGER_TORN_TAIL)
			return true;
	return false;
}

/* Rules without a replay see less. If the trace contradicts itself, or its end is lost, their silence says nothing. Devices
 * of one process that take turns are not explained by a replay either, but then nothing is wrong. */
const char *replay_verdict_unsound(struct report *report)
{
	const struct what_if *what_if = replayed_get(&report->context);
	bool is_trace = report->format && !strcmp(report->format, "kineto");

	if (!what_if->problem)
		return NULL;
	if (what_if->doubt == TRACE_IS_UNSOUND || (is_trace && is_cut_off(report->model)) ||
	    (what_if->doubt == TRACE_IS_UNEXPLAINED && report_table(report, "device_busy")->row_count == 1))
		return what_if->problem;
	return NULL;
}
