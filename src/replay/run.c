/* SPDX-License-Identifier: Apache-2.0
 *
 * run.c: see run.h. One pass over the items in the order of time: everything an item waits for was seen before. Each
 * rank stops at a collective that other ranks have not come to yet. That cannot block, because the nth collective of a
 * rank waits for nothing behind the nth collective of another.
 */
#include "replay/run.h"

#include "base/memory.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define TURNS 2u
#define NEVER (-INFINITY)
#define ROOM_LAG_NS 2000.0 /* a launch returns that long after there is room in the queue */

struct ring { /* starts of the newest works of a stream */
	double *starts_ns;
	uint32_t count, first;
};

struct rank_state { /* of one rank */
	const struct replay_graph *graph;
	const struct replay_plan *plan;
	struct replay_run *run;
	double *clocks_ns;     /* by thread; NEVER: it did nothing yet */
	double *streams_ns;    /* by stream: end of its newest work */
	struct ring *rings;    /* by stream */
	double *works_ns;      /* by work: its end; of the plan */
	double *batches_ns;    /* by item: end of a batch; of the plan */
	double *device_ns;     /* by step and turn: end of its last work, NEVER: none */
	double *host_ns;       /* by step and turn: end of its mark */
	double first_ns;       /* of the first item */
	double between_ns;     /* from the end of the first turn to the second */
	uint32_t turn, item;   /* the next one */
	bool is_in_collective; /* it has told its start, and waits for the other ranks */
};

struct meeting { /* one collective in one turn, or the meeting at the end of one step */
	uint32_t count;
	double latest_ns;
};

/* fmax() and fmin() are calls of a library. No time is a NaN. */
static inline double later(double one_ns, double other_ns)
{
	return one_ns > other_ns ? one_ns : other_ns;
}

static inline double earlier(double one_ns, double other_ns)
{
	return one_ns < other_ns ? one_ns : other_ns;
}

/* ---- state ---- */

static void set_never(double *values, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		values[i] = NEVER;
}

static double *new_never(uint32_t count)
{
	double *values = memory_resize(NULL, count + 1, sizeof(*values));

	set_never(values, count + 1);
	return values;
}

static void ring_push(struct ring *ring, uint32_t depth, double start_ns)
{
	if (ring->count < depth) {
		ring->starts_ns[ring->count++] = start_ns;
		return;
	}
	ring->starts_ns[ring->first] = start_ns;
	ring->first = ring->first + 1 == depth ? 0 : ring->first + 1;
}

/* Works launched before the window are the start of the streams and of the launch queue. */
static void start_streams(struct rank_state *state)
{
	const struct replay_graph *graph = state->graph;

	for (uint32_t s = 0; s < graph->stream_count; s++) {
		const struct replay_stream *stream = &graph->streams[s];

		state->rings[s] = (struct ring){.starts_ns = memory_resize(NULL, graph->depth, sizeof(double))};
		for (uint32_t k = 0; k < stream->before; k++) {
			const struct replay_work *work = &graph->works[stream->works[k]];

			state->streams_ns[s] = later(state->streams_ns[s], work->end_ns - graph->offset_ns);
			state->works_ns[stream->works[k]] = work->end_ns - graph->offset_ns;
			ring_push(&state->rings[s], graph->depth, work->start_ns - graph->offset_ns);
		}
	}
}

/* Between the last and the first step lies the mean time between steps. It is as much shorter as the gaps between steps. */
static double time_between_turns(const struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;
	double removed_ns = 0;

	for (uint32_t s = 1; s < graph->step_count; s++) {
		uint32_t mark = graph->steps[s].mark;

		removed_ns += graph->items[mark].gap_ns - plan->items[mark].gap_ns;
	}
	return graph->step_count > 1 ? later(0, graph->between_ns - removed_ns / (graph->step_count - 1)) : 0;
}

static void state_init(struct rank_state *state, struct replay_run *run, const struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;

	*state = (struct rank_state){.graph = graph, .plan = plan, .run = run};
	state->clocks_ns = new_never(graph->thread_count);
	state->streams_ns = new_never(graph->stream_count);
	state->rings = memory_resize(NULL, graph->stream_count + 1, sizeof(*state->rings));
	state->works_ns = plan->works_ns;
	state->batches_ns = plan->batches_ns;
	set_never(state->works_ns, graph->work_count);
	state->device_ns = new_never(TURNS * graph->step_count);
	state->host_ns = new_never(TURNS * graph->step_count);
	state->first_ns = graph->items[0].start_ns - graph->offset_ns;
	state->between_ns = time_between_turns(plan);
	start_streams(state);
}

static void state_release(struct rank_state *state)
{
	for (uint32_t s = 0; s < state->graph->stream_count; s++)
		free(state->rings[s].starts_ns);
	free(state->rings);
	free(state->clocks_ns);
	free(state->streams_ns);
	free(state->device_ns);
	free(state->host_ns);
}

static double latest(const double *values, uint32_t count)
{
	double latest = NEVER;

	for (uint32_t i = 0; i < count; i++)
		latest = later(latest, values[i]);
	return latest;
}

/* ---- works ---- */

/* Returns the end of the call: later than end_ns if it waits for room in the queue. */
static double end_with_room(const struct rank_state *state, const struct replay_item *item,
                            const struct plan_item *planned, double end_ns)
{
	const struct ring *ring = &state->rings[state->graph->works[item->work].stream];

	if (ring->count < state->graph->depth)
		return end_ns;
	return later(end_ns, ring->starts_ns[ring->first] + (item->is_full ? planned->after_ns : ROOM_LAG_NS));
}

static double start_of_work(const struct rank_state *state, uint32_t number, double begin_ns, double end_ns)
{
	const struct replay_work *work = &state->graph->works[number];
	const struct plan_work *planned = &state->plan->works[number];
	double start_ns = (work->is_from_end ? end_ns : begin_ns) + planned->launch_ns;

	start_ns = later(start_ns, state->streams_ns[work->stream] + planned->stream_ns);
	for (uint32_t i = 0; i < work->dependency_count; i++) {
		const struct replay_dependency *dependency = &state->graph->dependencies[work->first_dependency + i];

		start_ns = later(start_ns, state->works_ns[dependency->work] + dependency->lag_ns);
	}
	return start_ns;
}

/* Returns the end of the call. */
static double finish_work(struct rank_state *state, const struct replay_item *item, const struct plan_item *planned,
                          double start_ns, double work_end_ns, double end_ns)
{
	const struct replay_work *work = &state->graph->works[item->work];
	double *step_ns = &state->device_ns[state->turn * state->graph->step_count + (uint32_t)item->step];

	state->works_ns[item->work] = work_end_ns;
	state->streams_ns[work->stream] = later(state->streams_ns[work->stream], work_end_ns);
	ring_push(&state->rings[work->stream], state->graph->depth, start_ns);
	*step_ns = later(*step_ns, work_end_ns);
	return work->is_blocking && !planned->is_unblocked ? later(end_ns, work_end_ns + planned->after_ns) : end_ns;
}

/* ---- items ---- */

/* end_ns: without waiting for a batch before it. */
static double end_of_batch(const struct rank_state *state, const struct replay_item *item,
                           const struct plan_item *planned, double begin_ns, double end_ns)
{
	/* the first ones wait for batches of the turn before */
	bool is_made = item->has_target && (state->turn || item->target < state->item);
	double done_ns = is_made ? state->batches_ns[item->target] : NEVER;

	if (done_ns != NEVER)
		end_ns = later(earlier(end_ns, begin_ns + state->graph->handover_ns), done_ns + planned->after_ns);
	if (state->plan->shows_late && item->exposed_ns > 0)
		end_ns = later(end_ns, latest(state->streams_ns, state->graph->stream_count) + item->exposed_ns);
	return end_ns;
}

static double end_of_wait(const struct rank_state *state, const struct replay_item *item,
                          const struct plan_item *planned, double begin_ns)
{
	double end_ns = begin_ns + planned->own_ns, done_ns;

	if (item->kind == REPLAY_BATCH && !planned->is_free)
		return end_of_batch(state, item, planned, begin_ns, end_ns);
	if (!item->has_target || planned->is_free)
		return end_ns;
	done_ns = item->kind == REPLAY_WAIT_ALL      ? latest(state->streams_ns, state->graph->stream_count)
	          : item->kind == REPLAY_WAIT_STREAM ? state->streams_ns[item->target]
	                                             : state->works_ns[item->target];
	return later(end_ns, done_ns + planned->after_ns);
}

static double begin_of(const struct rank_state *state, const struct replay_item *item, const struct plan_item *planned)
{
	if (item->follows != REPLAY_NONE)
		return state->clocks_ns[state->graph->items[item->follows].thread] + planned->gap_ns;
	if (!state->turn)
		return state->first_ns;
	return latest(state->clocks_ns, state->graph->thread_count) + state->between_ns;
}

/* Tells the meeting that the rank has come. Returns false if other ranks have not come yet. */
static bool come_to(struct rank_state *state, struct meeting *meeting, uint32_t ranks, double time_ns)
{
	if (!state->is_in_collective) {
		meeting->count++;
		meeting->latest_ns = later(meeting->latest_ns, time_ns);
	}
	state->is_in_collective = meeting->count < ranks;
	return !state->is_in_collective;
}

/* The gap before the meeting contains the time that the rank waited for others. */
static bool run_meeting(struct rank_state *state, struct meeting *meetings, uint32_t ranks,
                        const struct replay_item *item, const struct plan_item *planned, double begin_ns)
{
	uint32_t number = state->turn * state->graph->step_count + (uint32_t)item->step;
	struct meeting *meeting = &meetings[TURNS * state->graph->collectives + number];
	double ready_ns = begin_ns - planned->own_ns;

	if (state->plan->is_alone) {
		state->clocks_ns[item->thread] = ready_ns;
		return true;
	}
	if (!come_to(state, meeting, ranks, ready_ns))
		return false;
	state->clocks_ns[item->thread] = meeting->latest_ns + planned->after_ns;
	return true;
}

/* Runs the launch of a work. Returns false if it is a collective that other ranks have not come to yet. */
static bool run_launch(struct rank_state *state, struct meeting *meetings, uint32_t ranks,
                       const struct replay_item *item, const struct plan_item *planned, double begin_ns)
{
	const struct replay_work *work = &state->graph->works[item->work];
	double end_ns = end_with_room(state, item, planned, begin_ns + planned->own_ns);
	double start_ns = start_of_work(state, item->work, begin_ns, end_ns), from_ns = start_ns;

	if (work->collective != REPLAY_NONE && ranks > 1 && !state->plan->is_alone) {
		struct meeting *meeting = &meetings[state->turn * state->graph->collectives + work->collective];

		if (!come_to(state, meeting, ranks, start_ns))
			return false;
		from_ns = meeting->latest_ns;
	}
	double work_end_ns = from_ns + state->plan->works[item->work].dur_ns;
	state->clocks_ns[item->thread] = finish_work(state, item, planned, start_ns, work_end_ns, end_ns);
	return true;
}

static void run_other(struct rank_state *state, const struct replay_item *item, const struct plan_item *planned,
                      double begin_ns)
{
	double end_ns = begin_ns;

	if (item->kind == REPLAY_MARK) {
		if (item->is_end)
			state->host_ns[state->turn * state->graph->step_count + (uint32_t)item->step] = begin_ns;
	} else {
		end_ns = end_of_wait(state, item, planned, begin_ns);
	}
	if (item->kind == REPLAY_BATCH)
		state->batches_ns[state->item] = end_ns;
	state->clocks_ns[item->thread] = end_ns;
}

static void run_gone(struct rank_state *state, const struct replay_item *item, double begin_ns)
{
	state->clocks_ns[item->thread] = begin_ns;
	if (item->work != REPLAY_NONE)
		state->works_ns[item->work] = NEVER;
	if (item->kind == REPLAY_BATCH)
		state->batches_ns[state->item] = NEVER;
}

/* Goes on to the end, or to a collective that not all ranks have come to. Returns true if it did anything. */
static bool go_on(struct rank_state *state, struct meeting *meetings, uint32_t ranks)
{
	bool did_any = false;

	for (; state->turn < TURNS; state->turn++, state->item = 0)
		for (; state->item < state->graph->item_count; state->item++) {
			const struct replay_item *item = &state->graph->items[state->item];
			const struct plan_item *planned = &state->plan->items[state->item];
			double begin_ns = begin_of(state, item, planned);

			if (planned->is_gone) {
				run_gone(state, item, begin_ns);
			} else if (item->kind == REPLAY_MEET) {
				if (!run_meeting(state, meetings, ranks, item, planned, begin_ns))
					return did_any;
			} else if (item->work == REPLAY_NONE) {
				run_other(state, item, planned, begin_ns);
			} else if (!run_launch(state, meetings, ranks, item, planned, begin_ns)) {
				return did_any;
			}
			did_any = true;
		}
	return did_any;
}

/* ---- the whole ---- */

static void take_result(struct rank_state *state)
{
	uint32_t count = state->graph->step_count;
	struct replay_run *run = state->run;

	*run = (struct replay_run){.step_count = count, .is_of_device = state->graph->has_device};
	for (uint32_t i = 0; i < TURNS * count; i++)
		run->is_of_device &= state->device_ns[i] != NEVER;
	run->ends_ns = run->is_of_device ? state->device_ns : state->host_ns;
	free(run->is_of_device ? state->host_ns : state->device_ns);
	state->device_ns = state->host_ns = NULL;
	run->step_ns = (run->ends_ns[TURNS * count - 1] - run->ends_ns[count - 1]) / count;
	run->window_ns = count > 1 ? (run->ends_ns[count - 1] - run->ends_ns[0]) / (count - 1) : run->step_ns;
}

static struct meeting *new_meetings(uint32_t count)
{
	struct meeting *meetings = memory_resize(NULL, count + 1, sizeof(*meetings));

	for (uint32_t i = 0; i <= count; i++)
		meetings[i] = (struct meeting){0, NEVER};
	return meetings;
}

bool replay_run_ranks(struct replay_run *runs, const struct replay_plan *plans, uint32_t count)
{
	struct rank_state *states = memory_resize(NULL, count, sizeof(*states));
	struct meeting *meetings = new_meetings(TURNS * (plans[0].graph->collectives + plans[0].graph->step_count));
	bool goes_on = true, is_whole = true;

	assert(count > 0);
	for (uint32_t i = 0; i < count; i++) {
		is_whole &= plans[i].graph->collectives == plans[0].graph->collectives &&
		            (!plans[i].graph->recording.has_meetings ||
		             plans[i].graph->step_count == plans[0].graph->step_count);
		state_init(&states[i], &runs[i], &plans[i]);
	}
	while (goes_on && is_whole) {
		goes_on = false;
		for (uint32_t i = 0; i < count; i++)
			goes_on |= go_on(&states[i], meetings, count);
	}
	for (uint32_t i = 0; i < count; i++)
		is_whole &= states[i].turn == TURNS;
	for (uint32_t i = 0; i < count && is_whole; i++)
		take_result(&states[i]);
	for (uint32_t i = 0; i < count; i++)
		state_release(&states[i]);
	free(states);
	free(meetings);
	return is_whole;
}

void replay_run(struct replay_run *run, const struct replay_plan *plan)
{
	bool is_whole = replay_run_ranks(run, plan, 1);

	assert(is_whole);
	(void)is_whole;
}

void replay_run_release(struct replay_run *run)
{
	free(run->ends_ns);
	*run = (struct replay_run){0};
}
