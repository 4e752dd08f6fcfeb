/* SPDX-License-Identifier: Apache-2.0
 *
 * missing_ranks.c: see missing_ranks.h.
 */
#include "analysis/missing_ranks.h"

#include "base/memory.h"

#include <stdlib.h>

#define RUNS_NAMED 4 /* of ranks side by side; of more only the number is told */

static int32_t world_of(const struct model *model)
{
	int32_t world = -1;

	for (uint32_t i = 0; i < model->processes_count; i++)
		if (model->processes[i].world_size > world)
			world = model->processes[i].world_size;
	return world;
}

static int compare_ranks(const void *left, const void *right)
{
	int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;

	return (a > b) - (a < b);
}

/* In order, each once. */
static uint32_t find_ranks(int32_t *ranks, const struct model *model, int32_t world)
{
	uint32_t found = 0, count = 0;

	for (uint32_t i = 0; i < model->processes_count; i++)
		if (model->processes[i].rank >= 0 && model->processes[i].rank < world)
			ranks[found++] = model->processes[i].rank;
	qsort(ranks, found, sizeof(*ranks), compare_ranks);
	for (uint32_t i = 0; i < found; i++)
		if (!count || ranks[count - 1] != ranks[i])
			ranks[count++] = ranks[i];
	return count;
}

/* "1, 3 to 5"; NULL: in more places than are worth naming. */
static const char *name_gaps(const int32_t *ranks, uint32_t count, int32_t world, struct arena *arena)
{
	const char *text = NULL;
	int32_t next = 0;
	int named = 0;

	for (uint32_t i = 0; i <= count; i++) {
		int32_t here = i < count ? ranks[i] : world, first = next;

		next = here + 1;
		if (here == first)
			continue;
		if (++named > RUNS_NAMED)
			return NULL;
		text = text ? arena_printf(arena, "%s, %d", text, first) : arena_printf(arena, "%d", first);
		if (here - 1 > first)
			text = arena_printf(arena, here - 1 == first + 1 ? "%s, %d" : "%s to %d", text, here - 1);
	}
	return text;
}

struct missing_ranks missing_ranks_find(const struct model *model, struct arena *arena)
{
	int32_t world = world_of(model), *ranks;
	struct missing_ranks missing = {0};
	const char *gaps;
	uint32_t here;

	if (world < 2)
		return missing;
	ranks = memory_resize(NULL, (size_t)model->processes_count + 1, sizeof(*ranks));
	here = find_ranks(ranks, model, world);
	missing.count = (uint32_t)world - (here ? here : 1);
	if (!missing.count) {
		free(ranks);
		return missing;
	}
	gaps = here ? name_gaps(ranks, here, world, arena) : NULL;
	free(ranks);
	if (gaps)
		missing.text = arena_printf(arena, "rank%s %s of %d", missing.count == 1 ? "" : "s", gaps, world);
	else
		missing.text = arena_printf(arena, "%u of %d ranks", missing.count, world);
	return missing;
}
