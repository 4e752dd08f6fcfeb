/* SPDX-License-Identifier: Apache-2.0
 *
 * device_lengths.c: see the header. Work counts for the step that launched it; work without a launch was launched before
 * the recording.
 */
#include "analysis/step_times/device_lengths.h"

#include "base/memory.h"

#include <stdlib.h>

#define LEAST_LATER 0.05 /* of a mean step: works end that much later than their step */
#define NEVER INT64_MIN

struct work_ends {
	const struct model *model;
	int64_t *of_steps;     /* end of the last work, by step */
	int64_t *of_processes; /* of works launched before the recording */
	uint32_t step;         /* found last: launches come nearly in order */
};

/* ---- works ---- */

static bool is_latest_before(const struct model *model, uint32_t step, uint32_t process, int64_t time_ns)
{
	const struct model_step *steps = model->steps;

	return steps[step].process == process && steps[step].start_ns <= time_ns &&
	       (step + 1 == model->steps_count || steps[step + 1].process != process ||
	        steps[step + 1].start_ns > time_ns);
}

/* Returns the end that the work may move; NULL: it belongs to no step. */
static int64_t *end_of(struct work_ends *ends, const struct launch *launch, uint32_t owner)
{
	const struct model *model = ends->model;
	const struct model_step *step;
	uint32_t i;

	if (launch->track == MODEL_NONE)
		return &ends->of_processes[owner];
	int64_t time_ns = track_chunk(model->tracks[launch->track], launch->row, &i)->start_ns[i];
	uint32_t process = model->tracks[launch->track]->process;
	if (is_latest_before(model, ends->step, process, time_ns))
		return &ends->of_steps[ends->step];
	step = step_times_step_before(model, process, time_ns);
	if (!step)
		return &ends->of_processes[process];
	ends->step = (uint32_t)(step - model->steps);
	return &ends->of_steps[ends->step];
}

static void take_track(struct work_ends *ends, const struct launches *launches, uint32_t number)
{
	const struct track *track = ends->model->tracks[number];

	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			int64_t end_ns = chunk->start_ns[i] + chunk->dur_ns[i], *latest_ns;

			if (!span_is_device_work(chunk->kind[i]) || !span_is_timed(chunk->flags[i]))
				continue;
			latest_ns = end_of(ends, launches_of(launches, number, chunk->first_row + i), track->process);
			*latest_ns = end_ns > *latest_ns ? end_ns : *latest_ns;
		}
		model_chunk_done(ends->model, chunk);
	}
}

/* ---- steps ---- */

/* Returns where the device's part of the step begins. */
static int64_t begin_of(const struct work_ends *ends, uint32_t step, bool is_first)
{
	const struct model_step *steps = ends->model->steps;
	int64_t before_ns = is_first ? ends->of_processes[steps[step].process] : ends->of_steps[step - 1];
	bool is_next = !is_first && steps[step].number == steps[step - 1].number + 1;

	return is_next || before_ns > steps[step].start_ns ? before_ns : steps[step].start_ns;
}

/* Returns true if a queue lies between host and device in steps [first, end) of a process. Each step has work that ends
 * later than that of the step before. Some work ends much later than its step. */
static bool is_queued(const struct work_ends *ends, const struct step_times *times, uint32_t first, uint32_t end)
{
	int64_t sum_ns = 0, most_ns = 0;

	for (uint32_t i = first; i < end; i++) {
		const struct model_step *step = &ends->model->steps[i];

		if (!times->steps[i].is_complete || ends->of_steps[i] == NEVER ||
		    ends->of_steps[i] <= begin_of(ends, i, i == first))
			return false;
		sum_ns += times->steps[i].dur_ns;
		if (ends->of_steps[i] - step->end_ns > most_ns)
			most_ns = ends->of_steps[i] - step->end_ns;
	}
	return (double)most_ns > LEAST_LATER * (double)sum_ns / (end - first);
}

static void set_lengths(const struct work_ends *ends, struct step_times *times)
{
	const struct model_step *steps = ends->model->steps;

	for (uint32_t first = 0, end; first < times->count; first = end) {
		for (end = first + 1; end < times->count && steps[end].process == steps[first].process;)
			end++;
		if (!is_queued(ends, times, first, end))
			continue;
		times->has_device_lengths = true;
		for (uint32_t i = first; i < end; i++)
			times->steps[i].length_ns = ends->of_steps[i] - begin_of(ends, i, i == first);
	}
}

void device_lengths_find(struct step_times *times, const struct model *model, const struct launches *launches)
{
	struct work_ends ends = {.model = model};

	if (!times->count || !launches->work_count)
		return;
	ends.of_steps = memory_resize(NULL, times->count, sizeof(*ends.of_steps));
	ends.of_processes = memory_resize(NULL, model->processes_count, sizeof(*ends.of_processes));
	for (uint32_t i = 0; i < times->count; i++)
		ends.of_steps[i] = NEVER;
	for (uint32_t i = 0; i < model->processes_count; i++)
		ends.of_processes[i] = NEVER;
	for (uint32_t t = 0; t < model->tracks_count; t++)
		if (model->tracks[t]->kind == TRACK_DEVICE)
			take_track(&ends, launches, t);
	set_lengths(&ends, times);
	free(ends.of_steps);
	free(ends.of_processes);
}
