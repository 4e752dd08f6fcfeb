/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_arrivals.c: see rank_arrivals.h.
 */
#include "analysis/rank_arrivals.h"

#include "analysis/collective_calls.h"
#include "analysis/collective_matches.h"
#include "analysis/device_work.h"

#include "base/clamped.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct arrival { /* at the last collective of a step */
	int64_t number, time_ns;
	uint32_t span;  /* of times->spans */
	uint32_t count; /* of the step's collectives */
	uint32_t kind;  /* of the last one */
	double elements;
};

static int compare_arrivals(const void *left, const void *right)
{
	const struct arrival *a = left, *b = right;

	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return (a->span > b->span) - (a->span < b->span);
}

/* Of one rank: the last issue of each complete selected step. */
static uint32_t add_rank(struct arrival *list, uint32_t count, const struct collective_calls *calls,
                         const struct model *model, const struct step_times *times, uint32_t span)
{
	uint32_t first, end, before = count, issues = 0;

	collective_calls_of(calls->issues, calls->issue_count, times->spans[span].process, &first, &end);
	for (uint32_t i = first; i < end; i++) {
		const struct collective_call *issue = &calls->issues[i];

		if (issue->step < 0 || !times->steps[issue->step].is_selected || !times->steps[issue->step].is_complete)
			continue;
		if (count > before && list[count - 1].number == model->steps[issue->step].number)
			count--;
		else
			issues = 0;
		list[count++] = (struct arrival){model->steps[issue->step].number,
		                                 issue->start_ns,
		                                 span,
		                                 ++issues,
		                                 issue->kind,
		                                 issue->elements};
	}
	return count;
}

/* The arrivals [0, count) are of one step. */
static void add_step(struct rank_arrival *arrivals, const struct arrival *list, uint32_t count)
{
	int64_t first_ns = list[0].time_ns, last_ns = list[0].time_ns;

	for (uint32_t i = 1; i < count; i++) {
		first_ns = list[i].time_ns < first_ns ? list[i].time_ns : first_ns;
		last_ns = list[i].time_ns > last_ns ? list[i].time_ns : last_ns;
	}
	for (uint32_t i = 0; i < count; i++) {
		arrivals[list[i].span].late_ns += (double)(list[i].time_ns - first_ns);
		arrivals[list[i].span].waits_ns += (double)(last_ns - list[i].time_ns);
	}
}

/* Do all ranks come to the same one? A rank may have more of its own, with a smaller group. */
static bool is_of_all(const struct arrival *list, uint32_t count, uint32_t ranks)
{
	for (uint32_t i = 1; i < count; i++) {
		if (list[i].count != list[0].count || list[i].kind != list[0].kind ||
		    list[i].elements != list[0].elements)
			return false;
	}
	return count == ranks;
}

static uint32_t sum_steps(struct rank_arrival *arrivals, struct arrival *list, uint32_t count, uint32_t ranks)
{
	uint32_t steps = 0;

	if (count)
		qsort(list, count, sizeof(*list), compare_arrivals);
	for (uint32_t first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && list[end].number == list[first].number; end++)
			;
		if (!is_of_all(list + first, end - first, ranks))
			continue;
		add_step(arrivals, list + first, ranks);
		steps++;
	}
	return steps;
}

/* Do all ranks have the clock of one machine? */
static bool share_a_clock(const struct model *model, const struct step_times *times)
{
	uint32_t host = 0, ranks = 0;

	for (uint32_t i = 0; i < times->span_count; i++) {
		uint32_t own = model->processes[times->spans[i].process].host;

		if (!times->spans[i].is_rank)
			continue;
		if (!*model_text(model, own) || (ranks++ && own != host))
			return false;
		host = own;
	}
	return true;
}

/* False: some rank has no collective with the others, so that its clock cannot be put right. */
static bool put_clocks_right(struct arrival *list, uint32_t count, const struct model *model,
                             const struct analysis_options *options, const struct step_times *times)
{
	struct launches own = {0};
	struct collective_matches matches;
	bool is_known = true;

	collective_matches_find(&matches, model, launches_get(&own, model, options));
	for (uint32_t i = 0; i < count; i++) {
		const struct rank_clock *clock = &matches.clocks[times->spans[list[i].span].process];

		clamped_subtract(&list[i].time_ns, clock->ahead_ns);
		is_known = is_known && clock->matches;
	}
	collective_matches_release(&matches);
	launches_release(&own);
	return is_known;
}

static uint32_t count_ranks(const struct step_times *times)
{
	uint32_t ranks = 0;

	for (uint32_t i = 0; i < times->span_count; i++)
		ranks += times->spans[i].is_rank;
	return ranks;
}

bool rank_arrivals_find(struct rank_arrival *arrivals, const struct model *model,
                        const struct analysis_options *options, const struct step_times *times, const char **reason)
{
	struct collective_calls calls;
	struct arrival *list;
	uint32_t ranks = count_ranks(times), count = 0, steps = 0;

	memset(arrivals, 0, times->span_count * sizeof(*arrivals));
	*reason = "there is no other rank";
	if (ranks < 2)
		return false;
	collective_calls_find(&calls, model);
	list = memory_resize(NULL, (size_t)calls.issue_count + 1, sizeof(*list));
	for (uint32_t i = 0; i < times->span_count; i++) {
		if (times->spans[i].is_rank)
			count = add_rank(list, count, &calls, model, times, i);
	}
	*reason = "in no step the same collectives were recorded in all ranks";
	if (share_a_clock(model, times) || put_clocks_right(list, count, model, options, times))
		steps = sum_steps(arrivals, list, count, ranks);
	else
		*reason = "ranks of several machines, or of traces that do not say where they are from: their clocks are not "
			  "compared without collectives that all of them have";
	for (uint32_t i = 0; i < times->span_count && steps; i++) {
		arrivals[i].late_ns /= steps;
		arrivals[i].waits_ns /= steps;
	}
	free(list);
	collective_calls_release(&calls);
	return steps > 0;
}
