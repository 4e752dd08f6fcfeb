/* SPDX-License-Identifier: Apache-2.0
 *
 * infer_steps_evaluations.c: which batches, and which calls of modules, evaluate, and which forwards lead to no backward.
 */
#include "model/infer_steps_parts.h"

/* Is the batch at `first`, with what follows it up to `end`, used to compute something but not to train? */
static bool is_for_evaluation(const struct inferrer *in, size_t first, size_t end)
{
	bool has_work = false, has_forward = false;

	for (size_t i = first + 1; i < end; i++) {
		const struct train_record *record = &in->records[i];

		if (trains(in, record) || is_call(record) || record->token == TOKEN_ZERO_GRAD)
			return false;
		if (record->token == TOKEN_CUT && has_forward) /* it would have trained */
			return false;
		has_forward |= record->token == TOKEN_FORWARD;
		has_work |= record->token == TOKEN_OP || record->token == TOKEN_UPDATE ||
		            record->token == TOKEN_FORWARD;
	}
	return has_work && is_batch(&in->records[first]);
}

/* Nothing came of it: the end of a loop, though that is not always known. */
static bool ends_loop(const struct inferrer *in, size_t first, size_t end)
{
	return in->records[first].is_empty ||
	       (end == first + 1 && end < in->count && in->records[end].range != in->records[first].range);
}

/* Was the batch only looked at, or moved, when the loop asked for the next one? */
static bool is_fetched_ahead(const struct inferrer *in, size_t first, size_t end)
{
	for (size_t i = first + 1; i < end && in->has_modules; i++)
		if (in->records[i].is_module || in->records[i].is_noted)
			return false;
	return in->has_modules;
}

/* Workers are started for the batch that is awaited next, and are stopped behind the one before. */
static void find_loaders(struct inferrer *in)
{
	bool is_evaluation = false;

	for (size_t i = in->count; i-- > 0;) {
		if (in->records[i].token == TOKEN_DATA)
			is_evaluation = in->is_evaluation[i];
		else if (in->records[i].token == TOKEN_LOADER)
			in->is_evaluation[i] = is_evaluation;
	}
	is_evaluation = false;
	for (size_t i = 0; i < in->count; i++) {
		if (in->records[i].token == TOKEN_DATA)
			is_evaluation = in->is_evaluation[i];
		else if (in->records[i].token == TOKEN_LOADER_END)
			in->is_evaluation[i] = is_evaluation;
	}
}

static void find_evaluations(struct inferrer *in)
{
	bool was_evaluation = false;
	size_t ahead = 0; /* first batch that was fetched ahead of this one */

	for (size_t i = 0; i < in->count && !in->has_modules; i++)
		in->has_modules = in->records[i].is_module && in->records[i].token == TOKEN_FORWARD;

	for (size_t first = 0, end; first < in->count; first = end) {
		for (end = first + 1; end < in->count && in->records[end].token != TOKEN_DATA; end++)
			;
		bool is_evaluation = in->records[first].token == TOKEN_DATA && is_for_evaluation(in, first, end);

		if (is_evaluation && is_fetched_ahead(in, first, end))
			continue;
		if (was_evaluation && !is_evaluation && ends_loop(in, first, end))
			in->is_evaluation[first] = true;
		for (size_t i = ahead; i < end && is_evaluation; i++)
			in->is_evaluation[i] = true;
		was_evaluation = is_evaluation;
		ahead = end;
	}
	find_loaders(in);
}

/* Without a batch of its own: behind the end of a step and before anything of the next. A call on a batch that is trained on is none
 * (labels from the model itself), nor is one while gradients are gathered. */
static void find_evaluating_calls(struct inferrer *in)
{
	bool is_in_step = false, has_calls = in->out->update_count > 0;

	for (size_t i = 0; i < in->count; i++) {
		const struct train_record *record = &in->records[i];

		if (record->is_inside)
			continue;
		if (has_calls && is_call(record))
			is_in_step = false;
		else if (trains(in, record))
			is_in_step = has_calls;
		else if (is_batch(record) && !in->is_evaluation[i])
			is_in_step = true;
		else if (record->is_evaluating && !is_in_step)
			in->is_evaluation[i] = true;
	}
}

/* Where the backward behind it is not recorded with its nodes, or has not come yet when the recording is cut off, a forward counts as
 * one of that. */
static void find_unused(struct inferrer *in)
{
	bool is_known = !in->is_cut;

	for (size_t i = in->count; i-- > 0;) {
		if (in->records[i].token == TOKEN_BACKWARD)
			is_known = !in->records[i].is_noted;
		in->is_unused[i] = is_known && in->records[i].is_unused;
	}
}

void infer_evaluations(struct inferrer *in)
{
	find_evaluations(in);
	find_evaluating_calls(in);
	find_unused(in);
}
