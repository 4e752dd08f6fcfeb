/* SPDX-License-Identifier: Apache-2.0
 *
 * join.h: joins processes of the model that are one process, recorded in several files one after the other. Call it
 * before model_finish().
 */
#ifndef MODEL_JOIN_H
#define MODEL_JOIN_H

#include "model/model.h"

struct process_join {
	uint32_t from; /* process that continues `to`; it is removed; in one join at most */
	uint32_t to;   /* not the `from` of another join */
};

/* Joins are in order of time. A thread or stream of both processes becomes one track if it starts in the later process
 * after it ended in the earlier one. Otherwise it becomes another track of the process. If both have a fact, that of
 * `to` counts, or the higher one of a peak. */
void model_join_processes(struct model *model, const struct process_join *joins, uint32_t count);

/* Adds span i of the chunk to the track, with its columns. It must start no earlier than the track's last one. Returns its row; MODEL_NONE: it is
 * too deep. */
uint32_t model_span_copy(struct model *model, uint32_t track, const struct span_chunk *chunk, uint32_t i);

/* Returns false if the process has no spans. Otherwise sets when the first one starts and the last one ends. Call it
 * before model_finish(). */
bool model_process_extent(const struct model *model, uint32_t process, int64_t *first_ns, int64_t *last_ns);

#endif
