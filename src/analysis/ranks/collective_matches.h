/* SPDX-License-Identifier: Apache-2.0
 *
 * collective_matches.h: matches the executions of one collective in several ranks and corrects their clocks.
 *
 * A collective cannot end on one rank before all have arrived, so it ends on all of them at about the same time. If
 * the collectives of a rank end earlier or later than the others', the median difference is the offset of its clock.
 * If the clock drifts or was set, so that one offset leaves the ends apart, the offset is the median of the
 * neighbouring collectives: piece by piece.
 *
 *     struct collective_matches matches;
 *     collective_matches_find(&matches, &context);
 *     if (!matches.reason)
 *             ...matches.list[matches.groups[g].first ... + .count]: one collective, times of one clock
 *     collective_matches_release(&matches);
 *
 * Executions are kernels that communicate or, in a process without such kernels, gloo's. The nth of a kind and process
 * group in a step (without steps: in the run) matches the nth of the others. All ranks of the group must have the same
 * number. Only collectives that no rank leaves before all have arrived are matched: allreduce, allgather,
 * reducescatter, alltoall, barrier.
 *
 * Threads of one machine share one clock, which is not corrected. If a rank leaves before another has arrived, by this
 * clock, they are in different collectives. Then ranks are in process groups whose names were not recorded, and
 * executions of unnamed groups are not matched. Nor are executions of one name (or none) in more ranks than the group
 * has, unless its ranks were recorded (has_unnamed_groups).
 */
#ifndef ANALYSIS_RANKS_COLLECTIVE_MATCHES_H
#define ANALYSIS_RANKS_COLLECTIVE_MATCHES_H

#include "analysis/analysis.h"
#include "analysis/ranks/communication_sizes.h"
#include "base/arena.h"

#define COLLECTIVES_UNNAMED                                                                                             \
	"collectives of several process groups cannot be distinguished: the names or the ranks of the groups were not " \
	"recorded"              /* has_unnamed_groups */
#define COLLECTIVES_FOLLOWED 24 /* with fewer, a clock has one offset */

struct collective_run { /* an execution in one rank */
	uint32_t process;
	struct communication_size size;
	const char *group;   /* name of its process group, "": unknown */
	const char *members; /* its ranks, "[0, 1]", "": unknown */
	int64_t step;        /* number; INT64_MIN: outside steps */
	uint32_t nth;
	int64_t start_ns, end_ns; /* by the corrected clock */
	int64_t ahead_ns;         /* offset that was subtracted from both */
};

struct collective_match {
	uint32_t first, count; /* of the list; count is at least two */
};

struct rank_clock {
	uint32_t matches; /* number of collectives that it shares with others */
	int64_t ahead_ns; /* offset from the median of the ranks, subtracted from its times; its median if it changes */
	int64_t residual_ns; /* median distance of its corrected ends from the others' */
	bool has_change;     /* the offset changes */
	int64_t change_ns;   /* of the offset, from its first collective to its last */
	uint32_t first;      /* its first point; the number of its points is matches */
};

struct clock_point { /* of a rank; in the order of time */
	uint32_t process;
	int64_t time_ns; /* end of a collective by its own clock */
	int64_t ahead_ns;
};

struct collective_matches {
	struct collective_run *list;
	struct collective_match *groups; /* sorted by kind, group, step */
	struct rank_clock *clocks;       /* by process */
	struct clock_point *points;      /* by process and time */
	uint32_t count, group_count;
	uint32_t unmatched;      /* executions that the other ranks lack, or have in other numbers */
	uint32_t unnamed;        /* executions left out by has_unnamed_groups */
	bool has_one_clock;      /* it is not corrected */
	bool has_unnamed_groups; /* there are several process groups, and the groups of collectives are unknown */
	const char *reason;      /* why there are no matches; NULL: there are */
	struct arena arena;
};

void collective_matches_find(struct collective_matches *matches, struct analysis_context *context);

/* Returns the offset to subtract from a time of this process, by its own clock. Between two collectives it is
 * interpolated. 0: the process shares no collective with others. */
int64_t collective_matches_ahead(const struct collective_matches *matches, uint32_t process, int64_t time_ns);

/* The first and the last arrival at a match, and when the first rank leaves it. */
struct collective_arrival {
	int64_t first_ns, last_ns, end_ns;
	uint32_t last_process;
};

struct collective_arrival collective_matches_arrival(const struct collective_matches *matches,
                                                     const struct collective_match *match);
void collective_matches_release(struct collective_matches *matches);

#endif
