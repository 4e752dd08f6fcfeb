/* SPDX-License-Identifier: Apache-2.0
 *
 * join.h: processes of the model that are one: several files hold what was recorded of it, one after the other. Before model_finish().
 */
#ifndef MODEL_JOIN_H
#define MODEL_JOIN_H

#include "model/model.h"

struct process_join {
	uint32_t from; /* process that goes on what `to` was, and is gone afterwards; each once */
	uint32_t to;   /* no `from` of any other */
};

/* In order of time. A thread or stream of both is one track, as long as it begins in the one when it has ended in the other; else it is another
 * track of the process. A fact that both have is that of `to`. */
void model_join_processes(struct model *model, const struct process_join *joins, uint32_t count);

#endif
