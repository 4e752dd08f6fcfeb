/* SPDX-License-Identifier: Apache-2.0
 *
 * other_times.h: traces that are read together as ranks of a job, and never ran at the same time: runs of other days in one directory.
 */
#ifndef IMPORTERS_OTHER_TIMES_H
#define IMPORTERS_OTHER_TIMES_H

#include "model/model.h"

/* Before model_finish(). A line of the ledger for each trainer that ran at another time than the first one; it goes with all that is of it,
 * unless it is a rank of its own. */
void other_times_leave_out(struct model *model);

#endif
