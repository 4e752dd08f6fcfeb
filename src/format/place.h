/* SPDX-License-Identifier: Apache-2.0
 *
 * place.h: where a dead process was: its last step, and what was open then.
 */
#ifndef FORMAT_PLACE_H
#define FORMAT_PLACE_H

#include "format/fold.h"

/* Fills has_step, last_step and last_op from the segment; leaves them alone where it says nothing. */
void place_find(const char *segment, struct fold_result *result);

#endif
