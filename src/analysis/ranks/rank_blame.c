/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_blame.c: see rank_blame.h. Visits collectives in order of time. Each rank remembers its last waits and who
 * caused them.
 */
#include "analysis/ranks/rank_blame.h"

#include "analysis/ranks/collective_waits.h"
#include "base/lower_bound.h"
#include "base/memory.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WAITS_KEPT 64 /* of a rank: earlier ones no longer matter */

struct blamed_wait {
	uint32_t group;   /* of the matches */
	uint32_t culprit; /* process */
	double ns;        /* 0: it was in the collective and did not wait */
};

struct wait_history { /* of a rank: the last WAITS_KEPT in a ring */
	struct blamed_wait waits[WAITS_KEPT];
	uint32_t count; /* of all waits so far */
};

struct in_step { /* waits of others because of a rank, in the step visited last */
	int64_t step;
	double ns;
};

struct blaming {
	const struct collective_matches *matches;
	struct rank_blame *blames;
	struct in_step *in_steps;       /* by process */
	struct wait_history *histories; /* by process */
};

struct faults { /* the causes of waits, each culprit once */
	struct blamed_wait list[WAITS_KEPT];
	uint32_t count;
	double sum_ns;
};

static void add_fault(struct faults *faults, uint32_t culprit, double ns)
{
	uint32_t i = 0;

	faults->sum_ns += ns;
	while (i < faults->count && faults->list[i].culprit != culprit)
		i++;
	assert(i < WAITS_KEPT);
	if (i == faults->count)
		faults->list[faults->count++] = (struct blamed_wait){.culprit = culprit};
	faults->list[i].ns += ns;
}

static bool rank_blame_is_in(const struct blaming *blaming, uint32_t group, uint32_t process)
{
	const struct collective_match *match = &blaming->matches->groups[group];
	const struct collective_run *runs = &blaming->matches->list[match->first];
	uint32_t i = LOWER_BOUND(runs, match->count, item, item->process < process);

	return i < match->count && runs[i].process == process;
}

/* Collects the waits of the process since it was last in a collective together with the other: both left that one at
 * the same time. */
static void find_faults(struct faults *faults, const struct blaming *blaming, uint32_t process, uint32_t other)
{
	const struct wait_history *history = &blaming->histories[process];
	uint32_t kept = history->count < WAITS_KEPT ? history->count : WAITS_KEPT;

	faults->count = 0;
	faults->sum_ns = 0;
	for (uint32_t i = 1; i <= kept; i++) {
		const struct blamed_wait *wait = &history->waits[(history->count - i) % WAITS_KEPT];

		if (rank_blame_is_in(blaming, wait->group, other))
			return;
		if (wait->ns > 0)
			add_fault(faults, wait->culprit, wait->ns);
	}
}

static void rank_blame_remember(struct blaming *blaming, uint32_t process, uint32_t group, uint32_t culprit, double ns)
{
	struct wait_history *history = &blaming->histories[process];

	history->waits[history->count++ % WAITS_KEPT] = (struct blamed_wait){group, culprit, ns};
}

static void add_blame(struct blaming *blaming, int64_t step, const struct blamed_wait *fault, uint32_t process,
                      double alone)
{
	struct rank_blame *blame = &blaming->blames[fault->culprit];
	struct in_step *in_step = &blaming->in_steps[fault->culprit];

	blame->caused_ns += fault->ns;
	blame->alone_ns += fault->ns * alone;
	blaming->blames[process].waited_ns += fault->ns;
	*in_step = (struct in_step){step, fault->ns + (in_step->step == step ? in_step->ns : 0)};
	if (in_step->ns > blame->most_ns)
		blame->most_ns = in_step->ns, blame->most_step = step;
}

/* Shares out a wait of the process. alone_ns of it is for the last rank only. */
static void share_out(struct blaming *blaming, uint32_t group, uint32_t process, uint32_t last, double wait_ns,
                      double alone_ns)
{
	int64_t step = blaming->matches->list[blaming->matches->groups[group].first].step;
	struct faults of_last, own;
	double inherited_ns;

	find_faults(&of_last, blaming, last, process);
	find_faults(&own, blaming, process, last);
	inherited_ns = fmin(wait_ns, fmax(0, of_last.sum_ns - own.sum_ns));
	if (inherited_ns > 0)
		for (uint32_t i = 0; i < of_last.count; i++)
			of_last.list[i].ns *= inherited_ns / of_last.sum_ns;
	else
		of_last.count = 0;
	if (of_last.count == WAITS_KEPT) /* no room for one more */
		of_last.count--;
	assert(of_last.count < WAITS_KEPT);
	add_fault(&of_last, last, wait_ns - inherited_ns);
	for (uint32_t i = 0; i < of_last.count; i++) {
		const struct blamed_wait *fault = &of_last.list[i];

		rank_blame_remember(blaming, process, group, fault->culprit, fault->ns);
		if (fault->culprit == process) /* it held up the last one in another group */
			continue;
		add_blame(blaming, step, fault, process, alone_ns / wait_ns);
	}
}

static void blame(struct blaming *blaming, const struct collective_waits *waits, uint32_t group)
{
	const struct collective_match *match = &blaming->matches->groups[group];
	const struct collective_run *runs = &blaming->matches->list[match->first];
	const struct collective_wait *own = &waits->list[match->first];
	struct collective_arrival arrival = collective_matches_arrival(blaming->matches, match);

	for (uint32_t i = 0; i < match->count; i++)
		if (own[i].wait_ns > 0)
			share_out(blaming, group, runs[i].process, arrival.last_process, (double)own[i].wait_ns,
			          (double)own[i].alone_ns);
	for (uint32_t i = 0; i < match->count; i++) /* only now, because the others look at the waits of the last one */
		if (runs[i].start_ns == arrival.last_ns)
			rank_blame_remember(blaming, runs[i].process, group, arrival.last_process, 0);
}

struct rank_blame *rank_blame_find(const struct collective_matches *matches, uint32_t processes, const bool *is_counted)
{
	struct blaming blaming = {matches, memory_resize(NULL, (size_t)processes + 1, sizeof(*blaming.blames)),
	                          memory_resize(NULL, (size_t)processes + 1, sizeof(*blaming.in_steps)),
	                          memory_resize(NULL, (size_t)processes + 1, sizeof(*blaming.histories))};
	struct collective_waits waits;

	memset(blaming.blames, 0, ((size_t)processes + 1) * sizeof(*blaming.blames));
	memset(blaming.in_steps, 0, ((size_t)processes + 1) * sizeof(*blaming.in_steps));
	for (uint32_t i = 0; i < processes; i++)
		blaming.histories[i].count = 0;
	collective_waits_find(&waits, matches, processes);
	for (uint32_t i = 0; i < matches->group_count; i++)
		if (is_counted[waits.order[i]])
			blame(&blaming, &waits, waits.order[i]);
	collective_waits_release(&waits);
	free(blaming.in_steps);
	free(blaming.histories);
	return blaming.blames;
}
