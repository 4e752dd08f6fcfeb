/* SPDX-License-Identifier: Apache-2.0
 *
 * other_times.h: traces that are read as ranks of a job but never ran at the same time, such as runs of different days
 * in one directory.
 */
#ifndef IMPORTERS_OTHER_TIMES_H
#define IMPORTERS_OTHER_TIMES_H

#include "model/model.h"

/* Adds a line to the ledger for each trainer that ran at another time than the first one. Unless the trainer has a
 * rank, it is left out with all its data. Call before model_finish(). */
void other_times_leave_out(struct model *model);

#endif
