/* SPDX-License-Identifier: Apache-2.0
 *
 * infer_steps_intervals.c: from records and ends of steps to intervals: steps, and their phases.
 */
#include "steps/infer_steps_parts.h"
#include "steps/inference.h"

#include <stepscope/stepscope.h>

/* Between two calls of backward(), and between the operators of a forward, where the program's own Python runs and may take milliseconds. Within
 * a call the engine goes from node to node by itself, however long it has to wait for a processor. */
#define BACKWARD_PAUSE_NS INT64_C(1000000)
#define FORWARD_PAUSE_NS INT64_C(5000000)

/* A call of backward() begins with it. */
static bool is_seed(const struct inferrer *in, size_t i)
{
	const struct train_record *seed = &in->records[i];

	return seed->is_seed && i + 1 < in->count && seed[1].token == TOKEN_BACKWARD &&
	       seed[1].is_inside == seed->is_inside;
}

static uint8_t intervals_phase_of(const struct inferrer *in, size_t i)
{
	if (in->records[i].token == TOKEN_SAVE)
		return STEPSCOPE_PHASE_CHECKPOINT;
	if (in->is_evaluation[i])
		return STEPSCOPE_PHASE_EVALUATION;
	switch ((enum train_token)in->records[i].token) {
	case TOKEN_DATA:
	case TOKEN_LOADER:
	case TOKEN_LOADER_END:
		return STEPSCOPE_PHASE_DATA;
	case TOKEN_BACKWARD:
		return STEPSCOPE_PHASE_BACKWARD;
	case TOKEN_OPTIMIZER:
		return STEPSCOPE_PHASE_OPTIMIZER;
	case TOKEN_FORWARD:
		return in->is_unused[i] ? 0 : STEPSCOPE_PHASE_FORWARD;
	case TOKEN_UPDATE:
		return in->is_update[i] ? STEPSCOPE_PHASE_OPTIMIZER : 0;
	case TOKEN_OP:
		return in->is_update[i] ? STEPSCOPE_PHASE_OPTIMIZER : is_seed(in, i) ? STEPSCOPE_PHASE_BACKWARD : 0;
	case TOKEN_ZERO_GRAD:
	case TOKEN_SCALER:
	case TOKEN_SAVE:
	case TOKEN_CUT:
		break;
	}
	return 0;
}

bool train_pauses(uint8_t token, int64_t from_ns, int64_t to_ns)
{
	switch ((enum train_token)token) {
	case TOKEN_BACKWARD:
		return to_ns - from_ns >= BACKWARD_PAUSE_NS;
	case TOKEN_FORWARD:
	case TOKEN_OP: /* it may lie in a forward */
		return to_ns - from_ns >= FORWARD_PAUSE_NS;
	default:
		return false;
	}
}

/* Between two forwards, or two calls of the engine. */
static bool is_behind_pause(const struct inferrer *in, size_t i, uint8_t phase, int64_t busy_ns)
{
	bool begins_call = is_seed(in, i) || (in->records[i].is_first && !is_seed(in, i - 1));

	if (phase == STEPSCOPE_PHASE_FORWARD)
		return train_pauses(TOKEN_FORWARD, busy_ns, in->records[i].start_ns);
	return phase == STEPSCOPE_PHASE_BACKWARD && begins_call &&
	       train_pauses(TOKEN_BACKWARD, busy_ns, in->records[i].start_ns);
}

/* The last record of the interval that the phase of record i makes with its neighbours, up to a pause; operators that say nothing
 * belong to the forward they lie in. Records in an optimizer's call have neighbours there only. */
static size_t last_of_phase(const struct inferrer *in, size_t i, size_t end, uint8_t phase)
{
	bool is_inside = in->records[i].is_inside, is_forward = phase == STEPSCOPE_PHASE_FORWARD;
	int64_t busy_ns = in->records[i].end_ns;
	size_t last = i;

	if (phase == STEPSCOPE_PHASE_DATA || in->records[i].token == TOKEN_OPTIMIZER)
		return i;
	for (size_t k = i + 1; k < end; k++) {
		uint8_t other = intervals_phase_of(in, k);

		if (is_inside && !in->records[k].is_inside)
			break;
		if (in->records[k].is_inside != is_inside)
			continue;
		if (other && (other != phase || in->records[k].range != in->records[i].range))
			break;
		if (is_behind_pause(in, k, phase, busy_ns))
			break;
		if ((other || is_forward) && in->records[k].end_ns > busy_ns)
			busy_ns = in->records[k].end_ns;
		last = other ? k : last;
	}
	return last;
}

/* Calls of optimizers in the backward that was added last. */
static void intervals_add_hooked(struct inferrer *in, int64_t start_ns, int64_t end_ns)
{
	for (; in->hooked < in->hooked_end && in->hooked->start_ns < end_ns; in->hooked++) {
		if (in->hooked->start_ns >= start_ns && in->hooked->end_ns <= end_ns)
			inference_add(in->out, STEPSCOPE_PHASE_OPTIMIZER, in->hooked->start_ns, in->hooked->end_ns);
	}
}

/* One interval from record i on, none beyond `limit_ns` and none before `*before_ns`, which becomes its end; returns its last record. */
static size_t add_phase(struct inferrer *in, size_t i, size_t end, int64_t limit_ns, int64_t *before_ns)
{
	uint8_t phase = intervals_phase_of(in, i);
	size_t last = last_of_phase(in, i, end, phase);
	int64_t start_ns = in->records[i].start_ns, end_ns = in->records[last].end_ns;

	if (end_ns > limit_ns)
		end_ns = limit_ns;
	if (start_ns < *before_ns)
		start_ns = *before_ns;
	if (end_ns >= start_ns) {
		inference_add(in->out, phase, start_ns, end_ns);
		*before_ns = end_ns;
		if (phase == STEPSCOPE_PHASE_BACKWARD)
			intervals_add_hooked(in, start_ns, end_ns);
	}
	return last;
}

/* The outermost range around the record that lies within `outer`; NO_RANGE: the record itself does. */
static uint32_t outermost_within(const struct inferrer *in, uint32_t range, uint32_t outer)
{
	while (range != outer && range != NO_RANGE && in->ranges[range].parent != outer)
		range = in->ranges[range].parent;
	return range == outer ? NO_RANGE : range;
}

/* When the last range in the call around the record ends; the record's own end if there is none. */
static int64_t end_in_call(const struct inferrer *in, size_t record, size_t call)
{
	uint32_t range = outermost_within(in, in->records[record].range, in->records[call].range);

	return range == NO_RANGE ? in->records[record].end_ns : in->ranges[range].end_ns;
}

/* The rest of the call is the optimizer's. Where its operators were not recorded it begins with the closure's last backward, but is not longer
 * than where they were: the closure may go on behind its backward. */
static void end_own_work(struct inferrer *in, size_t call, size_t last, int64_t limit_ns, int64_t *before_ns)
{
	struct inferred *before = in->out->count ? &in->out->list[in->out->count - 1] : NULL;
	int64_t start_ns = end_in_call(in, last, call);
	bool is_noted = in->records[last].is_noted && in->own_ns;

	if (is_noted && start_ns < limit_ns - in->own_ns)
		start_ns = limit_ns - in->own_ns;

	if (before && in->is_update[last] && before->what == STEPSCOPE_PHASE_OPTIMIZER &&
	    in->records[last].range == in->records[call].range)
		before->end_ns = limit_ns;
	else if (start_ns < limit_ns && start_ns >= *before_ns && in->records[last].token == TOKEN_BACKWARD)
		inference_add(in->out, STEPSCOPE_PHASE_OPTIMIZER, start_ns, limit_ns);
	*before_ns = limit_ns;
}

/* A closure that an optimizer calls has a forward and a backward of its own. The optimizer has the time of its own operators, and what is behind
 * the last of them; Python in the closure is neither's. */
static void add_phases_of_closure(struct inferrer *in, size_t call, size_t end, int64_t limit_ns)
{
	size_t last = call;

	if (in->records[call].end_ns < limit_ns)
		limit_ns = in->records[call].end_ns;
	for (size_t i = call + 1; i < end && in->records[i].is_inside; i++) {
		uint8_t phase = intervals_phase_of(in, i);

		if (!phase || (phase == STEPSCOPE_PHASE_OPTIMIZER && !in->is_update[i]))
			continue;
		i = last = add_phase(in, i, end, limit_ns, &in->phase_end_ns);
	}
	if (last != call)
		end_own_work(in, call, last, limit_ns, &in->phase_end_ns);
}

/* The last record from i on, up to `end`, that is of the generation of record i; with `is_same_range`, in the same range. */
static size_t last_of_generation(const struct inferrer *in, size_t i, size_t end, bool is_same_range)
{
	uint32_t range = in->records[i].range;

	while (i + 1 < end && in->is_generation[i + 1] && (!is_same_range || in->records[i + 1].range == range))
		i++;
	return i;
}

/* Returns true if something else than the generation of records [first, last] happens in the time. */
static bool holds_more(const struct inferrer *in, size_t first, size_t last, int64_t start_ns, int64_t end_ns)
{
	bool has_more = false;

	while (first && in->records[first - 1].end_ns > start_ns && !has_more)
		has_more = intervals_phase_of(in, --first) != 0;
	while (++last < in->count && in->records[last].start_ns < end_ns && !has_more)
		has_more = intervals_phase_of(in, last) != 0;
	return has_more;
}

/* A generation of records [i, last] takes in whole ranges. Returns false if these hold more than the generation. */
static bool add_whole_generation(struct inferrer *in, size_t i, size_t last, int64_t limit_ns)
{
	const struct train_record *records = in->records;
	uint32_t around = common_range(in, records[i].range, records[last].range);
	uint32_t first = outermost_within(in, records[i].range, around),
		 end = outermost_within(in, records[last].range, around);
	int64_t start_ns = first == NO_RANGE ? records[i].start_ns : in->ranges[first].start_ns;
	int64_t end_ns = end == NO_RANGE ? records[last].end_ns : in->ranges[end].end_ns;

	if (start_ns < in->phase_end_ns || end_ns > limit_ns || end_ns < start_ns ||
	    holds_more(in, i, last, start_ns, end_ns))
		return false;
	inference_add(in->out, INFERRED_GENERATION, start_ns, end_ns);
	in->phase_end_ns = end_ns;
	return true;
}

/* Of a generation that begins with record i, or goes on with it. Returns its last record. */
static size_t add_generation(struct inferrer *in, size_t i, size_t end, int64_t limit_ns)
{
	size_t last = last_of_generation(in, i, end, false);

	if (add_whole_generation(in, i, last, limit_ns))
		return last;
	for (size_t next; i <= last; i = next) {
		size_t last_here = last_of_generation(in, i, end, true);
		int64_t start_ns = in->records[i].start_ns, end_ns = in->records[last_here].end_ns;

		next = last_here + 1;
		if (start_ns < in->phase_end_ns || end_ns > limit_ns)
			continue;
		inference_add(in->out, INFERRED_GENERATION, start_ns, end_ns);
		in->phase_end_ns = end_ns;
	}
	return last;
}

/* Of records [first, end), none beyond `limit_ns`. */
static void add_phases(struct inferrer *in, size_t first, size_t end, int64_t limit_ns)
{
	for (size_t i = first; i < end; i++) {
		if (in->is_generation[i]) {
			i = add_generation(in, i, end, limit_ns);
			continue;
		}
		if (!intervals_phase_of(in, i) || in->records[i].is_inside)
			continue;
		if (is_call(&in->records[i]) && has_closure(in, i))
			add_phases_of_closure(in, i, end, limit_ns);
		else
			i = add_phase(in, i, end, limit_ns, &in->phase_end_ns);
	}
}

/* Was the batch put aside with others, all of their loader's: `list(loader)`? `first`: what is made of it. */
static bool is_put_aside(const struct inferrer *in, size_t batch, size_t first)
{
	bool has_ended = false;

	for (size_t i = batch + 1; i < first && !has_ended; i++)
		has_ended = in->records[i].token == TOKEN_LOADER_END ||
		            (in->records[i].token == TOKEN_DATA && in->records[i].is_empty);
	return has_ended && batch && is_batch(&in->records[batch - 1]);
}

static bool is_forward(const struct inferrer *in, size_t i)
{
	return in->records[i].token == TOKEN_FORWARD && !in->is_unused[i];
}

/* A module is called with a graph, not to evaluate. */
static bool is_forward_call(const struct inferrer *in, size_t i)
{
	return in->records[i].is_module && is_forward(in, i) && !in->is_evaluation[i];
}

/* So often modules are called before the first backward of a step, at most, in those behind the first one; 0: there are none, or not known. */
static size_t calls_of_a_step(const struct inferrer *in)
{
	size_t most = 0;

	for (size_t step = 1; step < in->end_count && step <= STEPS_TO_COMPARE; step++) {
		size_t calls = 0;

		for (size_t i = in->ends[step - 1] + 1; i <= in->ends[step] && !trains(in, &in->records[i]); i++)
			calls += is_forward_call(in, i);
		if (calls > most)
			most = calls;
	}
	return most;
}

/* The start of the workers that make the batch, and others, at once. */
static size_t loader_before(const struct inferrer *in, size_t batch)
{
	while (batch && in->records[batch - 1].token == TOKEN_LOADER)
		batch--;
	return batch;
}

/* So many batches come before the first backward of a step, at least, in those behind the first one. */
static size_t batches_of_a_step(const struct inferrer *in)
{
	size_t fewest = SIZE_MAX;

	for (size_t step = 1; step < in->end_count && step <= STEPS_TO_COMPARE; step++) {
		size_t batches = 0;

		for (size_t i = in->ends[step - 1] + 1; i <= in->ends[step] && !trains(in, &in->records[i]); i++)
			batches += is_batch(&in->records[i]) && !in->is_evaluation[i];
		if (batches < fewest)
			fewest = batches;
	}
	return fewest == SIZE_MAX ? 0 : fewest;
}

/* Where the first step begins: at the batch, or batches, or the first work on gradients, that leads to its first backward. Where calls of modules
 * are known it is their work: what wraps a model computes with its parameters, too. Calls beyond those of the next steps only looked at
 * the model (the shape of what it returns, the sizes of lazy layers). */
static size_t first_record(const struct inferrer *in, size_t last)
{
	size_t first = 0, calls = 0, most = calls_of_a_step(in), batches = 0, wanted = batches_of_a_step(in);
	bool has_modules = false;

	while (first < last && (!trains(in, &in->records[first]) || in->records[first].is_inside))
		first++;
	for (size_t i = 0; i < first && !has_modules; i++)
		has_modules = is_forward_call(in, i);
	for (size_t i = first; i-- > 0;) {
		const struct train_record *record = &in->records[i];

		if (in->is_evaluation[i] || (is_batch(record) && is_put_aside(in, i, first)))
			break;
		if (is_batch(record)) {
			first = loader_before(in, i);
			if (++batches >= wanted)
				return first;
		}
		if (is_forward_call(in, i) && most && ++calls > most)
			break;
		if ((is_forward(in, i) && record->is_module >= has_modules) || record->token == TOKEN_ZERO_GRAD ||
		    in->is_generation[i])
			first = i;
	}
	return first;
}

struct inferred_place {            /* of a step */
	size_t first, last;        /* records */
	size_t next_end;           /* last record of the step behind it, NONE */
	uint32_t around;           /* innermost range that holds it */
	uint32_t at_start, at_end; /* the ranges within that one it begins and ends with, NO_RANGE */
};

/* A step takes in whole ranges: one that begins inside of a range which does not hold all of it would cut that. Where a range
 * cannot be whole, because another step lies in it too, the step is shorter. */
static void find_place(const struct inferrer *in, struct inferred_place *place)
{
	const struct train_record *records = in->records;

	for (;;) {
		int64_t skip_ns;

		place->around = common_range(in, records[place->first].range, records[place->last].range);
		place->at_start = outermost_within(in, records[place->first].range, place->around);
		place->at_end = outermost_within(in, records[place->last].range, place->around);
		if (place->at_end != NO_RANGE && place->next_end != NONE &&
		    records[place->next_end].start_ns <= in->ranges[place->at_end].end_ns)
			skip_ns = in->ranges[place->at_end].start_ns;
		else if (place->at_start != NO_RANGE && in->out->step_count &&
		         in->ranges[place->at_start].start_ns < in->last_end_ns)
			skip_ns = in->ranges[place->at_start].end_ns;
		else
			return;
		do
			place->first++;
		while (place->first < place->last && records[place->first].start_ns < skip_ns);
	}
}

/* In the range, before the record or behind it. */
static bool has_evaluation(const struct inferrer *in, const struct train_range *range, size_t record, int direction)
{
	const struct train_record *records = in->records;

	for (size_t i = record + (size_t)direction; i < in->count; i += (size_t)direction) { /* below 0 it is huge */
		if (records[i].start_ns < range->start_ns || records[i].start_ns > range->end_ns)
			return false;
		if (in->is_evaluation[i])
			return true;
	}
	return false;
}

/* A range around one step and no other, as of an iteration, is of that step; but not an evaluation in it, and what is beyond that. Of a single
 * step nobody knows what is around it. */
static void take_in(const struct inferrer *in, struct inferred_place *place)
{
	while (place->around != NO_RANGE && (in->out->step_count || place->next_end != NONE)) {
		const struct train_range *range = &in->ranges[place->around];
		bool has_last = in->out->step_count && range->start_ns < in->last_end_ns;
		bool has_next = place->next_end != NONE && in->records[place->next_end].start_ns <= range->end_ns;
		bool is_open = range->end_ns < in->records[place->last].start_ns;

		if (has_last || has_next || is_open || has_evaluation(in, range, place->first, -1))
			return;
		place->at_start = place->around;
		if (has_evaluation(in, range, place->last, 1))
			return;
		place->at_end = place->around;
		place->around = range->parent;
	}
}

/* From the end of the step before, or of an evaluation behind it, when no range begins in between. */
static int64_t intervals_start_of(const struct inferrer *in, const struct inferred_place *place, size_t evaluation)
{
	int64_t first_ns = place->at_start == NO_RANGE ? in->records[place->first].start_ns
	                                               : in->ranges[place->at_start].start_ns;
	int64_t start_ns = in->last_end_ns;

	if (!in->out->step_count || in->last_range != place->around)
		return first_ns;
	if (evaluation != NONE) {
		uint32_t range = in->records[evaluation].range;
		uint32_t at = outermost_within(in, range, place->around);

		if (common_range(in, range, place->around) != place->around)
			return first_ns;
		start_ns = at == NO_RANGE ? infer_evaluation_end(in, evaluation) : in->ranges[at].end_ns;
		if (first_ns - start_ns - in->lead_ns >= EVALUATION_PAUSE_NS) /* neither is it of the step */
			return first_ns - in->lead_ns;
	}
	return start_ns < first_ns ? start_ns : first_ns;
}

/* What is counted while the program runs (agents/torch/count.h): of an update by hand the backward. */
static size_t counted_with(const struct inferrer *in, size_t last)
{
	bool is_update = in->is_update[last];

	while (is_update && last && in->records[last].token != TOKEN_BACKWARD)
		last--;
	return last;
}

/* `evaluation`: the last record of one since the step before, NONE. */
static void intervals_add_step(struct inferrer *in, struct inferred_place *place, size_t evaluation)
{
	bool is_open = in->records[place->last].token == TOKEN_CUT;
	size_t begin = in->next, end = place->last + 1;
	int64_t start_ns, end_ns;

	find_place(in, place);
	take_in(in, place);
	start_ns = intervals_start_of(in, place, evaluation);
	if (start_ns < in->last_end_ns && in->out->step_count)
		start_ns = in->last_end_ns;
	end_ns = is_open                     ? INFERRED_IS_OPEN
	         : place->at_end != NO_RANGE ? in->ranges[place->at_end].end_ns
	                                     : in->records[place->last].end_ns;
	if (end_ns < start_ns)
		end_ns = start_ns;
	while (end < in->count && place->next_end != end &&
	       (in->records[end].start_ns < end_ns || in->records[end].is_inside))
		end++;
	while (begin < place->last && in->records[begin].start_ns < start_ns)
		begin++;
	add_phases(in, in->next, begin, start_ns);
	struct inferred *step = inference_add(in->out, INFERRED_STEP, start_ns, end_ns);
	step->number = (int64_t)in->out->step_count++;
	step->last_ns = is_open ? INFERRED_IS_OPEN : in->records[counted_with(in, place->last)].end_ns;
	if (in->phase_end_ns < start_ns)
		in->phase_end_ns = start_ns;
	add_phases(in, begin, end, end_ns);
	in->next = end;
	in->last_range = place->around;
	in->last_end_ns = in->phase_end_ns = end_ns;
}

/* What follows the last step and was cut off: a step, when it trains. */
static bool has_open_step(const struct inferrer *in, size_t first)
{
	for (size_t i = first; in->is_cut && i < in->count; i++) {
		const struct train_record *record = &in->records[i];

		if (trains(in, record) ||
		    (record->token == TOKEN_FORWARD && !record->is_inside && !in->is_evaluation[i]))
			return true;
	}
	return false;
}

/* Nobody trains: there are no other phases, and no steps, but the caller may know of some. */
static void add_waits(struct inferrer *in)
{
	for (size_t i = 0; i < in->count; i++)
		if (in->records[i].token == TOKEN_DATA)
			inference_add(in->out, STEPSCOPE_PHASE_DATA, in->records[i].start_ns, in->records[i].end_ns);
}

void infer_intervals(struct inferrer *in)
{
	size_t behind = in->end_count ? in->ends[in->end_count - 1] + 1 : 0;

	if (has_open_step(in, behind))
		in->ends[in->end_count++] = in->count - 1;
	for (size_t i = 0; i < in->end_count; i++) {
		struct inferred_place place = {.first = in->next,
		                               .last = in->ends[i],
		                               .next_end = i + 1 < in->end_count ? in->ends[i + 1] : NONE};
		size_t evaluation = NONE;

		if (i == 0)
			place.first = first_record(in, place.last);
		/* an evaluation before the step is not of it */
		for (size_t k = place.first; k < place.last; k++) {
			if (in->is_evaluation[k])
				evaluation = k;
		}
		if (evaluation != NONE)
			place.first = evaluation + 1;
		intervals_add_step(in, &place, evaluation);
	}
	if (in->out->step_count)
		add_phases(in, in->next, in->count, INFERRED_IS_OPEN);
	else
		add_waits(in);
}
