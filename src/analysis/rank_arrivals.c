/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_arrivals.c: see rank_arrivals.h.
 */
#include "analysis/rank_arrivals.h"

#include "analysis/collective_calls.h"

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

bool rank_arrivals_find(struct rank_arrival *arrivals, const struct model *model, const struct step_times *times,
                        const char **reason)
{
	struct collective_calls calls;
	struct arrival *list;
	uint32_t ranks = 0, count = 0, steps, host = 0;

	memset(arrivals, 0, times->span_count * sizeof(*arrivals));
	*reason = "ranks of several machines: their clocks are not compared";
	for (uint32_t i = 0; i < times->span_count; i++) {
		if (!times->spans[i].is_rank)
			continue;
		if (ranks++ && model->processes[times->spans[i].process].host != host)
			return false;
		host = model->processes[times->spans[i].process].host;
	}
	*reason = "there is no other rank";
	if (ranks < 2)
		return false;
	collective_calls_find(&calls, model);
	list = memory_resize(NULL, (size_t)calls.issue_count + 1, sizeof(*list));
	for (uint32_t i = 0; i < times->span_count; i++) {
		if (times->spans[i].is_rank)
			count = add_rank(list, count, &calls, model, times, i);
	}
	steps = sum_steps(arrivals, list, count, ranks);
	for (uint32_t i = 0; i < times->span_count && steps; i++) {
		arrivals[i].late_ns /= steps;
		arrivals[i].waits_ns /= steps;
	}
	free(list);
	collective_calls_release(&calls);
	*reason = "in no step the same collectives were recorded in all ranks";
	return steps > 0;
}
