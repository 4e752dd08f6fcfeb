/* SPDX-License-Identifier: Apache-2.0
 *
 * busy_times.c: see busy_times.h.
 */
#include "analysis/ranks/busy_times.h"

#include "base/lower_bound.h"
#include "base/memory.h"
#include "base/text.h"
#include "pytorch/names.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { /* by string, in busy->counts; 0: not classified yet */
	COUNTS = 1,
	COUNTS_NOT,
	COUNTS_NOT_WITH_ALL_IN_IT,
};

static void busy_times_append(struct busy_times *busy, int64_t start_ns, int64_t end_ns)
{
	assert(!busy->count || busy->list[busy->count - 1].end_ns <= start_ns);
	MEMORY_GROW(busy->list, busy->count, busy->capacity, 1024);
	busy->list[busy->count++] = (struct busy_time){start_ns, end_ns};
}

/* Spans come in the order of their starts: one that starts before the end of the last one is nested in it. */
static void busy_times_add(struct busy_times *busy, int64_t start_ns, int64_t end_ns)
{
	if (start_ns >= busy->waits_until_ns && (!busy->count || start_ns >= busy->list[busy->count - 1].end_ns))
		busy_times_append(busy, start_ns, end_ns);
}

/* Takes out a wait. An operator around the wait was busy before it and is busy again after it. */
static void take_out(struct busy_times *busy, int64_t start_ns, int64_t end_ns)
{
	struct busy_time whole;

	if (start_ns < busy->waits_until_ns)
		return;
	busy->waits_until_ns = end_ns;
	if (!busy->count || busy->list[busy->count - 1].end_ns <= start_ns)
		return;
	whole = busy->list[--busy->count];
	if (start_ns > whole.start_ns)
		busy_times_append(busy, whole.start_ns, start_ns);
	if (whole.end_ns > end_ns)
		busy_times_append(busy, end_ns, whole.end_ns);
}

/* PyTorch's own nodes have a number at the end ("MulBackward0"); nodes written in Python do not. */
static uint8_t how_it_counts(const char *name)
{
	if (pytorch_waits(name))
		return COUNTS_NOT_WITH_ALL_IN_IT;
	return pytorch_begins(name, PYTORCH_COLLECTIVE) || pytorch_begins(name, PYTORCH_ENGINE) ||
	                       text_ends_with(name, "Backward")
	               ? COUNTS_NOT
	               : COUNTS;
}

static uint8_t busy_times_counts(struct busy_times *busy, const struct model *model, uint32_t name)
{
	if (name >= busy->counts_capacity) {
		uint32_t capacity = 2 * name + 64;

		busy->counts = memory_resize(busy->counts, capacity, 1);
		memset(busy->counts + busy->counts_capacity, 0, capacity - busy->counts_capacity);
		busy->counts_capacity = capacity;
	}
	if (!busy->counts[name])
		busy->counts[name] = how_it_counts(model_text(model, name));
	return busy->counts[name];
}

static void add_operator(struct busy_times *busy, uint8_t counting, int64_t start_ns, int64_t end_ns)
{
	if (counting == COUNTS)
		busy_times_add(busy, start_ns, end_ns);
	else if (counting == COUNTS_NOT_WITH_ALL_IN_IT)
		take_out(busy, start_ns, end_ns);
}

void busy_times_of(struct busy_times *busy, const struct model *model, uint32_t number)
{
	const struct track *track = model->tracks[number];

	if (busy->track == number + 1)
		return;
	busy->track = number + 1;
	busy->count = 0;
	busy->waits_until_ns = INT64_MIN;
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			if (chunk->kind[i] == SPAN_OP)
				add_operator(busy, busy_times_counts(busy, model, chunk->name[i]), chunk->start_ns[i],
				             chunk->start_ns[i] + chunk->dur_ns[i]);
		}
		model_chunk_done(model, chunk);
	}
}

void busy_times_release(struct busy_times *busy)
{
	free(busy->list);
	free(busy->counts);
	*busy = (struct busy_times){0};
}

uint32_t busy_times_behind(const struct busy_times *busy, int64_t time_ns)
{
	return LOWER_BOUND(busy->list, busy->count, item, item->end_ns <= time_ns);
}

int64_t busy_times_in(const struct busy_times *busy, int64_t start_ns, int64_t end_ns)
{
	int64_t sum_ns = 0;

	for (uint32_t i = busy_times_behind(busy, start_ns); i < busy->count && busy->list[i].start_ns < end_ns; i++) {
		int64_t from = busy->list[i].start_ns > start_ns ? busy->list[i].start_ns : start_ns;
		int64_t to = busy->list[i].end_ns < end_ns ? busy->list[i].end_ns : end_ns;

		sum_ns += to - from;
	}
	return sum_ns;
}
