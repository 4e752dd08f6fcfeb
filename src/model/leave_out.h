/* SPDX-License-Identifier: Apache-2.0
 *
 * leave_out.h: takes processes out of a model, with all that is of them, as if their files had not been read.
 */
#ifndef MODEL_LEAVE_OUT_H
#define MODEL_LEAVE_OUT_H

#include "model/model.h"

/* is_left_out: by process. Before model_finish(). Stacks and strings stay, since they may be of several processes. */
void model_leave_out(struct model *model, const bool *is_left_out);

#endif
