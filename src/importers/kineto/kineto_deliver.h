/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_deliver.h: staged spans into the model.
 */
#ifndef IMPORTERS_KINETO_KINETO_DELIVER_H
#define IMPORTERS_KINETO_KINETO_DELIVER_H

#include "importers/kineto/kineto_stage.h"

/* By start, the longer first, and never by the place in the file. */
int kineto_compare_spans(const void *left, const void *right);
void kineto_sort(struct kineto_stage *stage, struct staged_track *track);
/* The spans of the track into the model, `shift_ns` later, into as many tracks, up to 64, as it takes that none is cut: the others are
 * named as lanes. Spans of threads that end after the one around them by at most a microsecond, which is how times are rounded, are cut.
 * What was cut is in the ledger. */
void kineto_deliver(struct kineto_stage *stage, uint32_t track, enum track_kind kind, int64_t shift_ns,
                    struct model *model);

#endif
