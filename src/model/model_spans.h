/* SPDX-License-Identifier: Apache-2.0
 *
 * model_spans.h: closes and releases tracks, for model.h.
 */
#ifndef MODEL_MODEL_SPANS_H
#define MODEL_MODEL_SPANS_H

#include "model/track_builder.h"

/* Ends all open spans of the track at end_ns, with the flags. Returns the number of spans. */
uint32_t track_builder_close(struct model *model, uint32_t track, int64_t end_ns, uint8_t flags);
void track_builder_release(struct track_builder *builder);

#endif
