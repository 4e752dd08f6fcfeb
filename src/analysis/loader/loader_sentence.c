/* SPDX-License-Identifier: Apache-2.0
 *
 * loader_sentence.c: see the header. All decisions are made in loader_limit.c.
 */
#include "analysis/loader/loader_sentence.h"

#include "base/units.h"

static const char in_the_loop[] = "; the sampler runs in the loop's process, even with workers";

static const char *loader_time_text(struct arena *arena, double ns)
{
	char text[UNITS_BYTES];

	return arena_printf(arena, "%s", units_time(text, ns));
}

static const char *loader_keep_up(const struct loader_sums *sums, struct arena *arena)
{
	int needed = loader_workers_needed(sums);

	if (!needed)
		return "";
	const char *text = arena_printf(arena, "; about %d worker%s would keep up with the loop", needed,
	                                needed == 1 ? "" : "s");
	if (!sums->processors || needed < sums->processors)
		return text;
	return arena_printf(arena, "%s, if each has a processor: there %s %d", text,
	                    sums->processors == 1 ? "is" : "are", sums->processors);
}

/* Names the waits that loader_steady_ratio() leaves out. Its share comes next in the sentence. */
static const char *loader_apart(const struct loader_sums *sums, struct arena *arena)
{
	if (loader_start_ratio(sums) < 0.001)
		return "";
	return arena_printf(arena, "apart from %s while workers start, ",
	                    loader_time_text(arena, (double)sums->first_wait_ns));
}

static const char *loader_of_parts(const struct loader_sums *sums, enum loader_limit limit, struct arena *arena)
{
	static const char *const parts[LOADER_WAIT_PARTS] = {[LOADER_BY_DATASET] = "the dataset's code",
	                                                     [LOADER_BY_COLLATE] = "collating",
	                                                     [LOADER_BY_SAMPLER] = "the sampler",
	                                                     [LOADER_BY_PINNING] = "pinning memory"};
	const char *text = "", *end = "";

	for (enum loader_limit part = LOADER_BY_DATASET; part < LOADER_WAIT_PARTS; part++) {
		int64_t part_ns = loader_part_ns(sums, part);

		if (part <= LOADER_BY_COLLATE || part_ns > 0)
			text = arena_printf(arena, "%s%.1f %% in %s, ", text,
			                    100 * (double)part_ns / (double)sums->loop_ns, parts[part]);
	}
	if (limit == LOADER_BY_DATASET || limit == LOADER_BY_COLLATE)
		end = loader_keep_up(sums, arena);
	else if (limit == LOADER_BY_SAMPLER)
		end = in_the_loop;
	return arena_printf(
		arena,
		"the loop spends %.1f %% of its time on making batches because there are no workers: %sthe rest in "
		"%shanding over%s",
		100 * loader_wait_ratio(sums), text, sums->has_sampler ? "" : "sampling and ", end);
}

static const char *loader_of_workers(const struct loader_sums *sums, enum loader_limit limit, struct arena *arena)
{
	const struct loader_work *work = &sums->work;
	double window_ns = work->window_ns > 0 ? (double)work->window_ns : 1;
	double busy = loader_busy_ratio(work);

	switch (limit) {
	case LOADER_BY_SAMPLER:
		return arena_printf(arena, "%sthe loop waits %.1f %% of its time, %.1f %% in the sampler%s",
		                    loader_apart(sums, arena), 100 * loader_steady_ratio(sums),
		                    100 * (double)sums->sampler_ns / (double)sums->loop_ns, in_the_loop);
	case LOADER_BY_PINNING:
		return arena_printf(
			arena,
			"%sthe loop waits %.1f %% of its time although workers are idle for %.1f %% of theirs: the thread "
			"that pins their batches is busy for %.1f %% of its time",
			loader_apart(sums, arena), 100 * loader_steady_ratio(sums), 100 * (1 - busy),
			100 * loader_pin_ratio(sums));
	case LOADER_BY_HANDING_OVER:
		return arena_printf(
			arena,
			"%sthe loop waits %.1f %% of its time although workers are idle for %.1f %% of theirs: the slow part "
			"is between them (pickling, queues, pinning memory, asking for batches)",
			loader_apart(sums, arena), 100 * loader_steady_ratio(sums), 100 * (1 - busy));
	default:
		return arena_printf(
			arena,
			"the loop waits %.1f %% of its time, and workers are busy: %.1f %% of theirs in the dataset's "
			"code, %.1f %% in collating%s",
			100 * loader_wait_ratio(sums), 100 * (double)work->dataset_ns / window_ns,
			100 * (double)work->collate_ns / window_ns, loader_keep_up(sums, arena));
	}
}

static const char *loader_of_the_loop(const struct loader_sums *sums, struct arena *arena)
{
	double own_ns = (double)(sums->loop_ns - sums->wait_ns) / (double)sums->batches;

	if (sums->work.workers)
		return arena_printf(
			arena,
			"%sthe loop waits %.1f %% of its time, usually %s for a batch, and takes %s for a batch itself: "
			"loading does not limit the loop",
			loader_apart(sums, arena), 100 * loader_steady_ratio(sums),
			loader_time_text(arena, sums->wait.p50), loader_time_text(arena, own_ns));
	return arena_printf(
		arena,
		"the loop waits %.1f %% of its time and takes %s for a batch itself: loading does not limit the loop",
		100 * loader_wait_ratio(sums), loader_time_text(arena, own_ns));
}

static const char *loader_of_state(const struct loader_sums *sums, const struct loader_verdict *verdict,
                                   struct arena *arena)
{
	double start = loader_start_ratio(sums);

	switch (verdict->state) {
	case LOADER_MAKES_BATCHES:
		return loader_of_parts(sums, verdict->limit, arena);
	case LOADER_WAITS_FOR_BATCHES:
		return loader_of_workers(sums, verdict->limit, arena);
	case LOADER_WAITS_FOR_START:
		return arena_printf(
			arena,
			"the loop waits %.1f %% of its time for its first batches, while workers start, and %.1f %% "
			"for the others",
			100 * start, 100 * (loader_wait_ratio(sums) - start));
	case LOADER_JUST_KEEPS_UP:
		return arena_printf(
			arena,
			"the loop waits %.1f %% of its time; the workers just keep up, busy for %.1f %% of theirs",
			100 * loader_wait_ratio(sums), 100 * loader_busy_ratio(&sums->work));
	default:
		return loader_of_the_loop(sums, arena);
	}
}

const char *loader_sentence(const struct loader_sums *sums, const struct loader_verdict *verdict, struct arena *arena)
{
	const char *sentence = loader_of_state(sums, verdict, arena);

	if (loader_samples_long_before(sums))
		sentence = arena_printf(arena, "%s; before the first waits the sampler takes %s more", sentence,
		                        loader_time_text(arena, (double)sums->starting_sampler_ns));
	if (loader_starts_long_again(sums))
		sentence = arena_printf(
			arena,
			"%s; starting workers again for %u loops takes %s more (persistent_workers=True starts them once)",
			sentence, sums->starts, loader_time_text(arena, (double)sums->workers_ns));
	return sentence;
}
