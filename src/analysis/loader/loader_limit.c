/* SPDX-License-Identifier: Apache-2.0
 *
 * loader_limit.c: see the header. The loop's share of waits decides whether loading limits it, and the workers' share
 * of work decides by what.
 */
#include "analysis/loader/loader_limit.h"

#include "model/cell_words.h"

#include <math.h>

#define WAITS_LITTLE 0.05 /* share of the loop's time */
#define IS_BUSY 0.8       /* share of the workers' time */
#define DOMINATES 0.6     /* share of the work on a batch */
#define STARTS_LONG 0.2   /* share of the loop's time for the first batches */

double loader_wait_ratio(const struct loader_sums *sums)
{
	return sums->loop_ns > 0 ? (double)sums->wait_ns / (double)sums->loop_ns : 0;
}

double loader_start_ratio(const struct loader_sums *sums)
{
	return sums->loop_ns > 0 ? (double)sums->first_wait_ns / (double)sums->loop_ns : 0;
}

double loader_steady_ratio(const struct loader_sums *sums)
{
	double loop_ns = (double)(sums->loop_ns - sums->first_wait_ns);

	return loop_ns > 0 ? (double)(sums->wait_ns - sums->first_wait_ns) / loop_ns : 0;
}

double loader_busy_ratio(const struct loader_work *work)
{
	double window_ns = work->window_ns > 0 ? (double)work->window_ns : 1;

	return (double)(work->dataset_ns + work->collate_ns) / window_ns;
}

double loader_pin_ratio(const struct loader_sums *sums)
{
	return sums->pin_window_ns > 0 ? (double)sums->pin_ns / (double)sums->pin_window_ns : 0;
}

int64_t loader_part_ns(const struct loader_sums *sums, enum loader_limit part)
{
	switch (part) {
	case LOADER_BY_DATASET:
		return sums->work.dataset_ns;
	case LOADER_BY_COLLATE:
		return sums->work.collate_ns;
	case LOADER_BY_SAMPLER:
		return sums->sampler_ns;
	case LOADER_BY_PINNING:
		return sums->pin_ns;
	default:
		return 0;
	}
}

/* ---- remedies ---- */

/* The sampler stays in the loop, whatever the number of workers. */
int loader_workers_needed(const struct loader_sums *sums)
{
	double loop_ns = (double)(sums->loop_ns - sums->wait_ns + sums->sampler_ns);
	double work_ns = (double)(sums->work.dataset_ns + sums->work.collate_ns);
	double needed = loop_ns > 0 ? ceil(work_ns / loop_ns) : 0;
	uint32_t present = sums->loops ? sums->work.workers / sums->loops : 0;

	return needed >= 1 && needed <= 64 && (int)needed > (int)present ? (int)needed : 0;
}

/* Returns the time of all loops with their starts. The recording has all starts, but no waits of some loops: these take
 * the mean. */
static double loader_whole_ns(const struct loader_sums *sums)
{
	double loops = sums->loops && sums->starts > sums->loops ? (double)sums->starts / sums->loops : 1;

	return (double)sums->starting_ns + loops * (double)sums->span_ns;
}

bool loader_samples_long_before(const struct loader_sums *sums)
{
	double whole_ns = loader_whole_ns(sums);

	return (double)sums->starting_sampler_ns >= WAITS_LITTLE * whole_ns && whole_ns > 0;
}

bool loader_starts_long_again(const struct loader_sums *sums)
{
	return sums->starts >= 2 && (double)sums->workers_ns >= WAITS_LITTLE * loader_whole_ns(sums);
}

/* ---- the decision ---- */

/* Without workers the largest part of the waits limits. The rest of them is time in PyTorch's own code. */
static enum loader_limit loader_largest_part(const struct loader_sums *sums)
{
	int64_t rest_ns = sums->wait_ns, most_ns = loader_part_ns(sums, LOADER_BY_DATASET);
	enum loader_limit most = LOADER_BY_DATASET;

	for (enum loader_limit part = LOADER_BY_DATASET; part < LOADER_WAIT_PARTS; part++) {
		int64_t part_ns = loader_part_ns(sums, part);

		rest_ns -= part_ns;
		most = part_ns > most_ns ? part : most;
		most_ns = part_ns > most_ns ? part_ns : most_ns;
	}
	return rest_ns > most_ns ? LOADER_BY_HANDING_OVER : most;
}

/* Returns true if the waits are accidents: a busy machine, or a slow sample. Handing over costs each batch something,
 * and a few waits are long while workers are idle. */
static bool loader_has_few_waits(const struct loader_sums *sums)
{
	int64_t batches = sums->batches - sums->first_batches;
	double own_ns = batches > 0 ? (double)(sums->loop_ns - sums->first_wait_ns) / (double)batches : 0;

	return loader_busy_ratio(&sums->work) < IS_BUSY && loader_steady_ratio(sums) < STARTS_LONG &&
	       sums->wait.p50 < WAITS_LITTLE * own_ns;
}

/* Returns true if the sampler takes most of the waits after the start of workers. */
static bool loader_is_sampling(const struct loader_sums *sums)
{
	return (double)(sums->sampler_ns - sums->first_sampler_ns) >=
	       DOMINATES * (double)(sums->wait_ns - sums->first_wait_ns);
}

static enum loader_limit loader_limit_of_workers(const struct loader_sums *sums)
{
	const struct loader_work *work = &sums->work;
	int64_t both_ns = work->dataset_ns + work->collate_ns;

	if (loader_is_sampling(sums))
		return LOADER_BY_SAMPLER;
	if (loader_busy_ratio(work) < IS_BUSY)
		return loader_pin_ratio(sums) >= IS_BUSY ? LOADER_BY_PINNING : LOADER_BY_HANDING_OVER;
	if ((double)work->dataset_ns >= DOMINATES * (double)both_ns)
		return LOADER_BY_DATASET;
	return (double)work->collate_ns >= DOMINATES * (double)both_ns ? LOADER_BY_COLLATE : LOADER_BY_FEW_WORKERS;
}

struct loader_verdict loader_limit_find(const struct loader_sums *sums)
{
	bool has_workers = sums->work.workers;

	if (!has_workers && loader_wait_ratio(sums) >= WAITS_LITTLE)
		return (struct loader_verdict){LOADER_MAKES_BATCHES, loader_largest_part(sums)};
	if (loader_steady_ratio(sums) >= WAITS_LITTLE && !loader_has_few_waits(sums))
		return (struct loader_verdict){LOADER_WAITS_FOR_BATCHES, loader_limit_of_workers(sums)};
	if (has_workers && loader_start_ratio(sums) >= STARTS_LONG)
		return (struct loader_verdict){LOADER_WAITS_FOR_START, LOADER_BY_START};
	if (has_workers && loader_busy_ratio(&sums->work) >= IS_BUSY)
		return (struct loader_verdict){LOADER_JUST_KEEPS_UP, LOADER_BY_NOTHING};
	return (struct loader_verdict){LOADER_KEEPS_UP, LOADER_BY_MAIN_PROCESS};
}

const char *loader_limit_name(enum loader_limit limit)
{
	static const char *const names[LOADER_LIMITS] = {
		[LOADER_BY_DATASET] = CELL_LOADER_DATASET,
		[LOADER_BY_COLLATE] = CELL_LOADER_COLLATE,
		[LOADER_BY_SAMPLER] = CELL_LOADER_SAMPLER,
		[LOADER_BY_PINNING] = CELL_LOADER_PINNING,
		[LOADER_BY_HANDING_OVER] = CELL_LOADER_HANDING_OVER,
		[LOADER_BY_FEW_WORKERS] = CELL_LOADER_FEW_WORKERS,
		[LOADER_BY_START] = CELL_LOADER_START,
		[LOADER_BY_MAIN_PROCESS] = CELL_LOADER_MAIN_PROCESS,
		[LOADER_BY_NOTHING] = CELL_LOADER_NOTHING,
	};

	return names[limit];
}
