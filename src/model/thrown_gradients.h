/* SPDX-License-Identifier: Apache-2.0
 *
 * thrown_gradients.h: gradients that no optimizer used, in a program that calls optimizers: rule 4 of infer_steps.h, where batches do not tell.
 */
#ifndef MODEL_THROWN_GRADIENTS_H
#define MODEL_THROWN_GRADIENTS_H

#include "model/infer_steps.h"

/* Does the backward make as many gradients anew as the one before left? Were those still there it would add to them: they were set to
 * None. */
bool gradients_are_new(const struct train_record *backward, const struct train_record *before);
/* Of how many backwards the gradients were thrown away before an update; 0 where that is so in half of the updates or more: they
 * are parts of it. With batches a zero_grad() does not count here. */
size_t gradients_thrown_away(const struct train_record *records, size_t count, bool has_batches);

#endif
