/* SPDX-License-Identifier: Apache-2.0
 *
 * collective_matches.c: see collective_matches.h.
 */
#include "analysis/ranks/collective_matches.h"

#include "analysis/analysis_context.h"
#include "analysis/devices/device_work.h"
#include "analysis/ranks/collective_calls.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/step_times.h"
#include "base/clamped.h"
#include "base/lower_bound.h"
#include "base/memory.h"
#include "base/statistics.h"
#include "model/device_names.h"
#include "model/launch_config.h"
#include "pytorch/names.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define IMPOSSIBLE_PART 20  /* one in N may be impossible: two that start together run in any order */
#define CLOCK_ROUNDS 4      /* so that offsets also agree if groups have different ranks */
#define AROUND 8            /* N collectives before one and N after it give the offset of its clock */
#define FOLLOW_GAIN 2       /* a clock changes if following it brings the ends nearer by this factor */
#define FOLLOW_LEAST 1000.0 /* least mean distance in ns: clocks are not the cause of smaller ones */

struct matches_search {
	const struct model *model;
	struct analysis_context *context;
	const struct launches *launches;
	struct collective_matches *matches;
	uint32_t capacity;
	bool *has_kernels; /* by process */
	bool has_others;   /* there are executions that some ranks leave before all have arrived */
	struct launch_configs configs;
};

/* ---- executions ---- */

/* Returns true if no rank leaves the collective before all have arrived. The root of a broadcast does not wait. */
static bool is_joint(const char *collective)
{
	static const char *const joint[] = {"allreduce", "allgather", "reducescatter", "alltoall", "barrier"};

	for (size_t i = 0; i < sizeof(joint) / sizeof(joint[0]); i++)
		if (!strcmp(collective, joint[i]))
			return true;
	return false;
}

static void matches_add_run(struct matches_search *search, const struct collective_run *run)
{
	struct collective_matches *matches = search->matches;

	if (!is_joint(run->size.collective)) {
		search->has_others = true;
		return;
	}
	MEMORY_GROW(matches->list, matches->count, search->capacity, 256);
	matches->list[matches->count++] = *run;
}

static int64_t step_number(const struct model *model, int32_t step)
{
	return step >= 0 ? model->steps[step].number : INT64_MIN;
}

/* Takes the group from the kernel, otherwise from the operator that launched it. */
static void take_group(struct matches_search *search, struct collective_run *run, const struct work *item,
                       const struct launch *launch)
{
	const struct model *model = search->model;
	struct collective_group own = collective_group_of(model, item->track, item->row), around = {0};
	const struct launch_config *config;
	const char *name;
	uint32_t i;
	const struct span_chunk *chunk = track_chunk(model->tracks[item->track], item->row, &i);

	if (launch && launch->track != MODEL_NONE && launch->operation != MODEL_NONE)
		around = collective_group_of(model, launch->track, launch->operation);
	config = launch_config_of(&search->configs, model, span_inputs(chunk, i));
	name = config ? launch_config_text(config, LAUNCH_GROUP) : NULL;
	run->group = name ? arena_dup(&search->matches->arena, name) : model_text(model, around.name);
	run->members = model_text(model, own.members ? own.members : around.members);
}

static void matches_add_kernel(struct matches_search *search, const struct work *item, uint32_t process)
{
	const struct model *model = search->model;
	const struct launch *launch = launches_of(search->launches, item->track, item->row);
	struct collective_run run = {.process = process, .start_ns = item->start_ns, .end_ns = item->end_ns};
	uint32_t i;
	const struct span_chunk *chunk = track_chunk(model->tracks[item->track], item->row, &i);

	communication_size_find(&run.size, model, search->launches, &search->configs, item->track, item->row);
	take_group(search, &run, item, launch);
	if (launch && launch->track != MODEL_NONE)
		chunk = track_chunk(model->tracks[launch->track], launch->row, &i);
	run.step = step_number(model, chunk->step[i]);
	search->has_kernels[process] = true;
	matches_add_run(search, &run);
}

static void add_kernels(struct matches_search *search)
{
	struct device_work work = {0};
	struct device *devices;
	size_t count = devices_find(&devices, search->model);

	for (size_t i = 0; i < count; i++) {
		device_work_get(&work, search->context, devices[i].process, devices[i].device);
		for (size_t n = 0; n < work.count; n++)
			if (work.items[n].class == WORK_COMMUNICATION)
				matches_add_kernel(search, &work.items[n], devices[i].process);
	}
	device_work_release(&work);
	free(devices);
}

static void add_executions(struct matches_search *search, const struct collective_calls *calls)
{
	for (uint32_t i = 0; i < calls->execution_count; i++) {
		const struct collective_call *call = &calls->executions[i];
		const char *name = model_text(search->model, call->name), *collective = collective_of_name(name);
		struct collective_run run = {
			.process = call->process,
			.size = {.collective = collective ? collective : "", .dtype = "", .ranks = call->group.ranks},
			.group = model_text(search->model, call->group.name),
			.members = model_text(search->model, call->group.members),
			.step = step_number(search->model, call->step),
			.start_ns = call->start_ns,
			.end_ns = call->end_ns};

		if (search->has_kernels[call->process] || !pytorch_begins(name, PYTORCH_GLOO))
			continue;
		communication_size_of_inputs(&run.size, model_text(search->model, call->inputs));
		matches_add_run(search, &run);
	}
}

/* ---- matching ---- */

static int compare_kinds(const struct collective_run *a, const struct collective_run *b)
{
	int order = strcmp(a->size.collective, b->size.collective);

	if (!order)
		order = strcmp(a->group, b->group);
	if (!order)
		order = strcmp(a->members, b->members);
	if (!order)
		order = (a->size.ranks > b->size.ranks) - (a->size.ranks < b->size.ranks);
	if (!order)
		order = (a->step > b->step) - (a->step < b->step);
	return order;
}

static int compare_runs(const void *left, const void *right)
{
	const struct collective_run *a = left, *b = right;
	int order = compare_kinds(a, b);

	if (!order)
		order = (a->process > b->process) - (a->process < b->process);
	return order ? order : (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static int compare_nth(const void *left, const void *right)
{
	const struct collective_run *a = left, *b = right;

	if (a->nth != b->nth)
		return a->nth < b->nth ? -1 : 1;
	return (a->process > b->process) - (a->process < b->process);
}

/* Returns the number of ranks among runs of one kind, group and step. */
static uint32_t matches_count_ranks(const struct collective_run *list, uint32_t count)
{
	uint32_t ranks = 0;

	for (uint32_t i = 0; i < count; i++)
		ranks += !i || list[i].process != list[i - 1].process;
	return ranks;
}

/* Numbers the runs of one kind, group and step within each rank. Returns the number of ranks, 0 if their numbers of
 * runs differ. */
static uint32_t number_runs(struct collective_run *list, uint32_t count)
{
	uint32_t ranks = 0, each = 0, nth = 0;

	for (uint32_t i = 0; i < count; i++) {
		bool is_new = !i || list[i].process != list[i - 1].process;

		if (is_new && ranks == 1)
			each = nth;
		if (is_new && ranks > 1 && nth != each)
			return 0;
		ranks += is_new;
		nth = is_new ? 0 : nth;
		list[i].nth = nth++;
	}
	return ranks > 1 && nth == each ? ranks : 0;
}

/* Moves the matched runs to the start of the list, in groups. */
static void match_runs(struct collective_matches *matches)
{
	uint32_t kept = 0;

	if (matches->count)
		qsort(matches->list, matches->count, sizeof(*matches->list), compare_runs);
	matches->groups = memory_resize(NULL, (size_t)matches->count / 2 + 1, sizeof(*matches->groups));
	for (uint32_t first = 0, end; first < matches->count; first = end) {
		uint32_t ranks, most = matches->list[first].size.ranks;

		for (end = first + 1;
		     end < matches->count && !compare_kinds(&matches->list[first], &matches->list[end]);)
			end++;
		if (most && matches_count_ranks(matches->list + first, end - first) > most) {
			matches->unnamed += end - first; /* several groups have this name, or none */
			continue;
		}
		ranks = number_runs(matches->list + first, end - first);
		if (!ranks) {
			matches->unmatched += end - first;
			continue;
		}
		qsort(matches->list + first, end - first, sizeof(*matches->list), compare_nth);
		memmove(matches->list + kept, matches->list + first, (end - first) * sizeof(*matches->list));
		for (uint32_t at = kept; at < kept + end - first; at += ranks)
			matches->groups[matches->group_count++] = (struct collective_match){at, ranks};
		kept += end - first;
	}
	matches->count = kept;
	matches->has_unnamed_groups = matches->unnamed > 0;
}

/* Returns why none of `count` executions is matched. */
static const char *why_unmatched(const struct matches_search *search, uint32_t count)
{
	const struct collective_matches *matches = search->matches;
	bool is_in_several = false;

	if (!count)
		return search->has_others ? "no collective was recorded that ranks leave together; sends, receives and "
		                            "broadcasts do not show which rank waits for which"
		                          : "no collective was recorded";
	if (matches->has_unnamed_groups)
		return COLLECTIVES_UNNAMED;
	for (uint32_t i = 1; i < count; i++)
		is_in_several |= matches->list[i].process != matches->list[0].process;
	return is_in_several ? "the ranks recorded different collectives, or different numbers of them, so they "
	                       "cannot be matched"
	                     : "no collective was recorded in more than one rank";
}

/* ---- one clock ---- */

/* Returns true if threads of one machine executed all of them: they share its clock. Devices time their work by other
 * clocks. */
static bool share_a_clock(const struct matches_search *search)
{
	const struct collective_matches *matches = search->matches;
	const struct model *model = search->model;
	uint32_t clock = matches->count ? process_clock(&model->processes[matches->list[0].process]) : 0;

	if (!*model_text(model, clock))
		return false;
	for (uint32_t i = 0; i < matches->count; i++)
		if (search->has_kernels[matches->list[i].process] ||
		    process_clock(&model->processes[matches->list[i].process]) != clock)
			return false;
	return true;
}

static bool is_unnamed(const struct collective_matches *matches, const struct collective_match *match)
{
	return !matches->list[match->first].group[0];
}

/* With one clock: returns true if a rank leaves before the last one has arrived. Then the runs are not one
 * collective. */
static bool is_impossible(const struct collective_matches *matches, const struct collective_match *match)
{
	struct collective_arrival arrival = collective_matches_arrival(matches, match);

	return arrival.end_ns < arrival.last_ns;
}

/* Returns true if the ranks are in several process groups without names. Then matches are unknown, even those that
 * look possible. */
static bool are_several_groups(const struct collective_matches *matches)
{
	uint32_t unnamed = 0, impossible = 0;

	for (uint32_t g = 0; g < matches->group_count; g++) {
		if (!is_unnamed(matches, &matches->groups[g]))
			continue;
		unnamed++;
		impossible += is_impossible(matches, &matches->groups[g]);
	}
	return impossible > unnamed / IMPOSSIBLE_PART;
}

static void leave_out_unnamed(struct collective_matches *matches)
{
	uint32_t runs = 0, groups = 0;

	for (uint32_t g = 0; g < matches->group_count; g++) {
		struct collective_match match = matches->groups[g];

		if (is_unnamed(matches, &match)) {
			matches->unnamed += match.count;
			continue;
		}
		memmove(matches->list + runs, matches->list + match.first, match.count * sizeof(*matches->list));
		matches->groups[groups++] = (struct collective_match){runs, match.count};
		runs += match.count;
	}
	matches->has_unnamed_groups = true;
	matches->reason = COLLECTIVES_UNNAMED;
	matches->count = runs;
	matches->group_count = groups;
}

/* ---- clocks ---- */

struct distance { /* from an end to the median of the ends of its collective */
	uint32_t process, run;
	double ns;
};

static int compare_distances(const void *left, const void *right)
{
	const struct distance *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->ns > b->ns) - (a->ns < b->ns);
}

/* Fills the distance of each run. The ends of a collective are close together, so that a double can hold it. */
static void find_distances(const struct collective_matches *matches, struct distance *distances, double *values,
                           bool is_absolute)
{
	for (uint32_t g = 0; g < matches->group_count; g++) {
		const struct collective_match *group = &matches->groups[g];
		const struct collective_run *runs = &matches->list[group->first];
		double median;

		for (uint32_t i = 0; i < group->count; i++)
			values[i] = (double)intervals_length(runs[0].end_ns, runs[i].end_ns);
		sort_doubles(values, group->count);
		median = quantile(values, group->count, 0.5);
		for (uint32_t i = 0; i < group->count; i++) {
			double ns = (double)intervals_length(runs[0].end_ns, runs[i].end_ns) - median;

			distances[group->first + i] = (struct distance){runs[i].process, group->first + i,
			                                                is_absolute && ns < 0 ? -ns : ns};
		}
	}
}

/* Computes the median of each process. Sorts the distances by process. */
static void take_medians(struct collective_matches *matches, struct distance *distances, int64_t *medians)
{
	qsort(distances, matches->count, sizeof(*distances), compare_distances);
	for (uint32_t first = 0, end; first < matches->count; first = end) {
		for (end = first + 1; end < matches->count && distances[end].process == distances[first].process;)
			end++;
		medians[distances[first].process] = (int64_t)distances[first + (end - first) / 2].ns;
		matches->clocks[distances[first].process].matches = end - first;
	}
}

static void matches_take_off(struct collective_run *run, int64_t ahead_ns)
{
	clamped_subtract(&run->start_ns, ahead_ns);
	clamped_subtract(&run->end_ns, ahead_ns);
	clamped_add(&run->ahead_ns, ahead_ns);
}

struct clocks { /* state while clocks are corrected */
	struct collective_matches *matches;
	struct distance *distances;
	double *values;
	int64_t *medians; /* by process */
};

static void matches_measure(struct clocks *clocks)
{
	find_distances(clocks->matches, clocks->distances, clocks->values, false);
	take_medians(clocks->matches, clocks->distances, clocks->medians);
}

static void put_clocks_right(struct clocks *clocks)
{
	struct collective_matches *matches = clocks->matches;

	for (int round = 0; round < CLOCK_ROUNDS; round++) {
		matches_measure(clocks);
		for (uint32_t i = 0; i < matches->count; i++)
			matches_take_off(&matches->list[i], clocks->medians[matches->list[i].process]);
	}
}

/* ---- clocks that change ---- */

static int compare_points(const void *left, const void *right)
{
	const struct clock_point *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* Returns the median of the distances around number i. They are of one rank, in order of time. The window has the same
 * number before i and after it, so that a drift does not bias the median. */
static double median_around(const struct distance *distances, uint32_t count, uint32_t i, double *values)
{
	assert(i < count);
	uint32_t radius = i < count - 1 - i ? i : count - 1 - i, n = 0;

	radius = radius < AROUND ? radius : AROUND;
	for (uint32_t k = i - radius; k <= i + radius; k++)
		values[n++] = distances[k].ns;
	sort_doubles(values, n);
	return values[radius];
}

/* Returns true if the ends of a rank come nearer to the others' when its clock may change. */
static bool must_be_followed(const struct distance *distances, uint32_t count)
{
	double values[2 * AROUND + 1], still = 0, followed = 0;

	for (uint32_t i = 0; i < count; i++) {
		still += fabs(distances[i].ns);
		followed += fabs(distances[i].ns - median_around(distances, count, i, values));
	}
	return count >= COLLECTIVES_FOLLOWED && still > FOLLOW_LEAST * count && still > FOLLOW_GAIN * followed;
}

static void follow_clock(struct collective_matches *matches, const struct distance *distances, uint32_t count)
{
	double values[2 * AROUND + 1];

	for (uint32_t i = 0; i < count; i++)
		matches_take_off(&matches->list[distances[i].run], (int64_t)median_around(distances, count, i, values));
}

/* By step before time: a clock that was set back shows the same time twice. */
static int compare_times(const void *left, const void *right, void *list)
{
	const struct collective_run *a = (struct collective_run *)list + ((const struct distance *)left)->run;
	const struct collective_run *b = (struct collective_run *)list + ((const struct distance *)right)->run;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	return (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

/* The first round decides which clocks change, from distances before any correction: corrections pull the others' ends
 * along. */
static void follow_clocks(struct clocks *clocks)
{
	struct collective_matches *matches = clocks->matches;

	for (int round = 0; round < CLOCK_ROUNDS; round++) {
		find_distances(matches, clocks->distances, clocks->values, false);
		qsort_r(clocks->distances, matches->count, sizeof(*clocks->distances), compare_times, matches->list);
		for (uint32_t first = 0, end; first < matches->count; first = end) {
			const struct distance *distances = clocks->distances + first;
			struct rank_clock *clock = &matches->clocks[distances->process];

			end = first + clock->matches;
			assert(clock->matches > 0 && end <= matches->count);
			if (!round)
				clock->has_change = must_be_followed(distances, clock->matches);
			if (clock->has_change)
				follow_clock(matches, distances, clock->matches);
		}
	}
}

/* ---- offsets ---- */

static void make_points(struct collective_matches *matches)
{
	matches->points = memory_resize(NULL, (size_t)matches->count + 1, sizeof(*matches->points));
	for (uint32_t i = 0; i < matches->count; i++) {
		const struct collective_run *run = &matches->list[i];
		int64_t time_ns = run->end_ns;

		clamped_add(&time_ns, run->ahead_ns);
		matches->points[i] = (struct clock_point){run->process, time_ns, run->ahead_ns};
	}
	qsort(matches->points, matches->count, sizeof(*matches->points), compare_points);
}

static int compare_ahead(const void *left, const void *right)
{
	const struct clock_point *a = left, *b = right;

	return (a->ahead_ns > b->ahead_ns) - (a->ahead_ns < b->ahead_ns);
}

static int64_t median_ahead(const struct clock_point *points, uint32_t count)
{
	struct clock_point *sorted = memory_resize(NULL, count, sizeof(*sorted));
	int64_t median_ns;

	memcpy(sorted, points, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare_ahead);
	median_ns = sorted[count / 2].ahead_ns;
	free(sorted);
	return median_ns;
}

/* The distances are of this clock, in order of time. */
static void find_change(struct collective_matches *matches, const struct distance *distances, struct rank_clock *clock)
{
	clock->change_ns = matches->list[distances[clock->matches - 1].run].ahead_ns -
	                   matches->list[distances->run].ahead_ns;
}

static void describe_clocks(struct clocks *clocks, uint32_t processes)
{
	struct collective_matches *matches = clocks->matches;
	uint32_t first = 0;

	make_points(matches);
	find_distances(matches, clocks->distances, clocks->values, true);
	qsort_r(clocks->distances, matches->count, sizeof(*clocks->distances), compare_times, matches->list);
	for (uint32_t process = 0; process < processes; process++) {
		struct rank_clock *clock = &matches->clocks[process];

		if (!clock->matches)
			continue;
		clock->first = first;
		clock->ahead_ns = median_ahead(matches->points + first, clock->matches);
		find_change(matches, clocks->distances + first, clock);
		first += clock->matches;
		assert(first <= matches->count);
	}
	take_medians(matches, clocks->distances, clocks->medians);
	for (uint32_t process = 0; process < processes; process++)
		matches->clocks[process].residual_ns = clocks->medians[process];
}

static void find_clocks(struct collective_matches *matches, uint32_t processes)
{
	size_t count = (size_t)matches->count + 1;
	struct clocks clocks = {matches, memory_resize(NULL, count, sizeof(*clocks.distances)),
	                        memory_resize(NULL, count, sizeof(*clocks.values)),
	                        memory_resize(NULL, (size_t)processes + 1, sizeof(*clocks.medians))};

	memset(clocks.medians, 0, processes * sizeof(*clocks.medians));
	matches_measure(&clocks);
	if (!matches->has_one_clock) {
		put_clocks_right(&clocks);
		follow_clocks(&clocks);
	}
	describe_clocks(&clocks, processes);
	free(clocks.medians);
	free(clocks.distances);
	free(clocks.values);
}

int64_t collective_matches_ahead(const struct collective_matches *matches, uint32_t process, int64_t time_ns)
{
	const struct rank_clock *clock = &matches->clocks[process];
	const struct clock_point *points = matches->points + clock->first;
	uint32_t low;
	double part;

	if (!clock->has_change)
		return clock->ahead_ns;
	low = LOWER_BOUND(points, clock->matches, item, item->time_ns <= time_ns);
	if (!low || low == clock->matches)
		return points[low ? low - 1 : 0].ahead_ns;
	part = (double)(time_ns - points[low - 1].time_ns) / (double)(points[low].time_ns - points[low - 1].time_ns);
	return points[low - 1].ahead_ns + (int64_t)(part * (double)(points[low].ahead_ns - points[low - 1].ahead_ns));
}

static const char *why_apart(const struct collective_matches *matches, struct analysis_context *context)
{
	const struct model *model = context->model;
	bool *is_counted = memory_resize(NULL, (size_t)model->processes_count + 1, sizeof(*is_counted));
	const char *why;

	memset(is_counted, 0, (size_t)model->processes_count + 1);
	for (uint32_t i = 0; i < matches->count; i++)
		is_counted[matches->list[i].process] = true;
	why = ranks_apart(model, is_counted);
	if (!why && step_times_trainings(analysis_context_step_times(context), model))
		why = STEP_TIMES_NO_RANKS;
	free(is_counted);
	return why;
}

void collective_matches_find(struct collective_matches *matches, struct analysis_context *context)
{
	const struct model *model = context->model;
	struct matches_search search = {.context = context, .model = model, .matches = matches};
	const char *apart;
	uint32_t count;

	memset(matches, 0, sizeof(*matches));
	arena_init(&matches->arena, 0);
	matches->clocks = memory_resize(NULL, (size_t)model->processes_count + 1, sizeof(*matches->clocks));
	memset(matches->clocks, 0, ((size_t)model->processes_count + 1) * sizeof(*matches->clocks));
	search.has_kernels = memory_resize(NULL, (size_t)model->processes_count + 1, sizeof(bool));
	memset(search.has_kernels, 0, (size_t)model->processes_count + 1);
	search.launches = analysis_context_launches(context);
	add_kernels(&search);
	add_executions(&search, analysis_context_collective_calls(context));
	count = matches->count;
	apart = why_apart(matches, context);
	matches->count = apart ? 0 : count;
	match_runs(matches);
	matches->reason = apart ? apart : why_unmatched(&search, count);
	matches->has_one_clock = share_a_clock(&search);
	if (matches->has_one_clock && are_several_groups(matches))
		leave_out_unnamed(matches);
	if (matches->group_count) {
		find_clocks(matches, model->processes_count);
		matches->reason = NULL;
	}
	free(search.has_kernels);
	launch_configs_release(&search.configs);
}

struct collective_arrival collective_matches_arrival(const struct collective_matches *matches,
                                                     const struct collective_match *match)
{
	const struct collective_run *runs = &matches->list[match->first];
	struct collective_arrival arrival = {runs[0].start_ns, runs[0].start_ns, runs[0].end_ns, runs[0].process};

	for (uint32_t i = 1; i < match->count; i++) {
		arrival.first_ns = runs[i].start_ns < arrival.first_ns ? runs[i].start_ns : arrival.first_ns;
		arrival.end_ns = runs[i].end_ns < arrival.end_ns ? runs[i].end_ns : arrival.end_ns;
		if (runs[i].start_ns <= arrival.last_ns)
			continue;
		arrival.last_ns = runs[i].start_ns;
		arrival.last_process = runs[i].process;
	}
	return arrival;
}

void collective_matches_release(struct collective_matches *matches)
{
	free(matches->list);
	free(matches->groups);
	free(matches->clocks);
	free(matches->points);
	arena_release(&matches->arena);
	memset(matches, 0, sizeof(*matches));
}
