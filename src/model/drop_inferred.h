/* SPDX-License-Identifier: Apache-2.0
 *
 * drop_inferred.h: takes out the inferred steps and phases of processes that ran beside one that marks its steps: they are its workers.
 * Call it before model_finish().
 */
#ifndef MODEL_DROP_INFERRED_H
#define MODEL_DROP_INFERRED_H

#include "model/model.h"

/* keeps: true for each process that keeps its inferred steps. The others lose them if a process with marked steps ran at the same time. The ledger
 * loses the lines about them, and the spans around them get their children. */
void model_drop_inferred(struct model *model, const bool *keeps);

#endif
