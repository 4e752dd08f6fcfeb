/* SPDX-License-Identifier: Apache-2.0
 *
 * own_facts.h: the facts that a process records about itself while it runs, read from the names in its recording alone,
 * without its events. A forked child also has its parent's names, so each of these facts contains its process.
 *
 *     struct own_facts facts = {0};
 *     own_facts_add(&facts, header->pid, text, length);      for each name of kind STEPSCOPE_SYMBOL_META
 *     own_facts_apply(&facts, header);
 */
#ifndef FORMAT_OWN_FACTS_H
#define FORMAT_OWN_FACTS_H

#include <stdbool.h>
#include <stepscope/format.h>

/* "captured": the best result of the process, up to its last end of a recording. */
enum captured {
	CAPTURED_UNKNOWN, /* the process has not ended, or a recorder too old for this fact wrote it */
	CAPTURED_NOTHING,
	CAPTURED_DETAIL, /* operators or ranges, but no steps */
	CAPTURED_STEPS,  /* steps, with or without operators */
	CAPTURED_COUNT,
};

/* Returns the word for the value, for writers and readers of the fact. */
static inline const char *captured_word(enum captured captured)
{
	static const char *const words[CAPTURED_COUNT] = {"", "nothing", "detail", "steps"};

	return words[captured];
}

struct own_facts {
	bool trains;   /* "trains": the process calls optimizers or accumulates gradients */
	bool has_rank; /* "rank": from the process group */
	int32_t rank, world_size;
	enum captured captured;
};

void own_facts_add(struct own_facts *facts, uint32_t pid, const char *text, uint32_t length);

/* Adds facts that are known from older recordings, if `facts` has nothing newer. */
void own_facts_join(struct own_facts *facts, const struct own_facts *older);

/* Applies the facts to a header that was written before they were known. */
void own_facts_apply(const struct own_facts *facts, struct stepscope_segment_header *header);

#endif
