/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict_run.c: see verdict_run.h.
 */
#include "diagnosis/verdict_run.h"

#include "base/units.h"

#define LARGE_RATIO 0.20
#define LEAST_START_NS 10e9 /* a program of PyTorch takes seconds to start, whatever it does */

static const char *const advice[RUN_PART_COUNT] = {
	[RUN_PART_START] =
		"look at imports, at data that is read whole and at the model that is built before the first step",
	[RUN_PART_COMPILATION] = "keep compiled code between runs (TORCHINDUCTOR_CACHE_DIR), compile fewer sizes",
	[RUN_PART_FIRST_BATCHES] = "start fewer workers, import less in them, or keep them (persistent_workers)",
	[RUN_PART_EVALUATION] = "evaluate less often, or on fewer batches",
	[RUN_PART_CHECKPOINTS] = "save less often, or in another process",
	[RUN_PART_IDLE] = "look at what the loop waits for there; stepscope.range() around its parts says it",
	[RUN_PART_UNKNOWN] = "stepscope.range() around the code between the steps says what it is",
	[RUN_PART_END] = "look at what follows the last step",
};

/* Returns NULL if no part outside of steps takes more than a fifth. */
static const char *verdict_run_sentence(const struct run_parts *run, struct arena *arena)
{
	enum run_part largest = run_parts_largest(run);
	char share[UNITS_BYTES], wall[UNITS_BYTES];

	if (!(run->ns[largest] > LARGE_RATIO * run->wall_ns))
		return NULL;
	if (largest == RUN_PART_START && run->ns[largest] < LEAST_START_NS)
		return NULL;
	if (largest == RUN_PART_UNKNOWN && run->missing[RUN_PART_STEPS])
		return NULL; /* without steps, their time is in it */
	return arena_printf(arena, "of the whole run, %s, %s takes %s: %s", units_time(wall, run->wall_ns),
	                    run_part_name(largest), units_ratio(share, run->ns[largest] / run->wall_ns),
	                    advice[largest]);
}

void verdict_run_set(struct diagnosis *diagnosis)
{
	const struct run_parts *run = diagnosis->run;
	struct table *table = &diagnosis->verdict;
	const char *sentence;

	run_parts_set_text(run, table, VERDICT_RUN);
	sentence = run->unknown ? NULL : verdict_run_sentence(run, &table->arena);
	if (!sentence)
		return;
	diagnosis->findings.empty = "nothing to fix in the steps";
	table_set_text(table, 0, VERDICT_SENTENCE,
	               arena_printf(&table->arena, "%s; %s", table_text(table, 0, VERDICT_SENTENCE), sentence));
}
