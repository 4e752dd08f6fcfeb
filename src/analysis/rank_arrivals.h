/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_arrivals.h: which rank the others wait for. All ranks of a synchronous job show the same step time; what differs is when each comes to
 * the last collective of a step: who comes last is slow, and the others wait for as long as they came before.
 */
#ifndef ANALYSIS_RANK_ARRIVALS_H
#define ANALYSIS_RANK_ARRIVALS_H

#include "analysis/step_times.h"

struct rank_arrival {    /* of one rank; means over the steps that all ranks completed */
	double late_ns;  /* behind the first rank */
	double waits_ns; /* before the last rank */
};

/* One per times->spans, those that are no ranks unused. False: `reason` says why it is not known. Clocks of several machines, and of
 * traces that do not say where they are from, are put right by the collectives (collective_matches.h). */
bool rank_arrivals_find(struct rank_arrival *arrivals, const struct model *model,
                        const struct analysis_options *options, const struct step_times *times, const char **reason);

#endif
