/* SPDX-License-Identifier: Apache-2.0
 *
 * infer_steps_calls.c: where steps end, by the calls of optimizers.
 */
#include "model/number_map.h"
#include "steps/infer_steps_parts.h"
#include "steps/thrown_gradients.h"

/* What was seen since the last call of the group, while going through the records. */
struct inferred_grouping {
	struct number_map groups; /* optimizer -> the last group that it was called in */
	uint32_t group;
	bool has_identity, has_batches, has_backwards; /* the program */
	size_t last;                                   /* call of this group, NONE */
	bool is_closure;                               /* that call */
	bool is_of_batch;                              /* a batch came before it */
	bool goes_on;                              /* its first call is of the optimizer that was called before, too */
	size_t backward;                           /* that trains, NONE */
	bool has_data;                             /* before that backward */
	bool has_next_data, has_zero, has_forward; /* behind it */
};

static void calls_forget(struct inferred_grouping *g)
{
	g->backward = NONE;
	g->has_data = g->has_next_data = g->has_zero = g->has_forward = false;
}

static void end_group(struct inferrer *in, struct inferred_grouping *g)
{
	if (g->last != NONE)
		in->ends[in->end_count++] = g->last;
	g->last = NONE;
	g->group++;
}

/* Rule 4: the backward ends a step by itself, or the one that calls before it on the same batch began. */
static void end_skipped(struct inferrer *in, struct inferred_grouping *g)
{
	if (g->last != NONE && (g->has_data || !g->has_batches))
		end_group(in, g);
	g->last = g->backward;
	end_group(in, g);
	calls_forget(g);
}

/* Does the optimizer go on alone, so that training goes on with it? Of the last call of all it is only known that the one before did. */
static bool goes_on_alone(const struct inferrer *in, const struct inferred_grouping *g, size_t call, bool is_closure)
{
	for (size_t i = call + 1; i < in->count; i++) {
		if (is_call(&in->records[i]))
			return in->records[i].object == in->records[call].object;
	}
	return g->goes_on && (is_closure || g->has_data);
}

/* Was it called in the group already? Not where the group's steps are another one's. */
static bool is_repeated(const struct inferrer *in, const struct inferred_grouping *g, uint64_t optimizer)
{
	uint64_t leader = optimizer_rates_leader(&in->rates, optimizer);

	return number_map_find(&g->groups, optimizer) == g->group &&
	       !(leader && number_map_find(&g->groups, leader) == g->group);
}

/* Does the call begin another group? */
static bool is_other_group(struct inferrer *in, struct inferred_grouping *g, size_t call, bool is_closure)
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
	if (g->backward == NONE && g->has_backwards)
		return false;
	in->out->is_each_update |= (is_other_batch && !g->has_batches) || !g->has_backwards;
	in->out->is_joined |= !is_other_batch;
	return is_other_batch;
}

static void on_call(struct inferrer *in, struct inferred_grouping *g, size_t call)
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
	calls_forget(g);
}

/* Were the gradients of the backward before this one thrown away? */
static bool is_thrown_away(const struct inferrer *in, const struct inferred_grouping *g, size_t backward)
{
	if (g->backward == NONE || (g->has_zero && g->has_next_data))
		return g->backward != NONE;
	if (!in->out->thrown_away)
		return false;
	return g->has_zero ? !g->has_batches
	                   : g->has_forward && gradients_are_new(&in->records[backward], &in->records[g->backward]);
}

static void calls_find_ends(struct inferrer *in, struct inferred_grouping *g)
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

void infer_ends_by_calls(struct inferrer *in)
{
	struct inferred_grouping g = {.last = NONE, .backward = NONE};

	find_rates(in);
	g.has_identity = in->rates.map.count > 0;
	for (size_t i = 0; i < in->count; i++)
		g.has_batches |= is_batch(&in->records[i]), g.has_backwards |= trains(in, &in->records[i]);
	in->out->thrown_away = gradients_thrown_away(in->records, in->count, g.has_batches);
	calls_find_ends(in, &g);
	number_map_release(&g.groups);
}
