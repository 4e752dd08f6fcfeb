/* SPDX-License-Identifier: Apache-2.0
 *
 * whole_steps.c: see the header. Counts launches, operators and guessed times in each step, then compares the steps.
 */
#include "analysis/step_times/whole_steps.h"

#include "analysis/devices/device_work.h"
#include "analysis/shared/intervals.h"
#include "base/lower_bound.h"
#include "base/memory.h"
#include "model/device_names.h"
#include "model/name_classes.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOST_SHARE 0.05
#define OTHER_SHARE 0.5 /* steps of other sizes may do another kind of work */
#define SIZE_RATIO 1.1  /* between neighbouring size classes of steps */
#define SIZES 512

struct whole_steps_count {
	uint32_t operators, calls, alone;
	bool is_guessed; /* how long devices worked is partly a guess */
};

struct whole_steps_counting {
	const struct model *model;
	const struct launches *launches;
	struct name_classes launching;
	bool **has_work;                 /* by track and row: calls whose device work is in the trace */
	bool is_damaged;                 /* events or work were lost */
	struct whole_steps_count *steps; /* by step of the model; last: spans outside steps, guesses in processes */
	int64_t first_ns, last_ns, last_call_ns; /* starts of operators; of calls whose work is in the trace */
};

static void *zeroed(size_t count, size_t bytes)
{
	return memset(memory_resize(NULL, count + 1, bytes), 0, (count + 1) * bytes);
}

static bool has_lost_events(const struct model *model)
{
	for (uint32_t i = 0; i < model->ledger_count; i++)
		if (ledger_is_loss(model->ledger[i].kind))
			return true;
	return false;
}

/* The profiler may also lose kernels without reporting it. */
static bool has_lost_work(const struct model *model, const struct launches *launches)
{
	return (double)launches_without_work(model, launches) > LOST_SHARE * (double)launches->work_count;
}

/* ---- counting ---- */

static uint8_t whole_steps_classify(const char *name)
{
	return is_launching_call(name);
}

static void mark_calls(struct whole_steps_counting *counting)
{
	const struct model *model = counting->model;

	counting->has_work = zeroed(model->tracks_count, sizeof(*counting->has_work));
	for (uint32_t track = 0; track < model->tracks_count; track++) {
		for (uint32_t row = 0; row < model->tracks[track]->span_count; row++) {
			const struct launch *launch = launches_of(counting->launches, track, row);
			bool **marks;

			if (!launch)
				break;
			if (launch->track == MODEL_NONE)
				continue;
			marks = &counting->has_work[launch->track];
			if (!*marks)
				*marks = zeroed(model->tracks[launch->track]->span_count, sizeof(**marks));
			(*marks)[launch->row] = true;
		}
	}
}

static void count_span(struct whole_steps_counting *counting, uint32_t track, const struct span_chunk *chunk,
                       uint32_t i)
{
	assert(chunk->step[i] < (int64_t)counting->model->steps_count);
	struct whole_steps_count
		*step = &counting->steps[chunk->step[i] < 0 ? counting->model->steps_count : (uint32_t)chunk->step[i]];
	bool has_work;

	if (chunk->kind[i] == SPAN_OP) {
		step->operators++;
		counting->first_ns = chunk->start_ns[i] < counting->first_ns ? chunk->start_ns[i] : counting->first_ns;
		counting->last_ns = chunk->start_ns[i] > counting->last_ns ? chunk->start_ns[i] : counting->last_ns;
	}
	if (chunk->kind[i] != SPAN_RUNTIME || !span_correlation(chunk, i) ||
	    !name_class(&counting->launching, counting->model, chunk->name[i]))
		return;
	has_work = counting->has_work[track] && counting->has_work[track][chunk->first_row + i];
	step->calls++;
	step->alone += !has_work;
	if (has_work && chunk->start_ns[i] > counting->last_call_ns)
		counting->last_call_ns = chunk->start_ns[i];
}

static void count_all(struct whole_steps_counting *counting)
{
	const struct model *model = counting->model;

	counting->first_ns = INT64_MAX;
	counting->last_ns = counting->last_call_ns = INT64_MIN;
	mark_calls(counting);
	for (uint32_t number = 0; number < model->tracks_count; number++) {
		const struct track *track = model->tracks[number];

		for (uint32_t c = 0; c < track->chunk_count; c++) {
			for (uint32_t i = 0; i < track->chunks[c]->count; i++)
				count_span(counting, number, track->chunks[c], i);
			model_chunk_done(model, track->chunks[c]);
		}
	}
}

/* ---- guesses ---- */

/* Returns the latest end of work that is the last on its stream and has no recorded end. It is the end of the step,
 * because work rarely outlives its step. */
static int64_t last_end(const struct model *model, uint32_t process, int64_t start_ns)
{
	const struct model_step *step = step_times_step_at(model, process, start_ns);

	if (!model->steps_count)
		return model->processes[process].last_ns;
	return step ? step->end_ns : start_ns;
}

/* Adds the longest possible times of work without a recorded end: until the next work of its stream, where the model
 * ends it, too. */
static void add_guesses(struct intervals *guesses, const struct model *model, uint32_t number)
{
	const struct track *track = model->tracks[number];
	struct intervals own = {0}, both = {0};
	int64_t open_ns = INT64_MAX; /* start of the last work if its end is unknown; INT64_MAX otherwise */

	intervals_live_in(&own, model->storage);
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			if (!span_is_device_work(chunk->kind[i]))
				continue;
			open_ns = span_is_timed(chunk->flags[i]) ? INT64_MAX : chunk->start_ns[i];
			if (open_ns != INT64_MAX)
				intervals_add(&own, open_ns, open_ns + chunk->dur_ns[i]);
		}
		model_chunk_done(model, chunk);
	}
	if (open_ns != INT64_MAX)
		intervals_add(&own, open_ns, last_end(model, track->process, open_ns));
	if (own.count) {
		intervals_join(&both, guesses, &own);
		intervals_release(guesses);
		*guesses = both;
	}
	intervals_release(&own);
}

static bool is_guessed(const struct intervals *guesses, int64_t start_ns, int64_t end_ns)
{
	return (double)intervals_within(guesses, start_ns, end_ns) >
	       LOST_SHARE * (double)intervals_length(start_ns, end_ns);
}

/* Marks the steps of the process with guessed times, and the last entry if the whole process has them. */
static bool mark_guessed(struct whole_steps_counting *counting, uint32_t number, const struct intervals *guesses)
{
	const struct model *model = counting->model;
	const struct process *process = &model->processes[number];
	bool has_any = is_guessed(guesses, process->first_ns, process->last_ns);

	counting->steps[model->steps_count].is_guessed |= has_any;
	for (uint32_t i = 0; i < model->steps_count; i++) {
		const struct model_step *step = &model->steps[i];

		if (step->process != number)
			continue;
		counting->steps[i].is_guessed = is_guessed(guesses, step->start_ns, step->end_ns);
		has_any |= counting->steps[i].is_guessed;
	}
	return has_any;
}

static bool find_guesses(struct whole_steps_counting *counting)
{
	const struct model *model = counting->model;
	struct intervals *guesses = zeroed(model->processes_count, sizeof(*guesses)); /* by process */
	bool has_any = false;

	for (uint32_t track = 0; track < model->tracks_count; track++)
		if (model->tracks[track]->kind == TRACK_DEVICE)
			add_guesses(&guesses[model->tracks[track]->process], model, track);
	for (uint32_t process = 0; process < model->processes_count; process++) {
		if (guesses[process].count)
			has_any |= mark_guessed(counting, process, &guesses[process]);
		intervals_release(&guesses[process]);
	}
	free(guesses);
	return has_any;
}

static void counting_release(struct whole_steps_counting *counting)
{
	for (uint32_t track = 0; counting->has_work && track < counting->model->tracks_count; track++)
		free(counting->has_work[track]);
	free(counting->has_work);
	free(counting->steps);
	name_classes_release(&counting->launching);
}

/* ---- comparing steps ---- */

/* The most launches per operator among the steps of each size. */
struct usual {
	double of_size[SIZES], of_any;
};

static int size_of(const struct whole_steps_count *step)
{
	return (int)(log(step->operators + 1.0) / log(SIZE_RATIO)) + 1; /* less than 240 */
}

static double density(const struct whole_steps_count *step)
{
	return (step->calls - step->alone) / (step->operators + 1.0);
}

static struct usual find_usual(const struct whole_steps_counting *counting)
{
	struct usual usual = {.of_any = 0};

	for (uint32_t i = 0; i < counting->model->steps_count; i++) {
		double *most = &usual.of_size[size_of(&counting->steps[i])];

		*most = fmax(*most, density(&counting->steps[i]));
		usual.of_any = fmax(usual.of_any, *most);
	}
	return usual;
}

static bool whole_steps_is_whole(const struct whole_steps_count *step, const struct usual *usual)
{
	int size = size_of(step);
	double most = usual->of_size[size];

	most = fmax(most, fmax(usual->of_size[size - 1], usual->of_size[size + 1]));
	return step->alone <= LOST_SHARE * step->calls && density(step) >= (1 - LOST_SHARE) * most &&
	       density(step) >= OTHER_SHARE * usual->of_any;
}

/* Returns true if the loss starts in this step: the next step has no launches, or this is the last step of its process
 * with fewer operators than the step before. */
static bool is_torn(const struct whole_steps_counting *counting, const struct usual *usual, uint32_t i)
{
	const struct model_step *steps = counting->model->steps;
	const struct whole_steps_count *counts = counting->steps;

	if (i + 1 < counting->model->steps_count && !steps[i + 1].has_detail)
		return false;
	if (i + 1 < counting->model->steps_count && steps[i + 1].process == steps[i].process)
		return density(&counts[i + 1]) == 0 && usual->of_any > 0;
	return i > 0 && steps[i - 1].process == steps[i].process &&
	       counts[i].operators < (1 - LOST_SHARE) * counts[i - 1].operators;
}

/* Returns, by step of the job in the order of the numbers, whether all ranks have the whole step. */
static bool *find_whole(struct whole_steps *found, const struct whole_steps_counting *counting,
                        const struct step_times *times)
{
	const struct usual usual = find_usual(counting);
	bool *whole = zeroed(times->job_count, sizeof(*whole));

	memset(whole, true, times->job_count * sizeof(*whole));
	for (uint32_t i = 0; i < times->count; i++) {
		const struct whole_steps_count *step = &counting->steps[i];
		int64_t number = counting->model->steps[i].number;
		size_t k = LOWER_BOUND(times->job, times->job_count, job, job->number < number);
		bool is_lost = counting->is_damaged && counting->model->steps[i].has_detail &&
		               (!whole_steps_is_whole(step, &usual) || is_torn(counting, &usual, i));

		if (k == times->job_count || times->job[k].number != number || !times->steps[i].is_complete)
			continue;
		whole[k] &= !is_lost && !step->is_guessed;
		found->lost_work |= is_lost;
		found->lost_durations |= step->is_guessed;
	}
	return whole;
}

/* If numbers repeat, they cannot select steps. */
static bool whole_steps_has_rising_numbers(const struct step_times *times)
{
	for (uint32_t i = 1; i < times->job_count; i++)
		if (times->job[i].number <= times->job[i - 1].number)
			return false;
	return true;
}

/* Finds the longest run of whole steps; the first one if several are equally long. */
static void whole_steps_choose(struct whole_steps *found, const struct whole_steps_counting *counting,
                               const struct step_times *times)
{
	bool *whole = find_whole(found, counting, times);
	uint32_t most = 0;

	found->count = found->lost = times->job_count;
	for (uint32_t first = 0, end; first < times->job_count; first = end) {
		for (end = first; end < times->job_count && whole[end];)
			end++;
		if (end - first > most) {
			most = end - first;
			found->first = times->job[first].number;
			found->last = times->job[end - 1].number;
		}
		end += end == first;
	}
	found->lost -= most;
	found->has_any = !found->lost || (most && whole_steps_has_rising_numbers(times));
	free(whole);
}

/* Without steps: checks whether the trace has device work up to its end. */
static void judge_without_steps(struct whole_steps *found, const struct whole_steps_counting *counting)
{
	double length_ns = (double)counting->last_ns - (double)counting->first_ns;

	found->lost_work = counting->is_damaged &&
	                   ((double)found->alone > LOST_SHARE * (double)found->calls ||
	                    (double)counting->last_ns - (double)counting->last_call_ns > LOST_SHARE * length_ns);
	found->lost_durations = counting->steps[counting->model->steps_count].is_guessed;
	found->has_any = !found->lost_work && !found->lost_durations;
}

struct whole_steps whole_steps_find(const struct model *model, const struct launches *launches,
                                    const struct step_times *times)
{
	struct whole_steps_counting counting = {
		.model = model, .launches = launches, .launching = {.classify = whole_steps_classify}};
	struct whole_steps found = {.has_any = true};
	bool is_damaged = has_lost_events(model) || has_lost_work(model, launches), has_guesses;

	counting.steps = zeroed((size_t)model->steps_count + 1, sizeof(*counting.steps));
	has_guesses = find_guesses(&counting);
	if (is_damaged)
		count_all(&counting);
	for (uint32_t i = 0; i <= model->steps_count; i++) {
		found.calls += counting.steps[i].calls;
		found.alone += counting.steps[i].alone;
	}
	counting.is_damaged = found.calls > 0;
	if ((counting.is_damaged || has_guesses) && times->job_count)
		whole_steps_choose(&found, &counting, times);
	else if (counting.is_damaged || has_guesses)
		judge_without_steps(&found, &counting);
	counting_release(&counting);
	return found;
}
