/* SPDX-License-Identifier: Apache-2.0
 *
 * what_if.c: see what_if.h.
 */
#include "replay/what_if.h"

#include "base/memory.h"
#include "replay/profiler_cost.h"
#include "replay/ranks.h"
#include "replay/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LESS_COST 0.7 /* of the profiler: the range of its estimates */
#define MORE_COST 1.35
#define MOST_UNEXPLAINED 0.2 /* of a step: with usual lags on all edges it differs by more */
#define MOST_AGAINST 0.01    /* of the edges: clocks or ids are wrong */
#define MOST_LAUNCH_NS 1e6   /* from a launch to its work on an idle stream; 2 us are usual */
#define RUN_DIFFERENCE 0.02  /* of a device's time, between runs of one program */
#define TURN_DIFFERENCE 0.02
#define LARGEST_BLOCK 10u
#define LEAST_BLOCKS 6u
#define CUT_DOUBT_RATIO 0.15 /* of a saving: what is removed takes caches and allocations along */
#define CUT_DOUBT 0.02       /* of a step */

struct replays {
	struct what_if *what_if;
	struct replay_graph *graphs; /* by rank */
	struct replay_plan *plans;
	struct replay_run *base; /* without the profiler, nothing removed */
	uint32_t count;
	bool counts_window; /* the first turn counts, not the second */
};

/* ---- steps ---- */

static void last_ends(const struct replay_graph *graph, double *first_ns, double *last_ns)
{
	for (uint32_t i = 0; i < graph->item_count; i++) {
		const struct replay_item *item = &graph->items[i];

		if (item->work == REPLAY_NONE)
			continue;
		if (item->step == 0)
			*first_ns = fmax(*first_ns, graph->works[item->work].end_ns);
		if ((uint32_t)item->step == graph->step_count - 1)
			*last_ns = fmax(*last_ns, graph->works[item->work].end_ns);
	}
}

/* The measured step of the device, or of the host if no device works in each step. */
static double measured_step(const struct replay_graph *graph, bool is_of_device)
{
	double first_ns = graph->steps[0].end_ns, last_ns = graph->steps[graph->step_count - 1].end_ns;

	if (is_of_device) {
		first_ns = last_ns = -INFINITY;
		last_ends(graph, &first_ns, &last_ns);
	}
	return (last_ns - first_ns) / (graph->step_count - 1);
}

static double step_of(const struct replays *replays, const struct replay_run *run)
{
	return replays->counts_window ? run->window_ns : run->step_ns;
}

/* The job's step: that of the slowest rank. */
static uint32_t slowest(const struct replays *replays, const struct replay_run *runs)
{
	uint32_t found = 0;

	for (uint32_t rank = 1; rank < replays->count; rank++)
		if (step_of(replays, &runs[rank]) > step_of(replays, &runs[found]))
			found = rank;
	return found;
}

/* Works that were queued before the window for more than half a step hide host time in it. If the second turn is then
 * not like the window, only the window counts. */
static bool window_counts(const struct replay_graph *graph, const struct replay_run *run)
{
	double queued_ns = 0;

	for (uint32_t i = 0; i < graph->work_count; i++)
		if (graph->works[i].item == REPLAY_NONE)
			queued_ns = fmax(queued_ns, graph->works[i].end_ns);
	return queued_ns >= 0.5 * run->window_ns && fabs(run->step_ns / run->window_ns - 1) > TURN_DIFFERENCE;
}

/* ---- replays ---- */

/* Ranks that do not meet are replayed one by one. */
static struct replay_run *replay(struct replays *replays)
{
	struct replay_run *runs = memory_resize(NULL, replays->count, sizeof(*runs));

	if (!replay_run_ranks(runs, replays->plans, replays->count))
		for (uint32_t rank = 0; rank < replays->count; rank++)
			replay_run(&runs[rank], &replays->plans[rank]);
	return runs;
}

static void release_runs(struct replays *replays, struct replay_run *runs)
{
	for (uint32_t rank = 0; rank < replays->count; rank++)
		replay_run_release(&runs[rank]);
	free(runs);
}

static double job_step(struct replays *replays)
{
	struct replay_run *runs = replay(replays);
	double step_ns = step_of(replays, &runs[slowest(replays, runs)]);

	release_runs(replays, runs);
	return step_ns;
}

static void reset(struct replays *replays)
{
	for (uint32_t rank = 0; rank < replays->count; rank++)
		replay_plan_reset(&replays->plans[rank]);
}

static void remove_profiler(struct replays *replays, double factor)
{
	for (uint32_t rank = 0; rank < replays->count; rank++)
		profiler_cost_remove(&replays->plans[rank], factor);
}

static void remove_delays(struct replays *replays)
{
	for (uint32_t rank = 0; rank < replays->count; rank++)
		cut_processors(&replays->plans[rank]);
}

static bool is_quiet_known(const struct replays *replays)
{
	for (uint32_t rank = 0; rank < replays->count; rank++)
		if (!replay_is_quiet_known(&replays->graphs[rank]))
			return false;
	return true;
}

/* Removes what is not the program's: the profiler's cost, and waits for processors that others have. */
static void remove_foreign(struct replays *replays)
{
	if (replays->what_if->has_cost)
		remove_profiler(replays, 1);
	if (is_quiet_known(replays))
		remove_delays(replays);
}

static void replay_baseline(struct replays *replays)
{
	struct what_if *what_if = replays->what_if;
	struct replay_run *runs = replay(replays);
	uint32_t rank, edges = 0, against = 0;

	for (rank = 0; rank < replays->count; rank++)
		replays->counts_window |= window_counts(&replays->graphs[rank], &runs[rank]);
	rank = slowest(replays, runs);
	what_if->is_of_device = runs[rank].is_of_device;
	what_if->recorded_ns = step_of(replays, &runs[rank]);
	what_if->measured_ns = measured_step(&replays->graphs[rank], runs[rank].is_of_device);
	release_runs(replays, runs);
	for (uint32_t i = 0; i < replays->count; i++) {
		replay_plan_usual(&replays->plans[i]);
		edges += replays->graphs[i].edges;
		against += replays->graphs[i].against_order;
	}
	runs = replay(replays);
	what_if->usual_ratio = runs[rank].window_ns / what_if->measured_ns - 1;
	release_runs(replays, runs);
	what_if->against_ratio = edges ? (double)against / edges : 0;
}

/* ---- intervals ---- */

/* Duration of step i of the turn that counts. */
static double duration_of(const struct replays *replays, const struct replay_run *run, uint32_t i)
{
	uint32_t end = replays->counts_window ? i + 1 : run->step_count + i;

	return run->ends_ns[end] - run->ends_ns[end - 1];
}

/* Half the width of the 95 % interval of the ratio of both means, from the scatter of blocks of steps. */
static double scatter(const struct replays *replays, const struct replay_run *base, const struct replay_run *cut)
{
	uint32_t count = base->step_count - replays->counts_window;
	uint32_t size = count / LEAST_BLOCKS < 1 ? 1 : count / LEAST_BLOCKS;
	size = size > LARGEST_BLOCK ? LARGEST_BLOCK : size;
	uint32_t blocks = count / size;
	double ratio = step_of(replays, cut) / step_of(replays, base), sum = 0;

	if (blocks < 2)
		return INFINITY;
	for (uint32_t b = 0; b < blocks; b++) {
		double difference_ns = 0;

		for (uint32_t i = b * size; i < (b + 1) * size; i++)
			difference_ns += duration_of(replays, cut, i) - ratio * duration_of(replays, base, i);
		sum += difference_ns * difference_ns;
	}
	double error_ns = sqrt(sum / (blocks - 1) / blocks) / size;
	return 1.96 * error_ns / step_of(replays, base);
}

static void set_interval(const struct replays *replays, struct what_if_cut *cut, double scatter_ratio,
                         double doubt_ratio)
{
	double doubt = scatter_ratio + fabs(replays->what_if->usual_ratio) * (1 - cut->saving_ratio) +
	               doubt_ratio * cut->saving_ratio + CUT_DOUBT;

	cut->low_ratio = fmax(0, cut->saving_ratio - doubt);
	cut->high_ratio = fmin(1, cut->saving_ratio + doubt);
}

/* ---- cuts ---- */

static bool lacks_operators(const struct replay_graph *graph)
{
	for (uint32_t s = 0; s < graph->step_count; s++)
		if (!graph->steps[s].has_operators)
			return graph->is_recorded;
	return false;
}

static float *gaps_of(const struct replay_plan *plan)
{
	float *gaps_ns = memory_resize(NULL, plan->graph->item_count + 1, sizeof(*gaps_ns));

	for (uint32_t i = 0; i < plan->graph->item_count; i++)
		gaps_ns[i] = plan->items[i].gap_ns;
	return gaps_ns;
}

/* Applies a cut to the plans of all ranks. */
static bool apply_to_all(struct replays *replays, const struct cut_kind *kind)
{
	bool is_any = false;

	if (kind->apply_ranks)
		return kind->apply_ranks(replays->plans, replays->count);
	for (uint32_t rank = 0; rank < replays->count; rank++)
		is_any |= kind->apply(&replays->plans[rank]);
	return is_any;
}

/* The same, also to steps that lack the operators that the cut needs. */
static bool apply(struct replays *replays, const struct cut_kind *kind)
{
	float **gaps_ns = memory_resize(NULL, replays->count, sizeof(float *));

	for (uint32_t rank = 0; rank < replays->count; rank++)
		gaps_ns[rank] = kind->needs_operators && lacks_operators(replays->plans[rank].graph)
		                        ? gaps_of(&replays->plans[rank])
		                        : NULL;
	bool is_any = apply_to_all(replays, kind);
	for (uint32_t rank = 0; rank < replays->count; rank++) {
		if (gaps_ns[rank])
			replay_plan_carry(&replays->plans[rank], gaps_ns[rank]);
		free(gaps_ns[rank]);
	}
	free(gaps_ns);
	return is_any;
}

static double doubt_of(enum replay_cut cut)
{
	return replay_cuts[cut].doubt_ratio > 0 ? replay_cuts[cut].doubt_ratio : CUT_DOUBT_RATIO;
}

/* If the host runs ahead without the cost, it may or may not hide late batches: the upper end of the interval is the step
 * in which it does. */
static void raise_upper_end(struct replays *replays, struct what_if_cut *cut)
{
	bool is_any = false;

	for (uint32_t rank = 0; rank < replays->count; rank++) {
		is_any |= replays->plans[rank].shows_late;
		replays->plans[rank].shows_late = false;
	}
	if (!is_any)
		return;
	double hidden_ratio = 1 - job_step(replays) / replays->what_if->step_ns;
	cut->high_ratio = fmin(1, cut->high_ratio + fmax(0, hidden_ratio - cut->saving_ratio));
}

/* The plans have the cut. */
static void measure(struct replays *replays, struct what_if_cut *cut, double doubt_ratio)
{
	struct what_if *what_if = replays->what_if;

	remove_foreign(replays);
	struct replay_run *runs = replay(replays);
	uint32_t rank = slowest(replays, runs);
	cut->step_ns = fmax(0, fmin(what_if->step_ns, step_of(replays, &runs[rank])));
	cut->saving_ns = what_if->step_ns - cut->step_ns;
	cut->saving_ratio = what_if->step_ns > 0 ? cut->saving_ns / what_if->step_ns : 0;
	set_interval(replays, cut, scatter(replays, &replays->base[rank], &runs[rank]), doubt_ratio);
	cut->high_ratio = fmin(1, cut->high_ratio + replays->plans[rank].more_ratio);
	release_runs(replays, runs);
	raise_upper_end(replays, cut);
}

/* Applies the cuts that are the program's own. Returns the largest doubt of them. */
static double apply_all(struct replays *replays, const bool is_cut[CUT_COUNT], bool *is_any)
{
	double doubt_ratio = CUT_DOUBT_RATIO;

	for (enum replay_cut cut = 0; cut < CUT_COUNT; cut++)
		if (is_cut[cut] && !replay_cuts[cut].is_outside) {
			*is_any |= apply(replays, &replay_cuts[cut]);
			doubt_ratio = fmax(doubt_ratio, doubt_of(cut));
		}
	return doubt_ratio;
}

/* What is not the program's is removed from all other replays: it is measured against the step with it. is_cut: what is
 * removed beside it. */
static void measure_outside(struct replays *replays, const bool is_cut[CUT_COUNT], struct what_if_cut *cut)
{
	struct replay_run *runs[2]; /* with it, without it */
	double doubt_ratio = CUT_DOUBT_RATIO;

	for (int without = 0; without < 2; without++) {
		reset(replays);
		if (without)
			doubt_ratio = apply_all(replays, is_cut, &cut->is_there);
		if (replays->what_if->has_cost)
			remove_profiler(replays, 1);
		if (without)
			remove_delays(replays);
		runs[without] = replay(replays);
	}
	uint32_t rank = slowest(replays, runs[0]);
	double with_ns = step_of(replays, &runs[0][rank]);
	cut->is_there = true;
	cut->step_ns = fmax(0, fmin(with_ns, step_of(replays, &runs[1][slowest(replays, runs[1])])));
	cut->saving_ns = with_ns - cut->step_ns;
	cut->saving_ratio = with_ns > 0 ? cut->saving_ns / with_ns : 0;
	set_interval(replays, cut, scatter(replays, &runs[0][rank], &runs[1][rank]), doubt_ratio);
	release_runs(replays, runs[0]);
	release_runs(replays, runs[1]);
}

void what_if_together(struct what_if *what_if, const bool is_cut[CUT_COUNT], struct what_if_cut *together)
{
	struct replays *replays = what_if->replays;

	replays->what_if = what_if;
	*together = (struct what_if_cut){0};
	if (is_cut[CUT_PROCESSORS]) {
		measure_outside(replays, is_cut, together);
		return;
	}
	reset(replays);
	double doubt_ratio = apply_all(replays, is_cut, &together->is_there);
	measure(replays, together, doubt_ratio);
}

static double step_at_cost(struct replays *replays, double factor)
{
	reset(replays);
	remove_profiler(replays, factor);
	return job_step(replays);
}

static void replay_cuts_of(struct replays *replays)
{
	struct what_if *what_if = replays->what_if;

	if (what_if->has_profiler) {
		what_if->low_ns = step_at_cost(replays, MORE_COST) * (1 - RUN_DIFFERENCE);
		what_if->high_ns = step_at_cost(replays, LESS_COST) * (1 + RUN_DIFFERENCE);
	}
	reset(replays);
	remove_foreign(replays);
	what_if->is_quiet = is_quiet_known(replays);
	replays->base = replay(replays);
	what_if->step_ns = step_of(replays, &replays->base[slowest(replays, replays->base)]);
	for (enum replay_cut cut = 0; cut < CUT_COUNT; cut++) {
		if (!cut || what_if->cuts[cut - 1].is_there) /* else nothing was changed */
			reset(replays);
		what_if->cuts[cut].is_there = apply(replays, &replay_cuts[cut]);
		if (what_if->cuts[cut].is_there && replay_cuts[cut].is_outside)
			measure_outside(replays, (const bool[CUT_COUNT]){false}, &what_if->cuts[cut]);
		else if (what_if->cuts[cut].is_there)
			measure(replays, &what_if->cuts[cut], doubt_of(cut));
	}
}

/* ---- the whole ---- */

static bool make_graphs(struct replays *replays, const struct model *model, const struct launches *launches,
                        const struct replay_window *windows)
{
	for (; replays->what_if->ranks > replays->count; replays->count++)
		if (!replay_graph_make(&replays->graphs[replays->count], model, launches, &windows[replays->count]))
			return false;
	return true;
}

/* Collectives of the host run on threads of their own: no edge leads from them to the thread that waits. */
static bool has_only_host_collectives(const struct replays *replays)
{
	bool is_any = false;

	for (uint32_t rank = 0; rank < replays->count; rank++) {
		if (replays->graphs[rank].collectives || replays->graphs[rank].recording.has_meetings)
			return false;
		is_any |= replays->graphs[rank].has_host_collectives ||
		          (replays->graphs[rank].has_device_backend && !replays->graphs[rank].has_device);
	}
	return is_any;
}

/* Why the ranks cannot be replayed together; NULL: they can. */
static const char *why_apart(const struct replays *replays, bool are_joined)
{
	if (has_only_host_collectives(replays))
		return "the collectives run on the host, and no event shows which thread waits for them";
	if (replays->count < 2)
		return NULL;
	if (!are_joined)
		return replays->graphs[0].recording.has_meetings ? "the ranks do not have the same number of steps"
		                                                 : "the ranks do not have the same collectives";
	return replays->graphs[0].collectives || replays->graphs[0].recording.has_meetings
	               ? NULL
	               : "no collective on a device shows where the ranks wait for each other";
}

/* Why clocks or ids contradict each other; NULL: they do not. */
static const char *why_unsound(const struct replays *replays)
{
	for (uint32_t rank = 0; rank < replays->count; rank++)
		if (replays->graphs[rank].launch_ns > MOST_LAUNCH_NS ||
		    2 * replays->graphs[rank].waits_against > replays->graphs[rank].waits)
			return "works start long after their launches, or end after the calls that wait for them, so clocks of host "
			       "and device are apart";
	return replays->what_if->against_ratio > MOST_AGAINST
	               ? "works end before what they wait for, so clocks or ids of the trace are wrong"
	               : NULL;
}

/* Why the graph does not hold; NULL: it does. */
static const char *why_unexplained(const struct replays *replays)
{
	const char *unsound = why_unsound(replays);

	if (unsound) {
		replays->what_if->doubt = TRACE_IS_UNSOUND;
		return unsound;
	}
	if (fabs(replays->what_if->usual_ratio) <= MOST_UNEXPLAINED)
		return NULL;
	replays->what_if->doubt = TRACE_IS_UNEXPLAINED;
	return "the replay of the trace does not explain the measured step";
}

static void replay_all(struct replays *replays)
{
	bool are_joined = replay_ranks_join(replays->graphs, replays->count);

	replays->what_if->problem = why_apart(replays, are_joined);
	if (replays->what_if->problem)
		return;
	for (uint32_t rank = 0; rank < replays->count; rank++) {
		profiler_cost_measure(&replays->graphs[rank]);
		replay_plan_init(&replays->plans[rank], &replays->graphs[rank]);
	}
	replay_baseline(replays);
	replays->what_if->problem = why_unexplained(replays);
	if (!replays->what_if->problem)
		replay_cuts_of(replays);
}

void what_if_make(struct what_if *what_if, const struct model *model, const struct launches *launches,
                  const struct replay_window *windows, uint32_t count, bool has_profiler)
{
	struct replays *replays;

	*what_if = (struct what_if){.ranks = count, .has_profiler = has_profiler};
	what_if->has_cost = has_profiler || (count && windows[0].recording.row_ns > 0);
	what_if->step_count = count ? windows[0].step_count : 0;
	if (what_if->step_count < 2) {
		what_if->problem = "a replay needs two complete steps";
		return;
	}
	what_if->replays = replays = memory_resize(NULL, 1, sizeof(*replays));
	*replays = (struct replays){.what_if = what_if};
	replays->graphs = memory_resize(NULL, count, sizeof(*replays->graphs));
	replays->plans = memory_resize(NULL, count, sizeof(*replays->plans));
	memset(replays->plans, 0, count * sizeof(*replays->plans));
	if (make_graphs(replays, model, launches, windows))
		replay_all(replays);
	else
		what_if->problem = "the steps are on no thread of which events were recorded";
}

const struct replay_graph *what_if_graph(const struct what_if *what_if, uint32_t rank)
{
	return &what_if->replays->graphs[rank];
}

void what_if_release(struct what_if *what_if)
{
	struct replays *replays = what_if->replays;

	if (!replays)
		return;
	if (replays->base)
		release_runs(replays, replays->base);
	for (uint32_t rank = 0; rank < replays->count; rank++) {
		if (replays->plans[rank].graph)
			replay_plan_release(&replays->plans[rank]);
		replay_graph_release(&replays->graphs[rank]);
	}
	free(replays->graphs);
	free(replays->plans);
	free(replays);
	*what_if = (struct what_if){0};
}
