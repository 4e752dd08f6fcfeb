/* SPDX-License-Identifier: Apache-2.0
 *
 * track_builder.h: data of a track that struct track does not hold. It keeps the open spans while the track is filled,
 * and the time that spans outside a chunk take from spans in it. Private to model/.
 */
#ifndef MODEL_TRACK_BUILDER_H
#define MODEL_TRACK_BUILDER_H

#include "model/model.h"

#define MODEL_MAX_DEPTH 10000u /* deeper spans are counted, not stored */

struct open_span {
	uint32_t row;
	uint32_t begun;   /* 1 + index of the innermost span, from this one outwards, that waits for its end; 0: none */
	int64_t inner_ns; /* latest end of a child */
	int64_t limit_ns; /* INT64_MAX, or the end of the nearest complete span, this one or one around it */
	uint8_t kind, phase;
	bool is_complete; /* its end is known: it can be a parent, but is not open */
};

struct carry { /* time that children in later chunks, and spans in other lanes, take from the self time of `row` */
	uint32_t row;
	int64_t covered_ns;
};

struct track_builder {
	struct track track; /* first: model.tracks points here */
	struct span_chunk *last;
	uint32_t chunks_capacity;
	struct open_span *open;
	uint32_t open_count, open_capacity;
	uint32_t deeper;   /* open spans beyond MODEL_MAX_DEPTH */
	uint64_t too_deep; /* spans that were not stored */
	uint64_t moved;    /* rows moved up one level, counting each move */
	bool has_times;
	int64_t first_ns; /* earliest start of all spans */
	int64_t last_start_ns;
	int64_t high_ns;       /* latest start or end */
	struct carry *carries; /* by row; each row once after model_finish() */
	uint32_t carry_count, carry_capacity;
};

static inline struct track_builder *track_builder_of(const struct model *model, uint32_t track)
{
	return (struct track_builder *)model->tracks[track];
}

#endif
