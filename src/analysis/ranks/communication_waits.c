/* SPDX-License-Identifier: Apache-2.0
 *
 * communication_waits.c: see communication_waits.h.
 */
#include "analysis/ranks/communication_waits.h"

#include "analysis/ranks/busy_times.h"
#include "analysis/ranks/collective_calls.h"
#include "base/lower_bound.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* How late the end of an execution may be reported: by this part of the stretch, or by LATE_NS (for which the
 * scheduler lets others go first) and half of the stretch. */
#define LATE_PART 10
#define LATE_NS INT64_C(6000000)
#define LATE_MOST 4096 /* operators run meanwhile that are looked at */

static void communication_add(struct communication_waits *waits, const struct communication_wait *wait)
{
	MEMORY_GROW(waits->list, waits->count, waits->capacity, 256);
	waits->list[waits->count++] = *wait;
}

/* Returns the time that the execution and the stretch before busy time `next` have in common, if both end together;
 * otherwise an empty one. If `next` is the count, the stretch is after all busy times. */
static struct communication_wait stretch_before(const struct busy_times *busy, uint32_t next,
                                                const struct collective_call *execution)
{
	struct communication_wait wait = {
		.track = busy->track - 1, .start_ns = execution->start_ns, .end_ns = execution->end_ns};

	if (next && busy->list[next - 1].end_ns > wait.start_ns)
		wait.start_ns = busy->list[next - 1].end_ns;
	if (next < busy->count && busy->list[next].start_ns < wait.end_ns)
		wait.end_ns = busy->list[next].start_ns;
	int64_t late_ns = execution->end_ns - wait.end_ns, stretch_ns = wait.end_ns - wait.start_ns;
	if (late_ns > stretch_ns / LATE_PART && (late_ns > LATE_NS || late_ns > stretch_ns / 2))
		wait.end_ns = wait.start_ns;
	return wait;
}

static void add_execution(struct communication_waits *waits, const struct busy_times *busy,
                          const struct collective_call *execution)
{
	uint32_t next = busy_times_behind(busy, execution->end_ns - 1);
	struct communication_wait longest = {0};
	int64_t part_ns = (execution->end_ns - execution->start_ns) / LATE_PART;
	int64_t least_ns = execution->end_ns - (part_ns > LATE_NS ? part_ns : LATE_NS);

	for (uint32_t i = 0; i < LATE_MOST; i++, next--) {
		struct communication_wait wait = stretch_before(busy, next, execution);

		if (wait.end_ns - wait.start_ns > longest.end_ns - longest.start_ns)
			longest = wait;
		if (!next || busy->list[next - 1].start_ns <= execution->start_ns ||
		    busy->list[next - 1].start_ns < least_ns)
			break;
	}
	if (longest.end_ns > longest.start_ns)
		communication_add(waits, &longest);
}

static int compare_waits(const void *left, const void *right)
{
	const struct communication_wait *a = left, *b = right;

	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static void join_overlapping(struct communication_waits *waits)
{
	uint32_t kept = 0;

	if (waits->count)
		qsort(waits->list, waits->count, sizeof(*waits->list), compare_waits);
	for (uint32_t i = 0; i < waits->count; i++) {
		struct communication_wait *last = kept ? &waits->list[kept - 1] : NULL, wait = waits->list[i];

		if (!last || last->track != wait.track || wait.start_ns > last->end_ns)
			waits->list[kept++] = wait;
		else if (wait.end_ns > last->end_ns)
			last->end_ns = wait.end_ns;
	}
	waits->count = kept;
}

/* Returns, by track, 1 for threads that carry steps. */
static uint8_t *find_carriers(const struct model *model)
{
	uint8_t *carriers = memory_resize(NULL, (size_t)model->tracks_count + 1, 1);

	memset(carriers, 0, (size_t)model->tracks_count + 1);
	for (uint32_t i = 0; i < model->steps_count; i++) {
		if (model->steps[i].track < model->tracks_count)
			carriers[model->steps[i].track] = 1;
	}
	return carriers;
}

static void find_unknown(struct communication_waits *waits, const struct model *model,
                         const struct collective_calls *calls)
{
	waits->is_unknown = memory_resize(NULL, (size_t)model->processes_count + 1, sizeof(*waits->is_unknown));
	memset(waits->is_unknown, 0, (size_t)model->processes_count + 1);
	for (uint32_t i = 0; i < calls->issue_count; i++)
		waits->is_unknown[calls->issues[i].process] = true;
	for (uint32_t i = 0; i < calls->execution_count; i++)
		waits->is_unknown[calls->executions[i].process] = false;
}

void communication_waits_find(struct communication_waits *waits, const struct model *model,
                              const struct collective_calls *calls)
{
	struct busy_times busy = {0};
	uint8_t *carriers = find_carriers(model);
	uint32_t first, end;

	*waits = (struct communication_waits){0};
	find_unknown(waits, model, calls);
	for (uint32_t track = 0; track < model->tracks_count && calls->execution_count; track++) {
		collective_calls_of(calls->executions, calls->execution_count, model->tracks[track]->process, &first,
		                    &end);
		if (!carriers[track] || first == end)
			continue;
		busy_times_of(&busy, model, track);
		for (uint32_t i = first; i < end; i++)
			add_execution(waits, &busy, &calls->executions[i]);
	}
	join_overlapping(waits);
	busy_times_release(&busy);
	free(carriers);
}

void communication_waits_release(struct communication_waits *waits)
{
	free(waits->list);
	free(waits->is_unknown);
	*waits = (struct communication_waits){0};
}

/* Returns the index of the first wait of that track or a later one. */
static uint32_t first_from(const struct communication_waits *waits, uint32_t track)
{
	return LOWER_BOUND(waits->list, waits->count, item, item->track < track);
}

void communication_waits_of(const struct communication_waits *waits, uint32_t track, uint32_t *first, uint32_t *end)
{
	*first = first_from(waits, track);
	*end = first_from(waits, track + 1);
}
