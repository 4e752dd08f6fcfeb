/* SPDX-License-Identifier: Apache-2.0
 *
 * record_fold.h: the begins and ends of a thread's operators and ranges, folded to records for infer_steps(). A recording has
 * begins and ends, a trace has spans with both: each importer keeps the stack of its open ones, and the records.
 *
 *     struct record_fold fold;
 *     record_fold_init(&fold);
 *     open->level = fold_level_in(outer ? &outer->level : NULL);
 *     if (fold_level_takes_range(&fold, &open->level, RANGES_MAX))  // a range of the user's
 *             fold_level_set_range(&open->level, add_range(...));
 *     else
 *             fold_level_open(&fold, &open->level, token);          // an operator, an optimizer's call, ...
 *     ...
 *     fold_level_close(&fold, &open->level);
 *
 * An operator outside of others is a record; it hides all in it, but an optimizer's call hides nothing. An operator
 * with a number, which autograd would give the next node, made a node if a later number is higher.
 */
#ifndef STEPS_RECORD_FOLD_H
#define STEPS_RECORD_FOLD_H

#include "steps/infer_steps.h"
#include "steps/record_class.h"

#define NO_RECORD SIZE_MAX

struct fold_level {           /* of what is open */
	uint32_t range;       /* index of the innermost range, itself included; NO_RANGE: none */
	uint32_t range_count; /* how many ranges that makes */
	bool is_range, hides, is_optimizer;
};

struct record_fold {
	uint32_t hidden;     /* open levels that hide */
	uint32_t optimizers; /* open calls of optimizers */
	size_t pending;      /* record of the last operator with a number, which may have made a node; NO_RECORD */
	uint64_t pending_sequence; /* its number */
	uint64_t free_number;      /* the first one that none of the operators so far can have taken; 0: not known */
	bool has_ones;             /* CLASS_ONES since the last node of a backward */
};

static inline void record_fold_init(struct record_fold *fold)
{
	*fold = (struct record_fold){.pending = NO_RECORD};
}

/* ---- levels ---- */

/* Returns a level inside of another one (NULL: of none) that keeps and hides nothing. */
static inline struct fold_level fold_level_in(const struct fold_level *outer)
{
	return (struct fold_level){.range = outer ? outer->range : NO_RANGE,
	                           .range_count = outer ? outer->range_count : 0};
}

/* Returns true if a range at this level matters to steps: none around it hides it, and there are fewer than `most`. */
static inline bool fold_level_takes_range(const struct record_fold *fold, const struct fold_level *level, uint32_t most)
{
	return !fold->hidden && level->range_count < most;
}

static inline void fold_level_set_range(struct fold_level *level, uint32_t range)
{
	level->range = range;
	level->range_count++;
	level->is_range = true;
}

static inline void fold_level_hide(struct record_fold *fold, struct fold_level *level)
{
	level->hides = true;
	fold->hidden++;
}

/* The level is that of a record with this token. */
static inline void fold_level_open(struct record_fold *fold, struct fold_level *level, uint8_t token)
{
	level->is_optimizer = token == TOKEN_OPTIMIZER;
	fold->optimizers += level->is_optimizer;
	if (!level->is_optimizer)
		fold_level_hide(fold, level);
}

static inline void fold_level_close(struct record_fold *fold, const struct fold_level *level)
{
	fold->hidden -= level->hides;
	fold->optimizers -= level->is_optimizer;
}

/* ---- numbers ---- */

/* An operator of that class finds that the number comes next. One may take it, but ones and zeroing make no node. */
static inline void fold_note_number(struct record_fold *fold, enum record_class class, uint64_t number)
{
	fold->free_number = number + (class != CLASS_ONES && !record_zeroes(class));
}

/* Within an operator that has no number, the number comes next. Returns true if numbers from *first on are gone that no operator
 * can have taken: that operator may have made a node itself, as code of TorchScript does. */
static inline bool fold_skips_numbers(const struct record_fold *fold, uint64_t number, uint64_t *first)
{
	*first = fold->free_number ? fold->free_number : number - (number > 0);
	return *first < number;
}

/* Returns true if the pending operator made a node, as `next` is the next number. */
static inline bool fold_has_made_node(const struct record_fold *fold, uint64_t next)
{
	return fold->pending != NO_RECORD && fold->pending_sequence < next;
}

static inline void fold_set_pending(struct record_fold *fold, size_t record, uint64_t number)
{
	fold->pending = record;
	fold->pending_sequence = number;
}

/* ---- gradients ---- */

/* The class of what runs in a node of a backward; an engine's record of one counts too. */
static inline void fold_add_gradient(struct train_record *node, enum record_class class)
{
	if (class == CLASS_ACCUMULATE || class == CLASS_ENGINE_ACCUMULATE)
		node->is_training = true;
	node->count += class == CLASS_ACCUMULATE;
}

/* Returns true for the first operator in CLASS_ACCUMULATE if it makes the sum with the gradient that was there, and does not keep the
 * new one. */
static inline bool fold_is_sum(enum record_class class)
{
	return class == CLASS_ADD || class == CLASS_WRITE;
}

#endif
