/* SPDX-License-Identifier: Apache-2.0
 *
 * count.c: see count.h.
 */
#include "agents/torch/count.h"

#include "base/hash.h"

#include <stddef.h>

static void count_forget(struct step_count *count)
{
	count->has_backward = count->has_data = count->has_next_data = count->has_zero = false;
}

/* Returns 1 + the slot of the optimizer; 0: unknown, or too many optimizers. */
static uint32_t count_slot_of(struct step_count *count, uint64_t identity)
{
	uint32_t at = (uint32_t)(hash_word(identity) >> 40) % COUNT_OPTIMIZERS;
	if (!identity)
		return 0;
	for (uint32_t i = 0; i < COUNT_OPTIMIZERS; i++, at = (at + 1) % COUNT_OPTIMIZERS) {
		if (!count->optimizers[at].identity) {
			count->optimizers[at].identity = identity;
			count->called++;
			return at + 1;
		}
		if (count->optimizers[at].identity == identity)
			return at + 1;
	}
	return 0;
}

/* Starts a new group. Returns 1 if the end of the old group's step was not reported. */
static unsigned begin_group(struct step_count *count)
{
	unsigned late = count->has_group && !count->is_told;
	if (count->last)
		count->optimizers[count->last - 1].ends = true;
	count->group++;
	count->has_group = true;
	count->is_of_batch = count->has_data;
	count->is_told = count->is_over = count->may_be_step = false;
	return late;
}

static uint32_t made(const struct step_count *count)
{
	return count->made ? count->made : count->inherited;
}

bool count_has_optimizers(const struct step_count *count)
{
	return (made(count) && !count->is_hooked) || count->has_group;
}

void count_forked(struct step_count *count)
{
	uint32_t called = 0;
	for (uint32_t i = 0; i < COUNT_OPTIMIZERS; i++)
		called += count->optimizers[i].identity && count->optimizers[i].group == count->group;
	*count = (struct step_count){.inherited = count->has_group ? called : made(count)};
}

void count_hooked(struct step_count *count)
{
	count->is_hooked = true;
}

void count_made(struct step_count *count)
{
	count->made++;
	count->made_since++;
}

static bool is_end(const struct step_count *count, uint32_t slot)
{
	/* in the first group only the number of optimizers is known */
	return slot ? count->optimizers[slot - 1].ends || (count->group <= 1 && count->called >= made(count)) : true;
}

/* Returns true if the call comes after the reported end of the group's step, on new gradients. The call may still be
 * part of that step. If several steps use one batch, there is no other evidence. */
static bool is_apart(const struct step_count *count, const struct counted_call *call, uint32_t slot)
{
	bool is_other_batch = count->has_data || !count->has_batches || !count->is_of_batch;
	return slot && count->optimizers[slot - 1].group != count->group && count->is_told && !count->is_over &&
	       is_other_batch && (count->has_backward || call->is_closure);
}

static bool begins_group(const struct step_count *count, uint32_t slot, bool is_alone)
{
	if (!count->has_group || count->is_over)
		return true;
	if (slot)
		return count->optimizers[slot - 1].group == count->group || is_alone;
	return count->has_backward && (count->has_data || !count->has_batches);
}

unsigned count_call(struct step_count *count, const struct counted_call *call)
{
	uint32_t slot = count_slot_of(count, call->identity);

	if (call->is_inside)
		return 0;
	if (slot && call->is_new) /* the known group belongs to an optimizer that is gone */
		count->optimizers[slot - 1].group = 0;
	bool may_take = is_apart(count, call, slot), was_step = count->may_be_step && slot == count->last;
	bool takes = may_take && (count->has_data || call->is_new || call->is_closure);
	bool begins = begins_group(count, slot, takes);
	unsigned ended = begins && was_step;
	if (begins) {
		ended += begin_group(count);
		count->expected = !takes ? 0 : call->is_new && count->made_since ? count->made_since : 1;
	}
	if (slot) {
		count->optimizers[slot - 1].group = count->group;
		count->optimizers[slot - 1].ends &= !call->is_new;
	}
	count->updates += count->has_backward || call->is_closure;
	count->last = slot;
	count->may_be_step = may_take && !begins;
	count->made_since = 0;
	bool is_last = count->expected && --count->expected == 0;
	if (!count->is_told && (is_last || is_end(count, slot))) {
		count->is_told = true;
		ended++;
	}
	count_forget(count);
	return ended;
}

/* Ends a step that has no optimizer call. If the batch is that of the previous calls, the end belongs to their step. */
static unsigned end_skipped(struct step_count *count)
{
	bool is_next = !count->has_group || count->has_data || !count->has_batches;
	unsigned ended = is_next ? begin_group(count) : 0;
	ended += !count->is_told;
	count->last = 0;
	count->is_told = count->is_over = true;
	count_forget(count);
	return ended;
}

unsigned count_scaler(struct step_count *count)
{
	return count->has_backward && count_has_optimizers(count) ? end_skipped(count) : 0;
}

void count_zero_grad(struct step_count *count)
{
	count->has_zero |= count->has_backward;
}

static unsigned end_by_backward(struct step_count *count)
{
	if (!count->has_backward || count_has_optimizers(count))
		return 0;
	count_forget(count);
	return 1;
}

unsigned count_batch(struct step_count *count)
{
	unsigned ended = end_by_backward(count);
	count->has_batches = true;
	if (count->has_backward)
		count->has_next_data = true;
	count->has_data = true;
	return ended;
}

unsigned count_operator(struct step_count *count)
{
	return end_by_backward(count);
}

/* Returns true if the gradients of the previous backward were thrown away. */
static bool is_thrown_away(struct step_count *count)
{
	if (!count->has_zero || !count_has_optimizers(count))
		return false;
	if (count->has_batches)
		return count->has_next_data;
	count->has_zero = false;
	return 2 * ++count->thrown < count->updates;
}

unsigned count_backward(struct step_count *count)
{
	unsigned ended = 0;
	bool has_data = count->has_next_data;
	if (is_thrown_away(count)) {
		ended = end_skipped(count);
		count->has_data = has_data;
	}
	count->has_backward = true;
	return ended;
}
