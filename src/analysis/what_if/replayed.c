/* SPDX-License-Identifier: Apache-2.0
 *
 * replayed.c: see replayed.h.
 */
#include "analysis/what_if/replayed.h"

#include "analysis/step_times/step_times.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* The selected complete steps of the process that follow each other, from the first one on. */
static struct replay_window window_of(const struct model *model, const struct step_times *times, uint32_t process)
{
	struct replay_window window = {.process = process};

	for (uint32_t i = 0; i < model->steps_count; i++) {
		bool is_in = model->steps[i].process == process && times->steps[i].is_selected &&
		             times->steps[i].is_complete;

		if (is_in && !window.step_count)
			window.first_step = i;
		if (window.step_count && (!is_in || i != window.first_step + window.step_count))
			break;
		window.step_count += is_in;
	}
	return window;
}

static bool is_of_torch_profiler(const struct model *model)
{
	const char *format = model_meta(model, MODEL_NONE, "trace.format");

	return format && !strcmp(format, "kineto");
}

static void init(void *fold, struct analysis_context *context)
{
	struct what_if *what_if = fold;

	if (!is_of_torch_profiler(context->model)) {
		what_if->problem = "only traces of torch.profiler can be replayed";
		return;
	}
	const struct step_times *times = analysis_context_step_times(context);
	struct replay_window *windows = memory_resize(NULL, times->span_count + 1, sizeof(*windows));
	uint32_t count = 0;

	for (uint32_t i = 0; i < times->span_count; i++)
		if (times->spans[i].is_rank)
			windows[count++] = window_of(context->model, times, times->spans[i].process);
	what_if_make(what_if, context->model, analysis_context_launches(context), windows, count, true);
	free(windows);
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
