/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_arrivals.c: see rank_arrivals.h.
 */
#include "analysis/ranks/rank_arrivals.h"

#include "analysis/analysis_context.h"
#include "analysis/ranks/collective_calls.h"
#include "analysis/ranks/collective_matches.h"
#include "analysis/ranks/rank_blame.h"
#include "analysis/shared/labels.h"
#include "base/clamped.h"
#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct arrival { /* at the last collective of a step */
	int64_t number, time_ns;
	uint32_t span;  /* index into times->spans */
	uint32_t count; /* number of collectives in the step */
	uint32_t kind;  /* of the last one */
	uint32_t group; /* its name; 0: unknown */
	double elements;
};

static int compare_arrivals(const void *left, const void *right)
{
	const struct arrival *a = left, *b = right;

	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return (a->span > b->span) - (a->span < b->span);
}

/* Adds the last issue of each complete selected step of one rank. Returns the new count. */
static uint32_t add_rank(struct arrival *list, uint32_t count, const struct collective_calls *calls,
                         const struct model *model, const struct step_times *times, uint32_t span)
{
	uint32_t first, end, before = count, issues = 0;

	collective_calls_of(calls->issues, calls->issue_count, times->spans[span].process, &first, &end);
	for (uint32_t i = first; i < end; i++) {
		const struct collective_call *issue = &calls->issues[i];

		if (issue->step < 0 || !times->steps[issue->step].is_measured || !times->steps[issue->step].is_complete)
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
		                                 issue->group.name,
		                                 issue->elements};
	}
	return count;
}

/* The `count` arrivals are of one step. */
static void rank_arrivals_add_step(struct rank_arrival *arrivals, const struct arrival *list, uint32_t count)
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

/* Returns true if all ranks come to the same collective. A rank may have more of them, with a smaller group, and end
 * its step with one of those. */
static bool is_of_all(const struct arrival *list, uint32_t count, uint32_t ranks)
{
	for (uint32_t i = 1; i < count; i++) {
		if (list[i].count != list[0].count || list[i].kind != list[0].kind || list[i].group != list[0].group ||
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
		rank_arrivals_add_step(arrivals, list + first, ranks);
		steps++;
	}
	return steps;
}

/* Returns true if all ranks have the clock of one machine. */
static bool share_a_clock(const struct model *model, const struct step_times *times)
{
	uint32_t clock = 0, ranks = 0;

	for (uint32_t i = 0; i < times->span_count; i++) {
		uint32_t own = process_clock(&model->processes[times->spans[i].process]);

		if (!times->spans[i].is_rank)
			continue;
		if (!*model_text(model, own) || (ranks++ && own != clock))
			return false;
		clock = own;
	}
	return true;
}

/* Returns true if each rank is in collectives with others. */
static bool are_all_matched(const struct collective_matches *matches, const struct step_times *times)
{
	for (uint32_t i = 0; i < times->span_count; i++)
		if (times->spans[i].is_rank && !matches->clocks[times->spans[i].process].matches)
			return false;
	return true;
}

static void put_clocks_right(struct arrival *list, uint32_t count, const struct collective_matches *matches,
                             const struct step_times *times)
{
	for (uint32_t i = 0; i < count; i++)
		clamped_subtract(&list[i].time_ns, collective_matches_ahead(matches, times->spans[list[i].span].process,
		                                                            list[i].time_ns));
}

static uint32_t rank_arrivals_count_ranks(const struct step_times *times)
{
	uint32_t ranks = 0;

	for (uint32_t i = 0; i < times->span_count; i++)
		ranks += times->spans[i].is_rank;
	return ranks;
}

/* ---- the last call of a step ---- */

static void rank_arrivals_find_calls(struct rank_arrivals *arrivals, struct analysis_context *context,
                                     const struct step_times *times, const struct collective_matches *matches)
{
	const struct model *model = context->model;
	const struct collective_calls *calls = analysis_context_collective_calls(context);
	struct arrival *list = memory_resize(NULL, (size_t)calls->issue_count + 1, sizeof(*list));
	uint32_t ranks = rank_arrivals_count_ranks(times), count = 0, steps = 0;

	for (uint32_t i = 0; i < times->span_count; i++) {
		if (times->spans[i].is_rank)
			count = add_rank(list, count, calls, model, times, i);
	}
	arrivals->no_calls = "no step ends with the same collective in all ranks";
	if (matches->has_unnamed_groups) {
		arrivals->no_calls = COLLECTIVES_UNNAMED;
	} else if (!share_a_clock(model, times) && !are_all_matched(matches, times)) {
		arrivals->no_calls = "the ranks ran on several or unknown machines, and some share no collective with "
				     "others, so their clocks cannot be aligned";
	} else {
		if (!share_a_clock(model, times))
			put_clocks_right(list, count, matches, times);
		steps = sum_steps(arrivals->list, list, count, ranks);
	}
	for (uint32_t i = 0; i < times->span_count && steps; i++) {
		arrivals->list[i].late_ns /= steps;
		arrivals->list[i].waits_ns /= steps;
		arrivals->no_calls = NULL;
	}
	free(list);
}

/* ---- waits in collectives ---- */

static int rank_arrivals_compare_numbers(const void *left, const void *right)
{
	const struct job_step *a = left, *b = right;

	return (a->number > b->number) - (a->number < b->number);
}

/* Returns true if operators, and so collectives, were recorded in the whole step in all ranks. */
static bool is_measured(const struct step_times *times, int64_t number, uint32_t ranks)
{
	const struct job_step wanted = {.number = number};
	const struct job_step *found = times->job_count ? bsearch(&wanted, times->job, times->job_count, sizeof(wanted),
	                                                          rank_arrivals_compare_numbers)
	                                                : NULL;

	return found && found->measured == ranks;
}

/* Returns the same groups without one process. */
static struct collective_matches without(const struct collective_matches *matches, uint32_t process)
{
	struct collective_matches rest = {
		.list = memory_resize(NULL, (size_t)matches->count + 1, sizeof(*rest.list)),
		.groups = memory_resize(NULL, (size_t)matches->group_count + 1, sizeof(*rest.groups)),
		.group_count = matches->group_count};

	for (uint32_t g = 0; g < matches->group_count; g++) {
		const struct collective_match *match = &matches->groups[g];

		rest.groups[g].first = rest.count;
		for (uint32_t i = match->first; i < match->first + match->count; i++)
			if (matches->list[i].process != process)
				rest.list[rest.count++] = matches->list[i];
		rest.groups[g].count = rest.count - rest.groups[g].first;
	}
	assert(rest.count <= matches->count);
	return rest;
}

static uint32_t process_of_most(const struct rank_arrivals *arrivals, const struct step_times *times)
{
	uint32_t most = 0;

	for (uint32_t i = 1; i < times->span_count; i++)
		if (arrivals->list[i].caused_ns > arrivals->list[most].caused_ns)
			most = i;
	return times->spans[most].process;
}

/* Finds who would hold the others up if the slowest rank did not. This is unknown for collectives of only some of the
 * ranks: a rank may be late in them because of the slowest. */
static void find_then(struct rank_arrivals *arrivals, const struct model *model, const struct step_times *times,
                      const struct collective_matches *matches, const bool *is_counted)
{
	uint32_t ranks = rank_arrivals_count_ranks(times), slowest = process_of_most(arrivals, times);
	struct collective_matches rest;
	struct rank_blame *blames;

	arrivals->no_then = ranks < 3 ? "there are only two ranks" : NULL;
	for (uint32_t g = 0; g < matches->group_count; g++)
		if (is_counted[g] && matches->groups[g].count != ranks)
			arrivals->no_then =
				"some collectives involve only some of the ranks, so it is unknown which rank is late in them";
	if (arrivals->no_then)
		return;
	rest = without(matches, slowest);
	blames = rank_blame_find(&rest, model->processes_count, is_counted);
	for (uint32_t i = 0; i < times->span_count; i++)
		arrivals->list[i].then_ns = blames[times->spans[i].process].alone_ns / (ranks - 2) / arrivals->measured;
	free(blames);
	free(rest.list);
	free(rest.groups);
}

static void rank_arrivals_find_waits(struct rank_arrivals *arrivals, const struct model *model,
                                     const struct step_times *times, const struct collective_matches *matches)
{
	bool *is_counted = memory_resize(NULL, (size_t)matches->group_count + 1, sizeof(*is_counted));
	uint32_t ranks = rank_arrivals_count_ranks(times), steps;
	struct rank_blame *blames;

	for (uint32_t g = 0; g < matches->group_count; g++)
		is_counted[g] = is_measured(times, matches->list[matches->groups[g].first].step, ranks);
	blames = rank_blame_find(matches, model->processes_count, is_counted);
	for (uint32_t i = 0; i < times->job_count; i++) {
		arrivals->steps += times->job[i].processes == ranks;
		arrivals->measured += times->job[i].measured == ranks;
	}
	steps = arrivals->measured;
	for (uint32_t i = 0; i < times->span_count && steps; i++) {
		const struct rank_blame *blame = &blames[times->spans[i].process];

		arrivals->list[i].caused_ns = blame->caused_ns / (ranks - 1) / steps;
		arrivals->list[i].alone_ns = blame->alone_ns / (ranks - 1) / steps;
		arrivals->list[i].waited_ns = blame->waited_ns / steps;
		arrivals->list[i].most_share = blame->caused_ns > 0 ? blame->most_ns / blame->caused_ns : 0;
		arrivals->list[i].most_step = blame->most_step;
	}
	arrivals->no_waits = matches->reason               ? matches->reason
	                     : matches->has_unnamed_groups ? COLLECTIVES_UNNAMED /* it is unknown who waited for whom */
	                     : !are_all_matched(matches, times) ? "some ranks share no collective with others"
	                     : !arrivals->steps                 ? "no step was completed by all ranks"
	                     : !steps                           ? "no step has operators recorded in all ranks"
	                                                        : NULL;
	arrivals->no_then = arrivals->no_waits;
	if (!arrivals->no_waits)
		find_then(arrivals, model, times, matches, is_counted);
	free(blames);
	free(is_counted);
}

void rank_arrivals_find(struct rank_arrivals *arrivals, struct analysis_context *context,
                        const struct step_times *times)
{
	const struct model *model = context->model;
	struct collective_matches matches;

	arrivals->list = memory_resize(NULL, (size_t)times->span_count + 1, sizeof(*arrivals->list));
	memset(arrivals->list, 0, ((size_t)times->span_count + 1) * sizeof(*arrivals->list));
	arrivals->steps = arrivals->measured = 0;
	arrivals->no_calls = arrivals->no_waits = arrivals->no_then = "there is no other rank";
	if (rank_arrivals_count_ranks(times) < 2)
		return;
	arrivals->no_calls = arrivals->no_waits = arrivals->no_then = step_times_ranks_apart(times, model);
	if (arrivals->no_waits)
		return;
	collective_matches_find(&matches, context);
	rank_arrivals_find_calls(arrivals, context, times, &matches);
	rank_arrivals_find_waits(arrivals, model, times, &matches);
	collective_matches_release(&matches);
}

void rank_arrivals_release(struct rank_arrivals *arrivals)
{
	free(arrivals->list);
	memset(arrivals, 0, sizeof(*arrivals));
}
