/* SPDX-License-Identifier: Apache-2.0
 *
 * op_groups.c: a hash table of groups by their keys. Callers add most of the sums to the groups themselves.
 */
#include "analysis/operators/op_groups.h"

#include "base/clamped.h"
#include "base/hash.h"
#include "base/storage.h"

#include <string.h>

static bool op_key_equal(const struct op_key *a, const struct op_key *b)
{
	return a->name == b->name && a->shape == b->shape && a->track == b->track && a->kind == b->kind &&
	       a->phase == b->phase && a->is_sampled == b->is_sampled;
}

static uint32_t op_key_hash(const struct op_key *key)
{
	const uint64_t parts[] = {key->name, key->shape, key->track,
	                          (uint64_t)key->kind << 8 | (uint64_t)key->phase << 1 | key->is_sampled};

	return (uint32_t)(hash_words(parts, sizeof(parts) / sizeof(*parts)) >> 32);
}

static uint32_t *op_groups_slot(const struct op_groups *groups, const struct op_key *key)
{
	uint32_t slot = op_key_hash(key) & (groups->slot_count - 1);

	while (groups->slots[slot] && !op_key_equal(&groups->list[groups->slots[slot]].key, key))
		slot = (slot + 1) & (groups->slot_count - 1);
	return &groups->slots[slot];
}

static void op_groups_grow(struct op_groups *groups)
{
	groups->slot_count = groups->slot_count ? groups->slot_count * 2 : 256;
	groups->slots = storage_resize(groups->storage, groups->slots, groups->slot_count, sizeof(*groups->slots));
	memset(groups->slots, 0, groups->slot_count * sizeof(*groups->slots));
	for (uint32_t i = OP_GROUP_FIRST; i < groups->count; i++)
		*op_groups_slot(groups, &groups->list[i].key) = i;
}

static uint32_t op_groups_add(struct op_groups *groups, const struct op_key *key)
{
	STORAGE_GROW(groups->storage, groups->list, groups->count, groups->capacity, 64);
	groups->list[groups->count] = (struct op_group){.key = *key, .min_ns = INT64_MAX};
	return groups->count++;
}

uint32_t op_groups_find(struct op_groups *groups, const struct op_key *key)
{
	uint32_t *slot, *last = &groups->by_name[key->name];

	if (*last && op_key_equal(&groups->list[*last].key, key))
		return *last;
	if (groups->count * 2 >= groups->slot_count)
		op_groups_grow(groups);
	slot = op_groups_slot(groups, key);
	if (!*slot)
		*slot = op_groups_add(groups, key);
	return *last = *slot;
}

void op_groups_init(struct op_groups *groups, const struct model *model)
{
	size_t names = model->strings.count + (size_t)1;

	*groups = (struct op_groups){.storage = model->storage};
	op_groups_add(groups, &(struct op_key){0});
	op_groups_add(groups, &(struct op_key){.is_sampled = true});
	groups->by_name = storage_resize(groups->storage, NULL, names, sizeof(*groups->by_name));
	memset(groups->by_name, 0, names * sizeof(*groups->by_name));
}

void op_groups_release(struct op_groups *groups)
{
	storage_release(groups->storage, groups->list);
	storage_release(groups->storage, groups->slots);
	storage_release(groups->storage, groups->by_name);
}

void op_group_add_call(struct op_group *group, const struct span_view *span, bool is_timed)
{
	group->calls++;
	if (group->open == 0)
		clamped_add(&group->total_ns, span->dur_ns);
	if (!is_timed) {
		group->open_calls++;
		return;
	}
	group->timed_calls++;
	clamped_add(&group->timed_ns, span->dur_ns);
	group->min_ns = span->dur_ns < group->min_ns ? span->dur_ns : group->min_ns;
	group->max_ns = span->dur_ns > group->max_ns ? span->dur_ns : group->max_ns;
}

void op_group_join(struct op_group *group, const struct op_group *sampled, double factor)
{
	step_kinds_join(&group->calls, sampled->calls, factor);
	step_kinds_join(&group->total_ns, sampled->total_ns, factor);
	step_kinds_join(&group->self_ns, sampled->self_ns, factor);
	step_kinds_join(&group->step_self_ns, sampled->step_self_ns, factor);
	step_kinds_join(&group->step_outside_ns, sampled->step_outside_ns, factor);
	step_kinds_join(&group->memory, sampled->memory, factor);
	step_kinds_join(&group->self_memory, sampled->self_memory, factor);
	step_kinds_join(&group->device_ns, sampled->device_ns, factor);
	step_kinds_join(&group->self_device_ns, sampled->self_device_ns, factor);
	step_kinds_join(&group->launched, sampled->launched, factor);
	group->flops += sampled->flops * factor;
	group->profiler_flops += sampled->profiler_flops * factor;
	group->bytes += sampled->bytes * factor;
	group->open_calls += sampled->open_calls;
	group->timed_calls += sampled->timed_calls;
	clamped_add(&group->timed_ns, sampled->timed_ns);
	group->min_ns = sampled->min_ns < group->min_ns ? sampled->min_ns : group->min_ns;
	group->max_ns = sampled->max_ns > group->max_ns ? sampled->max_ns : group->max_ns;
	group->flop_calls += sampled->flop_calls;
	group->lacking_calls += sampled->lacking_calls;
	group->lacking_profiler_calls += sampled->lacking_profiler_calls;
	group->byte_calls += sampled->byte_calls;
	group->rated_flops += sampled->rated_flops;
	group->rated_calls += sampled->rated_calls;
	clamped_add(&group->rated_ns, sampled->rated_ns);
	group->profiler_calls += sampled->profiler_calls;
	group->flops_result = sampled->flops_result > group->flops_result ? sampled->flops_result : group->flops_result;
	group->has_inner_flops |= sampled->has_inner_flops;
	group->seen = sampled->seen;
}
