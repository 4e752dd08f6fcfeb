/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_deliver.h: delivers staged spans to the model.
 */
#ifndef IMPORTERS_KINETO_KINETO_DELIVER_H
#define IMPORTERS_KINETO_KINETO_DELIVER_H

#include "importers/kineto/kineto_stage.h"

/* Orders spans by start, longer ones first, and never by their place in the file. */
int kineto_compare_spans(const void *left, const void *right);
void kineto_sort(struct kineto_stage *stage, struct staged_track *track);
/* Delivers the spans of the track, `shift_ns` later. Spreads them over up to 64 tracks of the model (lanes), so that no
 * span must be cut. Only a span of a thread that ends up to a microsecond after the span around it is cut: times are
 * rounded by that much. The ledger lists the cuts. */
void kineto_deliver(struct kineto_stage *stage, uint32_t track, enum track_kind kind, int64_t shift_ns,
                    struct model *model);

#endif
