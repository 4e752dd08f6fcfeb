/* SPDX-License-Identifier: Apache-2.0
 *
 * leave_out.h: removes processes and all their data from a model, as if their files had not been read.
 */
#ifndef MODEL_LEAVE_OUT_H
#define MODEL_LEAVE_OUT_H

#include "model/model.h"

/* is_left_out is indexed by process. Call it before model_finish(). Stacks and strings stay, because other processes
 * may share them. */
void model_leave_out(struct model *model, const bool *is_left_out);

#endif
