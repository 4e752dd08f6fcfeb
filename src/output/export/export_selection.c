/* SPDX-License-Identifier: Apache-2.0
 *
 * export_selection.c: selects the steps to write, each in its process and on all tracks of that process. A step covers
 * the time from its start to its end (--steps), or to the start of the next step (--max-mb).
 */
#include "analysis/step_times/step_times.h"
#include "base/compare_numbers.h"
#include "base/lower_bound.h"
#include "base/memory.h"
#include "output/export/export_common.h"

#include <stdlib.h>

static void add_interval(struct selection *selection, uint32_t process, struct step_interval interval)
{
	uint32_t count = selection->counts[process];
	struct step_interval *list = memory_resize(selection->intervals[process], count + 1, sizeof(*list));

	list[count] = interval;
	selection->intervals[process] = list;
	selection->counts[process]++;
}

static void allocate(struct selection *selection, const struct model *model)
{
	uint32_t count = model->processes_count;

	selection->process_count = count;
	selection->intervals = memory_resize(NULL, count + 1, sizeof(*selection->intervals));
	selection->counts = memory_resize(NULL, count + 1, sizeof(*selection->counts));
	for (uint32_t i = 0; i < count; i++) {
		selection->intervals[i] = NULL;
		selection->counts[i] = 0;
	}
}

void selection_init(struct selection *selection, const struct model *model, const struct export_options *options)
{
	*selection = (struct selection){0};
	if (!options->has_steps)
		return;
	allocate(selection, model);
	selection->has_range = true;
	selection->first_step = options->first_step;
	selection->last_step = options->last_step;
	for (uint32_t i = 0; i < model->steps_count; i++) { /* sorted by process, then start */
		const struct model_step *step = &model->steps[i];

		if (step->number >= options->first_step && step->number <= options->last_step)
			add_interval(selection, step->process, (struct step_interval){step->start_ns, step->end_ns});
	}
}

void selection_release(struct selection *selection)
{
	for (uint32_t i = 0; i < selection->process_count; i++)
		free(selection->intervals[i]);
	free(selection->intervals);
	free(selection->counts);
	*selection = (struct selection){0};
}

/* Leaves out every step numbered `first_dropped` or above, and everything after the start of such a step. */
static void export_selection_cut(struct selection *selection, const struct model *model, int64_t first_dropped)
{
	bool was_everything = !selection->intervals;

	if (was_everything) {
		allocate(selection, model);
		for (uint32_t i = 0; i < model->processes_count; i++)
			add_interval(selection, i, (struct step_interval){INT64_MIN, INT64_MAX});
		selection->first_step = INT64_MIN;
	}
	selection->last_step = first_dropped - 1;
	for (uint32_t i = 0; i < model->steps_count; i++) {
		const struct model_step *step = &model->steps[i];
		struct step_interval *list = selection->intervals[step->process];

		if (step->number < first_dropped)
			continue;
		for (uint32_t k = 0; k < selection->counts[step->process]; k++) {
			if (list[k].end_ns > step->start_ns)
				list[k].end_ns = step->start_ns;
			if (list[k].start_ns > list[k].end_ns)
				list[k].start_ns = list[k].end_ns;
		}
	}
}

bool selection_has(const struct selection *selection, uint32_t process, int64_t time_ns)
{
	const struct step_interval *list;
	uint32_t low;

	if (!selection->intervals)
		return true;
	list = selection->intervals[process];
	low = LOWER_BOUND(list, selection->counts[process], item, item->start_ns <= time_ns);
	return low > 0 && time_ns < list[low - 1].end_ns;
}

bool selection_has_span(const struct selection *selection, const struct model *model, uint32_t process,
                        const struct span_chunk *chunk, uint32_t index)
{
	int32_t step;

	if (!selection->intervals)
		return true;
	step = chunk->step[index];
	if (step >= 0) {
		int64_t number = model->steps[step].number;

		return number >= selection->first_step && number <= selection->last_step;
	}
	return !selection->has_range && selection_has(selection, process, chunk->start_ns[index]);
}

/* ---- bytes per step ---- */

void step_bytes_init(struct step_bytes *steps, const struct model *model)
{
	uint32_t count = model->steps_count;

	*steps = (struct step_bytes){.model = model};
	steps->numbers = memory_resize(NULL, (size_t)count + 1, sizeof(*steps->numbers));
	steps->bytes = memory_resize(NULL, (size_t)count + 1, sizeof(*steps->bytes));
	for (uint32_t i = 0; i < count; i++)
		steps->numbers[i] = model->steps[i].number;
	if (count)
		qsort(steps->numbers, count, sizeof(*steps->numbers), compare_int64);
	for (uint32_t i = 0; i < count; i++)
		if (i == 0 || steps->numbers[i] != steps->numbers[steps->count - 1])
			steps->numbers[steps->count++] = steps->numbers[i];
	for (uint32_t i = 0; i < steps->count; i++)
		steps->bytes[i] = 0;
}

void step_bytes_release(struct step_bytes *steps)
{
	free(steps->numbers);
	free(steps->bytes);
	*steps = (struct step_bytes){0};
}

void step_bytes_add(struct step_bytes *steps, uint32_t process, int64_t time_ns, uint64_t bytes)
{
	const struct model_step *step = process == MODEL_NONE ? NULL
	                                                      : step_times_step_before(steps->model, process, time_ns);
	int64_t *found;

	if (!step) {
		steps->base += bytes;
		return;
	}
	found = bsearch(&step->number, steps->numbers, steps->count, sizeof(*steps->numbers), compare_int64);
	steps->bytes[found - steps->numbers] += bytes;
}

/* Returns the bytes of all steps and base. */
static uint64_t export_selection_sum_of(const struct step_bytes *steps)
{
	uint64_t sum = steps->base;

	for (uint32_t i = 0; i < steps->count; i++)
		sum += steps->bytes[i];
	return sum;
}

bool step_bytes_fit(const struct step_bytes *steps, uint64_t max_bytes, int64_t *first_dropped, uint32_t *kept)
{
	uint64_t sum = steps->base;

	for (uint32_t i = 0; i < steps->count; i++) {
		sum += steps->bytes[i];
		if (sum > max_bytes) {
			*first_dropped = steps->numbers[i];
			*kept = i;
			return false;
		}
	}
	*kept = steps->count;
	return true;
}

void export_limit(struct step_bytes *steps, uint64_t written, struct selection *selection,
                  const struct export_options *options, struct export_result *result)
{
	uint64_t limit = (uint64_t)options->max_bytes;
	int64_t first_dropped;
	uint32_t kept;

	steps->base += written - export_selection_sum_of(steps);
	if (!step_bytes_fit(steps, limit, &first_dropped, &kept)) {
		export_selection_cut(selection, steps->model, first_dropped);
		export_note(result, "--max-mb limits the file to %u of %u steps: steps from %lld on were left out",
		            kept, steps->count, (long long)first_dropped);
		if (steps->base > limit)
			export_note(result,
			            "still larger than --max-mb: data outside steps (names, processes, time before "
			            "and after) is always written");
	} else if (written > limit) {
		export_note(result, "larger than --max-mb, but there are no steps to leave out");
	}
}

/* ---- window ---- */

static void export_selection_widen(struct export_window *window, bool *has_any, int64_t first_ns, int64_t last_ns)
{
	if (!*has_any || first_ns < window->first_ns)
		window->first_ns = first_ns;
	if (!*has_any || last_ns > window->last_ns)
		window->last_ns = last_ns;
	*has_any = true;
}

void export_window_init(struct export_window *window, const struct model *model, const struct selection *selection)
{
	bool has_any = false;

	*window = (struct export_window){0};
	for (uint32_t i = 0; i < model->processes_count; i++) {
		const struct process *process = &model->processes[i];
		uint32_t count = selection->intervals ? selection->counts[i] : 1;

		if (i == 0 || (!has_any && process->has_times))
			window->realtime_offset_ns = process->realtime_offset_ns;
		for (uint32_t k = 0; k < count && process->has_times; k++) {
			struct step_interval interval = {process->first_ns, process->last_ns};

			if (selection->intervals) {
				interval = selection->intervals[i][k];
				if (interval.start_ns < process->first_ns)
					interval.start_ns = process->first_ns;
				if (interval.end_ns > process->last_ns)
					interval.end_ns = process->last_ns;
			}
			if (interval.start_ns <= interval.end_ns)
				export_selection_widen(window, &has_any, interval.start_ns, interval.end_ns);
		}
	}
}
