/* SPDX-License-Identifier: Apache-2.0
 *
 * record_gradients.h: gradients and updates by hand in the records of a trace, which has not all that a recording has.
 */
#ifndef STEPS_RECORD_GRADIENTS_H
#define STEPS_RECORD_GRADIENTS_H

#include "steps/infer_steps.h"

/* Returns true for an operator that writes to tensors in place. It is an update if no optimizer is called. */
static inline bool record_may_update(const struct train_record *record)
{
	return record->token == TOKEN_OP && (record->count || record->part);
}

/* Call once, with all records of a thread that trains, by start. steps: the thread calls optimizers; has_calls: a thread of
 * its process does. */
void record_gradients_settle(struct train_record *records, size_t count, bool steps, bool has_calls);

#endif
