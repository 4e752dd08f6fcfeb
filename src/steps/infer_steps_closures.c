/* SPDX-License-Identifier: Apache-2.0
 *
 * infer_steps_closures.c: which work in an optimizer's call with a closure is the optimizer's own. Lightning's optimizers and LBFGS call the
 * program, which computes a loss and its gradients. They turn gradients off for their own work, so its operators have no numbers.
 */
#include "steps/infer_steps_parts.h"

/* Another evaluation of the closure begins with it, at the latest. */
static bool begins_closure(const struct train_record *record)
{
	return record->is_module || record->token == TOKEN_FORWARD || record->token == TOKEN_ZERO_GRAD ||
	       record->token == TOKEN_DATA;
}

/* Before another evaluation at record `closure`: what comes behind a pause is the closure's already, as data that it prepares. */
static void end_before_closure(struct inferrer *in, size_t closure)
{
	size_t first = closure;

	while (first && in->is_update[first - 1])
		first--;
	for (size_t i = closure; i-- > first + 1;) {
		in->is_update[i] = false;
		if (train_pauses(TOKEN_OP, in->records[i - 1].end_ns, in->records[i].start_ns))
			return;
	}
	for (size_t i = first; i < closure; i++) /* no pause: all is the optimizer's */
		in->is_update[i] = true;
}

void infer_own_work(struct inferrer *in)
{
	for (size_t call = 0; call < in->count; call++) {
		bool is_behind = false;

		if (!is_call(&in->records[call]) || !has_closure(in, call))
			continue;
		for (size_t i = call + 1; i < in->count && in->records[i].is_inside; i++) {
			const struct train_record *record = &in->records[i];

			if (is_behind && begins_closure(record))
				end_before_closure(in, i);
			is_behind = trains(in, record) || (is_behind && !begins_closure(record));
			in->is_update[i] = is_behind && record->token == TOKEN_OP && record->work == WORK_PLAIN;
		}
	}
}
