/* SPDX-License-Identifier: Apache-2.0
 *
 * infer_steps.c: see infer_steps.h. First the ends of the steps, then which batches are evaluations, then intervals.
 */
#include "model/infer_steps.h"

#include "base/memory.h"

#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

struct inferrer {
	struct inference *out;
	const struct train_record *records;
	size_t count;
	const struct train_range *ranges;
	bool *is_end;        /* of a step: behind this record */
	bool *is_evaluation; /* record of an evaluation */
	uint32_t last_range; /* around the end of the step before */
	int64_t last_end_ns;
};

/* ---- where steps end ------------------------------------------------------------------------------------------------------ */

static bool is_call(const struct train_record *record)
{
	return record->token == TOKEN_OPTIMIZER;
}

static bool trains(const struct train_record *record)
{
	return record->token == TOKEN_BACKWARD && record->is_training;
}

static size_t next_call(const struct inferrer *in, size_t from)
{
	while (from < in->count && !is_call(&in->records[from]))
		from++;
	return from;
}

/* Is there a training backward, or a batch, in records [first, end)? `is_outside`: one that lies in no optimizer's call. */
static bool has_between(const struct inferrer *in, size_t first, size_t end, enum train_token token)
{
	for (size_t i = first; i < end; i++) {
		const struct train_record *record = &in->records[i];

		if (record->token == token && !record->is_inside && (token != TOKEN_BACKWARD || record->is_training) &&
		    !record->is_empty)
			return true;
	}
	return false;
}

static bool has_closure(const struct inferrer *in, size_t call)
{
	for (size_t i = call + 1; i < in->count && in->records[i].is_inside; i++) {
		if (trains(&in->records[i]))
			return true;
	}
	return false;
}

/* Rule 1. */
static void end_by_identity(struct inferrer *in)
{
	uint64_t seen[64];
	size_t seen_count = 0, last = in->count;

	for (size_t i = next_call(in, 0); i < in->count; i = next_call(in, i + 1)) {
		bool repeats = seen_count == 64;

		for (size_t k = 0; k < seen_count && !repeats; k++)
			repeats = seen[k] == in->records[i].optimizer;
		if (repeats) {
			in->is_end[last] = true;
			seen_count = 0;
		}
		seen[seen_count++] = in->records[i].optimizer;
		last = i;
	}
	if (last < in->count)
		in->is_end[last] = true;
}

/* Rule 2. */
static void end_by_names(struct inferrer *in)
{
	size_t last = next_call(in, 0);

	for (size_t i = next_call(in, last + 1); i < in->count; i = next_call(in, i + 1)) {
		bool is_other = has_between(in, last, i, TOKEN_BACKWARD) || has_closure(in, i) || has_closure(in, last);
		bool is_joined = is_other && !has_closure(in, i) && !has_closure(in, last) &&
		                 !has_between(in, last, i, TOKEN_DATA) && has_between(in, 0, in->count, TOKEN_DATA);

		in->out->is_uncertain |= is_joined;
		if (is_other && !is_joined)
			in->is_end[last] = true;
		last = i;
	}
	in->is_end[last] = true;
}

/* Rule 3: a run of nodes without anything of a forward between them is one backward. */
static void end_by_backward(struct inferrer *in)
{
	size_t last = in->count;

	for (size_t i = 0; i < in->count; i++) {
		const struct train_record *record = &in->records[i];
		bool is_between = record->token == TOKEN_FORWARD || record->token == TOKEN_DATA;

		if (is_between && last < in->count) {
			in->is_end[last] = true;
			last = in->count;
		}
		if (record->token == TOKEN_BACKWARD && (record->is_training || last < in->count))
			last = i;
	}
	if (last < in->count)
		in->is_end[last] = true;
}

static void find_ends(struct inferrer *in)
{
	size_t first = next_call(in, 0);

	for (size_t i = first; i < in->count; i = next_call(in, i + 1))
		in->out->update_count++;
	if (first == in->count)
		end_by_backward(in);
	else if (in->records[first].optimizer)
		end_by_identity(in);
	else
		end_by_names(in);
}

/* ---- evaluations ------------------------------------------------------------------------------------------------------------ */

/* A batch, and what follows it up to the next one, when something is computed and nothing trained there. */
static void find_evaluations(struct inferrer *in)
{
	for (size_t first = 0, end; first < in->count; first = end) {
		bool has_work = false, has_training = false;

		for (end = first + 1; end < in->count && in->records[end].token != TOKEN_DATA; end++) {
			const struct train_record *record = &in->records[end];

			has_training |= trains(record) || is_call(record) || record->token == TOKEN_ZERO_GRAD;
			has_work |= record->token == TOKEN_OP || record->token == TOKEN_FORWARD;
		}
		if (in->records[first].token != TOKEN_DATA || has_training || !has_work || in->records[first].is_empty)
			continue;
		for (size_t i = first; i < end; i++)
			in->is_evaluation[i] = true;
	}
}

/* ---- intervals -------------------------------------------------------------------------------------------------------------- */

static struct inferred *add(struct inference *out, uint8_t what, int64_t start_ns, int64_t end_ns)
{
	if (out->count == out->capacity) {
		out->capacity = out->capacity ? 2 * out->capacity : 256;
		out->list = memory_resize(out->list, out->capacity, sizeof(*out->list));
	}
	out->list[out->count] = (struct inferred){.what = what, .start_ns = start_ns, .end_ns = end_ns};
	return &out->list[out->count++];
}

static uint8_t phase_of(const struct inferrer *in, size_t i)
{
	if (in->is_evaluation[i])
		return STEPSCOPE_PHASE_EVALUATION;
	switch ((enum train_token)in->records[i].token) {
	case TOKEN_DATA:
		return STEPSCOPE_PHASE_DATA;
	case TOKEN_BACKWARD:
		return STEPSCOPE_PHASE_BACKWARD;
	case TOKEN_OPTIMIZER:
		return STEPSCOPE_PHASE_OPTIMIZER;
	case TOKEN_FORWARD:
		return STEPSCOPE_PHASE_FORWARD;
	case TOKEN_OP:
	case TOKEN_ZERO_GRAD:
		break;
	}
	return 0;
}

/* Neighbours of one phase make one interval; operators that say nothing belong to the forward they lie in. */
static void add_phases(struct inferrer *in, size_t first, size_t end)
{
	for (size_t i = first, next; i < end; i = next) {
		uint8_t phase = phase_of(in, i);
		int64_t end_ns = in->records[i].end_ns;

		next = i + 1;
		if (!phase || in->records[i].is_inside)
			continue;
		for (size_t k = next; k < end; k++) {
			uint8_t other = phase_of(in, k);

			if (in->records[k].is_inside ||
			    (!other && phase != STEPSCOPE_PHASE_DATA && phase != STEPSCOPE_PHASE_OPTIMIZER))
				continue;
			if (other != phase || in->records[k].range != in->records[i].range ||
			    phase == STEPSCOPE_PHASE_DATA || phase == STEPSCOPE_PHASE_OPTIMIZER)
				break;
			end_ns = in->records[k].end_ns;
			next = k + 1;
		}
		add(in->out, phase, in->records[i].start_ns, end_ns);
	}
}

/* Where the first step begins: at the batch, or the first work on gradients, that leads to its backward. */
static size_t first_record(const struct inferrer *in, size_t last)
{
	size_t first = last;

	while (first > 0 && !(in->records[first].token == TOKEN_BACKWARD && !in->records[first].is_inside))
		first--;
	for (size_t i = first; i-- > 0;) {
		if (in->is_evaluation[i])
			break;
		if (in->records[i].token == TOKEN_DATA && !in->records[i].is_empty)
			return i;
		if (in->records[i].token == TOKEN_FORWARD || in->records[i].token == TOKEN_ZERO_GRAD)
			first = i;
	}
	return first;
}

/* The innermost range around both. */
static uint32_t common_range(const struct inferrer *in, uint32_t a, uint32_t b)
{
	for (; a != NO_RANGE; a = in->ranges[a].parent) {
		for (uint32_t r = b; r != NO_RANGE; r = in->ranges[r].parent) {
			if (r == a)
				return a;
		}
	}
	return NO_RANGE;
}

/* The outermost range around the record that lies within `outer`; NO_RANGE: the record itself does. */
static uint32_t outermost_within(const struct inferrer *in, uint32_t range, uint32_t outer)
{
	while (range != outer && range != NO_RANGE && in->ranges[range].parent != outer)
		range = in->ranges[range].parent;
	return range == outer ? NO_RANGE : range;
}

/* A step takes in whole ranges: one that begins inside of a range which does not hold all of it would cut that. */
static void add_step(struct inferrer *in, size_t first, size_t last, int64_t start_ns)
{
	uint32_t around = common_range(in, in->records[first].range, in->records[last].range);
	uint32_t at_start = outermost_within(in, in->records[first].range, around);
	uint32_t at_end = outermost_within(in, in->records[last].range, around);
	int64_t end_ns = at_end == NO_RANGE ? in->records[last].end_ns : in->ranges[at_end].end_ns;
	int64_t first_ns = at_start == NO_RANGE ? in->records[first].start_ns : in->ranges[at_start].start_ns;
	struct inferred *step;

	/* from the end of the step before, when no range begins in between */
	if (!in->out->step_count || in->last_range != around || start_ns > first_ns)
		start_ns = first_ns > in->last_end_ns || !in->out->step_count ? first_ns : in->last_end_ns;
	step = add(in->out, INFERRED_STEP, start_ns, end_ns);
	step->number = (int64_t)in->out->step_count++;
	in->last_range = around;
	in->last_end_ns = end_ns;
	add_phases(in, first, last + 1);
}

static void add_all(struct inferrer *in)
{
	size_t first = 0;

	for (size_t i = 0; i < in->count; i++) {
		size_t begin = first;
		int64_t start_ns = in->last_end_ns;

		if (!in->is_end[i])
			continue;
		if (in->out->step_count == 0)
			begin = first_record(in, i);
		/* an evaluation before the step is not of it */
		for (size_t k = begin; k < i; k++) {
			if (in->is_evaluation[k]) {
				begin = k + 1;
				start_ns = in->records[k].end_ns;
			}
		}
		add_phases(in, first, begin);
		add_step(in, begin, i, start_ns);
		for (first = i + 1; first < in->count && in->records[first].is_inside; first++)
			;
	}
	if (in->out->step_count)
		add_phases(in, first, in->count);
}

void infer_steps(struct inference *inference, const struct train_record *records, size_t count,
                 const struct train_range *ranges)
{
	struct inferrer in = {
		.out = inference, .records = records, .count = count, .ranges = ranges, .last_range = NO_RANGE};

	memset(inference, 0, sizeof(*inference));
	in.is_end = memory_resize(NULL, count + 1, sizeof(*in.is_end));
	in.is_evaluation = memory_resize(NULL, count + 1, sizeof(*in.is_evaluation));
	memset(in.is_end, 0, (count + 1) * sizeof(*in.is_end));
	memset(in.is_evaluation, 0, (count + 1) * sizeof(*in.is_evaluation));
	find_ends(&in);
	find_evaluations(&in);
	add_all(&in);
	free(in.is_end);
	free(in.is_evaluation);
}

void inference_release(struct inference *inference)
{
	free(inference->list);
	memset(inference, 0, sizeof(*inference));
}
