/* SPDX-License-Identifier: Apache-2.0
 *
 * infer_steps_backwards.c: where steps end in a program that calls no optimizer, by its backwards, their gradients, and what is written to
 * in place behind them.
 */
#include "base/memory.h"
#include "steps/infer_steps_parts.h"

#include <stdlib.h>

/* Rule 3: a backward, which is a run of nodes without anything of a forward between them. */
struct backwards_pass {
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
	struct backwards_pass *list;
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
	struct backwards_pass *pass = &passes->list[passes->count];

	*pass = (struct backwards_pass){.update = NONE,
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
	struct backwards_pass *pass = &passes->list[passes->count - 1];
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
static uint64_t own_gradients(const struct backwards_pass *pass)
{
	uint64_t own = pass->gradients - pass->added + (pass->zeroed < pass->added ? pass->zeroed : pass->added);

	return own < pass->gradients ? own : 0;
}

/* Behind a backward, and before anything of the next one, as much is written to in place as it has gradients, or gradients of its own. */
static void on_writes(struct inferrer *in, struct passes *passes, size_t i)
{
	struct backwards_pass *pass = &passes->list[passes->count - 1];
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
		struct backwards_pass *pass = &passes->list[i];
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
static bool is_last_of_gradients(const struct backwards_pass *pass)
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
static bool is_pair_known(const struct backwards_pass *pass)
{
	return pass->has_call || (pass->is_known && pass[1].is_known);
}

/* Which of them end steps; what is told by gradients wins over what is written to, which may be anything. */
static void choose_passes(struct inferrer *in, struct passes *passes)
{
	struct inference *out = in->out;
	struct backwards_pass *last = &passes->list[passes->count - 1];
	struct told told = {0};

	for (struct backwards_pass *pass = passes->list; pass <= last; pass++)
		out->hand_updates += pass->update != NONE;
	for (struct backwards_pass *pass = passes->list; pass < last; pass++) {
		told.pairs += is_pair_known(pass);
		told.ends += !in->is_functional && is_pair_known(pass) && is_last_of_gradients(pass);
	}
	for (struct backwards_pass *pass = passes->list; pass < last; pass++) {
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

static void note_update(struct inferrer *in, const struct backwards_pass *pass)
{
	for (size_t i = pass->last + 1; pass->update != NONE && i <= pass->update; i++)
		in->is_update[i] = in->records[i].token == TOKEN_UPDATE && in->records[i].count;
}

static void take_pass(struct inferrer *in, const struct backwards_pass *pass, const struct backwards_pass *next)
{
	if (pass->is_end)
		in->ends[in->end_count++] = pass->update != NONE ? pass->update : pass->last;
	if (pass->is_end || (next && own_gradients(next)))
		note_update(in, pass);
}

void train_count_writes(struct train_record *update, uint32_t tensors, bool is_zeroing)
{
	uint32_t *count = is_zeroing ? &update->part : &update->count;

	*count = *count < TRAIN_MANY_TENSORS ? *count + tensors : *count;
}

void infer_ends_by_backwards(struct inferrer *in)
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
