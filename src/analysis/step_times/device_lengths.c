/* SPDX-License-Identifier: Apache-2.0
 *
 * device_lengths.c: see the header. Work counts for the step that launched it; work without a launch was launched before
 * the recording.
 */
#include "analysis/step_times/device_lengths.h"

#include "base/memory.h"
#include "base/statistics.h"

#include <stdlib.h>

#define LEAST_LATER 0.05 /* of a mean step: works end that much later than their step */
#define NEVER INT64_MIN

struct works { /* of a step: start of the first work, and end of the last */
	int64_t first_ns, last_ns;
};

struct works_of_steps {
	const struct model *model;
	struct works *of_steps;
	struct works *of_processes; /* works launched before the recording */
	uint32_t step;              /* found last: launches come nearly in order */
};

/* ---- works ---- */

static bool is_latest_before(const struct model *model, uint32_t step, uint32_t process, int64_t time_ns)
{
	const struct model_step *steps = model->steps;

	return steps[step].process == process && steps[step].start_ns <= time_ns &&
	       (step + 1 == model->steps_count || steps[step + 1].process != process ||
	        steps[step + 1].start_ns > time_ns);
}

/* Returns the works of the step that launched this one. */
static struct works *works_with(struct works_of_steps *all, const struct launch *launch, uint32_t owner)
{
	const struct model *model = all->model;
	const struct model_step *step;
	uint32_t i;

	if (!launch || launch->track == MODEL_NONE)
		return &all->of_processes[owner];
	int64_t time_ns = track_chunk(model->tracks[launch->track], launch->row, &i)->start_ns[i];
	uint32_t process = model->tracks[launch->track]->process;
	if (is_latest_before(model, all->step, process, time_ns))
		return &all->of_steps[all->step];
	step = step_times_step_before(model, process, time_ns);
	if (!step)
		return &all->of_processes[process];
	all->step = (uint32_t)(step - model->steps);
	return &all->of_steps[all->step];
}

static void take_track(struct works_of_steps *all, const struct launches *launches, uint32_t number)
{
	const struct track *track = all->model->tracks[number];

	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			int64_t start_ns = chunk->start_ns[i], end_ns = start_ns + chunk->dur_ns[i];
			struct works *works;

			if (!span_is_device_work(chunk->kind[i]) || !span_is_timed(chunk->flags[i]))
				continue;
			works = works_with(all, launches_of(launches, number, chunk->first_row + i), track->process);
			works->first_ns = start_ns < works->first_ns ? start_ns : works->first_ns;
			works->last_ns = end_ns > works->last_ns ? end_ns : works->last_ns;
		}
		model_chunk_done(all->model, chunk);
	}
}

/* ---- steps ---- */

/* Returns true if the step before was recorded, with works. */
static bool has_before(const struct works_of_steps *all, uint32_t step)
{
	const struct model_step *steps = all->model->steps;

	return step && steps[step - 1].process == steps[step].process &&
	       steps[step].number == steps[step - 1].number + 1 && all->of_steps[step - 1].last_ns != NEVER;
}

/* Returns the usual time from the end of a step's works to the first work of the next, in steps [first, end). */
static double usual_gap(const struct works_of_steps *all, uint32_t first, uint32_t end)
{
	double *gaps = memory_resize(NULL, end - first + 1, sizeof(*gaps)), gap_ns;
	size_t count = 0;

	for (uint32_t i = first; i < end; i++)
		if (has_before(all, i))
			gaps[count++] = (double)(all->of_steps[i].first_ns - all->of_steps[i - 1].last_ns);
	gap_ns = count ? quantile_within(gaps, count, 0.5) : 0;
	free(gaps);
	return gap_ns;
}

/* Returns where the device's part of the step begins. If the step before was not recorded, its works may be. Otherwise
 * this is an estimate: the usual gap lies before the first work. */
static int64_t begin_of(const struct works_of_steps *all, uint32_t step, double gap_ns)
{
	const struct model_step *steps = all->model->steps;
	bool is_first = !step || steps[step - 1].process != steps[step].process;
	int64_t queued_ns = all->of_processes[steps[step].process].last_ns;

	if (has_before(all, step))
		return all->of_steps[step - 1].last_ns;
	return is_first && queued_ns > steps[step].start_ns ? queued_ns
	                                                    : all->of_steps[step].first_ns - (int64_t)gap_ns;
}

/* Returns true if each complete step in [first, end) has device work that ends later than that of the step before, and
 * some work ends much later than its step: a queue lies between host and device. */
static bool is_queued(const struct works_of_steps *all, const struct step_times *times, uint32_t first, uint32_t end,
                      double gap_ns)
{
	int64_t sum_ns = 0, most_ns = 0;
	uint32_t count = 0;

	for (uint32_t i = first; i < end; i++) {
		int64_t later_ns = all->of_steps[i].last_ns - all->model->steps[i].end_ns;

		if (!times->steps[i].is_complete)
			continue;
		if (all->of_steps[i].last_ns == NEVER || all->of_steps[i].last_ns <= begin_of(all, i, gap_ns))
			return false;
		sum_ns += times->steps[i].dur_ns;
		most_ns = later_ns > most_ns ? later_ns : most_ns;
		count++;
	}
	return count && (double)most_ns > LEAST_LATER * (double)sum_ns / count;
}

static void set_lengths(const struct works_of_steps *all, struct step_times *times)
{
	const struct model_step *steps = all->model->steps;

	for (uint32_t first = 0, end; first < times->count; first = end) {
		double gap_ns;

		for (end = first + 1; end < times->count && steps[end].process == steps[first].process;)
			end++;
		gap_ns = usual_gap(all, first, end);
		if (!is_queued(all, times, first, end, gap_ns))
			continue;
		times->has_device_lengths = true;
		for (uint32_t i = first; i < end; i++)
			if (times->steps[i].is_complete)
				times->steps[i].length_ns = all->of_steps[i].last_ns - begin_of(all, i, gap_ns);
	}
}

static struct works *new_works(uint32_t count)
{
	struct works *works = memory_resize(NULL, (size_t)count + 1, sizeof(*works));

	for (uint32_t i = 0; i < count; i++)
		works[i] = (struct works){INT64_MAX, NEVER};
	return works;
}

void device_lengths_find(struct step_times *times, const struct model *model, const struct launches *launches)
{
	struct works_of_steps all = {.model = model};

	if (!times->count || !launches->work_count)
		return;
	all.of_steps = new_works(times->count);
	all.of_processes = new_works(model->processes_count);
	for (uint32_t t = 0; t < model->tracks_count; t++)
		if (model->tracks[t]->kind == TRACK_DEVICE)
			take_track(&all, launches, t);
	set_lengths(&all, times);
	free(all.of_steps);
	free(all.of_processes);
}
