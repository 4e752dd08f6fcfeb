/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict_replay.h: the verdict of a run that can be replayed. Private to diagnosis/.
 */
#ifndef DIAGNOSIS_VERDICT_REPLAY_H
#define DIAGNOSIS_VERDICT_REPLAY_H

#include "diagnosis/diagnosis.h"

struct replay_verdict {
	const char *verdict;
	bool is_bound;       /* its cuts take a fifth of a step */
	double ratio;        /* saving of its cuts, as share of a step; healthy and compute-bound: of the largest cut */
	double margin_ratio; /* to the next verdict */
	const char *sentence; /* in the arena of the findings */
};

/* Decides from the cuts that findings name. ranks: the table. unseen_ratio: share of a step of which nothing was recorded. Returns false if
 * too much of a step is unseen and no cut explains it; then only the sentence is set. */
bool replay_verdict_decide(struct replay_verdict *verdict, struct diagnosis *diagnosis, const struct table *ranks,
                           double unseen_ratio);

/* Sets *together to the saving of all cuts that findings name, at once, without choices. Returns false if no finding names
 * one. */
bool replay_verdict_together(struct diagnosis *diagnosis, struct what_if_cut *together);

/* Returns why a run without a replay may not be called healthy if no rule says anything: its trace contradicts itself, or
 * its end is lost. NULL: nothing is known against it. */
const char *replay_verdict_unsound(struct report *report);

#endif
