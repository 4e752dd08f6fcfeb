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

/* The optimizer's own work in a call, behind the closure's last backward; 0: its operators are not recorded. */
static int64_t own_work_of(const struct inferrer *in, size_t call)
{
	int64_t start_ns = INT64_MAX;

	for (size_t i = call + 1; i < in->count && in->records[i].is_inside; i++) {
		if (trains(in, &in->records[i]))
			start_ns = INT64_MAX;
		else if (in->is_update[i] && start_ns == INT64_MAX)
			start_ns = in->records[i].start_ns;
	}
	return start_ns < in->records[call].end_ns ? in->records[call].end_ns - start_ns : 0;
}

/* The median of the first calls whose operators are recorded. */
static int64_t usual_own_work(const struct inferrer *in)
{
	int64_t sorted[STEPS_TO_COMPARE];
	size_t count = 0;

	for (size_t call = 0; call < in->count && count < STEPS_TO_COMPARE; call++) {
		bool is_known = is_call(&in->records[call]) && has_closure(in, call);
		int64_t own_ns = is_known ? own_work_of(in, call) : 0;
		size_t place = count;

		if (!own_ns)
			continue;
		for (; place && sorted[place - 1] > own_ns; place--)
			sorted[place] = sorted[place - 1];
		sorted[place] = own_ns;
		count++;
	}
	return count ? sorted[count / 2] : 0;
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
	in->own_ns = usual_own_work(in);
}
