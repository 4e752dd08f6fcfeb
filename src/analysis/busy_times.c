/* SPDX-License-Identifier: Apache-2.0
 *
 * busy_times.c: see busy_times.h.
 */
#include "analysis/busy_times.h"

#include "base/lower_bound.h"
#include "base/memory.h"
#include "base/text.h"
#include "pytorch/names.h"

#include <stdlib.h>
#include <string.h>

static void add(struct busy_times *busy, int64_t start_ns, int64_t end_ns)
{
	if (busy->count && start_ns < busy->list[busy->count - 1].end_ns) /* inside of it */
		return;
	MEMORY_GROW(busy->list, busy->count, busy->capacity, 1024);
	busy->list[busy->count++] = (struct busy_time){start_ns, end_ns};
}

/* PyTorch's own nodes have a number at the end ("MulBackward0"), those written in Python do not. */
static bool is_counted(const char *name)
{
	return !pytorch_begins(name, PYTORCH_COLLECTIVE) && !pytorch_begins(name, PYTORCH_ENGINE) &&
	       !text_ends_with(name, "Backward");
}

static bool counts(struct busy_times *busy, const struct model *model, uint32_t name)
{
	if (name >= busy->counts_capacity) {
		uint32_t capacity = 2 * name + 64;

		busy->counts = memory_resize(busy->counts, capacity, 1);
		memset(busy->counts + busy->counts_capacity, 0, capacity - busy->counts_capacity);
		busy->counts_capacity = capacity;
	}
	if (!busy->counts[name])
		busy->counts[name] = is_counted(model_text(model, name)) ? 1 : 2;
	return busy->counts[name] == 1;
}

void busy_times_of(struct busy_times *busy, const struct model *model, uint32_t number)
{
	const struct track *track = model->tracks[number];

	if (busy->track == number + 1)
		return;
	busy->track = number + 1;
	busy->count = 0;
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			if (chunk->kind[i] == SPAN_OP && counts(busy, model, chunk->name[i]))
				add(busy, chunk->start_ns[i], chunk->start_ns[i] + chunk->dur_ns[i]);
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
