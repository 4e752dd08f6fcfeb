/* SPDX-License-Identifier: Apache-2.0
 *
 * start_up.c: see the header.
 */
#include "analysis/start_up.h"

#include "analysis/statistics.h"
#include "base/memory.h"

#include <stdlib.h>

#define TIMES 2

static double median(const struct step_times *times, uint32_t first)
{
	uint32_t count = times->job_count - first;
	double *values = memory_resize(NULL, count, sizeof(*values)), result;

	for (uint32_t i = 0; i < count; i++)
		values[i] = times->job[first + i].dur_ns;
	sort_doubles(values, count);
	result = quantile(values, count, 0.5);
	free(values);
	return result;
}

static bool has_rising_numbers(const struct step_times *times)
{
	for (uint32_t i = 1; i < times->job_count; i++)
		if (times->job[i].number <= times->job[i - 1].number)
			return false;
	return times->job_count;
}

struct start_up start_up_find(const struct step_times *times)
{
	struct start_up found = {0};
	double limit_ns, sum_ns = 0, phase_ns;

	if (!has_rising_numbers(times))
		return found;
	limit_ns = TIMES * median(times, times->job_count / 2);
	while (found.count < times->job_count / 4 && times->job[found.count].dur_ns > limit_ns)
		sum_ns += times->job[found.count++].dur_ns;
	if (!found.count)
		return found;
	found.has_phases = true;
	for (uint32_t i = 0; i < found.count; i++)
		found.has_phases &= times->job[i].has_phases;
	found.first = times->job[0].number;
	found.last = times->job[found.count - 1].number;
	found.first_steady = times->job[found.count].number;
	found.mean_ns = sum_ns / found.count;
	found.rest_ns = median(times, found.count);
	for (int phase = 0; phase < PHASE_COUNT; phase++) {
		phase_ns = 0;
		for (uint32_t i = 0; i < found.count; i++)
			phase_ns += times->job[i].phase_ns[phase] / found.count;
		if (found.has_phases && phase_ns > found.phase_ns)
			found.phase = phase, found.phase_ns = phase_ns;
	}
	return found;
}
