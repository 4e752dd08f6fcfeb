/* SPDX-License-Identifier: Apache-2.0
 *
 * work.c: see work.h.
 */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>

void work_run(const struct work *work)
{
	uint64_t *issued = &harness.counters[8 * work->number];
	stepscope_name_t seq = stepscope_name(STEPSCOPE_KIND_COUNTER, "seq");
	stepscope_name_t range = stepscope_name(STEPSCOPE_KIND_RANGE, "work");
	char name[32];

	snprintf(name, sizeof(name), "w%u", work->number);
	stepscope_thread_name(name);
	for (uint64_t n = 1; work->rounds == 0 || n <= work->rounds; n++) {
		__atomic_store_n(issued, *issued + 1, __ATOMIC_RELAXED);
		stepscope_value_name(seq, (double)n);
		__atomic_store_n(issued, *issued + 1, __ATOMIC_RELAXED);
		stepscope_range_push_name(range);
		__atomic_store_n(issued, *issued + 1, __ATOMIC_RELAXED);
		stepscope_range_pop();
		for (volatile unsigned i = 0; i < work->pause; i++)
			;
	}
}

static void *work_main(void *argument)
{
	work_run(argument);
	return NULL;
}

void work_start(struct work *work)
{
	if (pthread_create(&work->thread, NULL, work_main, work) != 0)
		abort();
}

void work_finish(struct work *work)
{
	pthread_join(work->thread, NULL);
}

static void check_thread(const struct recorded_stream *here, uint64_t issued, bool is_killed)
{
	uint64_t recorded = here->seq_values + here->by_type[STEPSCOPE_EVENT_BEGIN] +
	                    here->by_type[STEPSCOPE_EVENT_END];
	uint64_t dropped = here->dropped[STEPSCOPE_EVENT_VALUE] + here->dropped[STEPSCOPE_EVENT_BEGIN] +
	                   here->dropped[STEPSCOPE_EVENT_END];

	if (recorded + dropped != issued && !(is_killed && recorded + dropped + 1 == issued))
		harness_fail(__FILE__, __LINE__,
		             "thread '%s' of %u issued %llu: %llu recorded, %llu dropped, %lld missing", here->name,
		             here->pid, (unsigned long long)issued, (unsigned long long)recorded,
		             (unsigned long long)dropped, (long long)(issued - recorded - dropped));
}

void work_check(const struct recording *recording, uint32_t pid, unsigned count, bool is_killed)
{
	for (unsigned i = 0; i < count; i++) {
		char name[32];
		uint64_t issued = harness.counters[8 * i];
		const struct recorded_stream *here;

		snprintf(name, sizeof(name), "w%u", i);
		here = recording_stream(recording, pid, name);
		if (here)
			check_thread(here, issued, is_killed);
		else if (issued > 1)
			harness_fail(__FILE__, __LINE__, "thread '%s' issued %llu events and has no stream", name,
			             (unsigned long long)issued);
	}
}

long work_number(int argc, char **argv, int i)
{
	return i < argc ? strtol(argv[i], NULL, 10) : 0;
}
