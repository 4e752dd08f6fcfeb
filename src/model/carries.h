/* SPDX-License-Identifier: Apache-2.0
 *
 * carries.h: time that spans of a lane take from spans of another one, collected chunk by chunk.
 */
#ifndef MODEL_CARRIES_H
#define MODEL_CARRIES_H

#include "model/track_builder.h"

/* What the spans of a chunk cover of spans in earlier ones; to be called chunk by chunk. */
void carries_collect(struct track_builder *builder, const struct span_chunk *chunk);
/* Once all are collected: adds what lanes take from each other, and makes each row one. */
void carries_finish(struct model *model);

#endif
