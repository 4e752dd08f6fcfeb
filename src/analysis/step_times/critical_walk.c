/* SPDX-License-Identifier: Apache-2.0
 *
 * critical_walk.c: see critical_walk.h.
 */
#include "analysis/step_times/critical_walk.h"

#include "analysis/analysis_context.h"
#include "analysis/devices/stream_waits.h"
#include "base/lower_bound.h"
#include "base/memory.h"
#include "base/merge_sort.h"
#include "model/device_names.h"
#include "model/lanes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NO_WORK SIZE_MAX
#define STREAM_IDLE_NS 10000 /* a stream that was empty for longer waited for something else */

/* ---- work of devices ---- */

/* Nothing waits for work that takes no time, so the walk always goes back in time. */
static bool takes_time(const struct work *item)
{
	return item->end_ns > item->start_ns;
}

struct ending {
	int64_t end_ns;
	size_t number;
};

static int compare_endings(const void *left, const void *right)
{
	const struct ending *a = left, *b = right;

	if (a->end_ns != b->end_ns)
		return a->end_ns < b->end_ns ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

static void sort_by_end(struct critical_walk *walk)
{
	struct ending *endings = memory_resize(NULL, walk->work.count + 1, sizeof(*endings));
	size_t count = 0;

	for (size_t i = 0; i < walk->work.count; i++)
		if (takes_time(&walk->work.items[i]))
			endings[count++] = (struct ending){walk->work.items[i].end_ns, i};
	merge_sort(endings, count, sizeof(*endings), compare_endings);
	walk->by_end = memory_resize(walk->by_end, count + 1, sizeof(*walk->by_end));
	for (size_t i = 0; i < count; i++)
		walk->by_end[i] = endings[i].number;
	walk->end_count = count;
	free(endings);
}

static void find_before(struct critical_walk *walk)
{
	size_t *last = memory_resize(NULL, (size_t)walk->model->tracks_count + 1, sizeof(*last));

	for (uint32_t track = 0; track < walk->model->tracks_count; track++)
		last[track] = NO_WORK;
	walk->before = memory_resize(walk->before, walk->work.count + 1, sizeof(*walk->before));
	for (size_t i = 0; i < walk->work.count; i++) {
		const struct work *item = &walk->work.items[i];
		size_t *mine = &last[first_lane(walk->model, item->track)];

		assert(item->track < walk->model->tracks_count);

		walk->before[i] = *mine;
		if (takes_time(item) && (*mine == NO_WORK || item->end_ns >= walk->work.items[*mine].end_ns))
			*mine = i;
	}
	free(last);
}

/* Returns the work that ended last at an instant or before; NO_WORK: none ended by then. */
static size_t last_ended(const struct critical_walk *walk, int64_t time_ns)
{
	size_t low = LOWER_BOUND(walk->by_end, walk->end_count, index, walk->work.items[*index].end_ns <= time_ns);

	return low ? walk->by_end[low - 1] : NO_WORK;
}

static const struct launch *launch_of(const struct critical_walk *walk, const struct work *item)
{
	const struct launch *launch = launches_of(walk->launches, item->track, item->row);

	return launch && launch->track != MODEL_NONE ? launch : NULL;
}

/* Keeps the threads sorted by their launches, most first. If there are too many, leaves out the one with the fewest. */
static void critical_walk_add_thread(struct critical_walk *walk, uint32_t track, const uint32_t *counts)
{
	uint32_t place = walk->thread_count;

	assert(walk->thread_count <= CRITICAL_THREADS);

	if (place == CRITICAL_THREADS && counts[track] <= counts[walk->threads[--place]])
		return;
	for (; place && counts[track] > counts[walk->threads[place - 1]]; place--)
		walk->threads[place] = walk->threads[place - 1];
	walk->threads[place] = track;
	walk->thread_count += walk->thread_count < CRITICAL_THREADS;
}

static void find_threads(struct critical_walk *walk)
{
	uint32_t tracks = walk->model->tracks_count;
	uint32_t *counts = memory_resize(NULL, (size_t)tracks + 1, sizeof(*counts));

	memset(counts, 0, tracks * sizeof(*counts));
	for (size_t i = 0; i < walk->work.count; i++) {
		const struct launch *launch = launch_of(walk, &walk->work.items[i]);

		if (launch)
			counts[first_lane(walk->model, launch->track)]++;
	}
	walk->thread_count = 0;
	for (uint32_t track = 0; track < tracks; track++)
		if (counts[track])
			critical_walk_add_thread(walk, track, counts);
	free(counts);
}

static uint8_t critical_walk_classify(const char *name)
{
	return is_data_wait(name) ? PATH_DATA : is_synchronizing_call(name) ? PATH_SYNC : PATH_HOST;
}

bool critical_walk_begin(struct critical_walk *walk, struct analysis_context *context, uint32_t process)
{
	walk->model = context->model;
	walk->launches = analysis_context_launches(context);
	walk->names.classify = critical_walk_classify;
	device_work_get(&walk->work, context, process, DEVICE_ANY);
	find_before(walk);
	free(walk->waits_for);
	walk->waits_for = stream_waits_find(walk->model, walk->launches, &walk->work, process);
	sort_by_end(walk);
	find_threads(walk);
	return walk->work.count > 0;
}

void critical_walk_release(struct critical_walk *walk)
{
	device_work_release(&walk->work);
	name_classes_release(&walk->names);
	free(walk->before);
	free(walk->waits_for);
	free(walk->by_end);
	memset(walk, 0, sizeof(*walk));
}

uint32_t critical_walk_main(const struct critical_walk *walk)
{
	return walk->thread_count ? walk->threads[0] : MODEL_NONE;
}

/* ---- threads ---- */

struct doing {               /* activity of a thread right before an instant */
	uint32_t track, row; /* the innermost span, MODEL_NONE: none */
	int64_t since_ns;    /* it has done only this since then */
	enum path_part part;
	uint32_t name;
};

static enum path_part part_of_span(struct critical_walk *walk, const struct span_chunk *chunk, uint32_t i)
{
	uint8_t class = name_class(&walk->names, walk->model, chunk->name[i]);

	switch (chunk->kind[i]) {
	case SPAN_STEP:
		return PATH_OTHER;
	case SPAN_RUNTIME:
		return class == PATH_SYNC ? PATH_SYNC : PATH_RUNTIME;
	case SPAN_OP:
	case SPAN_COLLECTIVE:
		return class == PATH_DATA ? PATH_DATA : PATH_OPERATOR;
	default:
		return class == PATH_DATA ? PATH_DATA : PATH_HOST;
	}
}

/* All activity nested in a wait for a batch counts as waiting. */
static void find_data_wait(struct critical_walk *walk, struct doing *doing)
{
	uint32_t row = doing->row;

	while (row != MODEL_NONE && doing->part != PATH_DATA) {
		uint32_t i;
		const struct span_chunk *chunk = track_chunk(walk->model->tracks[doing->track], row, &i);

		if (part_of_span(walk, chunk, i) == PATH_DATA) {
			doing->part = PATH_DATA;
			doing->name = chunk->name[i];
		}
		row = chunk->parent[i];
	}
}

static uint32_t last_begun_before(const struct track *track, int64_t time_ns)
{
	uint32_t row = track_row_at(track, 0, time_ns);

	return row ? row - 1 : MODEL_NONE;
}

static struct doing lane_before(struct critical_walk *walk, uint32_t number, int64_t time_ns)
{
	const struct track *track = walk->model->tracks[number];
	struct doing doing = {.track = number, .row = last_begun_before(track, time_ns), .since_ns = INT64_MIN};

	while (doing.row != MODEL_NONE) {
		uint32_t i;
		const struct span_chunk *chunk = track_chunk(track, doing.row, &i);
		int64_t end_ns = chunk->start_ns[i] + chunk->dur_ns[i];

		if (end_ns >= time_ns) {
			doing.since_ns = chunk->start_ns[i] > doing.since_ns ? chunk->start_ns[i] : doing.since_ns;
			doing.part = part_of_span(walk, chunk, i);
			doing.name = doing.part == PATH_OTHER ? 0 : chunk->name[i];
			find_data_wait(walk, &doing);
			return doing;
		}
		doing.since_ns = end_ns > doing.since_ns ? end_ns : doing.since_ns;
		doing.row = chunk->parent[i];
	}
	doing.part = PATH_OTHER;
	return doing;
}

static bool is_working(const struct doing *doing)
{
	return doing->part != PATH_HOST && doing->part != PATH_OTHER;
}

/* Looks at all lanes of the thread: spans that cross are in different lanes. */
static struct doing doing_before(struct critical_walk *walk, uint32_t first, int64_t time_ns)
{
	struct doing found = lane_before(walk, first, time_ns);

	for (uint32_t lane = first + 1; lane < walk->model->tracks_count && first_lane(walk->model, lane) == first;
	     lane++) {
		struct doing other = lane_before(walk, lane, time_ns);
		int64_t since_ns = other.since_ns > found.since_ns ? other.since_ns : found.since_ns;

		if (other.row != MODEL_NONE && (found.row == MODEL_NONE || found.part == PATH_OTHER ||
		                                (is_working(&other) && !is_working(&found))))
			found = other;
		found.since_ns = since_ns;
	}
	return found;
}

/* ---- the walk ---- */

struct position {
	uint32_t thread; /* the path is on it while work is NO_WORK */
	size_t work;
	int64_t time_ns;
};

struct critical_run {
	struct critical_walk *walk;
	uint32_t main_thread;
	int64_t start_ns;
	use_piece use;
	void *context;
	struct position at;
};

/* Adds the piece from to_ns to the current position, and moves there. to_ns is not later than the position. */
static void go_back(struct critical_run *run, int64_t to_ns, enum path_part part, uint32_t name)
{
	struct path_piece piece = {part, name, to_ns > run->start_ns ? to_ns : run->start_ns, run->at.time_ns};

	if (piece.start_ns >= piece.end_ns)
		return;
	run->use(run->context, &piece);
	run->at.time_ns = piece.start_ns;
}

static uint32_t critical_walk_name_of(const struct model *model, uint32_t track, uint32_t row)
{
	uint32_t i;
	const struct span_chunk *chunk = track_chunk(model->tracks[track], row, &i);

	return chunk->name[i];
}

/* Returns the work that delayed the start of this one after its launch; NO_WORK: it waited for its launch. */
static size_t work_waited_for(const struct critical_walk *walk, const struct work *item, size_t number,
                              int64_t launch_ns)
{
	size_t before = walk->before[number], last;
	int64_t before_ns = before == NO_WORK ? INT64_MIN : walk->work.items[before].end_ns;
	size_t other = walk->waits_for ? walk->waits_for[number] : NO_WORK;
	int64_t other_ns = other == NO_WORK || !takes_time(&walk->work.items[other]) ? INT64_MIN
	                                                                             : walk->work.items[other].end_ns;

	/* a wait that the program issued is better evidence than a guess */
	if (other_ns > launch_ns && other_ns >= before_ns && other_ns <= item->start_ns)
		return other;
	if (before_ns > launch_ns && item->start_ns - before_ns <= STREAM_IDLE_NS)
		return before;
	last = last_ended(walk, item->start_ns);
	if (last != NO_WORK && last != number && walk->work.items[last].end_ns > launch_ns)
		return last;
	return before_ns > launch_ns ? before : NO_WORK;
}

static void pass_work(struct critical_run *run)
{
	const struct critical_walk *walk = run->walk;
	size_t number = run->at.work, before;
	const struct work *item = &walk->work.items[number];
	const struct launch *launch = launch_of(walk, item);
	uint32_t name = critical_walk_name_of(walk->model, item->track, item->row), call = 0, i;
	int64_t launch_ns = INT64_MIN;

	go_back(run, item->start_ns,
	        item->class == WORK_COMPUTE         ? PATH_COMPUTE
	        : item->class == WORK_COMMUNICATION ? PATH_COMMUNICATION
	                                            : PATH_COPY,
	        name);
	if (launch) {
		const struct span_chunk *chunk = track_chunk(walk->model->tracks[launch->track], launch->row, &i);

		launch_ns = chunk->start_ns[i];
		call = launch->operation != MODEL_NONE
		               ? critical_walk_name_of(walk->model, launch->track, launch->operation)
		               : chunk->name[i];
	}
	before = work_waited_for(walk, item, number, launch_ns);
	if (before != NO_WORK) {
		go_back(run, walk->work.items[before].end_ns, PATH_QUEUED, name);
		run->at.work = before;
		return;
	}
	run->at.work = NO_WORK;
	run->at.thread = launch ? first_lane(walk->model, launch->track) : run->main_thread;
	if (launch)
		go_back(run, launch_ns, PATH_LAUNCH, call);
}

/* Returns the work that a call waits for: for a synchronization the work that ended last in it, for a copy the copy. */
static size_t work_of_call(const struct critical_walk *walk, const struct doing *doing, int64_t time_ns)
{
	size_t last = last_ended(walk, time_ns);
	uint32_t i;
	const struct span_chunk *chunk = track_chunk(walk->model->tracks[doing->track], doing->row, &i);
	int64_t start_ns = chunk->start_ns[i];

	for (; last != NO_WORK && doing->part != PATH_SYNC; last = NO_WORK) {
		const struct work *item = &walk->work.items[last];
		const struct launch *launch = launch_of(walk, item);

		if (item->class == WORK_COPY && launch && launch->track == doing->track && launch->row == doing->row)
			break;
	}
	return last != NO_WORK && walk->work.items[last].end_ns > start_ns ? last : NO_WORK;
}

/* Returns the activity right before the instant: of the path's thread, otherwise of the main thread, otherwise of
 * another thread that launches work. */
static struct doing choose_thread(struct critical_run *run)
{
	struct critical_walk *walk = run->walk;
	struct doing own = doing_before(walk, run->at.thread, run->at.time_ns), main;

	if (is_working(&own))
		return own;
	main = run->at.thread == run->main_thread ? own : doing_before(walk, run->main_thread, run->at.time_ns);
	if (is_working(&main))
		return main;
	for (uint32_t n = 0; n < walk->thread_count; n++) {
		struct doing other;

		if (walk->threads[n] == run->main_thread || walk->threads[n] == run->at.thread)
			continue;
		other = doing_before(walk, walk->threads[n], run->at.time_ns);
		if (!is_working(&other))
			continue;
		other.since_ns = main.since_ns > other.since_ns ? main.since_ns : other.since_ns;
		return other;
	}
	/* another thread may start work in the middle of this activity */
	for (uint32_t n = 0; n < walk->thread_count; n++) {
		struct doing other = doing_before(walk, walk->threads[n], run->at.time_ns);

		main.since_ns = other.since_ns > main.since_ns ? other.since_ns : main.since_ns;
	}
	return main;
}

static void pass_thread(struct critical_run *run)
{
	struct doing doing = choose_thread(run);
	size_t work;

	run->at.thread = first_lane(run->walk->model, doing.track);
	if (doing.part == PATH_SYNC || doing.part == PATH_RUNTIME) {
		work = work_of_call(run->walk, &doing, run->at.time_ns);
		if (work != NO_WORK) {
			go_back(run, run->walk->work.items[work].end_ns, PATH_SYNC, doing.name);
			run->at.work = work;
			return;
		}
	}
	go_back(run, doing.since_ns, doing.part, doing.name);
}

void critical_walk_run(struct critical_walk *walk, uint32_t main_thread, int64_t start_ns, int64_t end_ns,
                       use_piece use, void *context)
{
	struct critical_run run = {.walk = walk, .start_ns = start_ns, .use = use, .context = context};
	size_t last = last_ended(walk, end_ns);

	run.main_thread = first_lane(walk->model, main_thread);
	run.at = (struct position){run.main_thread, NO_WORK, end_ns};
	if (last != NO_WORK && walk->work.items[last].end_ns == end_ns)
		run.at.work = last; /* the range ends with it */
	while (run.at.time_ns > start_ns) {
		if (run.at.work != NO_WORK)
			pass_work(&run);
		else
			pass_thread(&run);
	}
}
