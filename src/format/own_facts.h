/* SPDX-License-Identifier: Apache-2.0
 *
 * own_facts.h: what a process says of itself while it runs, from the names in its recording alone, without its events. A forked child has
 * its parent's names, too: so such a fact says whose it is.
 *
 *     struct own_facts facts = {0};
 *     own_facts_add(&facts, header->pid, text, length);      for each name of kind STEPSCOPE_SYMBOL_META
 *     own_facts_apply(&facts, header);
 */
#ifndef FORMAT_OWN_FACTS_H
#define FORMAT_OWN_FACTS_H

#include <stdbool.h>
#include <stepscope/format.h>

/* "captured": what came of the process, up to its last end of a recording. */
enum captured {
	CAPTURED_UNKNOWN, /* it has not ended, or not said so: older recorders did not */
	CAPTURED_NOTHING,
	CAPTURED_DETAIL, /* operators or ranges, but no steps */
	CAPTURED_STEPS,  /* it had some, whether they were recorded with operators or not */
	CAPTURED_COUNT,
};

/* For who writes and who reads it. */
static inline const char *captured_word(enum captured captured)
{
	static const char *const words[CAPTURED_COUNT] = {"", "nothing", "detail", "steps"};

	return words[captured];
}

struct own_facts {
	bool trains;   /* "trains": it calls optimizers, or accumulates gradients */
	bool has_rank; /* "rank": as its process group says */
	int32_t rank, world_size;
	enum captured captured;
};

void own_facts_add(struct own_facts *facts, uint32_t pid, const char *text, uint32_t length);

/* What is known from before, where nothing newer is. */
void own_facts_join(struct own_facts *facts, const struct own_facts *older);

/* The header was written before they were known. */
void own_facts_apply(const struct own_facts *facts, struct stepscope_segment_header *header);

#endif
