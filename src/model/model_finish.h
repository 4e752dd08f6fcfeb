/* SPDX-License-Identifier: Apache-2.0
 *
 * model_finish.h: the pieces of model_finish() that have files of their own. Private to model/.
 */
#ifndef MODEL_MODEL_FINISH_H
#define MODEL_MODEL_FINISH_H

#include "model/model.h"

/* The steps of one process and a cursor that goes forward in time. */
struct step_cursor {
	const struct model_step *steps;
	int32_t first, next, end; /* indexes; next: the first one that starts after the last time asked for */
};
struct step_cursor step_cursor_of(const struct model *model, uint32_t process);
/* Index of the step that time_ns lies in, -1: none. A step's end belongs to it when no other step starts there. Times
 * must not go back. */
int32_t step_cursor_at(struct step_cursor *cursor, int64_t time_ns, bool *is_at_end);

#endif
