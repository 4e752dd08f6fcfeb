/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_frames.h: calls of Python that cross ranges.
 */
#ifndef IMPORTERS_KINETO_KINETO_FRAMES_H
#define IMPORTERS_KINETO_KINETO_FRAMES_H

#include "importers/kineto/kineto_stage.h"

/* A call of Python that a range (step, annotation) begins or ends in the middle of, as `with` does in __enter__ and __exit__, ends there: a
 * thread is one track and no time counts twice. Of both it is what matters less. What was cut is in the ledger. Before tracks are
 * delivered. */
void kineto_cut_frames(struct kineto_stage *stage, struct staged_track *track, struct model *model);

#endif
