/* SPDX-License-Identifier: Apache-2.0
 *
 * collective_matches.h: the same collective as several ranks carried it out, and what that says of their clocks: it cannot end on one rank
 * before all have come, so it ends on all of them at about the same time. A rank whose collectives end earlier or later than the others',
 * by the median of all, has a clock that is off by that. Where it drifts or was set, so that one number leaves the ends apart, it is off
 * by the median of those around: piece by piece.
 *
 *     struct collective_matches matches;
 *     collective_matches_find(&matches, &context);
 *     if (!matches.reason)
 *             ...matches.list[matches.groups[g].first ... + .count]: one collective, times of one clock
 *     collective_matches_release(&matches);
 *
 * Executions are kernels that communicate, or of a process that has none what gloo does. The nth of a kind and process group in a step
 * (without steps: at all) is the nth of the others, where all ranks of the group have as many. Only of collectives
 * that no rank leaves before all have come: allreduce, allgather, reducescatter, alltoall, barrier.
 *
 * Threads of one machine have one clock, which is not put right. By it a rank that leaves before another has come is in another collective: then
 * ranks are in process groups whose names were not recorded, and none of such groups is taken for the same. Nor are those of one name (or none)
 * that have more ranks than the group has, unless its ranks were recorded (has_unnamed_groups).
 */
#ifndef ANALYSIS_RANKS_COLLECTIVE_MATCHES_H
#define ANALYSIS_RANKS_COLLECTIVE_MATCHES_H

#include "analysis/analysis.h"
#include "analysis/ranks/communication_sizes.h"
#include "base/arena.h"

#define COLLECTIVES_UNNAMED                                                                                            \
	"collectives of several process groups cannot be told apart: their names, or which ranks they have, were not " \
	"recorded"              /* has_unnamed_groups */
#define COLLECTIVES_FOLLOWED 24 /* of fewer one number must do for a clock */

struct collective_run { /* of one rank */
	uint32_t process;
	struct communication_size size;
	const char *group;   /* name of its process group, "": not known */
	const char *members; /* its ranks, "[0, 1]", "": not known */
	int64_t step;        /* number; INT64_MIN: in none */
	uint32_t nth;
	int64_t start_ns, end_ns; /* with its clock put right */
	int64_t ahead_ns;         /* what was taken off them */
};

struct collective_match {
	uint32_t first, count; /* of the list; two or more */
};

struct rank_clock {
	uint32_t matches; /* collectives that it shares with others */
	int64_t ahead_ns; /* of the median of the ranks; what was taken off its times, their median where it changes */
	int64_t residual_ns; /* median of how far its ends lie from the others' then */
	bool has_change;     /* what was taken off changes */
	int64_t change_ns;   /* from its first collective to its last */
	uint32_t first;      /* of the points: as many as matches */
};

struct clock_point { /* of a rank, in order of time */
	uint32_t process;
	int64_t time_ns; /* end of a collective by its own clock */
	int64_t ahead_ns;
};

struct collective_matches {
	struct collective_run *list;
	struct collective_match *groups; /* in order of kind, group, step */
	struct rank_clock *clocks;       /* by process */
	struct clock_point *points;      /* by process and time */
	uint32_t count, group_count;
	uint32_t unmatched;      /* executions that no other rank has, or not as many */
	uint32_t unnamed;        /* executions of has_unnamed_groups, which are left out */
	bool has_one_clock;      /* it is not put right */
	bool has_unnamed_groups; /* several process groups, and it is not known which of them collectives are of */
	const char *reason;      /* why there are none; NULL: there are */
	struct arena arena;
};

void collective_matches_find(struct collective_matches *matches, struct analysis_context *context);

/* What is to be taken off a time of this process, by its own clock; between two collectives in proportion. 0: it has none with others. */
int64_t collective_matches_ahead(const struct collective_matches *matches, uint32_t process, int64_t time_ns);

/* First and last to come of a match, and when the first is through with it. */
struct collective_arrival {
	int64_t first_ns, last_ns, end_ns;
	uint32_t last_process;
};

struct collective_arrival collective_matches_arrival(const struct collective_matches *matches,
                                                     const struct collective_match *match);
void collective_matches_release(struct collective_matches *matches);

#endif
