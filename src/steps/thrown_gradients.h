/* SPDX-License-Identifier: Apache-2.0
 *
 * thrown_gradients.h: finds gradients that no optimizer used, in a program that calls optimizers. This is rule 4 of
 * infer_steps.h, for programs whose batches do not mark the steps.
 */
#ifndef STEPS_THROWN_GRADIENTS_H
#define STEPS_THROWN_GRADIENTS_H

#include "steps/infer_steps.h"

/* Returns true if the backward creates the same number of gradients as the one before it. If the earlier gradients
 * still existed, it would add to them; so the program set them to None. */
bool gradients_are_new(const struct train_record *backward, const struct train_record *before);
/* Returns the number of backwards whose gradients were thrown away before an update. Returns 0 if that number is half
 * of the updates or more: then those backwards are parts of a step. With batches, a zero_grad() does not count. */
size_t gradients_thrown_away(const struct train_record *records, size_t count, bool has_batches);

#endif
