/* SPDX-License-Identifier: Apache-2.0
 *
 * data_loader.c: the table `data_loader`: what the loop waits for, what making a batch costs, and which part limits. A row per loader, and
 * one per worker.
 */
#include "analysis/devices/device_names.h"
#include "analysis/loader/loader_batches.h"
#include "analysis/machine/processes.h"
#include "analysis/shared/labels.h"
#include "analysis/shared/statistics.h"
#include "analysis/step_times/step_kinds.h"

#include "base/clamped.h"
#include "base/memory.h"
#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	LOADER_PROCESS,
	LOADER_NAME,
	LOADER_PART,
	LOADER_BATCHES,
	LOADER_WAIT,
	LOADER_WAIT_P50,
	LOADER_WAIT_MAX,
	LOADER_WAIT_RATIO,
	LOADER_LOOP,
	LOADER_DATASET,
	LOADER_DATASET_RATIO,
	LOADER_COLLATE,
	LOADER_COLLATE_RATIO,
	LOADER_SAMPLER,
	LOADER_SAMPLER_RATIO,
	LOADER_PIN,
	LOADER_PIN_RATIO,
	LOADER_IDLE_RATIO,
	LOADER_READY,
	LOADER_START,
	LOADER_WORKERS,
	LOADER_END,
	LOADER_LIMIT,
	LOADER_SENTENCE,
	LOADER_COLUMNS,
};

#define OF_PARTS                                                                                                       \
	"of a loader: time from the first wait to the last, loop by loop, without workers; of a worker: time from its first batch to its last"

static const struct table_column columns[LOADER_COLUMNS] = {
	[LOADER_PROCESS] = {.name = "process",
                            .type = TABLE_TEXT,
                            .role = ROLE_KEY,
                            .definition = "process that loops over it: rank, or pid"},
	[LOADER_NAME] = {.name = "loader",
                         .type = TABLE_TEXT,
                         .role = ROLE_KEY,
                         .definition = "its number in the process, and what it loads"},
	[LOADER_PART] = {.name = "part",
                         .type = TABLE_TEXT,
                         .role = ROLE_KEY,
                         .definition = "loop: where batches are awaited, and all its workers; else one worker"},
	[LOADER_BATCHES] = {.name = "batches",
                            .type = TABLE_INT,
                            .unit = UNIT_COUNT,
                            .definition = "batches that came; of a worker: that it made",
                            .rules = RULE_NOT_NEGATIVE},
	[LOADER_WAIT] = {.name = "wait_ns",
                         .title = "wait",
                         .type = TABLE_INT,
                         .unit = UNIT_NS,
                         .definition = "time the loop waited for them",
                         .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                         .other = "loop_ns"},
	[LOADER_WAIT_P50] = {.name = "wait_p50_ns",
                             .title = "p50",
                             .type = TABLE_DOUBLE,
                             .unit = UNIT_NS,
                             .definition = "median wait for a batch"},
	[LOADER_WAIT_MAX] = {.name = "wait_max_ns",
                             .title = "max",
                             .type = TABLE_DOUBLE,
                             .unit = UNIT_NS,
                             .definition = "longest wait for a batch"},
	[LOADER_WAIT_RATIO] =
		{.name = "wait_ratio",
                 .title = "wait %",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_SHARE,
                 .definition = "share of the loop's time that it waited",
                 .denominator =
                         "time from the first wait to the last, loop by loop; without steps in which no waits were recorded, as they have no operators",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[LOADER_LOOP] = {.name = "loop_ns",
                         .title = "loop",
                         .type = TABLE_INT,
                         .unit = UNIT_NS,
                         .definition = "time from the first wait to the last, loop by loop",
                         .rules = RULE_NOT_NEGATIVE},
	[LOADER_DATASET] = {.name = "dataset_ns",
                            .title = "dataset",
                            .type = TABLE_INT,
                            .unit = UNIT_NS,
                            .definition = "time in the dataset's code",
                            .rules = RULE_NOT_NEGATIVE},
	[LOADER_DATASET_RATIO] = {.name = "dataset_ratio",
                                  .title = "dataset %",
                                  .type = TABLE_DOUBLE,
                                  .unit = UNIT_RATIO,
                                  .role = ROLE_SHARE,
                                  .definition = "share of time in the dataset's code",
                                  .denominator = OF_PARTS,
                                  .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[LOADER_COLLATE] = {.name = "collate_ns",
                            .title = "collate",
                            .type = TABLE_INT,
                            .unit = UNIT_NS,
                            .definition = "time in the function that makes a batch of samples",
                            .rules = RULE_NOT_NEGATIVE},
	[LOADER_COLLATE_RATIO] = {.name = "collate_ratio",
                                  .title = "collate %",
                                  .type = TABLE_DOUBLE,
                                  .unit = UNIT_RATIO,
                                  .role = ROLE_SHARE,
                                  .definition = "share of time in that function",
                                  .denominator = OF_PARTS,
                                  .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[LOADER_SAMPLER] = {.name = "sampler_ns",
                            .title = "sampler",
                            .type = TABLE_INT,
                            .unit = UNIT_NS,
                            .definition = "time of the waits in the sampler, which says what samples a batch is made "
                                          "of: in the loop's process, also with workers",
                            .rules = RULE_NOT_NEGATIVE},
	[LOADER_SAMPLER_RATIO] = {.name = "sampler_ratio",
                                  .title = "sampler %",
                                  .type = TABLE_DOUBLE,
                                  .unit = UNIT_RATIO,
                                  .role = ROLE_SHARE,
                                  .definition = "share of the loop's time in the sampler",
                                  .denominator = "time from the first wait to the last, loop by loop",
                                  .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[LOADER_PIN] =
		{.name = "pin_ns",
                 .title = "pinning",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "time in pinning batches for the device: in the waits, with workers in a thread of its own",
                 .rules = RULE_NOT_NEGATIVE},
	[LOADER_PIN_RATIO] =
		{.name = "pin_ratio",
                 .title = "pinning %",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_SHARE,
                 .definition = "share of time in pinning",
                 .denominator =
                         "time from the first wait to the last, loop by loop; with workers: the thread's, from its first batch to its last",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[LOADER_IDLE_RATIO] = {.name = "idle_ratio",
                               .title = "idle %",
                               .type = TABLE_DOUBLE,
                               .unit = UNIT_RATIO,
                               .role = ROLE_SHARE,
                               .definition = "share of time in which a worker made no batch",
                               .denominator = "time from its first batch to its last",
                               .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[LOADER_READY] = {.name = "ready",
                          .type = TABLE_DOUBLE,
                          .unit = UNIT_NONE,
                          .definition = "batches that workers had made and the loop had not taken, when it asked: mean"},
	[LOADER_START] =
		{.name = "startup_ns",
                 .title = "start",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition = "of a worker: from its first instant to its first batch; of a loader: waits for the "
                               "first batches of its loops, one per worker",
                 .rules = RULE_NOT_NEGATIVE},
	[LOADER_WORKERS] =
		{.name = "workers_ns",
                 .title = "starting",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "time in iter(loader), before the first waits: starting the workers, which each loop "
                         "does without persistent_workers, and the sampler for their first batches; of all steps, also those "
                         "in which no waits were recorded",
                 .rules = RULE_NOT_NEGATIVE},
	[LOADER_END] = {.name = "end", .type = TABLE_TEXT, .definition = "how the worker ended, when it failed"},
	[LOADER_LIMIT] =
		{.name = "limited_by",
                 .title = "limited by",
                 .type = TABLE_TEXT,
                 .definition =
                         "dataset code, collate, sampler, pinning memory, handing over, main process, too few workers, start of workers, or nothing"},
	[LOADER_SENTENCE] = {.name = "sentence",
                             .type = TABLE_TEXT,
                             .definition = "the same in words, with the numbers"},
};

#define REMOVED "what was first was removed again (keep_size, keep_time)"
#define WAITS_LITTLE 0.05 /* share of the loop's time */
#define IS_BUSY 0.8       /* share of the workers' time */
#define DOMINATES 0.6     /* of the work on a batch */
#define STARTS_LONG 0.2   /* share of the loop's time for the first batches */

struct work { /* of workers, or in the loop */
	int64_t count, dataset_ns, collate_ns, window_ns;
	uint32_t workers;
};

struct loader { /* one row */
	uint32_t process, number;
	int64_t batches, wait_ns, loop_ns, first_wait_ns;
	int64_t first_batches; /* those of first_wait_ns: of workers that start */
	int64_t span_ns;       /* as loop_ns, with the steps in which no waits were recorded */
	int64_t starting_ns;   /* before the first waits, with workers */
	int64_t workers_ns;    /* of that, starting them, without the sampler */
	int64_t sampler_ns, first_sampler_ns,
		starting_sampler_ns;           /* in the waits, in those of first_wait_ns, before the loops */
	int64_t pinned, pin_ns, pin_window_ns; /* pinned: batches; by a thread of their own where there are workers */
	uint32_t loops, starts;
	struct summary wait;
	struct work work;
	bool has_ready, has_sampler, has_rest; /* has_rest: see loader_wait.is_of_rest */
	double ready;
};

/* ---- waits ---- */

static bool is_of(const struct loader *loader, uint32_t process, uint64_t loop)
{
	return loader->process == process && loader->number == (uint32_t)(loop >> 32);
}

/* Of one loop: so many first batches come from workers that start. At least 1. */
static uint32_t most_workers(const struct loader *loader, const struct loader_batches *batches)
{
	uint32_t most = 1, workers = 0, last = MODEL_NONE;
	uint64_t loop = 0;

	for (uint32_t i = 0; i < batches->fetch_count; i++) {
		const struct loader_fetch *fetch = &batches->fetches[i];

		if (!is_of(loader, fetch->process, fetch->loop) || fetch->worker == last)
			continue;
		workers = fetch->loop == loop ? workers + 1 : 1;
		most = workers > most ? workers : most;
		last = fetch->worker;
		loop = fetch->loop;
	}
	return most;
}

static void add_batch(struct loader *loader, const struct loader_wait *wait, bool is_first)
{
	int64_t dur_ns = wait->end_ns - wait->start_ns;

	loader->batches++;
	clamped_add(&loader->wait_ns, dur_ns);
	clamped_add(&loader->sampler_ns, wait->sampler_ns);
	clamped_add(&loader->pin_ns, wait->pin_ns);
	loader->pinned += wait->pin_ns > 0;
	if (!is_first)
		return;
	loader->first_batches++;
	clamped_add(&loader->first_wait_ns, dur_ns);
	clamped_add(&loader->first_sampler_ns, wait->sampler_ns);
}

/* Of [start, end) the time of steps in which waits were not recorded. */
static int64_t time_without(const struct model *model, uint32_t process, int64_t start_ns, int64_t end_ns)
{
	int64_t sum_ns = 0;

	for (uint32_t i = 0; i < model->steps_count; i++) {
		const struct model_step *step = &model->steps[i];
		int64_t from_ns = step->start_ns > start_ns ? step->start_ns : start_ns;
		int64_t to_ns = step->end_ns < end_ns ? step->end_ns : end_ns;

		if (step->process == process && !step->has_detail && to_ns > from_ns)
			clamped_add(&sum_ns, to_ns - from_ns);
	}
	return sum_ns;
}

/* Waits may be recorded in all steps, or in those with operators alone. */
static bool has_waits_without(const struct loader *loader, const struct loader_batches *batches,
                              const struct model *model)
{
	for (uint32_t i = 0; i < batches->wait_count; i++) {
		const struct loader_wait *wait = &batches->waits[i];
		const struct model_step *step;

		if (!is_of(loader, wait->process, wait->loop))
			continue;
		step = step_times_step_at(model, wait->process, wait->start_ns);
		if (step && step_is_plain(step) && wait->start_ns > step->start_ns && wait->end_ns < step->end_ns)
			return true;
	}
	return false;
}

static void add_loop(struct loader *loader, const struct model *model, int64_t start_ns, int64_t end_ns, bool is_of_all)
{
	clamped_add(&loader->loop_ns, end_ns - start_ns);
	clamped_add(&loader->span_ns, end_ns - start_ns);
	if (!is_of_all)
		clamped_subtract(&loader->loop_ns, time_without(model, loader->process, start_ns, end_ns));
}

static void sum_waits(struct loader *loader, const struct loader_batches *batches, const struct model *model,
                      double *values)
{
	const struct loader_wait *first = NULL, *last = NULL;
	uint32_t in_loop = 0, starting = most_workers(loader, batches);
	bool is_of_all = has_waits_without(loader, batches, model);

	loader->has_sampler = batches->has_samplers;

	for (uint32_t i = 0; i < batches->wait_count; i++) {
		const struct loader_wait *wait = &batches->waits[i];

		if (!is_of(loader, wait->process, wait->loop))
			continue;
		if (first && (last->is_end || last->loop != wait->loop)) {
			add_loop(loader, model, first->start_ns, last->end_ns, is_of_all);
			first = NULL;
		}
		if (!wait->is_end) {
			values[loader->batches] = (double)(wait->end_ns - wait->start_ns);
			in_loop = first ? in_loop + 1 : 0;
			add_batch(loader, wait, in_loop < starting && !wait->is_of_rest);
			loader->loops += !first;
			loader->has_rest |= wait->is_of_rest;
		}
		first = first ? first : wait;
		last = wait;
	}
	if (first)
		add_loop(loader, model, first->start_ns, last->end_ns, is_of_all);
	loader->loop_ns = loader->loop_ns > loader->wait_ns ? loader->loop_ns : loader->wait_ns;
	summary_compute(&loader->wait, values, (size_t)loader->batches);
}

static void sum_starts(struct loader *loader, const struct loader_batches *batches)
{
	for (uint32_t i = 0; i < batches->start_count; i++) {
		if (!is_of(loader, batches->starts[i].process, batches->starts[i].loop))
			continue;
		const struct loader_start *start = &batches->starts[i];

		clamped_add(&loader->starting_ns, start->dur_ns);
		clamped_add(&loader->starting_sampler_ns, start->sampler_ns);
		clamped_add(&loader->workers_ns, start->is_again ? 0 : start->dur_ns - start->sampler_ns);
		loader->starts += !start->is_again;
	}
}

static void sum_pinning(struct loader *loader, const struct loader_batches *batches)
{
	for (uint32_t i = 0; i < batches->pinning_count; i++) {
		const struct loader_pinning *pinning = &batches->pinnings[i];

		if (!is_of(loader, pinning->process, pinning->loop))
			continue;
		loader->pinned += pinning->count;
		clamped_add(&loader->pin_ns, pinning->busy_ns);
		clamped_add(&loader->pin_window_ns, pinning->window_ns);
	}
}

/* ---- work ---- */

static void add_work(struct work *work, const struct loader_fetch *fetch)
{
	work->count += fetch->is_batch;
	clamped_add(&work->collate_ns, fetch->collate_ns);
	clamped_add(&work->dataset_ns, fetch->end_ns - fetch->start_ns - fetch->collate_ns);
}

/* Of the worker whose first fetch this is: those of a worker follow each other. */
static void sum_worker(struct work *work, const struct loader_batches *batches, uint32_t first)
{
	const struct loader_fetch *begin = &batches->fetches[first];
	int64_t last_ns = begin->end_ns;

	*work = (struct work){.workers = 1};
	for (uint32_t i = first; i < batches->fetch_count && batches->fetches[i].worker == begin->worker; i++) {
		const struct loader_fetch *fetch = &batches->fetches[i];

		last_ns = fetch->end_ns > last_ns ? fetch->end_ns : last_ns;
		add_work(work, fetch);
	}
	work->window_ns = last_ns - begin->start_ns;
}

static void sum_here(struct loader *loader, const struct loader_batches *batches)
{
	for (uint32_t i = 0; i < batches->fetch_count; i++) {
		const struct loader_fetch *fetch = &batches->fetches[i];

		if (fetch->worker == MODEL_NONE && is_of(loader, fetch->process, fetch->loop))
			add_work(&loader->work, fetch);
	}
	loader->work.window_ns = loader->loop_ns;
}

/* ---- the queue's fill ---- */

static int compare_times(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return (a > b) - (a < b);
}

/* Of one loop, whose waits are [first, end): how many batches were ready at each, summed. */
static double sum_ready(const struct loader_batches *batches, uint32_t first, uint32_t end, int64_t *ends)
{
	const struct loader_wait *wait = &batches->waits[first];
	uint32_t made = 0, done = 0;
	int64_t taken = 0;
	double sum = 0;

	for (uint32_t i = loader_batches_of_loop(batches, wait->loop);
	     i < batches->fetch_count && batches->fetches[i].loop == wait->loop; i++) {
		if (batches->fetches[i].is_batch)
			ends[made++] = batches->fetches[i].end_ns;
	}
	if (made)
		qsort(ends, made, sizeof(*ends), compare_times);
	for (uint32_t i = first; i < end; i++) {
		if (batches->waits[i].is_end)
			continue;
		while (done < made && ends[done] <= batches->waits[i].start_ns)
			done++;
		sum += done > taken ? (double)(done - taken) : 0;
		taken++;
	}
	return sum;
}

static void find_ready(struct loader *loader, const struct loader_batches *batches)
{
	int64_t *ends = memory_resize(NULL, (size_t)batches->fetch_count + 1, sizeof(*ends));
	double sum = 0;

	for (uint32_t first = 0, end; first < batches->wait_count; first = end) {
		const struct loader_wait *wait = &batches->waits[first];

		for (end = first + 1; end < batches->wait_count && batches->waits[end].loop == wait->loop &&
		                      batches->waits[end].track == wait->track;
		     end++)
			;
		if (is_of(loader, wait->process, wait->loop))
			sum += sum_ready(batches, first, end, ends);
	}
	loader->has_ready = loader->batches > 0 && !loader->has_rest;
	loader->ready = loader->batches ? sum / (double)loader->batches : 0;
	free(ends);
}

/* ---- what limits ---- */

static const char *time_text(struct arena *arena, double ns)
{
	char text[UNITS_BYTES];

	return arena_printf(arena, "%s", units_time(text, ns));
}

static double wait_ratio(const struct loader *loader)
{
	return loader->loop_ns > 0 ? (double)loader->wait_ns / (double)loader->loop_ns : 0;
}

static const char *larger_part(const struct work *work)
{
	int64_t both = work->dataset_ns + work->collate_ns;

	if ((double)work->dataset_ns >= DOMINATES * (double)both)
		return "dataset code";
	return (double)work->collate_ns >= DOMINATES * (double)both ? "collate" : "too few workers";
}

/* Workers that would make batches as fast as the loop takes them, 0: cannot be said. The sampler stays in the loop. */
static int workers_needed(const struct loader *loader)
{
	double loop_ns = (double)(loader->loop_ns - loader->wait_ns + loader->sampler_ns);
	double work_ns = (double)(loader->work.dataset_ns + loader->work.collate_ns);
	double needed = loop_ns > 0 ? ceil(work_ns / loop_ns) : 0;

	return needed >= 1 && needed <= 64 ? (int)needed : 0;
}

static const char *keep_up(const struct loader *loader, struct arena *arena)
{
	int needed = workers_needed(loader);

	if (!needed || needed <= (int)(loader->loops ? loader->work.workers / loader->loops : 0))
		return "";
	return arena_printf(arena, "; about %d worker%s would keep up with the loop", needed, needed == 1 ? "" : "s");
}

static const char in_the_loop[] = "; the sampler runs in the process of the loop, also with workers";

/* Without workers: the parts of the wait itself. The largest limits; the rest is nobody's code but PyTorch's. */
static const char *limit_here(const struct loader *loader, struct arena *arena, const char **limit)
{
	const struct work *work = &loader->work;
	const struct {
		const char *limit, *text;
		int64_t ns;
	} parts[] = {{"dataset code", "the dataset's code", work->dataset_ns},
	             {"collate", "collating", work->collate_ns},
	             {"sampler", "the sampler", loader->sampler_ns},
	             {"pinning memory", "pinning memory", loader->pin_ns}};
	int64_t rest_ns = loader->wait_ns;
	const char *text = "";
	size_t most = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		rest_ns -= parts[i].ns;
		most = parts[i].ns > parts[most].ns ? i : most;
		if (i < 2 || parts[i].ns > 0)
			text = arena_printf(arena, "%s%.1f %% in %s, ", text,
			                    100 * (double)parts[i].ns / (double)loader->loop_ns, parts[i].text);
	}
	bool is_rest = rest_ns > parts[most].ns;
	*limit = is_rest ? "handing over" : parts[most].limit;
	return arena_printf(
		arena,
		"the loop spends %.1f %% of its time on its batches, as there are no workers: %sthe rest in "
		"%shanding over%s",
		100 * wait_ratio(loader), text, loader->has_sampler ? "" : "sampling and ",
		is_rest     ? ""
		: most < 2  ? keep_up(loader, arena)
		: most == 2 ? in_the_loop
			    : "");
}

static double start_ratio(const struct loader *loader)
{
	return loader->loop_ns > 0 ? (double)loader->first_wait_ns / (double)loader->loop_ns : 0;
}

/* Without the first batches of each loop, which are late while workers start. */
static double steady_ratio(const struct loader *loader)
{
	double loop_ns = (double)(loader->loop_ns - loader->first_wait_ns);

	return loop_ns > 0 ? (double)(loader->wait_ns - loader->first_wait_ns) / loop_ns : 0;
}

/* What steady_ratio() leaves out, in front of it. */
static const char *apart(const struct loader *loader, struct arena *arena)
{
	if (start_ratio(loader) < 0.001)
		return "";
	return arena_printf(arena, "apart from %s while workers start, ",
	                    time_text(arena, (double)loader->first_wait_ns));
}

static double busy_ratio(const struct work *work)
{
	double window_ns = work->window_ns > 0 ? (double)work->window_ns : 1;

	return (double)(work->dataset_ns + work->collate_ns) / window_ns;
}

/* Handing over costs each batch something. A few waits that are long while workers are idle are accidents: a busy machine, a slow sample. */
static bool is_few_waits(const struct loader *loader)
{
	int64_t batches = loader->batches - loader->first_batches;
	double own_ns = batches > 0 ? (double)(loader->loop_ns - loader->first_wait_ns) / (double)batches : 0;

	return busy_ratio(&loader->work) < IS_BUSY && steady_ratio(loader) < STARTS_LONG &&
	       loader->wait.p50 < WAITS_LITTLE * own_ns;
}

/* Of the waits that steady_ratio() is of. */
static bool is_sampling(const struct loader *loader)
{
	return (double)(loader->sampler_ns - loader->first_sampler_ns) >=
	       DOMINATES * (double)(loader->wait_ns - loader->first_wait_ns);
}

static double pin_ratio(const struct loader *loader)
{
	return loader->pin_window_ns > 0 ? (double)loader->pin_ns / (double)loader->pin_window_ns : 0;
}

static const char *limit_of_workers(const struct loader *loader, struct arena *arena, const char **limit)
{
	const struct work *work = &loader->work;
	double window_ns = work->window_ns > 0 ? (double)work->window_ns : 1;
	double busy = busy_ratio(work);

	if (is_sampling(loader)) {
		*limit = "sampler";
		return arena_printf(arena, "%sthe loop waits %.1f %% of its time, %.1f %% in the sampler%s",
		                    apart(loader, arena), 100 * steady_ratio(loader),
		                    100 * (double)loader->sampler_ns / (double)loader->loop_ns, in_the_loop);
	}
	if (busy < IS_BUSY && pin_ratio(loader) >= IS_BUSY) {
		*limit = "pinning memory";
		return arena_printf(
			arena,
			"%sthe loop waits %.1f %% of its time although workers are idle for %.1f %% of theirs: the "
			"thread that pins what they made is busy for %.1f %% of its",
			apart(loader, arena), 100 * steady_ratio(loader), 100 * (1 - busy), 100 * pin_ratio(loader));
	}
	if (busy < IS_BUSY) {
		*limit = "handing over";
		return arena_printf(
			arena,
			"%sthe loop waits %.1f %% of its time although workers are idle for %.1f %% of theirs: what "
			"is slow lies between them: pickling, queues, pinning memory, asking for batches",
			apart(loader, arena), 100 * steady_ratio(loader), 100 * (1 - busy));
	}
	*limit = larger_part(work);
	return arena_printf(
		arena,
		"the loop waits %.1f %% of its time, and workers are busy: %.1f %% of theirs in the dataset's "
		"code, %.1f %% in collating%s",
		100 * wait_ratio(loader), 100 * (double)work->dataset_ns / window_ns,
		100 * (double)work->collate_ns / window_ns, keep_up(loader, arena));
}

static const char *limit_of_the_loop(const struct loader *loader, struct arena *arena)
{
	double own_ns = (double)(loader->loop_ns - loader->wait_ns) / (double)loader->batches;

	if (loader->work.workers)
		return arena_printf(
			arena,
			"%sthe loop waits %.1f %% of its time, usually %s for a batch, and takes %s for a batch itself: "
			"loading does not limit it",
			apart(loader, arena), 100 * steady_ratio(loader), time_text(arena, loader->wait.p50),
			time_text(arena, own_ns));
	return arena_printf(
		arena, "the loop waits %.1f %% of its time and takes %s for a batch itself: loading does not limit it",
		100 * wait_ratio(loader), time_text(arena, own_ns));
}

static const char *limit_of(const struct loader *loader, struct arena *arena, const char **limit)
{
	const struct work *work = &loader->work;
	double busy = busy_ratio(work), start = start_ratio(loader);

	if (!work->workers && wait_ratio(loader) >= WAITS_LITTLE)
		return limit_here(loader, arena, limit);
	if (steady_ratio(loader) >= WAITS_LITTLE && !is_few_waits(loader))
		return limit_of_workers(loader, arena, limit);
	if (work->workers && start >= STARTS_LONG) {
		*limit = "start of workers";
		return arena_printf(
			arena,
			"the loop waits %.1f %% of its time for its first batches, while workers start, and %.1f %% "
			"for the others",
			100 * start, 100 * (wait_ratio(loader) - start));
	}
	*limit = work->workers && busy >= IS_BUSY ? "nothing" : "main process";
	if (work->workers && busy >= IS_BUSY)
		return arena_printf(
			arena,
			"the loop waits %.1f %% of its time; the workers just keep up, busy for %.1f %% of theirs",
			100 * wait_ratio(loader), 100 * busy);
	return limit_of_the_loop(loader, arena);
}

/* Loops that each start workers. All starts are known, and of some loops no wait. */
static const char *with_starting(const struct loader *loader, struct arena *arena, const char *sentence)
{
	double loops = loader->loops && loader->starts > loader->loops ? (double)loader->starts / loader->loops : 1;
	double whole_ns = (double)loader->starting_ns + loops * (double)loader->span_ns;
	double own_ns = (double)loader->workers_ns;

	if ((double)loader->starting_sampler_ns >= WAITS_LITTLE * whole_ns && whole_ns > 0)
		sentence = arena_printf(arena, "%s; before the first waits the sampler takes %s more", sentence,
		                        time_text(arena, (double)loader->starting_sampler_ns));
	if (loader->starts < 2 || own_ns < WAITS_LITTLE * whole_ns)
		return sentence;
	return arena_printf(arena,
	                    "%s; starting workers anew for %u loops takes %s more (persistent_workers=True starts "
	                    "them once)",
	                    sentence, loader->starts, time_text(arena, own_ns));
}

/* ---- rows ---- */

static void set_ratio(struct table *table, int row, int column, int64_t part_ns, int64_t whole_ns)
{
	if (whole_ns > 0)
		table_set_double(table, row, column, fmin(1, (double)part_ns / (double)whole_ns));
	else
		table_set_missing(table, row, column, "no time was recorded");
}

static void set_work(struct table *table, int row, const struct work *work)
{
	int64_t busy_ns = work->dataset_ns + work->collate_ns;

	table_set_int(table, row, LOADER_DATASET, work->dataset_ns);
	table_set_int(table, row, LOADER_COLLATE, work->collate_ns);
	set_ratio(table, row, LOADER_DATASET_RATIO, work->dataset_ns, work->window_ns);
	set_ratio(table, row, LOADER_COLLATE_RATIO, work->collate_ns, work->window_ns);
	if (work->workers)
		set_ratio(table, row, LOADER_IDLE_RATIO, work->window_ns > busy_ns ? work->window_ns - busy_ns : 0,
		          work->window_ns);
	else
		table_set_missing(table, row, LOADER_IDLE_RATIO, "there are no workers");
}

static void set_sampler(struct table *table, int row, const struct loader *loader)
{
	static const char missing[] = "the sampler was not recorded";

	if (loader->has_sampler) {
		table_set_int(table, row, LOADER_SAMPLER, loader->sampler_ns);
		set_ratio(table, row, LOADER_SAMPLER_RATIO, loader->sampler_ns, loader->loop_ns);
	} else {
		table_set_missing(table, row, LOADER_SAMPLER, missing);
		table_set_missing(table, row, LOADER_SAMPLER_RATIO, missing);
	}
}

static void set_pinning(struct table *table, int row, const struct loader *loader)
{
	if (!loader->pinned) {
		table_set_missing(table, row, LOADER_PIN, "no batch was seen being pinned");
		table_set_missing(table, row, LOADER_PIN_RATIO, "no batch was seen being pinned");
		return;
	}
	table_set_int(table, row, LOADER_PIN, loader->pin_ns);
	set_ratio(table, row, LOADER_PIN_RATIO, loader->pin_ns,
	          loader->pin_window_ns ? loader->pin_window_ns : loader->loop_ns);
	table->columns[LOADER_PIN_RATIO].is_hidden = false;
}

static const char *loader_label(const struct model *model, const struct loader *loader, struct arena *arena)
{
	const char *what = model_meta(model, loader->process,
	                              arena_printf(arena, "data_loader.%" PRIu32, loader->number));

	return what ? arena_printf(arena, "%" PRIu32 ": %s", loader->number, what)
	            : arena_printf(arena, "%" PRIu32, loader->number);
}

static int add_row(struct table *table, const struct model *model, const struct loader *loader, const char *part)
{
	int row = table_row(table);

	table_set_text(table, row, LOADER_PROCESS, process_label(model, loader->process, &table->arena));
	table_set_text(table, row, LOADER_NAME, loader_label(model, loader, &table->arena));
	table_set_text(table, row, LOADER_PART, part);
	return row;
}

/* Its workers were not seen: nothing can be said about their work. */
static bool is_work_known(const struct loader *loader)
{
	return loader->work.count > 0;
}

static void add_loader(struct table *table, const struct model *model, const struct loader *loader)
{
	static const int of_work[] = {LOADER_DATASET,    LOADER_DATASET_RATIO, LOADER_COLLATE, LOADER_COLLATE_RATIO,
	                              LOADER_IDLE_RATIO, LOADER_LIMIT,         LOADER_SENTENCE};
	int row = add_row(table, model, loader, "loop");
	const char *limit = NULL;

	table_set_int(table, row, LOADER_BATCHES, loader->batches);
	table_set_int(table, row, LOADER_WAIT, loader->wait_ns);
	table_set_int(table, row, LOADER_LOOP, loader->loop_ns);
	if (loader->has_rest && !loader->first_batches)
		table_set_missing(table, row, LOADER_START, REMOVED);
	else
		table_set_int(table, row, LOADER_START, loader->first_wait_ns);
	if (!loader->work.workers)
		table_set_missing(table, row, LOADER_WORKERS, "no batches of workers were recorded");
	else if (loader->has_rest && !loader->starts)
		table_set_missing(table, row, LOADER_WORKERS, REMOVED);
	else
		table_set_int(table, row, LOADER_WORKERS, loader->starting_ns);
	set_ratio(table, row, LOADER_WAIT_RATIO, loader->wait_ns, loader->loop_ns);
	set_sampler(table, row, loader);
	set_pinning(table, row, loader);
	table_set_missing(table, row, LOADER_END, "it is no worker");
	if (loader->batches) {
		table_set_double(table, row, LOADER_WAIT_P50, loader->wait.p50);
		table_set_double(table, row, LOADER_WAIT_MAX, loader->wait.max);
	} else {
		table_set_missing(table, row, LOADER_WAIT_P50, "no batch came");
		table_set_missing(table, row, LOADER_WAIT_MAX, "no batch came");
	}
	if (loader->work.workers && loader->has_ready)
		table_set_double(table, row, LOADER_READY, loader->ready);
	else
		table_set_missing(table, row, LOADER_READY,
		                  loader->has_rest ? REMOVED : "no batches of workers were recorded");
	if (loader->batches && is_work_known(loader)) {
		set_work(table, row, &loader->work);
		const char *sentence = limit_of(loader, &table->arena, &limit);

		table_set_text(table, row, LOADER_SENTENCE, with_starting(loader, &table->arena, sentence));
		table_set_text(table, row, LOADER_LIMIT, limit);
		return;
	}
	for (size_t i = 0; i < sizeof(of_work) / sizeof(of_work[0]); i++)
		table_set_missing(table, row, of_work[i], "its batches were made where nothing was recorded");
}

static void add_worker(struct table *table, const struct model *model, const struct loader *loader, uint32_t worker,
                       const struct work *work, int64_t first_ns)
{
	static const int of_loop[] = {LOADER_WAIT,    LOADER_WAIT_P50,      LOADER_WAIT_MAX, LOADER_WAIT_RATIO,
	                              LOADER_LOOP,    LOADER_READY,         LOADER_WORKERS,  LOADER_LIMIT,
	                              LOADER_SAMPLER, LOADER_SAMPLER_RATIO, LOADER_PIN,      LOADER_PIN_RATIO,
	                              LOADER_SENTENCE};
	const struct process *process = &model->processes[worker];
	const char *end = process_failure(model, worker, &table->arena);
	int64_t number = 0;
	int row;

	loader_worker_number(model, worker, &number);
	row = add_row(table, model, loader,
	              arena_printf(&table->arena, "worker %" PRId64 " (pid %" PRId64 ")", number, process->pid));
	table_set_int(table, row, LOADER_BATCHES, work->count);
	set_work(table, row, work);
	if (loader->has_rest)
		table_set_missing(table, row, LOADER_START, REMOVED);
	else
		table_set_int(table, row, LOADER_START,
		              first_ns > process->first_ns ? first_ns - process->first_ns : 0);
	if (end)
		table_set_text(table, row, LOADER_END, end);
	else
		table_set_missing(table, row, LOADER_END, "it did not fail, as far as is known");
	for (size_t i = 0; i < sizeof(of_loop) / sizeof(of_loop[0]); i++)
		table_set_missing(table, row, of_loop[i], "of the loop, not of one worker");
}

/* Its workers, each a row if `table` is given; else into the loader's sums. */
static void visit_workers(struct loader *loader, const struct loader_batches *batches, const struct model *model,
                          struct table *table)
{
	uint32_t last = MODEL_NONE;

	for (uint32_t i = 0; i < batches->fetch_count; i++) {
		const struct loader_fetch *fetch = &batches->fetches[i];
		struct work work;

		if (fetch->worker == MODEL_NONE || fetch->worker == last || !is_of(loader, fetch->process, fetch->loop))
			continue;
		last = fetch->worker;
		sum_worker(&work, batches, i);
		if (table) {
			add_worker(table, model, loader, last, &work, fetch->start_ns);
			continue;
		}
		loader->work.workers++;
		loader->work.count += work.count;
		clamped_add(&loader->work.dataset_ns, work.dataset_ns);
		clamped_add(&loader->work.collate_ns, work.collate_ns);
		clamped_add(&loader->work.window_ns, work.window_ns);
	}
}

static void visit_loader(const struct loader_batches *batches, const struct model *model, struct table *table,
                         double *values)
{
	struct loader loader = {.process = batches->waits[0].process,
	                        .number = (uint32_t)(batches->waits[0].loop >> 32)};

	sum_waits(&loader, batches, model, values);
	sum_starts(&loader, batches);
	sum_pinning(&loader, batches);
	visit_workers(&loader, batches, model, NULL);
	if (loader.work.workers)
		find_ready(&loader, batches);
	else
		sum_here(&loader, batches);
	add_loader(table, model, &loader);
	visit_workers(&loader, batches, model, table);
}

static void add_note(struct table *table, const struct model *model, const struct analysis_options *options)
{
	struct step_times own = {0};

	table->note = step_kinds_operators_note(step_times_get(&own, model, options), &table->arena);
	step_times_release(&own);
}

/* Traces of torch.profiler have waits for loaders, by their names, and nothing of the batches that are waited for. */
static const char *why_empty(const struct model *model)
{
	for (uint32_t string = 1; string <= model->strings.count; string++)
		if (is_data_wait(intern_text(&model->strings, string)))
			return "waits for a data loader were recorded, but not what its batches and workers do: see the phase data, "
			       "and the operators enumerate(DataLoader)#...";
	return "no loop over a data loader of PyTorch was recorded";
}

static enum status run(const struct model *model, const struct analysis_options *options, struct table *table,
                       struct error *err)
{
	struct loader_batches batches, one = {0};
	double *values;

	table_init(table, "data_loader", "Data loaders",
	           "what loops over PyTorch's data loaders wait for, where their steps are recorded with operators");
	table_columns(table, columns, LOADER_COLUMNS);
	table->columns[LOADER_PIN_RATIO].is_hidden = true; /* until one is pinned */
	loader_batches_find(&batches, model);
	values = memory_resize(NULL, (size_t)batches.wait_count + 1, sizeof(*values));
	while (loader_batches_next(&batches, &one))
		visit_loader(&one, model, table, values);
	if (!table->row_count)
		table->empty = step_times_no_operations(model, options, &table->arena, why_empty(model));
	else
		add_note(table, model, options);
	free(values);
	loader_batches_release(&batches);
	return STATUS_OK;
}

const struct analysis analysis_data_loader = {
	.name = "data_loader",
	.question = "does the loop wait for data, and why?",
	.run = run,
	.is_of_operators = true,
};
