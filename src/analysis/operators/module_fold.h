/* SPDX-License-Identifier: Apache-2.0
 *
 * module_fold.h: the modules that the program calls in measured steps, as a tree, and the sums of their forwards.
 * module_work.h adds the sums of their backwards, memory, devices and floating point operations.
 *
 *     struct module_fold fold;
 *     module_fold_init(&fold, &context);
 *     module_work_add(&fold, &context);
 *     for (uint32_t i = 0; i + 1 < fold.group_count; i++)
 *             struct module_sums sums = module_fold_sums(&fold, fold.order[i]);
 *     module_fold_release(&fold);
 */
#ifndef ANALYSIS_OPERATORS_MODULE_FOLD_H
#define ANALYSIS_OPERATORS_MODULE_FOLD_H

#include "analysis/operators/flop_counts.h"
#include "analysis/step_times/step_kinds.h"
#include "model/launches.h"
#include "model/number_map.h"

#define MODULE_NO_GROUP 0u /* the group outside all modules */
/* flags of a row: it is nested in a node of a backward; torch.compile traces it, and its time is that of the call
 * around it */
#define MODULE_IS_IN_NODE 0x80000000u
#define MODULE_IS_TRACED 0x40000000u
#define MODULE_ROW_FLAGS (MODULE_IS_IN_NODE | MODULE_IS_TRACED)
#define MODULE_GROUPS_MAX MODULE_IS_TRACED /* groups and flags share 32 bits */
#define MODULE_OPERATOR_NAMES 6            /* that a group keeps */

struct module_sums {
	int64_t calls, recompute_calls;
	int64_t forward_ns, forward_self_ns, recompute_ns, recompute_self_ns;
	int64_t backward_ns, backward_self_ns;
	int64_t step_self_ns; /* own time, forward and backward, on threads that carry steps */
	wide_bytes allocated;
	/* work of devices that was launched in the module's calls and backwards */
	int64_t device_self_ns, device_ns, backward_device_self_ns, backward_device_ns, launched;
	/* of forward, recomputation and backward; those without `self` include nested modules once module_work_add() is
	 * done */
	struct flop_sum flops_self, flops, backward_flops_self, backward_flops;
};

struct module_group {
	uint32_t name;   /* string: path */
	uint32_t parent; /* group of the caller of its first call, or `later` (module_take_later_parent()) */
	uint32_t later;  /* group of the first caller after the first call */
	uint32_t alone_calls, later_calls; /* calls without a caller; calls by `later` */
	uint32_t open;                     /* calls of it around the current span */
	uint16_t depth;
	uint32_t operators[MODULE_OPERATOR_NAMES]; /* names of the first operators that it calls itself; 0: no more */
};

struct module_fold {
	const struct model *model;
	const struct step_times *times;
	const struct launches *launches;
	struct module_group *groups; /* [MODULE_NO_GROUP]: outside all modules */
	struct module_sums *sums[2]; /* by group; [1]: in sampled steps, or NULL */
	struct step_sightings *seen; /* by group: its calls in sampled steps; NULL: there are no such steps */
	uint32_t group_count, group_capacity;
	uint32_t *order;          /* all modules: parents first, children in the order of their first calls */
	uint32_t **group_of_row;  /* by track: the group around each span, with flags */
	struct number_map inside; /* track << 32 | row of a node -> index of inside_ns */
	int64_t *inside_ns;       /* time in a node that other nodes, or modules, take */
	uint32_t inside_count;
	bool *step_tracks; /* by track: see step_times_tracks() */
	enum flops_result flops_result;
	int64_t linked;  /* nodes with a link from the operator that made them */
	double steps_ns; /* duration of the measured steps */
};

/* Finds the modules and sums up their forwards. */
void module_fold_init(struct module_fold *fold, struct analysis_context *context);
void module_fold_release(struct module_fold *fold);
/* Frees the arrays per span, which only module_work_add() reads: sums remain. */
void module_fold_forget_rows(struct module_fold *fold);

/* Returns the sums of the group that get the numbers of this step. */
struct module_sums *module_fold_sums_at(const struct module_fold *fold, uint32_t group, int32_t step);
/* Returns the sums of the group over the run: sampled steps are multiplied. */
struct module_sums module_fold_sums(const struct module_fold *fold, uint32_t group);
/* Returns the time of the backward of an operator, which the span at this row is. If a node of the engine is around the
 * span, it is the node's time without nested nodes and modules. */
int64_t module_fold_node_ns(const struct module_fold *fold, uint32_t track, uint32_t row);
/* Calls add_up for each module, children before their parents. `around` is NULL for modules without a parent. */
void module_fold_add_up(struct module_fold *fold, void (*add_up)(struct module_sums *own, struct module_sums *around));

#endif
