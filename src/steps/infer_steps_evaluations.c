/* SPDX-License-Identifier: Apache-2.0
 *
 * infer_steps_evaluations.c: which batches, and which calls of modules, evaluate, up to where, and which forwards lead to no backward.
 */
#include "steps/infer_steps_parts.h"

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

#define GROUP_MAX 4096 /* batches that are fetched together */

/* Where calls of modules are not known: were the first batch from there on and those behind it fetched together, each for a backward of its own? What an evaluation
 * computes has layers. */
static bool is_of_group(const struct inferrer *in, size_t first)
{
	size_t batches = 1, backwards = 0;
	bool has_forward = false;

	while (!is_batch(&in->records[first]))
		first++;
	for (size_t i = first + 1; i < in->count && batches < GROUP_MAX; i++) {
		const struct train_record *record = &in->records[i];

		if (is_batch(record) && backwards)
			break;
		batches += is_batch(record);
		has_forward |= record->token == TOKEN_FORWARD;
		if (trains(in, record)) {
			backwards += has_forward;
			has_forward = false;
		} else if (!backwards && (record->token == TOKEN_OPTIMIZER || record->token == TOKEN_DATA) &&
		           !is_batch(record))
			return false;
		/* the forward of the last one leads to a backward */
		if (!backwards && record->token == TOKEN_OP && record->work == WORK_LAYER)
			return false;
	}
	return batches > 1 && backwards == batches;
}

/* Was the batch only looked at, or moved, when the loop asked for the next one? Where calls of modules are not known its operators tell.
 * ahead: behind the last batch that was trained on, or evaluated. */
static bool is_fetched_ahead(const struct inferrer *in, size_t ahead, size_t first, size_t end, bool was_evaluation)
{
	bool is_moved = true;

	for (size_t i = first + 1; i < end; i++) {
		const struct train_record *record = &in->records[i];

		if (in->has_modules ? record->is_module || record->is_noted : record->token == TOKEN_FORWARD)
			return false;
		is_moved &= record->token != TOKEN_OP || record->work == WORK_MOVE;
	}
	/* the end of an evaluation's loop may look like a batch of which little is made */
	return in->has_modules || (is_moved && !was_evaluation) || is_of_group(in, ahead);
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

/* What comes behind so long a time without an operator is something else: data that are prepared, another model. */
static bool evaluations_is_over(const struct inferrer *in, int64_t start_ns, size_t evaluation, size_t i)
{
	int64_t pause_ns = in->records[i].start_ns - in->records[evaluation].end_ns;

	return pause_ns >= EVALUATION_PAUSE_NS && pause_ns > in->records[evaluation].end_ns - start_ns;
}

/* The last batch of an evaluation that began with record `first`, and the records up to the next batch: a callback may be among them. */
static void end_evaluation(struct inferrer *in, size_t first, size_t batch, size_t end)
{
	bool is_over = false;

	for (size_t i = batch + 1; i < end; i++) {
		is_over = is_over || evaluations_is_over(in, in->records[first].start_ns, i - 1, i);
		if (is_over)
			in->is_evaluation[i] = false;
	}
}

static void find_evaluations(struct inferrer *in)
{
	bool was_evaluation = false;
	size_t ahead = 0;           /* first batch that was fetched ahead of this one */
	size_t begin = 0, last = 0; /* of the evaluation, if it was one: its first record, and its last batch */

	for (size_t i = 0; i < in->count && !in->has_modules; i++)
		in->has_modules = in->records[i].is_module && in->records[i].token == TOKEN_FORWARD;

	for (size_t first = 0, end; first < in->count; first = end) {
		for (end = first + 1; end < in->count && in->records[end].token != TOKEN_DATA; end++)
			;
		bool is_evaluation = in->records[first].token == TOKEN_DATA && is_for_evaluation(in, first, end);

		if (is_evaluation && is_fetched_ahead(in, ahead, first, end, was_evaluation))
			continue;
		if (was_evaluation && !is_evaluation && ends_loop(in, first, end))
			in->is_evaluation[first] = true;
		for (size_t i = ahead; i < end && is_evaluation; i++)
			in->is_evaluation[i] = true;
		if (was_evaluation && !is_evaluation)
			end_evaluation(in, begin, last, first);
		begin = is_evaluation && !was_evaluation ? ahead : begin;
		last = is_evaluation ? first : last;
		was_evaluation = is_evaluation;
		ahead = end;
	}
	if (was_evaluation)
		end_evaluation(in, begin, last, in->count);
	find_loaders(in);
}

/* Is what comes behind record i in a step that has begun? It has with a batch, or while gradients are gathered. */
static bool goes_on_with_step(const struct inferrer *in, size_t i, bool is_in_step)
{
	const struct train_record *record = &in->records[i];
	bool has_calls = in->out->update_count > 0;

	if (record->is_inside)
		return is_in_step;
	if (has_calls && is_call(record))
		return false;
	if (trains(in, record))
		return has_calls;
	return is_in_step || (is_batch(record) && !in->is_evaluation[i]);
}

/* Nobody evaluates before most of the steps: then such calls make what the step trains on. */
static bool generates_before_steps(const struct inferrer *in)
{
	size_t step = 0, with_calls = 0;
	bool is_in_step = false, has_calls = false;

	for (size_t i = 0; i < in->count && step < in->end_count; i++) {
		has_calls |= in->records[i].is_evaluating && !is_in_step && in->is_generation[i];
		is_in_step = goes_on_with_step(in, i, is_in_step);
		if (i != in->ends[step])
			continue;
		step++;
		with_calls += has_calls;
		has_calls = false;
	}
	return with_calls > 1 && 2 * with_calls > in->end_count;
}

static void forget_generation(struct inferrer *in, size_t i)
{
	while (i && in->is_generation[i - 1])
		i--;
	for (; i < in->count && in->is_generation[i]; i++)
		in->is_generation[i] = false;
}

/* Without a batch of its own: behind the end of a step and before anything of the next. A call on a batch that is trained on is none
 * (labels from the model itself), nor is one while gradients are gathered. */
static void find_evaluating_calls(struct inferrer *in)
{
	bool is_in_step = false, generates = generates_before_steps(in);

	for (size_t i = 0; i < in->count; i++) {
		const struct train_record *record = &in->records[i];
		bool is_evaluation = record->is_evaluating && !record->is_inside && !is_in_step &&
		                     !(generates && in->is_generation[i]);

		if (is_evaluation && in->is_generation[i])
			forget_generation(in, i);
		in->is_evaluation[i] |= is_evaluation;
		is_in_step = goes_on_with_step(in, i, is_in_step);
	}
}

/* A batch of the training, or what is made of one. */
static bool is_work(const struct inferrer *in, size_t i)
{
	const struct train_record *record = &in->records[i];

	if (in->is_evaluation[i] || record->is_inside)
		return false;
	switch ((enum train_token)record->token) {
	case TOKEN_DATA:
		return !record->is_empty;
	case TOKEN_OP:
		return record->is_learning;
	case TOKEN_LOADER:
	case TOKEN_FORWARD:
	case TOKEN_BACKWARD:
	case TOKEN_OPTIMIZER:
		return true;
	case TOKEN_LOADER_END:
	case TOKEN_ZERO_GRAD:
	case TOKEN_SCALER:
	case TOKEN_SAVE:
	case TOKEN_UPDATE:
	case TOKEN_CUT:
		break;
	}
	return false;
}

/* The first one from there on, the count of all records if there is none. */
static size_t work_from(const struct inferrer *in, size_t i)
{
	while (i < in->count && !is_work(in, i))
		i++;
	return i;
}

/* A module is called without a graph, and not to evaluate: a teacher, a criterion. */
static bool is_other_call(const struct inferrer *in, size_t i)
{
	return in->records[i].is_module && in->records[i].token == TOKEN_OP && !in->is_evaluation[i];
}

/* Of the step whose first work that is: false if an evaluation is before it. */
static bool count_lead(const struct inferrer *in, size_t before, size_t work, size_t *calls)
{
	*calls = 0;
	for (size_t i = before + 1; i < work; i++) {
		if (in->is_evaluation[i])
			return false;
		*calls += is_other_call(in, i);
	}
	return true;
}

/* What a step begins with may have no record (a batch that NumPy makes), or be operators like any other: so long it takes, usually. */
static void find_lead(struct inferrer *in)
{
	int64_t sorted[STEPS_TO_COMPARE];
	size_t count = 0;

	for (size_t step = 1; step < in->end_count && count < STEPS_TO_COMPARE; step++) {
		size_t before = in->ends[step - 1], work = work_from(in, before + 1), calls, place = count;

		if (work > in->ends[step] || !count_lead(in, before, work, &calls))
			continue;
		int64_t lead_ns = in->records[work].start_ns - in->records[before].end_ns;
		for (; place && sorted[place - 1] > lead_ns; place--)
			sorted[place] = sorted[place - 1];
		sorted[place] = lead_ns;
		count++;
		if (calls > in->lead_calls)
			in->lead_calls = calls;
	}
	if (count)
		in->lead_ns = sorted[count / 2];
}

/* Where the step begins whose first work that is: at `*begin_ns`, and behind the record that is returned, the last one of `before` and calls
 * of modules that are too many for it. A batch, or nothing, says by itself where. */
static size_t begin_of_work(const struct inferrer *in, size_t before, size_t work, int64_t *begin_ns)
{
	size_t calls = 0;

	*begin_ns = INT64_MAX;
	if (work == in->count || in->records[work].token == TOKEN_DATA || in->records[work].token == TOKEN_LOADER)
		return before;
	*begin_ns = in->records[work].start_ns - in->lead_ns;
	for (size_t i = work; i-- > before + 1;) {
		if (!is_other_call(in, i))
			continue;
		if (calls++ == in->lead_calls)
			return i;
		if (in->records[i].start_ns < *begin_ns)
			*begin_ns = in->records[i].start_ns;
	}
	return before;
}

/* Is the evaluation in a step? What that goes on with is not known. */
static bool is_inside_step(const struct inferrer *in, size_t work)
{
	if (work == in->count)
		return false;
	return in->records[work].token == TOKEN_BACKWARD ||
	       (in->records[work].token == TOKEN_OPTIMIZER && !has_closure(in, work));
}

/* In a range that the third one is not in; `b`, `third`: the count of all records if there is none. */
static bool share_range(const struct inferrer *in, size_t a, size_t b, size_t third)
{
	if (b == in->count || third == in->count)
		return false;
	uint32_t range = common_range(in, in->records[a].range, in->records[b].range);
	return common_range(in, range, in->records[third].range) != range;
}

static bool zeroes_gradients(const struct train_record *record)
{
	return record->token == TOKEN_ZERO_GRAD || (record->token == TOKEN_UPDATE && !record->count);
}

/* Metrics, samples: operators without a graph behind an evaluation of records [first, work). */
static void add_tail(struct inferrer *in, size_t first, size_t work)
{
	int64_t begin_ns, start_ns = 0;
	size_t evaluation = NONE, last_call = begin_of_work(in, first, work, &begin_ns);

	for (size_t i = first; i < work; i++) {
		const struct train_record *record = &in->records[i];

		if (in->is_evaluation[i]) {
			start_ns = evaluation == NONE ? record->start_ns : start_ns;
			evaluation = i;
			continue;
		}
		if (evaluation == NONE || record->is_inside)
			continue;
		if (zeroes_gradients(record) || share_range(in, i, work, evaluation) ||
		    evaluations_is_over(in, start_ns, evaluation, i))
			evaluation = NONE;
		else if (record->token == TOKEN_OP || record->token == TOKEN_UPDATE)
			in->is_evaluation[i] = i <= last_call || record->start_ns < begin_ns ||
			                       share_range(in, i, evaluation, work);
		if (in->is_evaluation[i])
			evaluation = i;
	}
}

static void find_tails(struct inferrer *in)
{
	find_lead(in);
	for (size_t first = 0, work; first < in->count; first = work + 1) {
		work = work_from(in, first);
		if (!is_inside_step(in, work))
			add_tail(in, first, work);
	}
}

int64_t infer_evaluation_end(const struct inferrer *in, size_t last)
{
	const struct train_record *record = &in->records[last];
	int64_t begin_ns;

	begin_of_work(in, last, work_from(in, last + 1), &begin_ns);
	bool goes_on = !record->is_module && record->start_ns < begin_ns && begin_ns < record->end_ns;
	return goes_on ? begin_ns : record->end_ns; /* with what the step begins with */
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
	find_unused(in);
	find_evaluations(in);
	infer_generations(in);
	find_evaluating_calls(in);
	find_tails(in);
}
