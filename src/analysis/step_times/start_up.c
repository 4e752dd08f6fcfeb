/* SPDX-License-Identifier: Apache-2.0
 *
 * start_up.c: see the header.
 */
#include "analysis/step_times/start_up.h"

#include "base/memory.h"
#include "base/statistics.h"

#include <stdlib.h>

/* The job's steps that are the program. */
struct steady {
	const struct job_step **steps;
	uint32_t count;
};

static void take_steps(struct steady *steady, const struct step_times *times)
{
	steady->steps = memory_resize(NULL, (size_t)times->job_count + 1, sizeof(*steady->steps));
	steady->count = 0;
	for (uint32_t i = 0; i < times->job_count; i++)
		if (times->job[i].is_program)
			steady->steps[steady->count++] = &times->job[i];
}

static double median(const struct steady *steady, uint32_t first)
{
	uint32_t count = steady->count - first;
	double *values = memory_resize(NULL, (size_t)count + 1, sizeof(*values)), result;

	for (uint32_t i = 0; i < count; i++)
		values[i] = steady->steps[first + i]->length_ns;
	result = quantile_within(values, count, 0.5);
	free(values);
	return result;
}

static bool start_up_has_rising_numbers(const struct step_times *times)
{
	for (uint32_t i = 1; i < times->job_count; i++)
		if (times->job[i].number <= times->job[i - 1].number)
			return false;
	return times->job_count;
}

/* Finds the phase in which the steps of the start-up spend most time, if phases are known for all of them. */
static void find_phase(struct start_up *found, const struct steady *steady)
{
	found->has_phases = true;
	for (uint32_t i = 0; i < found->count; i++)
		found->has_phases &= steady->steps[i]->has_phases;
	for (int phase = 0; phase < PHASE_COUNT; phase++) {
		double phase_ns = 0;

		for (uint32_t i = 0; i < found->count; i++)
			phase_ns += steady->steps[i]->phase_ns[phase] / found->count;
		if (found->has_phases && phase_ns > found->phase_ns)
			found->phase = phase, found->phase_ns = phase_ns;
	}
}

static void find_slow(struct start_up *found, const struct steady *steady)
{
	double limit_ns = START_UP_TIMES * median(steady, steady->count / 2), sum_ns = 0;

	while (found->count < steady->count / 4 && steady->steps[found->count]->length_ns > limit_ns)
		sum_ns += steady->steps[found->count++]->length_ns;
	if (!found->count)
		return;
	found->last = steady->steps[found->count - 1]->number;
	found->first_steady = steady->steps[found->count]->number;
	found->mean_ns = sum_ns / found->count;
	found->rest_ns = median(steady, found->count);
	find_phase(found, steady);
}

struct start_up start_up_find(const struct step_times *times)
{
	struct start_up found = {0};
	struct steady steady;

	if (!start_up_has_rising_numbers(times))
		return found;
	take_steps(&steady, times);
	if (steady.count)
		find_slow(&found, &steady);
	found.first = times->job[0].number; /* also leaves out other steps before and between them */
	free(steady.steps);
	return found;
}
