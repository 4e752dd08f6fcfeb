/* SPDX-License-Identifier: Apache-2.0
 *
 * thrown_gradients.c: see thrown_gradients.h.
 */
#include "steps/thrown_gradients.h"

bool gradients_are_new(const struct train_record *backward, const struct train_record *before)
{
	return backward->count && !backward->part && backward->count == before->count;
}

size_t gradients_thrown_away(const struct train_record *records, size_t count, bool has_batches)
{
	const struct train_record *backward = NULL;
	size_t thrown = 0, updates = 0;
	bool has_zero = false, has_forward = false;

	for (const struct train_record *record = records; record < records + count; record++) {
		if (record->is_inside)
			continue;
		if (record->token == TOKEN_OPTIMIZER || record->token == TOKEN_SCALER) {
			updates += backward != NULL;
			backward = NULL;
			has_zero = has_forward = false;
		} else if (record->token == TOKEN_BACKWARD && record->is_training) {
			thrown += has_zero ? !has_batches
			                   : backward && has_forward && gradients_are_new(record, backward);
			has_zero = has_forward = false;
			backward = record;
		}
		has_zero |= record->token == TOKEN_ZERO_GRAD && backward;
		has_forward |= record->token == TOKEN_FORWARD;
	}
	return 2 * thrown < updates ? thrown : 0;
}
