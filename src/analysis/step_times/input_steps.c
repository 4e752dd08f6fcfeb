/* SPDX-License-Identifier: Apache-2.0
 *
 * input_steps.c: see the header.
 */
#include "analysis/step_times/input_steps.h"

#include "analysis/step_times/step_kinds.h"
#include "base/storage.h"

#include <string.h>

static bool has_inputs(const struct step_times *times, const struct model *model, uint32_t step)
{
	return times->steps[step].is_measured && model->steps[step].has_shapes;
}

bool input_steps_are_part(const struct step_times *times, const struct model *model)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < times->count; i++)
		count += has_inputs(times, model, i);
	return count && count < step_kinds_measured(times);
}

/* Counts the job's steps in which a rank has inputs. Steps outside the job's count one by one, as if there were no
 * job. */
static uint32_t count_job(const struct step_times *own)
{
	uint32_t count = 0, *last = storage_resize(own->storage, NULL, (size_t)own->job_count + 1, sizeof(*last));

	memset(last, 0, ((size_t)own->job_count + 1) * sizeof(*last));
	for (uint32_t i = 0; i < own->count; i++) {
		uint32_t job = own->steps[i].job;

		if (!own->steps[i].is_measured || (job != MODEL_NONE && last[job]++))
			continue;
		count++;
	}
	storage_release(own->storage, last);
	return count;
}

/* Counts the job's steps for which all ranks have inputs. */
static void find_whole(struct step_times *own)
{
	const struct job_step *job = own->job;

	own->job = storage_resize(own->storage, NULL, (size_t)own->job_count + 1, sizeof(*own->job));
	memcpy(own->job, job, own->job_count * sizeof(*own->job));
	for (uint32_t i = 0; i < own->job_count; i++)
		own->job[i].measured = 0;
	for (uint32_t i = 0; i < own->count; i++)
		if (own->steps[i].is_measured && own->steps[i].job != MODEL_NONE)
			own->job[own->steps[i].job].measured++;
	own->job_whole = 0;
	for (uint32_t i = 0; i < own->job_count; i++)
		own->job_whole += own->job[i].measured == own->job[i].processes;
}

const struct step_times *input_steps_only(struct step_times *own, const struct step_times *times,
                                          const struct model *model)
{
	if (!input_steps_are_part(times, model))
		return times;
	*own = *times;
	own->steps = storage_resize(times->storage, NULL, (size_t)times->count + 1, sizeof(*own->steps));
	memcpy(own->steps, times->steps, times->count * sizeof(*own->steps));
	for (uint32_t i = 0; i < own->count; i++)
		own->steps[i].is_measured = has_inputs(times, model, i);
	own->is_of_inputs = true;
	own->job_detailed = count_job(own);
	find_whole(own);
	step_kinds_weigh(own, model);
	return own;
}

void input_steps_release(struct step_times *own)
{
	storage_release(own->storage, own->steps);
	storage_release(own->storage, own->job);
	memset(own, 0, sizeof(*own));
}
