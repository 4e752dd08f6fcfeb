/* SPDX-License-Identifier: Apache-2.0
 *
 * op_groups.h: the rows of the table `ops` while they are summed up. A group has a key: name and kind, and shape,
 * thread or phase if rows are split by them. Sampled steps have separate groups, until op_totals.h joins each with the
 * group of the same row.
 *
 *     struct op_groups groups;
 *     op_groups_init(&groups, model);
 *     groups.list[op_groups_find(&groups, &key)].calls++;
 *     op_groups_release(&groups);
 */
#ifndef ANALYSIS_OPERATORS_OP_GROUPS_H
#define ANALYSIS_OPERATORS_OP_GROUPS_H

#include "analysis/operators/flops.h"
#include "analysis/step_times/step_kinds.h"

struct op_key {
	/* kind and phase are as wide as the others, so that a comparison does not wait for narrow stores */
	uint32_t name, shape, track, kind, phase;
	uint32_t is_sampled; /* see step_kinds.h */
};

struct op_group {
	struct op_key key;
	uint32_t open; /* spans of the group around the current one, for recursion */
	int64_t calls, open_calls, total_ns, self_ns;
	int64_t step_self_ns;                          /* on threads that mark steps */
	int64_t step_outside_ns;                       /* of these: outside all phases */
	int64_t timed_calls, timed_ns, min_ns, max_ns; /* calls with start and end */
	int64_t flop_calls, byte_calls;
	int64_t lacking_calls, lacking_profiler_calls; /* see struct flop_count; the same by the other definition */
	double flops, bytes, profiler_flops;
	/* calls whose work took a known time, and that time */
	double rated_flops;
	int64_t rated_calls, rated_ns;
	int64_t profiler_calls;
	enum flops_result flops_result; /* the best of its calls */
	bool has_inner_flops;           /* operators inside its calls have them */
	int64_t memory, self_memory;    /* bytes allocated minus freed */
	int64_t device_ns, self_device_ns, launched;
	struct step_sightings seen;
};

/* The groups of the time outside all operations, in steps that stand for themselves and in sampled steps. */
#define OP_GROUP_REST 0u
#define OP_GROUP_REST_SAMPLED 1u
#define OP_GROUP_FIRST 2u /* the first group of an operation */

struct op_groups {
	struct storage *storage; /* of the model */
	struct op_group *list;   /* the two of the rest, then those of operations by their first calls */
	uint32_t count, capacity;
	uint32_t *slots; /* open addressing: the number of a group or 0; slot_count is a power of two */
	uint32_t slot_count;
	uint32_t *by_name; /* by string: the group of that name that was found last; 0: none */
};

void op_groups_init(struct op_groups *groups, const struct model *model);
void op_groups_release(struct op_groups *groups);

/* Returns the number of the group with this key, which may be new. Then pointers into the list are no longer valid. */
uint32_t op_groups_find(struct op_groups *groups, const struct op_key *key);

/* Adds the call and its duration. open is the number of calls of the group around it. */
void op_group_add_call(struct op_group *group, const struct span_view *span, bool is_timed);
/* Adds the sums of sampled steps, times the factor. Means, and the numbers they are made from, stay those of the
 * recorded calls. */
void op_group_join(struct op_group *group, const struct op_group *sampled, double factor);

#endif
