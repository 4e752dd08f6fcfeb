/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_frames.h: cuts Python calls that cross ranges.
 */
#ifndef IMPORTERS_KINETO_KINETO_FRAMES_H
#define IMPORTERS_KINETO_KINETO_FRAMES_H

#include "importers/kineto/kineto_stage.h"

/* Cuts a Python call where a range (step, annotation) begins or ends in the middle of it, as `with` does in __enter__
 * and __exit__. A thread is one track and no time may count twice, and the call matters less than the range. The ledger
 * lists the cuts. Call before tracks are delivered. */
void kineto_cut_frames(struct kineto_stage *stage, struct staged_track *track, struct model *model);

#endif
