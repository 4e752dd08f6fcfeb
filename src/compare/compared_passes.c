/* SPDX-License-Identifier: Apache-2.0
 *
 * compared_passes.c: the number of forward and backward passes per step: one per batch if gradients of several batches
 * are accumulated. It shows a different division of the work even if no sizes of batches were recorded.
 */
#include "analysis/step_times/step_times.h"
#include "compare/compared.h"

#include <stepscope/stepscope.h>

#define AGREE 0.9 /* of the steps have the same number, otherwise it is not a property of the program */
#define PASSES 64 /* larger numbers are not told apart */

struct compared_passes_counting {
	const struct model *model;
	const struct step_times *times;
	uint32_t step; /* the step that contains the current phase */
	uint32_t passes;
	bool is_forward; /* a forward phase without a backward phase after it */
	size_t steps, with[PASSES + 1];
};

static void compared_passes_end_step(struct compared_passes_counting *counting)
{
	if (counting->times->steps[counting->step].is_measured) {
		counting->steps++;
		counting->with[counting->passes < PASSES ? counting->passes : PASSES]++;
	}
	counting->step++;
	counting->passes = 0;
	counting->is_forward = false;
}

static bool is_on(const struct compared_passes_counting *counting, uint32_t track)
{
	return counting->step < counting->times->count && counting->model->steps[counting->step].track == track;
}

static void on_phase(struct compared_passes_counting *counting, uint32_t track, int64_t start_ns, uint8_t phase)
{
	while (is_on(counting, track) && counting->model->steps[counting->step].end_ns <= start_ns)
		compared_passes_end_step(counting);
	if (!is_on(counting, track) || start_ns < counting->model->steps[counting->step].start_ns)
		return;
	if (phase == STEPSCOPE_PHASE_FORWARD)
		counting->is_forward = true;
	if (phase != STEPSCOPE_PHASE_BACKWARD || !counting->is_forward)
		return;
	counting->passes++;
	counting->is_forward = false;
}

static void count_track(struct compared_passes_counting *counting, uint32_t track)
{
	const struct track *spans = counting->model->tracks[track];

	for (uint32_t c = 0; c < spans->chunk_count; c++) {
		const struct span_chunk *chunk = spans->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++)
			if (chunk->kind[i] == SPAN_PHASE)
				on_phase(counting, track, chunk->start_ns[i], chunk->phase[i]);
		model_chunk_done(counting->model, chunk);
	}
	while (is_on(counting, track))
		compared_passes_end_step(counting);
}

/* Counts on the thread of the first measured step, which represents all threads. */
void compared_read_passes(struct compared_run *run, struct report *report)
{
	const struct model *model = report->model;
	struct compared_passes_counting counting = {.model = model, .times = report_step_times(report)};

	while (counting.step < counting.times->count && !counting.times->steps[counting.step].is_measured)
		counting.step++;
	if (counting.step == counting.times->count || model->steps[counting.step].track >= model->tracks_count)
		return;
	count_track(&counting, model->steps[counting.step].track);
	for (uint32_t passes = 1; passes < PASSES; passes++)
		if ((double)counting.with[passes] >= AGREE * (double)counting.steps)
			compared_run_add_number(run, FACT_WORK, COMPARED_PASSES, passes);
}
