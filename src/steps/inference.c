/* SPDX-License-Identifier: Apache-2.0
 *
 * inference.c: the list of what was inferred, see infer_steps.h; infer_steps_intervals.c fills it.
 */
#include "steps/inference.h"

#include "base/memory.h"
#include "base/merge_sort.h"
#include "steps/infer_steps.h"

#include <stdlib.h>
#include <string.h>

struct inferred *inference_add(struct inference *out, uint8_t what, int64_t start_ns, int64_t end_ns)
{
	MEMORY_GROW(out->list, out->count, out->capacity, 256);
	out->list[out->count] = (struct inferred){.what = what, .start_ns = start_ns, .end_ns = end_ns};
	return &out->list[out->count++];
}

static void inference_add_piece(struct inference *out, const struct inferred *whole, int64_t start_ns, int64_t end_ns)
{
	if (start_ns < end_ns)
		inference_add(out, whole->what, start_ns, end_ns);
}

static int compare_starts(const void *left, const void *right)
{
	const struct inferred *a = left, *b = right;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Pieces of a phase come together; what lies in it may begin before the last of them. */
void inference_cut_phases(struct inference *inference, const int64_t *bounds, uint32_t bound_count)
{
	struct inference phases = {0};
	uint32_t bound = 0;

	for (size_t i = 0; i < inference->count; i++) {
		const struct inferred *whole = &inference->list[i];
		int64_t start_ns = whole->start_ns;

		if (whole->what == INFERRED_STEP)
			continue;
		while (bound < bound_count && bounds[bound] <= start_ns)
			bound++;
		for (uint32_t b = bound; b < bound_count && bounds[b] < whole->end_ns; b++) {
			inference_add_piece(&phases, whole, start_ns, bounds[b]);
			start_ns = bounds[b];
		}
		inference_add_piece(&phases, whole, start_ns, whole->end_ns);
	}
	merge_sort(phases.list, phases.count, sizeof(*phases.list), compare_starts);
	free(inference->list);
	inference->list = phases.list;
	inference->count = phases.count;
	inference->capacity = phases.capacity;
}

void inference_release(struct inference *inference)
{
	free(inference->list);
	memset(inference, 0, sizeof(*inference));
}
