/* SPDX-License-Identifier: Apache-2.0
 *
 * infer_steps.c: see infer_steps.h. First the ends of the steps, then which batches are evaluations, then intervals.
 */
#include "model/infer_steps.h"

#include "base/memory.h"
#include "model/number_map.h"
#include "model/optimizer_rates.h"
#include "model/thrown_gradients.h"

#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

#define NONE SIZE_MAX
#define STEPS_TO_COMPARE 8
/* The engine goes from node to node by itself; between the operators of a forward the program's own Python runs, and may take
 * milliseconds. */
#define BACKWARD_PAUSE_NS INT64_C(1000000)
#define FORWARD_PAUSE_NS INT64_C(5000000)

struct inferrer {
	struct inference *out;
	const struct train_record *records;
	size_t count;
	const struct train_range *ranges;
	const struct train_call *hooked, *hooked_end; /* those that are not in a phase yet */
	struct optimizer_rates rates;                 /* of those that are known */
	size_t *ends;                                 /* of steps: the last record of each */
	size_t end_count;
	bool *is_evaluation; /* record of an evaluation */
	bool *is_update;     /* record of an update by hand */
	bool *is_unused;     /* record of a forward that leads to no backward */
	bool is_functional;  /* no backward leaves gradients: all train */
	bool has_modules;    /* forwards are calls of them */
	bool is_cut;
	size_t next;         /* record behind the step before */
	uint32_t last_range; /* around the end of the step before */
	int64_t last_end_ns;
	int64_t phase_end_ns; /* of the phase before */
};

/* ---- where steps end ------------------------------------------------------------------------------------------------------ */

static bool is_call(const struct train_record *record)
{
	return record->token == TOKEN_OPTIMIZER && !record->is_inside;
}

static bool trains(const struct inferrer *in, const struct train_record *record)
{
	return record->token == TOKEN_BACKWARD && (record->is_training || in->is_functional);
}

static bool is_batch(const struct train_record *record)
{
	return record->token == TOKEN_DATA && !record->is_empty;
}

static bool has_closure(const struct inferrer *in, size_t call)
{
	for (size_t i = call + 1; i < in->count && in->records[i].is_inside; i++) {
		if (trains(in, &in->records[i]))
			return true;
	}
	return false;
}

/* What was seen since the last call of the group, while going through the records. */
struct grouping {
	struct number_map groups; /* optimizer -> the last group that it was called in */
	uint32_t group;
	bool has_identity, has_batches;            /* the program */
	size_t last;                               /* call of this group, NONE */
	bool is_closure;                           /* that call */
	bool is_of_batch;                          /* a batch came before it */
	bool goes_on;                              /* its first call is of the optimizer that was called before, too */
	size_t backward;                           /* that trains, NONE */
	bool has_data;                             /* before that backward */
	bool has_next_data, has_zero, has_forward; /* behind it */
};

static void forget(struct grouping *g)
{
	g->backward = NONE;
	g->has_data = g->has_next_data = g->has_zero = g->has_forward = false;
}

static void end_group(struct inferrer *in, struct grouping *g)
{
	if (g->last != NONE)
		in->ends[in->end_count++] = g->last;
	g->last = NONE;
	g->group++;
}

/* Rule 4: the backward ends a step by itself, or the one that calls before it on the same batch began. */
static void end_skipped(struct inferrer *in, struct grouping *g)
{
	if (g->last != NONE && (g->has_data || !g->has_batches))
		end_group(in, g);
	g->last = g->backward;
	end_group(in, g);
	forget(g);
}

/* Does the optimizer go on alone, so that training goes on with it? Of the last call of all it is only known that the one before did. */
static bool goes_on_alone(const struct inferrer *in, const struct grouping *g, size_t call, bool is_closure)
{
	for (size_t i = call + 1; i < in->count; i++) {
		if (is_call(&in->records[i]))
			return in->records[i].object == in->records[call].object;
	}
	return g->goes_on && (is_closure || g->has_data);
}

/* Was it called in the group already? Not where the group's steps are another one's. */
static bool is_repeated(const struct inferrer *in, const struct grouping *g, uint64_t optimizer)
{
	uint64_t leader = optimizer_rates_leader(&in->rates, optimizer);

	return number_map_find(&g->groups, optimizer) == g->group &&
	       !(leader && number_map_find(&g->groups, leader) == g->group);
}

/* Does the call begin another group? */
static bool is_other_group(struct inferrer *in, struct grouping *g, size_t call, bool is_closure)
{
	uint64_t optimizer = in->records[call].object;
	bool is_other_batch = g->has_data || g->has_next_data || !g->has_batches;
	bool has_gradients = g->backward != NONE || is_closure;

	if (g->last == NONE)
		return false;
	if (g->has_identity && optimizer) /* rule 1 */
		return is_repeated(in, g, optimizer) ||
		       (has_gradients &&
		        ((is_other_batch && in->records[call].is_new) ||
		         ((is_other_batch || !g->is_of_batch) && goes_on_alone(in, g, call, is_closure))));
	if (is_closure || g->is_closure) /* rule 2 */
		return true;
	if (g->backward == NONE)
		return false;
	in->out->is_each_update |= is_other_batch && !g->has_batches;
	in->out->is_joined |= !is_other_batch;
	return is_other_batch;
}

static void on_call(struct inferrer *in, struct grouping *g, size_t call)
{
	bool is_closure = has_closure(in, call);

	if (is_other_group(in, g, call, is_closure)) {
		g->goes_on = in->records[g->last].object == in->records[call].object;
		end_group(in, g);
	}
	if (g->last == NONE)
		g->is_of_batch = g->has_data;
	if (g->has_identity)
		number_map_set(&g->groups, in->records[call].object, g->group);
	g->last = call;
	g->is_closure = is_closure;
	forget(g);
}

/* Were the gradients of the backward before this one thrown away? */
static bool is_thrown_away(const struct inferrer *in, const struct grouping *g, size_t backward)
{
	if (g->backward == NONE || (g->has_zero && g->has_next_data))
		return g->backward != NONE;
	if (!in->out->thrown_away)
		return false;
	return g->has_zero ? !g->has_batches
	                   : g->has_forward && gradients_are_new(&in->records[backward], &in->records[g->backward]);
}

static void end_by_calls(struct inferrer *in, struct grouping *g)
{
	for (size_t i = 0; i < in->count; i++) {
		const struct train_record *record = &in->records[i];

		if (record->is_inside)
			continue;
		if (is_call(record))
			on_call(in, g, i);
		else if (is_batch(record) && g->backward == NONE)
			g->has_data = true;
		else if (is_batch(record))
			g->has_next_data = true;
		else if (record->token == TOKEN_ZERO_GRAD && g->backward != NONE)
			g->has_zero = true;
		else if (record->token == TOKEN_SCALER && g->backward != NONE)
			end_skipped(in, g);
		g->has_forward |= record->token == TOKEN_FORWARD;
		if (trains(in, record)) {
			if (is_thrown_away(in, g, i)) {
				bool has_data = g->has_next_data;
				end_skipped(in, g);
				g->has_data = has_data;
			}
			g->backward = i;
			g->has_data |= g->has_next_data;
			g->has_next_data = g->has_zero = g->has_forward = false;
		}
	}
	if (!in->is_cut || !in->records[in->count - 1].is_inside) /* else that call was not finished */
		end_group(in, g);
}

/* Rule 3: a backward, which is a run of nodes without anything of a forward between them. */
struct pass {
	size_t last;        /* record */
	size_t update;      /* record that ends an update behind it, NONE */
	size_t last_write;  /* record behind it, where `writes` */
	uint64_t writes;    /* to tensors in place, before anything of the next one */
	uint32_t gradients; /* that it came to */
	uint32_t added;     /* those of them that were there */
	uint64_t zeroed;    /* tensors before it */
	uint64_t zeros;     /* and behind it */
	bool is_adding;     /* to more than it makes anew */
	bool has_call;      /* of an optimizer, in a hook */
	bool is_known;      /* what it did with gradients */
	bool is_end;        /* of a step */
};

struct passes {
	struct pass *list;
	size_t count;
	bool is_open;    /* nodes that come belong to the last one */
	bool may_update; /* writes that come do */
	size_t hooked;   /* next of the calls */
};

static bool has_call_since(struct inferrer *in, struct passes *passes, const struct train_record *node)
{
	bool has_call = false;

	for (; in->hooked + passes->hooked < in->hooked_end; passes->hooked++) {
		const struct train_call *call = &in->hooked[passes->hooked];

		if (call->start_ns > node->end_ns)
			break;
		has_call |= call->start_ns >= node->start_ns;
	}
	return has_call;
}

static void begin_pass(const struct inferrer *in, struct passes *passes, const struct train_record *node)
{
	struct pass *pass = &passes->list[passes->count];

	*pass = (struct pass){.update = NONE,
	                      .zeroed = passes->count ? pass[-1].zeros : 0,
	                      .is_adding = in->is_functional || node->part > node->count / 2,
	                      .is_known = in->is_functional || node->count};
	passes->count++;
}

static void on_node(struct inferrer *in, struct passes *passes, size_t i)
{
	const struct train_record *record = &in->records[i];

	if (!passes->is_open && !trains(in, record))
		return;
	if (!passes->is_open)
		begin_pass(in, passes, record);
	struct pass *pass = &passes->list[passes->count - 1];
	pass->last = i;
	pass->writes = 0;
	if (trains(in, record) && record->count > pass->gradients) {
		pass->gradients = record->count;
		pass->added = record->part;
	}
	pass->has_call |= has_call_since(in, passes, record);
	passes->is_open = passes->may_update = true;
}

/* Of two networks, one of which learns from the other's, each has an update of its own. 0: all are, or none. */
static uint64_t own_gradients(const struct pass *pass)
{
	uint64_t own = pass->gradients - pass->added + (pass->zeroed < pass->added ? pass->zeroed : pass->added);

	return own < pass->gradients ? own : 0;
}

/* Behind a backward, and before anything of the next one, as much is written to in place as it has gradients, or gradients of its own. */
static void on_writes(struct inferrer *in, struct passes *passes, size_t i)
{
	struct pass *pass = &passes->list[passes->count - 1];
	uint64_t own = own_gradients(pass);

	pass->zeros += in->records[i].part;
	if (!passes->may_update || !pass->is_known || !in->records[i].count)
		return;
	pass->writes += in->records[i].count;
	pass->last_write = i;
	if (pass->writes < (own ? own : pass->gradients))
		return;
	pass->update = i;
	passes->is_open = false;
}

/* A backward that makes all its gradients anew does not say which of them are its own, those of an image say, while the model's add up
 * from then on: the next one, of the same gradients, does. */
static void find_first_updates(struct passes *passes)
{
	for (size_t i = 0; i + 1 < passes->count; i++) {
		struct pass *pass = &passes->list[i];
		uint64_t own = own_gradients(&pass[1]);

		if (pass->update == NONE && !pass->added && pass->gradients == pass[1].gradients && own &&
		    pass->writes >= own)
			pass->update = pass->last_write;
	}
}

static void find_passes(struct inferrer *in, struct passes *passes)
{
	for (size_t i = 0; i < in->count; i++) {
		const struct train_record *record = &in->records[i];

		if (record->token == TOKEN_BACKWARD)
			on_node(in, passes, i);
		else if (record->token == TOKEN_UPDATE && passes->count)
			on_writes(in, passes, i);
		if (record->token == TOKEN_FORWARD || record->token == TOKEN_DATA)
			passes->is_open = passes->may_update = false;
		if (record->is_module)
			passes->may_update = false;
	}
	find_first_updates(passes);
}

/* A single write may be anything's: a training without gradients writes again and again. */
static bool has_updates(const struct passes *passes)
{
	size_t updates = 0;

	for (size_t i = 0; i < passes->count; i++)
		updates += passes->list[i].update != NONE;
	return updates > 1;
}

/* Do the gradients begin anew behind the backward? */
static bool is_last_of_gradients(const struct pass *pass)
{
	return !pass[1].is_adding || pass->has_call || (pass->zeros && pass->zeros >= pass[1].added);
}

/* What the passes tell of each other. */
struct told {
	size_t pairs; /* of which both are known */
	size_t ends;  /* behind which gradients begin anew */
	size_t steps; /* that are no leftover */
};

static enum step_doubt doubt_of(const struct inferrer *in, const struct passes *passes, const struct told *told)
{
	size_t updates = in->out->hand_updates, unknown = 0;
	bool is_each = told->steps + 1 == passes->count;

	for (size_t i = 0; i < passes->count; i++)
		unknown += !passes->list[i].is_known && !passes->list[i].has_call;
	if (in->is_functional)
		return DOUBT_NO_GRADIENTS;
	if (!told->ends && !updates)
		return told->pairs ? DOUBT_ADDING : DOUBT_NO_DETAIL;
	if (unknown)
		return is_each && unknown < passes->count ? DOUBT_NONE : DOUBT_NO_DETAIL;
	return is_each && updates && updates <= passes->count / 2 ? DOUBT_RARE : DOUBT_NONE;
}

/* Where no operators are recorded each backward is a step, as it is counted. */
static bool is_pair_known(const struct pass *pass)
{
	return pass->has_call || (pass->is_known && pass[1].is_known);
}

/* Which of them end steps; what is told by gradients wins over what is written to, which may be anything. */
static void choose_passes(struct inferrer *in, struct passes *passes)
{
	struct inference *out = in->out;
	struct pass *last = &passes->list[passes->count - 1];
	struct told told = {0};

	for (struct pass *pass = passes->list; pass <= last; pass++)
		out->hand_updates += pass->update != NONE;
	for (struct pass *pass = passes->list; pass < last; pass++) {
		told.pairs += is_pair_known(pass);
		told.ends += !in->is_functional && is_pair_known(pass) && is_last_of_gradients(pass);
	}
	for (struct pass *pass = passes->list; pass < last; pass++) {
		pass->is_end = !is_pair_known(pass) ||
		               (told.ends ? is_last_of_gradients(pass) : pass->update != NONE || !out->hand_updates);
		told.steps += pass->is_end;
	}
	bool is_leftover = last->is_known && told.steps + 1 < passes->count &&
	                   out->hand_updates; /* of an accumulation */
	last->is_end = last->update != NONE || (!is_leftover && !(in->is_cut && passes->is_open));
	if (passes->count > 1)
		out->doubt = doubt_of(in, passes, &told);
}

static void note_update(struct inferrer *in, const struct pass *pass)
{
	for (size_t i = pass->last + 1; pass->update != NONE && i <= pass->update; i++)
		in->is_update[i] = in->records[i].token == TOKEN_UPDATE && in->records[i].count;
}

static void take_pass(struct inferrer *in, const struct pass *pass, const struct pass *next)
{
	if (pass->is_end)
		in->ends[in->end_count++] = pass->update != NONE ? pass->update : pass->last;
	if (pass->is_end || (next && own_gradients(next)))
		note_update(in, pass);
}

static void end_by_backwards(struct inferrer *in)
{
	struct passes passes = {.list = memory_resize(NULL, in->count + 1, sizeof(*passes.list))};

	find_passes(in, &passes);
	bool has_gradients = passes.count;
	if (!has_gradients) {
		in->is_functional = true;
		find_passes(in, &passes);
		in->is_functional = has_updates(&passes);
	}
	in->out->backwards = passes.count;
	if (!has_gradients && !in->is_functional)
		passes.count = 0;
	if (passes.count)
		choose_passes(in, &passes);
	for (size_t i = 0; i < passes.count; i++)
		take_pass(in, &passes.list[i], i + 1 < passes.count ? &passes.list[i + 1] : NULL);
	free(passes.list);
}

/* Of the optimizers that are known. */
static void find_rates(struct inferrer *in)
{
	for (size_t i = 0; i < in->count; i++) {
		if (is_call(&in->records[i]) && in->records[i].object)
			optimizer_rates_add(&in->rates, in->records[i].object, i);
	}
	for (size_t i = 0; i < in->count; i++) {
		if (is_call(&in->records[i]) && in->records[i].object)
			optimizer_rates_follow(&in->rates, in->records[i].object, i);
	}
}

static void find_ends(struct inferrer *in)
{
	struct grouping g = {.last = NONE, .backward = NONE};

	find_rates(in);
	g.has_identity = in->rates.map.count > 0;
	for (size_t i = 0; i < in->count; i++) {
		in->out->update_count += is_call(&in->records[i]);
		g.has_batches |= is_batch(&in->records[i]);
	}
	in->out->thrown_away = in->out->update_count ? gradients_thrown_away(in->records, in->count, g.has_batches) : 0;
	if (in->out->update_count)
		end_by_calls(in, &g);
	else
		end_by_backwards(in);
	number_map_release(&g.groups);
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

/* ---- evaluations ------------------------------------------------------------------------------------------------------------ */

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

/* Several updates of a batch may be as many steps, or parts of one. */
static void find_doubt_of_batches(struct inferrer *in)
{
	size_t batches = 0;

	for (size_t i = 0; i < in->count; i++)
		batches += is_batch(&in->records[i]) && !in->is_evaluation[i];
	if (batches > 1 && in->end_count >= 2 * batches && in->end_count % batches == 0)
		in->out->doubt = DOUBT_OF_BATCH;
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

/* ---- forwards ---------------------------------------------------------------------------------------------------------------- */

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

/* ---- several optimizers ------------------------------------------------------------------------------------------------------ */

static void find_rare_calls(struct inferrer *in)
{
	size_t step = 0, with_calls = 0;
	bool has_call = false;

	for (size_t i = 0; i < in->count && step < in->end_count; i++) {
		if (is_call(&in->records[i]) && in->records[i].object) {
			optimizer_rates_add_step(&in->rates, in->records[i].object, with_calls);
			has_call = true;
		}
		if (i == in->ends[step]) {
			step++;
			with_calls += has_call;
			has_call = false;
		}
	}
	const struct optimizer_rate *rarest = optimizer_rates_rarest(&in->rates);
	if (rarest) {
		in->out->rare_calls = rarest->steps;
		in->out->rare_steps = rarest->last_step - rarest->first_step + 1;
	}
}

/* ---- intervals -------------------------------------------------------------------------------------------------------------- */

static uint8_t phase_of(const struct inferrer *in, size_t i)
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

/* The last record of the interval that the phase of record i makes with its neighbours, up to a pause; operators that say nothing
 * belong to the forward they lie in. Records in an optimizer's call have neighbours there only. */
static size_t last_of_phase(const struct inferrer *in, size_t i, size_t end, uint8_t phase)
{
	bool is_inside = in->records[i].is_inside, is_forward = phase == STEPSCOPE_PHASE_FORWARD;
	bool may_pause = is_forward || phase == STEPSCOPE_PHASE_BACKWARD;
	int64_t busy_ns = in->records[i].end_ns;
	size_t last = i;

	if (phase == STEPSCOPE_PHASE_DATA || in->records[i].token == TOKEN_OPTIMIZER)
		return i;
	for (size_t k = i + 1; k < end; k++) {
		uint8_t other = phase_of(in, k);

		if (is_inside && !in->records[k].is_inside)
			break;
		if (in->records[k].is_inside != is_inside)
			continue;
		if (other && (other != phase || in->records[k].range != in->records[i].range))
			break;
		if (may_pause && train_pauses(in->records[i].token, busy_ns, in->records[k].start_ns))
			break;
		if ((other || is_forward) && in->records[k].end_ns > busy_ns)
			busy_ns = in->records[k].end_ns;
		last = other ? k : last;
	}
	return last;
}

/* Calls of optimizers in the backward that was added last. */
static void add_hooked(struct inferrer *in, int64_t start_ns, int64_t end_ns)
{
	for (; in->hooked < in->hooked_end && in->hooked->start_ns < end_ns; in->hooked++) {
		if (in->hooked->start_ns >= start_ns && in->hooked->end_ns <= end_ns)
			inference_add(in->out, STEPSCOPE_PHASE_OPTIMIZER, in->hooked->start_ns, in->hooked->end_ns);
	}
}

/* One interval from record i on, none beyond `limit_ns` and none before `*before_ns`, which becomes its end; returns its last record. */
static size_t add_phase(struct inferrer *in, size_t i, size_t end, int64_t limit_ns, int64_t *before_ns)
{
	uint8_t phase = phase_of(in, i);
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
			add_hooked(in, start_ns, end_ns);
	}
	return last;
}

/* A closure that an optimizer calls has a forward and a backward of its own, within the interval that was added last. */
static void add_phases_of_closure(struct inferrer *in, size_t call, size_t end)
{
	int64_t before_ns = in->out->list[in->out->count - 1].start_ns;
	int64_t limit_ns = in->out->list[in->out->count - 1].end_ns;

	for (size_t i = call + 1; i < end && in->records[i].is_inside; i++) {
		uint8_t phase = phase_of(in, i);

		if (phase && phase != STEPSCOPE_PHASE_OPTIMIZER)
			i = add_phase(in, i, end, limit_ns, &before_ns);
	}
}

/* Of records [first, end), none beyond `limit_ns`. */
static void add_phases(struct inferrer *in, size_t first, size_t end, int64_t limit_ns)
{
	for (size_t i = first; i < end; i++) {
		size_t call = i, count = in->out->count;

		if (!phase_of(in, i) || in->records[i].is_inside)
			continue;
		i = add_phase(in, i, end, limit_ns, &in->phase_end_ns);
		if (in->out->count > count && is_call(&in->records[call]) && has_closure(in, call))
			add_phases_of_closure(in, call, end);
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
		if ((is_forward(in, i) && record->is_module >= has_modules) || record->token == TOKEN_ZERO_GRAD)
			first = i;
	}
	return first;
}

/* The innermost range around both. Parents have smaller indices. */
static uint32_t common_range(const struct inferrer *in, uint32_t a, uint32_t b)
{
	while (a != b && a != NO_RANGE && b != NO_RANGE) {
		if (a > b)
			a = in->ranges[a].parent;
		else
			b = in->ranges[b].parent;
	}
	return a == b ? a : NO_RANGE;
}

/* The outermost range around the record that lies within `outer`; NO_RANGE: the record itself does. */
static uint32_t outermost_within(const struct inferrer *in, uint32_t range, uint32_t outer)
{
	while (range != outer && range != NO_RANGE && in->ranges[range].parent != outer)
		range = in->ranges[range].parent;
	return range == outer ? NO_RANGE : range;
}

struct place {                     /* of a step */
	size_t first, last;        /* records */
	size_t next_end;           /* last record of the step behind it, NONE */
	uint32_t around;           /* innermost range that holds it */
	uint32_t at_start, at_end; /* the ranges within that one it begins and ends with, NO_RANGE */
};

/* A step takes in whole ranges: one that begins inside of a range which does not hold all of it would cut that. Where a range
 * cannot be whole, because another step lies in it too, the step is shorter. */
static void find_place(const struct inferrer *in, struct place *place)
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

/* From the end of the step before, or of an evaluation behind it, when no range begins in between. */
static int64_t start_of(const struct inferrer *in, const struct place *place, size_t evaluation)
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
		start_ns = at == NO_RANGE ? in->records[evaluation].end_ns : in->ranges[at].end_ns;
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
static void add_step(struct inferrer *in, struct place *place, size_t evaluation)
{
	bool is_open = in->records[place->last].token == TOKEN_CUT;
	size_t begin = in->next, end = place->last + 1;
	int64_t start_ns, end_ns;

	find_place(in, place);
	start_ns = start_of(in, place, evaluation);
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

static void add_all(struct inferrer *in)
{
	size_t behind = in->end_count ? in->ends[in->end_count - 1] + 1 : 0;

	if (has_open_step(in, behind))
		in->ends[in->end_count++] = in->count - 1;
	for (size_t i = 0; i < in->end_count; i++) {
		struct place place = {.first = in->next,
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
		add_step(in, &place, evaluation);
	}
	if (in->out->step_count)
		add_phases(in, in->next, in->count, INFERRED_IS_OPEN);
}

void infer_steps(struct inference *inference, const struct train_loop *loop)
{
	const struct train_record *records = loop->records;
	size_t count = loop->count;
	struct inferrer in = {.out = inference,
	                      .records = records,
	                      .count = count,
	                      .ranges = loop->ranges,
	                      .hooked = loop->hooked,
	                      .hooked_end = loop->hooked_count ? loop->hooked + loop->hooked_count : loop->hooked,
	                      .last_range = NO_RANGE,
	                      .last_end_ns = INT64_MIN,
	                      .phase_end_ns = INT64_MIN};

	memset(inference, 0, sizeof(*inference));
	in.is_cut = count && records[count - 1].token == TOKEN_CUT;
	in.ends = memory_resize(NULL, count + 1, sizeof(*in.ends));
	in.is_evaluation = memory_resize(NULL, count + 1, sizeof(*in.is_evaluation));
	memset(in.is_evaluation, 0, (count + 1) * sizeof(*in.is_evaluation));
	in.is_update = memory_resize(NULL, count + 1, sizeof(*in.is_update));
	memset(in.is_update, 0, (count + 1) * sizeof(*in.is_update));
	in.is_unused = memory_resize(NULL, count + 1, sizeof(*in.is_unused));
	find_ends(&in);
	find_rare_calls(&in);
	find_evaluations(&in);
	find_evaluating_calls(&in);
	find_unused(&in);
	if (!inference->update_count && !inference->doubt && !loop->hooked_count)
		find_doubt_of_batches(&in);
	add_all(&in);
	optimizer_rates_release(&in.rates);
	free(in.ends);
	free(in.is_evaluation);
	free(in.is_update);
	free(in.is_unused);
}
