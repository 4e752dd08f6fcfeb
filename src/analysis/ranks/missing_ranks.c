/* SPDX-License-Identifier: Apache-2.0
 *
 * missing_ranks.c: see missing_ranks.h.
 */
#include "analysis/ranks/missing_ranks.h"

#include "base/compare_numbers.h"
#include "base/memory.h"
#include "model/launch_config.h"
#include "pytorch/names.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MOST 10000000 /* of a group: a larger number is not plausible */
#define RUNS_NAMED 4        /* runs of missing ranks that are named; if there are more, only the number is given */

static int32_t world_of(const struct model *model)
{
	int32_t world = -1;

	for (uint32_t i = 0; i < model->processes_count; i++)
		if (model->processes[i].world_size > world)
			world = model->processes[i].world_size;
	return world;
}

/* ---- the size of the job is unknown ---- */

struct least { /* the least size of the job, and its evidence */
	int32_t world;
	const char *from;
	int32_t number; /* the number at the end of the text */
};

static void missing_ranks_take(struct least *least, int64_t world, const char *from, int64_t number)
{
	if (world > least->world && world <= RANKS_MOST)
		*least = (struct least){(int32_t)world, from, (int32_t)number};
}

/* Returns the largest number, here 5, of "[0, 1, 5]", which may be cut off; -1: there is none. */
static int64_t largest_of(const char *text)
{
	int64_t largest = -1;

	while (*text) {
		char *end;
		long long number = *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : -1;

		largest = number > largest ? number : largest;
		text = number >= 0 ? end : text + 1;
	}
	return largest;
}

static void take_group_of_work(struct least *least, const char *inputs)
{
	struct launch_config config;

	if (strstr(inputs, LAUNCH_GROUP_RANKS_NAME "=") && launch_config_read(&config, inputs) &&
	    launch_config_has(&config, LAUNCH_GROUP_RANKS))
		missing_ranks_take(least, (int64_t)config.numbers[LAUNCH_GROUP_RANKS], "a process group has size ",
		                   (int64_t)config.numbers[LAUNCH_GROUP_RANKS]);
}

static void take_groups_of_operators(struct least *least, const struct model *model)
{
	uint32_t size = intern_find(&model->strings, PYTORCH_GROUP_SIZE),
		 ranks = intern_find(&model->strings, PYTORCH_GROUP_RANKS);

	for (uint32_t i = 0; (size || ranks) && i < model->args_count; i++) {
		const struct span_arg *arg = &model->args[i];

		if (size && arg->key == size && arg->type == STEPSCOPE_ARG_I64)
			missing_ranks_take(least, arg->i64, "a process group has size ", arg->i64);
		if (ranks && arg->key == ranks && arg->type == STEPSCOPE_ARG_SYMBOL) {
			int64_t largest = largest_of(model_text(model, arg->text));

			missing_ranks_take(least, largest + 1, "a process group contains rank ", largest);
		}
	}
}

/* A job numbers its ranks from 0 on without gaps. */
static struct least least_of(const struct model *model)
{
	struct least least = {.world = 1};

	for (uint32_t i = 0; i < model->processes_count; i++)
		missing_ranks_take(&least, (int64_t)model->processes[i].rank + 1, "there is rank ",
		                   model->processes[i].rank);
	for (uint32_t i = 0; i < model->strings.count; i++)
		take_group_of_work(&least, intern_text(&model->strings, i));
	take_groups_of_operators(&least, model);
	return least;
}

/* ---- names of the missing ranks ---- */

/* Finds the ranks that are here, sorted, each once. */
static uint32_t find_ranks(int32_t *ranks, const struct model *model, int32_t world)
{
	uint32_t found = 0, count = 0;

	for (uint32_t i = 0; i < model->processes_count; i++)
		if (model->processes[i].rank >= 0 && model->processes[i].rank < world)
			ranks[found++] = model->processes[i].rank;
	qsort(ranks, found, sizeof(*ranks), compare_int32);
	for (uint32_t i = 0; i < found; i++)
		if (!count || ranks[count - 1] != ranks[i])
			ranks[count++] = ranks[i];
	return count;
}

/* Counts the processes with steps but without a rank: each may be any rank. */
static uint32_t count_unnamed(const struct model *model)
{
	uint32_t count = 0, last = MODEL_NONE;

	for (uint32_t i = 0; i < model->steps_count; i++) {
		uint32_t process = model->steps[i].process;

		count += process != last && process < model->processes_count && model->processes[process].rank < 0;
		last = process;
	}
	return count;
}

/* Returns "1, 3 to 5", NULL if there are too many gaps to name. */
static const char *name_gaps(const int32_t *ranks, uint32_t count, int32_t world, struct arena *arena)
{
	const char *text = NULL;
	int32_t next = 0;
	int named = 0;

	for (uint32_t i = 0; i <= count; i++) {
		int32_t here = i < count ? ranks[i] : world, first = next;

		assert(here >= next); /* they are sorted, each once, and in the world */

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

static struct missing_ranks missing_ranks_search(const struct model *model, int32_t world, const char *of,
                                                 struct arena *arena)
{
	int32_t *ranks = memory_resize(NULL, (size_t)model->processes_count + 1, sizeof(*ranks));
	uint32_t here = find_ranks(ranks, model, world), unnamed = count_unnamed(model);
	uint32_t most = here + unnamed > 1 ? here + unnamed : 1;
	struct missing_ranks missing = {.count = most < (uint32_t)world ? (uint32_t)world - most : 0};
	const char *gaps = here && !unnamed && missing.count ? name_gaps(ranks, here, world, arena) : NULL;

	free(ranks);
	if (gaps)
		missing.text = arena_printf(arena, "rank%s %s of %s", missing.count == 1 ? "" : "s", gaps, of);
	else if (missing.count)
		missing.text = arena_printf(arena, "%u of %s ranks", missing.count, of);
	return missing;
}

struct missing_ranks missing_ranks_find(const struct model *model, struct arena *arena)
{
	int32_t world = world_of(model);
	struct missing_ranks missing = {0};
	struct least least;

	if (world > 1)
		return missing_ranks_search(model, world, arena_printf(arena, "%d", world), arena);
	if (world == 1)
		return missing;
	least = least_of(model);
	if (least.world > 1)
		missing = missing_ranks_search(model, least.world, arena_printf(arena, "at least %d", least.world),
		                               arena);
	if (missing.count)
		missing.text = arena_printf(arena, "%s (%s%d)", missing.text, least.from, least.number);
	return missing;
}
