/* SPDX-License-Identifier: Apache-2.0
 *
 * bind.c: the lags of all edges, from what was measured. Of the edges into an item or a work one bound: it takes the
 * measured lag. All others take the usual one, if that is less. So a replay with nothing removed gives the measured
 * times, and another edge takes over where a cut removes the one that bound.
 */
#include "replay/bind.h"

#include "base/memory.h"
#include "base/merge_sort.h"
#include "base/statistics.h"
#include "base/storage.h"
#include "replay/usual.h"

#include <math.h>
#include <stdlib.h>

#define ROUNDING_NS 500.0
#define SAME_NS 1000.0
#define NEAR_END_NS 5000.0    /* a work that starts that long before the end of its call started after it */
#define STREAM_LAG_NS 5000.0  /* the stream bound: at most that, or three times the usual lag */
#define EVENT_LAG_NS 10000.0  /* an event bound: at most that */
#define USUAL_EVENT_NS 1500.0 /* lag after an event that did not bind */
#define OTHER_STREAM_NS 6000.0
#define NEWEST_WORKS 64u  /* of each stream, among which an event is looked for */
#define MOST_WAITING 0.95 /* of a step, where it is not known */
#define MOST_HANDOVER_NS 100e3
#define SLOW_LOADER 0.05 /* of the time, in waits for late batches */
#define QUICK_PART 0.2   /* of all batches, those that were ready */
#define LATE_BATCHES 8u  /* a late batch waits for one of so many before it */

struct bind {
	struct replay_graph *graph;
	uint32_t *last;     /* by stream: the work launched last, REPLAY_NONE: none */
	uint32_t *launched; /* by stream: number of works launched so far */
	bool *is_waiting;   /* by thread: a stream waits for an event */
	struct usual_times usual;
};

/* ---- works ---- */

static void add_dependency(struct replay_graph *graph, struct replay_work *work, uint32_t other, double lag_ns)
{
	STORAGE_GROW(graph->model->storage, graph->dependencies, graph->dependency_count, graph->dependency_capacity,
	             256);
	graph->dependencies[graph->dependency_count++] = (struct replay_dependency){other, lag_ns};
	work->dependency_count++;
	graph->edges++;
}

static double least_lag(const struct replay_graph *graph, const struct replay_work *work)
{
	double least_ns = INFINITY;

	for (uint32_t i = 0; i < work->dependency_count; i++)
		least_ns = fmin(least_ns, graph->dependencies[work->first_dependency + i].lag_ns);
	return least_ns;
}

/* The launch waited for room in the queue: it ends after the start of a work `depth` before its own. */
static void bind_queue(struct bind *bind, struct replay_item *item, const struct replay_work *work)
{
	const struct replay_graph *graph = bind->graph;

	if (work->place < graph->depth)
		return;
	double room_ns = graph->works[graph->streams[work->stream].works[work->place - graph->depth]].start_ns;
	if (room_ns <= item->start_ns || room_ns > item->end_ns + NEAR_END_NS)
		return;
	item->is_full = true;
	item->after_ns = fmax(0, item->end_ns - room_ns);
	item->own_ns = fmin(item->own_ns, usual_call_ns(&bind->usual, item->name));
}

/* After a call that lets a stream wait, works of all other streams that ended before count. */
static void bind_events(struct bind *bind, const struct replay_item *item, struct replay_work *work)
{
	struct replay_graph *graph = bind->graph;

	if (!bind->is_waiting[item->thread])
		return;
	bind->is_waiting[item->thread] = false;
	for (uint32_t s = 0; s < graph->stream_count; s++)
		if (s != work->stream && bind->last[s] != REPLAY_NONE &&
		    graph->works[bind->last[s]].end_ns <= work->start_ns + ROUNDING_NS)
			add_dependency(graph, work, bind->last[s], work->start_ns - graph->works[bind->last[s]].end_ns);
}

/* The latest start that launch, stream and events explain with usual lags. */
static double explained_start(const struct replay_graph *graph, const struct replay_item *item,
                              const struct replay_work *work, const struct replay_work *before, double lag_ns)
{
	double start_ns = work->is_from_end ? item->end_ns + fmin(lag_ns, graph->launch_ns) : item->start_ns + lag_ns;

	if (before)
		start_ns = fmax(start_ns, before->end_ns + fmin(work->start_ns - before->end_ns, graph->stream_ns));
	for (uint32_t i = 0; i < work->dependency_count; i++) {
		const struct replay_dependency *dependency = &graph->dependencies[work->first_dependency + i];

		start_ns = fmax(start_ns,
		                graph->works[dependency->work].end_ns + fmin(dependency->lag_ns, USUAL_EVENT_NS));
	}
	return start_ns;
}

/* If nothing else explains the start, a work of another stream that ended right before does. */
static void bind_other_stream(struct bind *bind, struct replay_work *work, double unexplained_ns, double stream_lag_ns)
{
	struct replay_graph *graph = bind->graph;

	if (unexplained_ns <= EVENT_LAG_NS || stream_lag_ns <= EVENT_LAG_NS || least_lag(graph, work) < EVENT_LAG_NS)
		return;
	for (uint32_t s = 0; s < graph->stream_count; s++) {
		double lag_ns = bind->last[s] == REPLAY_NONE ? -1 : work->start_ns - graph->works[bind->last[s]].end_ns;

		if (s != work->stream && lag_ns >= 0 && lag_ns < OTHER_STREAM_NS)
			add_dependency(graph, work, bind->last[s], lag_ns);
	}
}

static void take_usual_event_lags(struct replay_graph *graph, const struct replay_work *work, double kept_ns)
{
	for (uint32_t i = 0; i < work->dependency_count; i++) {
		double *lag_ns = &graph->dependencies[work->first_dependency + i].lag_ns;

		if (*lag_ns != kept_ns)
			*lag_ns = fmin(*lag_ns, USUAL_EVENT_NS);
	}
}

/* Which edge bound. lag_ns: after the launch; stream_lag_ns: after the work before. */
static void choose_bound(struct replay_graph *graph, struct replay_work *work, double lag_ns, double stream_lag_ns)
{
	double event_ns = least_lag(graph, work);
	bool is_stream = stream_lag_ns <= fmax(STREAM_LAG_NS, 3 * graph->stream_ns) &&
	                 stream_lag_ns <= event_ns + 3000.0;
	bool is_event = !is_stream && event_ns <= EVENT_LAG_NS;

	work->stream_ns = is_stream ? stream_lag_ns : fmin(stream_lag_ns, graph->stream_ns);
	work->launch_ns = work->is_from_end && (is_stream || is_event) ? fmin(lag_ns, graph->launch_ns) : lag_ns;
	take_usual_event_lags(graph, work, is_event ? event_ns : INFINITY);
}

/* A copy from or to pageable memory that is done when its call returns. */
static void bind_blocking(struct bind *bind, struct replay_item *item, struct replay_work *work)
{
	bool is_over = work->is_pageable && work->end_ns <= item->end_ns + SAME_NS;

	if (!is_over || (item->own_ns <= 3 * usual_call_ns(&bind->usual, item->name) && work->dur_ns <= 100e3))
		return;
	work->is_blocking = true;
	item->after_ns = fmax(0, item->end_ns - work->end_ns);
	item->own_ns = work->is_from_end ? fmin(item->own_ns, 50e3)
	                                 : fmax(0, fmin(item->own_ns, work->start_ns - item->start_ns));
	bind->graph->edges++;
}

static void bind_launch(struct bind *bind, struct replay_item *item)
{
	struct replay_graph *graph = bind->graph;
	struct replay_work *work = &graph->works[item->work];
	const struct replay_work *before = bind->last[work->stream] == REPLAY_NONE
	                                           ? NULL
	                                           : &graph->works[bind->last[work->stream]];

	bind_queue(bind, item, work);
	work->is_from_end = work->start_ns >= item->end_ns - NEAR_END_NS || item->is_full;
	double lag_ns = work->start_ns - (work->is_from_end ? item->end_ns : item->start_ns);
	double stream_lag_ns = before ? work->start_ns - before->end_ns : INFINITY;
	work->first_dependency = graph->dependency_count;
	graph->edges += 1 + (before != NULL);
	graph->against_order += stream_lag_ns < -ROUNDING_NS;
	graph->against_order += work->start_ns < item->start_ns - ROUNDING_NS;
	bind_events(bind, item, work);
	bind_other_stream(bind, work, work->start_ns - explained_start(graph, item, work, before, lag_ns),
	                  stream_lag_ns);
	choose_bound(graph, work, lag_ns, stream_lag_ns);
	bind_blocking(bind, item, work);
	bind->last[work->stream] = item->work;
	bind->launched[work->stream]++;
}

/* ---- waits ---- */

/* Returns the work that ended last, of those launched last on each stream; REPLAY_NONE: none. */
static uint32_t last_ended(const struct bind *bind, double from_ns, double until_ns)
{
	const struct replay_graph *graph = bind->graph;
	uint32_t found = REPLAY_NONE;

	for (uint32_t s = 0; s < graph->stream_count; s++) {
		uint32_t work = bind->last[s];

		if (work != REPLAY_NONE && graph->works[work].end_ns > from_ns &&
		    graph->works[work].end_ns <= until_ns &&
		    (found == REPLAY_NONE || graph->works[work].end_ns > graph->works[found].end_ns))
			found = work;
	}
	return found;
}

/* The row of a wait does not say which stream it is: that of a copy right before it, the one whose last work ended in
 * it, or the one with most works. */
static uint32_t stream_waited_for(const struct bind *bind, const struct replay_item *item)
{
	const struct replay_graph *graph = bind->graph;
	const struct replay_item *before = item->follows == REPLAY_NONE ? NULL : &graph->items[item->follows];
	uint32_t most = REPLAY_NONE;

	if (before && before->work != REPLAY_NONE && before->thread == item->thread &&
	    graph->works[before->work].kind == SPAN_MEMCPY)
		return before->work;
	uint32_t near = last_ended(bind, item->start_ns, item->end_ns + ROUNDING_NS);
	if (near != REPLAY_NONE)
		return near;
	for (uint32_t s = 0; s < graph->stream_count; s++)
		if (bind->last[s] != REPLAY_NONE &&
		    (most == REPLAY_NONE || graph->streams[s].count > graph->streams[graph->works[most].stream].count))
			most = bind->last[s];
	return most;
}

static uint32_t event_waited_for(const struct bind *bind, const struct replay_item *item)
{
	const struct replay_graph *graph = bind->graph;
	uint32_t found = REPLAY_NONE;

	for (uint32_t s = 0; s < graph->stream_count; s++) {
		const struct replay_stream *stream = &graph->streams[s];
		uint32_t until = stream->before + bind->launched[s];
		uint32_t from = until > NEWEST_WORKS ? until - NEWEST_WORKS : 0;

		for (uint32_t k = from; k < until; k++) {
			double end_ns = graph->works[stream->works[k]].end_ns;

			if (end_ns > item->start_ns && end_ns <= item->end_ns + ROUNDING_NS &&
			    (found == REPLAY_NONE || end_ns > graph->works[found].end_ns))
				found = stream->works[k];
		}
	}
	return found;
}

static void bind_wait(struct bind *bind, struct replay_item *item)
{
	struct replay_graph *graph = bind->graph;
	uint32_t work = item->kind == REPLAY_WAIT_ALL      ? last_ended(bind, -INFINITY, INFINITY)
	                : item->kind == REPLAY_WAIT_STREAM ? stream_waited_for(bind, item)
	                                                   : event_waited_for(bind, item);

	if (work == REPLAY_NONE)
		return;
	graph->edges++;
	graph->waits++;
	double end_ns = graph->works[work].end_ns;
	if (end_ns > item->end_ns + SAME_NS) {
		graph->against_order++;
		graph->waits_against++;
		return;
	}
	item->has_target = true;
	item->target = item->kind == REPLAY_WAIT_STREAM ? graph->works[work].stream : work;
	item->after_ns = end_ns > item->start_ns ? item->end_ns - end_ns : fmin(item->own_ns, 10e3);
	if (end_ns > item->start_ns)
		item->own_ns = fmin(item->own_ns, 5e3);
}

/* ---- batches ---- */

static double batch_ns(const struct replay_graph *graph, uint32_t item)
{
	return graph->items[item].end_ns - graph->items[item].start_ns;
}

/* Returns the time of a batch that is ready: the fifth of all that take least. One alone may be quicker by chance. */
static double quick_batch_ns(const struct replay_graph *graph, const uint32_t *batches, uint32_t count)
{
	double *values = memory_resize(NULL, count + 1, sizeof(*values)), quick_ns = INFINITY;

	for (uint32_t k = 0; k < count; k++)
		values[k] = batch_ns(graph, batches[k]);
	if (count)
		quick_ns = quantile_within(values, count, QUICK_PART);
	free(values);
	return quick_ns;
}

/* Returns true if late batches are so many, and waits for them so long, that the loader sets the pace. */
static bool is_loader_slow(const struct replay_graph *graph, const uint32_t *batches, uint32_t count,
                           const uint32_t *late, uint32_t late_count)
{
	double sum_ns = 0;

	for (uint32_t j = 0; j < late_count; j++)
		sum_ns += batch_ns(graph, batches[late[j]]);
	return late_count >= 0.2 * count && sum_ns >= SLOW_LOADER * graph->steps[graph->step_count - 1].end_ns;
}

/* A late batch is ready some time after the late batch before it, or after the eighth batch before. If a fifth of all
 * are late in a trace, the loader sets the pace: then all of them count. Our own recordings show which were ready; where
 * the loader does not set the pace, a late one has a reason of its own. */
static void bind_batches(struct replay_graph *graph)
{
	uint32_t *batches = memory_resize(NULL, graph->item_count, sizeof(*batches)), count = 0;
	uint32_t *late = memory_resize(NULL, graph->item_count, sizeof(*late)), late_count = 0;
	double whole_ns = graph->steps[graph->step_count - 1].end_ns, step_ns = whole_ns / graph->step_count;

	for (uint32_t i = 0; i < graph->item_count; i++)
		if (graph->items[i].kind == REPLAY_BATCH)
			batches[count++] = i;
	/* our own recordings know from their begin to their end what a wait is */
	double most_ns = graph->is_recorded ? MOST_HANDOVER_NS : fmax(MOST_HANDOVER_NS, 0.04 * step_ns);
	graph->handover_ns = fmin(most_ns, quick_batch_ns(graph, batches, count));
	for (uint32_t k = 0; k < count; k++)
		if (batch_ns(graph, batches[k]) > graph->handover_ns + fmax(100e3, 0.01 * step_ns))
			late[late_count++] = k;
	if (late_count >= 0.2 * count && !graph->is_recorded)
		for (late_count = 0; late_count < count; late_count++)
			late[late_count] = late_count;
	if (graph->is_recorded && !is_loader_slow(graph, batches, count, late, late_count))
		late_count = 0;
	for (uint32_t j = 0; j < late_count; j++) { /* the first one waits for the last one of the turn before */
		int64_t k = late[j], other = j ? (int64_t)late[j - 1] : (int64_t)late[late_count - 1] - count;

		other = other < k - (int64_t)LATE_BATCHES ? k - (int64_t)LATE_BATCHES : other;
		graph->items[batches[k]].is_late = true;
		if (other < -(int64_t)count || (other + count) % count == k)
			continue;
		struct replay_item *item = &graph->items[batches[k]];
		item->has_target = true;
		item->target = batches[(other + count) % count];
		item->after_ns = item->end_ns - graph->items[item->target].end_ns +
		                 (other < 0 ? whole_ns + graph->between_ns : 0);
		graph->edges++;
	}
	free(batches);
	free(late);
}

/* ---- meetings of ranks ---- */

/* Sets how long the thread waits for other ranks in the step before each meeting. In steps without operators that is not
 * known, so it is the mean of the others. */
static void bind_meetings(struct replay_graph *graph)
{
	const struct replay_thread *thread = &graph->threads[graph->main_thread];
	double sum_ns = 0;
	uint32_t known = 0, at = 0;

	for (uint32_t i = 0; i < graph->item_count; i++) {
		struct replay_item *item = &graph->items[i];

		if (item->kind != REPLAY_MEET || !graph->steps[item->step].has_operators)
			continue;
		for (item->own_ns = 0;
		     at < thread->waits.count && thread->waits.list[at].start_ns < graph->steps[item->step].end_ns;
		     at++)
			if (thread->waits.list[at].start_ns >= graph->steps[item->step].start_ns)
				item->own_ns += thread->waits.list[at].end_ns - thread->waits.list[at].start_ns;
		sum_ns += item->own_ns;
		known++;
	}
	for (uint32_t i = 0; i < graph->item_count; i++) {
		struct replay_item *item = &graph->items[i];
		const struct replay_step *step = &graph->steps[item->step];

		if (item->kind == REPLAY_MEET && !step->has_operators)
			item->own_ns = known ? fmin(sum_ns / known, MOST_WAITING * (step->end_ns - step->start_ns)) : 0;
	}
}

/* ---- the whole ---- */

static double mean_between(const struct replay_graph *graph)
{
	double sum_ns = 0;

	for (uint32_t i = 0; i + 1 < graph->step_count; i++)
		sum_ns += graph->steps[i + 1].start_ns - graph->steps[i].end_ns;
	return graph->step_count > 1 ? sum_ns / (graph->step_count - 1) : 0;
}

/* How long the devices had nothing to do when the late batch came. */
static double exposed_by(const struct bind *bind, const struct replay_item *item)
{
	uint32_t work = last_ended(bind, -INFINITY, INFINITY);
	double since_ns = work == REPLAY_NONE ? item->start_ns : fmax(item->start_ns, bind->graph->works[work].end_ns);

	return fmax(0, item->end_ns - since_ns);
}

static void bind_item(struct bind *bind, struct replay_item *item)
{
	if (item->kind == REPLAY_MEET)
		return;
	item->own_ns = item->end_ns - item->start_ns;
	if (item->work != REPLAY_NONE)
		bind_launch(bind, item);
	else if (item->is_late)
		item->exposed_ns = exposed_by(bind, item);
	else if (item->kind == REPLAY_STREAM_WAIT)
		bind->is_waiting[item->thread] = true;
	else if (item->kind == REPLAY_WAIT_ALL || item->kind == REPLAY_WAIT_STREAM || item->kind == REPLAY_WAIT_EVENT)
		bind_wait(bind, item);
}

void replay_bind(struct replay_graph *graph)
{
	struct bind bind = {.graph = graph};

	graph->between_ns = mean_between(graph);
	usual_find(&bind.usual, graph);
	bind_batches(graph);
	bind_meetings(graph);
	bind.last = memory_resize(NULL, graph->stream_count + 1, sizeof(*bind.last));
	bind.launched = memory_resize(NULL, graph->stream_count + 1, sizeof(*bind.launched));
	bind.is_waiting = memory_resize(NULL, graph->thread_count, sizeof(*bind.is_waiting));
	for (uint32_t s = 0; s < graph->stream_count; s++) {
		const struct replay_stream *stream = &graph->streams[s];

		bind.last[s] = stream->before ? stream->works[stream->before - 1] : REPLAY_NONE;
		bind.launched[s] = 0;
	}
	for (uint32_t t = 0; t < graph->thread_count; t++)
		bind.is_waiting[t] = false;
	for (uint32_t i = 0; i < graph->item_count; i++)
		bind_item(&bind, &graph->items[i]);
	usual_release(&bind.usual);
	free(bind.last);
	free(bind.launched);
	free(bind.is_waiting);
}
