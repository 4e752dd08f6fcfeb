/* SPDX-License-Identifier: Apache-2.0
 *
 * sampled_stacks.h: the samples of a model, with equal samples of a thread joined, and the columns of their weights.
 * Each unit has its columns, because weights of different units are never added up.
 */
#ifndef ANALYSIS_SAMPLES_SAMPLED_STACKS_H
#define ANALYSIS_SAMPLES_SAMPLED_STACKS_H

#include "model/model.h"
#include "table/table.h"

enum sampled_unit { SAMPLED_TIME, SAMPLED_BYTES, SAMPLED_COUNT, SAMPLED_UNITS };

__extension__ typedef unsigned __int128 wide_weight; /* sum of up to 2^32 samples with 64 bits each */

struct sampled_stack {
	uint32_t what;	/* string: the quantity that was sampled */
	uint32_t track; /* MODEL_NONE: of all threads */
	uint32_t stack;
	wide_weight weight;
	int64_t samples;
};

struct sampled_stacks {
	struct storage *storage;    /* of the model */
	struct sampled_stack *rows; /* sorted by what, track, stack */
	uint32_t count;
	bool has_unit[SAMPLED_UNITS];
};

void sampled_stacks_init(struct sampled_stacks *stacks, const struct model *model, bool by_thread);
void sampled_stacks_release(struct sampled_stacks *stacks);
/* Returns the first row after those with the same `what` and track as the one at `first`. Sets *total to the sum of
 * their weights. */
uint32_t sampled_group_end(const struct sampled_stacks *stacks, uint32_t first, wide_weight *total);
/* Returns the number of different quantities that the samples count. */
uint32_t sampled_kinds(const struct sampled_stacks *stacks);
/* Returns true if all rows are one such group. */
bool sampled_is_one_group(const struct sampled_stacks *stacks);

enum sampled_unit sampled_unit_of(const struct model *model, uint32_t what);
/* Returns how many samples belong to a quantity whose sum is more than a cell of a table holds. */
uint64_t sampled_beyond(const struct model *model);
/* Sets the one of three columns, from `column` on, that has the unit; the others are missing in this row. A weight
 * that does not fit is missing, too. */
void sampled_set_weight(struct table *table, int row, int column, enum sampled_unit unit, wide_weight weight);
/* Hides those of three columns whose unit no sample has. */
void sampled_hide(struct table *table, int column, const struct sampled_stacks *stacks);
void sampled_set_ratio(struct table *table, int row, int column, wide_weight part, wide_weight whole);
/* The reason for a table without samples, and the note below a table of samples. */
extern const char sampled_none[];
void sampled_note(struct table *table, const struct model *model);
/* Sets the thread's name. MODEL_NONE: the cell is missing, because rows are of all threads. */
void sampled_set_thread(struct table *table, int row, int column, const struct model *model, uint32_t track);

/* Three columns for sampled_set_weight(): NAME_ns, NAME_bytes, NAME_count. */
#define SAMPLED_COLUMNS(first, word, heading, text, more_rules, of, of_more)                                           \
	[first] = {.name = word "_ns",                                                                                 \
		   .title = heading,                                                                                   \
		   .type = TABLE_INT,                                                                                  \
		   .unit = UNIT_NS,                                                                                    \
		   .definition = text,                                                                                 \
		   .rules = RULE_NOT_NEGATIVE | (more_rules),                                                          \
		   .other = (of) ? "total_ns" : NULL, .more = (of_more)},                                              \
	[(first) + 1] = {.name = word "_bytes",                                                                        \
			 .title = heading,                                                                             \
			 .type = TABLE_INT,                                                                            \
			 .unit = UNIT_BYTES,                                                                           \
			 .definition = text,                                                                           \
			 .rules = RULE_NOT_NEGATIVE | (more_rules),                                                    \
			 .other = (of) ? "total_bytes" : NULL, .more = (of_more)},                                     \
	[(first) + 2] = {.name = word "_count",                                                                        \
			 .title = heading,                                                                             \
			 .type = TABLE_INT,                                                                            \
			 .unit = UNIT_COUNT,                                                                           \
			 .definition = text,                                                                           \
			 .rules = RULE_NOT_NEGATIVE | (more_rules),                                                    \
			 .other = (of) ? "total_count" : NULL, .more = (of_more)}

#endif
