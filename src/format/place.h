/* SPDX-License-Identifier: Apache-2.0
 *
 * place.h: finds the last position of a dead process: its last step and its open operator.
 */
#ifndef FORMAT_PLACE_H
#define FORMAT_PLACE_H

#include "format/fold.h"

/* Fills the members of `result` about the last step and operator from the segment. Members that the segment does not
 * show stay unchanged. */
void place_find(const char *segment, struct fold_result *result);

#endif
