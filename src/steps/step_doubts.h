/* SPDX-License-Identifier: Apache-2.0
 *
 * step_doubts.h: says in the ledger what is uncertain about inferred steps.
 *
 *     step_doubts_say(model, process, &inference, DOUBTS_OF_TRACE);
 */
#ifndef STEPS_STEP_DOUBTS_H
#define STEPS_STEP_DOUBTS_H

#include "model/model.h"
#include "steps/infer_steps.h"

enum step_doubts_of {
	DOUBTS_OF_TRACE,     /* which does not tell optimizers apart */
	DOUBTS_OF_RECORDING, /* of a program that can still be changed to mark its steps */
};

void step_doubts_say(struct model *model, uint32_t process, const struct inference *inference,
                     enum step_doubts_of source);

#endif
