/* SPDX-License-Identifier: Apache-2.0
 *
 * replayed.c: see replayed.h.
 */
#include "analysis/what_if/replayed.h"

#include "analysis/evidence/operator_cost.h"
#include "analysis/loader/loader_batches.h"
#include "analysis/step_times/start_up.h"
#include "analysis/step_times/step_times.h"
#include "analysis/what_if/recorded_loader.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROW_NS 150.0 /* the recorder's cost of an operator, if the run does not show it; see bench/whole_cost */
#define MOST_ROW_NS 1000.0
#define EARLY_STEPS_OF 10u /* of fewer steps the first ones count, too */

/* The selected complete steps of the process that follow each other, from the first one on. Of our own recordings it
 * leaves out the first steps: caches are empty, workers start. */
static struct replay_window window_of(const struct model *model, const struct step_times *times, uint32_t process,
                                      int64_t first_steady)
{
	struct replay_window window = {.process = process};

	for (uint32_t i = 0; i < model->steps_count; i++) {
		bool is_in = model->steps[i].process == process && times->steps[i].is_selected &&
		             times->steps[i].is_complete && model->steps[i].number >= first_steady;

		if (is_in && !window.step_count)
			window.first_step = i;
		if (window.step_count && (!is_in || i != window.first_step + window.step_count))
			break;
		window.step_count += is_in;
	}
	return window;
}

/* ---- our own recordings ---- */

static int64_t first_steady_step(const struct model *model, const struct step_times *times)
{
	struct start_up start_up = start_up_find(times);
	int64_t first = start_up.count ? start_up.first_steady : INT64_MIN;

	for (uint32_t i = 0; i < model->steps_count && times->job_count >= EARLY_STEPS_OF; i++)
		if (times->steps[i].is_early && times->steps[i].is_selected && model->steps[i].number >= first)
			first = model->steps[i].number + 1;
	return first;
}

/* Rows of operators in the steps with operators of the window, per step. */
static double rows_of_step(const struct model *model, const struct replay_window *window)
{
	uint64_t rows = 0;
	uint32_t steps = 0;

	for (uint32_t s = 0; s < window->step_count; s++) {
		const struct model_step *step = &model->steps[window->first_step + s];
		const struct track *track = model->tracks[step->track];

		if (!step->has_detail)
			continue;
		rows += track_row_at(track, 0, step->end_ns) - track_row_at(track, 0, step->start_ns);
		steps++;
	}
	return steps ? (double)rows / steps : 0;
}

static double cost_of_row(const struct model *model, const struct step_times *times, const struct replay_window *window)
{
	struct operator_cost cost = operator_cost_find(model, times, window->process);
	double rows = rows_of_step(model, window);

	if (cost.unknown || !operator_cost_is_told(cost.ratio, cost.half) || rows <= 0)
		return ROW_NS;
	return fmin(MOST_ROW_NS, fmax(0, (cost.with_ns - cost.without_ns) / rows));
}

/* Sets the waits of the steps' thread for collectives. The caller frees them. */
static struct replay_wait *take_waits(struct replay_window *window, const struct model *model,
                                      const struct step_times *times)
{
	uint32_t first, end;
	struct replay_wait *waits;

	communication_waits_of(&times->waits, model->steps[window->first_step].track, &first, &end);
	waits = memory_resize(NULL, end - first + 1, sizeof(*waits));
	for (uint32_t i = first; i < end; i++)
		waits[i - first] = (struct replay_wait){times->waits.list[i].start_ns, times->waits.list[i].end_ns};
	window->waits = waits;
	window->wait_count = end - first;
	return waits;
}

/* A program without a loader of PyTorch may load in a thread of its own, if it has another one that records. */
static bool makes_batches_beside(const struct model *model, const struct replay_window *window)
{
	uint32_t own = model->steps[window->first_step].track;

	if (window->recording.is_of_torch)
		return loader_has_workers(model);
	for (uint32_t i = 0; i < model->tracks_count; i++)
		if (i != own && model->tracks[i]->process == window->process &&
		    model->tracks[i]->kind == TRACK_THREAD && model->tracks[i]->span_count)
			return true;
	return false;
}

static bool trains_on_device(const struct model *model, uint32_t process)
{
	char key[64];

	for (uint32_t number = 0;; number++) {
		snprintf(key, sizeof(key), "optimizer.%u.parameter_devices", number);
		const char *devices = model_meta(model, process, key);
		if (!devices)
			return false;
		if (strcmp(devices, "cpu") != 0)
			return true;
	}
}

/* Our recordings have no work of devices yet, but some programs that record use one. */
static bool uses_unrecorded_device(const struct model *model)
{
	for (uint32_t i = 0; i < model->memory_count; i++)
		if (model->memory[i].device >= 0)
			return true;
	for (uint32_t i = 0; i < model->processes_count; i++)
		if (model_meta(model, i, "device.0.name") || trains_on_device(model, i))
			return true;
	return false;
}

/* ---- the whole ---- */

/* What the windows refer to; kept until their graphs are made. */
struct windows {
	struct replay_window *list;
	struct replay_wait **waits;
	struct replay_loader *loaders;
	uint32_t count;
};

static void windows_init(struct windows *windows, uint32_t most)
{
	windows->list = memory_resize(NULL, most + 1, sizeof(*windows->list));
	windows->waits = memory_resize(NULL, most + 1, sizeof(*windows->waits));
	windows->loaders = memory_resize(NULL, most + 1, sizeof(*windows->loaders));
	windows->count = 0;
}

static void windows_release(struct windows *windows)
{
	for (uint32_t i = 0; i < windows->count; i++) {
		recorded_loader_release(&windows->loaders[i]);
		free(windows->waits[i]);
	}
	free(windows->loaders);
	free(windows->waits);
	free(windows->list);
}

static void add_replay_window(struct windows *windows, const struct replay_window *window)
{
	windows->list[windows->count] = *window;
	windows->waits[windows->count] = NULL;
	windows->loaders[windows->count++] = (struct replay_loader){0};
}

/* Fills what only our own recordings tell of the newest window. */
static void add_recording(struct windows *windows, const struct model *model, const struct step_times *times,
                          const struct recorded_batches *recorded)
{
	struct replay_window *window = &windows->list[windows->count - 1];
	struct replay_loader *loader = &windows->loaders[windows->count - 1];

	if (!window->step_count)
		return;
	window->is_recorded = true;
	window->recording.is_of_torch = model_meta(model, MODEL_NONE, "torch.version") != NULL;
	window->recording.row_ns = cost_of_row(model, times, window);
	windows->waits[windows->count - 1] = take_waits(window, model, times);
	window->loader = recorded_loader_find(loader, model, window, recorded) ? loader : NULL;
	window->recording.has_workers = window->loader ? loader->workers > 0 : makes_batches_beside(model, window);
}

/* Returns why the input cannot be replayed; NULL: it can. */
static const char *why_not(const struct model *model, bool is_of_profiler)
{
	if (is_of_profiler)
		return NULL;
	if (model_meta(model, MODEL_NONE, "trace.format"))
		return "only our own recordings and traces of torch.profiler can be replayed";
	return uses_unrecorded_device(model) ? "the program uses a device whose work was not recorded" : NULL;
}

static void find_replay_windows(struct windows *windows, const struct model *model, const struct step_times *times,
                                bool is_of_profiler)
{
	int64_t first_step = is_of_profiler ? INT64_MIN : first_steady_step(model, times);
	struct recorded_batches recorded;

	windows_init(windows, times->span_count);
	if (!is_of_profiler)
		recorded_batches_find(&recorded, model);
	for (uint32_t i = 0; i < times->span_count; i++) {
		if (!times->spans[i].is_rank)
			continue;
		struct replay_window window = window_of(model, times, times->spans[i].process, first_step);
		add_replay_window(windows, &window);
		if (!is_of_profiler)
			add_recording(windows, model, times, &recorded);
	}
	if (!is_of_profiler)
		recorded_batches_release(&recorded);
}

static void init(void *fold, struct analysis_context *context)
{
	struct what_if *what_if = fold;
	const struct model *model = context->model;
	const char *format = model_meta(model, MODEL_NONE, "trace.format");
	bool is_of_profiler = format && !strcmp(format, "kineto");
	struct windows windows;

	what_if->problem = why_not(model, is_of_profiler);
	if (what_if->problem)
		return;
	find_replay_windows(&windows, model, analysis_context_step_times(context), is_of_profiler);
	what_if_make(what_if, model, analysis_context_launches(context), windows.list, windows.count, is_of_profiler);
	windows_release(&windows);
}

static void release(void *fold)
{
	what_if_release(fold);
}

struct what_if *replayed_get(struct analysis_context *context)
{
	static const struct analysis_fold kind = {sizeof(struct what_if), init, release};

	return analysis_context_fold(context, &kind);
}
