/* SPDX-License-Identifier: Apache-2.0
 *
 * analysis_context.c: see the header.
 */
#include "analysis/analysis_context.h"

#include "analysis/devices/device_work.h"
#include "analysis/operators/flop_likeness.h"
#include "analysis/ranks/collective_calls.h"
#include "analysis/step_times/step_times.h"
#include "base/memory.h"
#include "base/time_now.h"
#include "model/launches.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct shared_fold {
	const struct analysis_fold *kind;
	void *fold;
	struct shared_fold *next;
};

int64_t analysis_cpu_clock_ns(void)
{
	return time_now_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void analysis_context_init(struct analysis_context *context, const struct model *model,
                           const struct analysis_options *options)
{
	*context = (struct analysis_context){.model = model, .options = *options};
}

static void drop_steps(struct analysis_context *context)
{
	struct shared_fold *fold = context->folds;

	while (fold) {
		struct shared_fold *next = fold->next;

		fold->kind->release(fold->fold);
		free(fold->fold);
		free(fold);
		fold = next;
	}
	context->folds = NULL;
	if (context->step_times)
		step_times_release(context->step_times);
	free(context->step_times);
	context->step_times = NULL;
}

void analysis_context_release(struct analysis_context *context)
{
	drop_steps(context);
	if (context->launches)
		launches_release(context->launches);
	if (context->collective_calls)
		collective_calls_release(context->collective_calls);
	if (context->flop_likeness)
		flop_likeness_release(context->flop_likeness);
	free(context->launches);
	free(context->collective_calls);
	free(context->flop_likeness);
	kept_devices_release(context->kept_devices);
	memset(context, 0, sizeof(*context));
}

/* Making one shared result may make another one: the nested time counts once. */
static void *begin_making(struct analysis_context *context, size_t size)
{
	if (!context->making++)
		context->making_cpu_ns = analysis_cpu_clock_ns();
	return memset(memory_resize(NULL, 1, size), 0, size);
}

static void end_making(struct analysis_context *context)
{
	assert(context->making > 0);
	if (!--context->making)
		context->shared_cpu_ns += analysis_cpu_clock_ns() - context->making_cpu_ns;
}

const struct step_times *analysis_context_step_times(struct analysis_context *context)
{
	if (!context->step_times) {
		struct step_times *times = begin_making(context, sizeof(*times));

		step_times_init(times, context);
		context->step_times = times;
		end_making(context);
	}
	return context->step_times;
}

const struct launches *analysis_context_launches(struct analysis_context *context)
{
	if (!context->launches) {
		context->launches = begin_making(context, sizeof(*context->launches));
		launches_init(context->launches, context->model);
		end_making(context);
	}
	return context->launches;
}

const struct collective_calls *analysis_context_collective_calls(struct analysis_context *context)
{
	if (!context->collective_calls) {
		context->collective_calls = begin_making(context, sizeof(*context->collective_calls));
		collective_calls_find(context->collective_calls, context->model);
		end_making(context);
	}
	return context->collective_calls;
}

const struct flop_likeness *analysis_context_flop_likeness(struct analysis_context *context)
{
	if (!context->flop_likeness) {
		context->flop_likeness = begin_making(context, sizeof(*context->flop_likeness));
		flop_likeness_init(context->flop_likeness, context->model);
		end_making(context);
	}
	return context->flop_likeness;
}

void *analysis_context_fold(struct analysis_context *context, const struct analysis_fold *kind)
{
	struct shared_fold *fold = context->folds;

	while (fold && fold->kind != kind)
		fold = fold->next;
	if (!fold) {
		fold = begin_making(context, sizeof(*fold));
		fold->kind = kind;
		fold->fold = memset(memory_resize(NULL, 1, kind->size), 0, kind->size);
		kind->init(fold->fold, context);
		fold->next = context->folds;
		context->folds = fold;
		end_making(context);
	}
	return fold->fold;
}

void analysis_context_choose_steps(struct analysis_context *context, int64_t first, int64_t last)
{
	struct model_filter *filter = &context->options.filter;

	assert(first <= last && !context->making);

	context->options.leaves_steps |= !filter->has_steps;
	filter->has_steps = true;
	filter->first_step = first;
	filter->last_step = last;
	drop_steps(context);
}
