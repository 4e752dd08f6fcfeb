/* SPDX-License-Identifier: Apache-2.0
 *
 * readings.c: see the header.
 */
#include "model/readings.h"

#include "base/lower_bound.h"
#include "base/merge_sort.h"
#include "base/storage.h"

#include <stepscope/format.h>

#define NEAR_PART 50

static int compare_readings(const void *left, const void *right)
{
	const struct thread_reading *a = left, *b = right;
	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static bool readings_is_wanted(const struct thread_reading *reading, bool of_process)
{
	return !of_process || reading->process_ns != STEPSCOPE_USE_UNKNOWN;
}

/* Returns the track's reading nearest to the time, of those with the process's CPU time if `of_process` is set. NULL:
 * there is none within `most_ns`. */
static const struct thread_reading *readings_nearest(const struct model *model, uint32_t track, int64_t time_ns,
                                                     int64_t most_ns, bool of_process)
{
	uint32_t after = LOWER_BOUND(model->readings, model->readings_count, reading,
	                             reading->track < track || (reading->track == track && reading->time_ns < time_ns));
	const struct thread_reading *best = NULL;
	for (uint32_t i = after; i < model->readings_count && model->readings[i].track == track &&
	                         model->readings[i].time_ns - time_ns <= most_ns && !best;
	     i++)
		if (readings_is_wanted(&model->readings[i], of_process))
			best = &model->readings[i];
	if (best)
		most_ns = best->time_ns - time_ns - 1;
	for (uint32_t i = after;
	     i-- > 0 && model->readings[i].track == track && time_ns - model->readings[i].time_ns <= most_ns;)
		if (readings_is_wanted(&model->readings[i], of_process))
			return &model->readings[i];
	return best;
}

/* Returns the difference of two totals, at most `most_ns`. */
static int64_t readings_difference(uint64_t from_ns, uint64_t to_ns, int64_t most_ns)
{
	uint64_t used_ns = to_ns > from_ns ? to_ns - from_ns : 0;
	return used_ns < (uint64_t)most_ns ? (int64_t)used_ns : most_ns;
}

struct thread_activity readings_between(const struct model *model, uint32_t track, int64_t start_ns, int64_t end_ns,
                                        int64_t most_ns)
{
	const struct thread_reading *from = readings_nearest(model, track, start_ns, most_ns, false);
	const struct thread_reading *to = readings_nearest(model, track, end_ns, most_ns, false);
	struct thread_activity use = {0};

	if (end_ns <= start_ns || !from || !to || from >= to)
		return use;
	use.is_known = true;
	use.cpu_ns = readings_difference(from->cpu_ns, to->cpu_ns, end_ns - start_ns);
	use.has_wait = from->wait_ns != STEPSCOPE_USE_UNKNOWN && to->wait_ns != STEPSCOPE_USE_UNKNOWN;
	if (use.has_wait)
		use.wait_ns = readings_difference(from->wait_ns, to->wait_ns, end_ns - start_ns - use.cpu_ns);
	use.sleep_ns = end_ns - start_ns - use.cpu_ns - use.wait_ns;
	return use;
}

static void fill_step(const struct model *model, struct model_step *step)
{
	int64_t most_ns = (step->end_ns - step->start_ns) / NEAR_PART;
	struct thread_activity use = readings_between(model, step->track, step->start_ns, step->end_ns, most_ns);
	if (use.is_known) {
		step->read_cpu_ns = use.cpu_ns;
		step->processor_wait_ns = use.wait_ns;
		step->readings |= STEP_READ_CPU | (use.has_wait ? STEP_READ_WAIT : 0);
	}
	const struct thread_reading *from = readings_nearest(model, step->track, step->start_ns, most_ns, true);
	const struct thread_reading *to = readings_nearest(model, step->track, step->end_ns, most_ns, true);
	if (!from || !to || from >= to)
		return;
	step->process_cpu_ns = readings_difference(from->process_ns, to->process_ns, INT64_MAX);
	step->readings |= STEP_READ_PROCESS;
}

void readings_finish(struct model *model)
{
	merge_sort_in(model->storage, model->readings, model->readings_count, sizeof *model->readings,
	              compare_readings);
	for (uint32_t i = 0; i < model->steps_count && model->readings_count; i++)
		if (!model->steps[i].is_open && model->steps[i].end_ns > model->steps[i].start_ns)
			fill_step(model, &model->steps[i]);
}
