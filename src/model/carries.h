/* SPDX-License-Identifier: Apache-2.0
 *
 * carries.h: time that spans of a lane take from spans of another lane, collected chunk by chunk.
 */
#ifndef MODEL_CARRIES_H
#define MODEL_CARRIES_H

#include "model/track_builder.h"

/* Collects the time that spans of a chunk cover of their parents in earlier chunks. Call it chunk by chunk. */
void carries_collect(struct track_builder *builder, const struct span_chunk *chunk);
/* After the last chunk: adds the time that lanes take from each other, and merges the entries of each row into one. */
void carries_finish(struct model *model);

#endif
