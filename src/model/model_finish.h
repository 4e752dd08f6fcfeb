/* SPDX-License-Identifier: Apache-2.0
 *
 * model_finish.h: the parts of model_finish() that are in other files. Private to model/.
 */
#ifndef MODEL_MODEL_FINISH_H
#define MODEL_MODEL_FINISH_H

#include "model/model.h"

/* The steps of one process and a cursor that moves forward in time. */
struct step_cursor {
	const struct model_step *steps;
	int32_t first, next, end; /* indexes; next: the first step that starts after the last time asked for */
};
struct step_cursor step_cursor_of(const struct model *model, uint32_t process);
/* Returns the index of the step that contains time_ns, -1: none. A step contains its end if no other step starts at
 * that time. Times must not decrease. *is_at_end: time_ns is the end of the step. */
int32_t step_cursor_at(struct step_cursor *cursor, int64_t time_ns, bool *is_at_end);

#endif
