/* SPDX-License-Identifier: Apache-2.0
 *
 * model_spans.h: ends of tracks, for model.h.
 */
#ifndef MODEL_MODEL_SPANS_H
#define MODEL_MODEL_SPANS_H

#include "model/track_builder.h"

/* Ends everything that is open at end_ns, flagged; returns how many spans that were. */
uint32_t track_builder_close(struct model *model, uint32_t track, int64_t end_ns, uint8_t flags);
void track_builder_release(struct track_builder *builder);

#endif
