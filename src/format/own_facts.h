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

struct own_facts {
	bool trains;   /* "trains": it calls optimizers, or accumulates gradients */
	bool has_rank; /* "rank": as its process group says */
	int32_t rank, world_size;
};

void own_facts_add(struct own_facts *facts, uint32_t pid, const char *text, uint32_t length);

/* The header was written before they were known. */
void own_facts_apply(const struct own_facts *facts, struct stepscope_segment_header *header);

#endif
