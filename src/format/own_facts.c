/* SPDX-License-Identifier: Apache-2.0
 *
 * own_facts.c: reads the facts that session_meta_own() of the recorder writes.
 */
#include "format/own_facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum captured captured_of(const char *word)
{
	enum captured captured = CAPTURED_COUNT;

	while (--captured > CAPTURED_UNKNOWN && strcmp(captured_word(captured), word) != 0)
		;
	return captured;
}

void own_facts_add(struct own_facts *facts, uint32_t pid, const char *text, uint32_t length)
{
	char fact[96] = "", word[16]; /* "key NUL value", terminated */
	const char *value;
	uint32_t whose = 0;
	int32_t rank, world_size;

	if (length >= sizeof(fact))
		return;
	memcpy(fact, text, length);
	value = fact + strlen(fact) + 1;
	if (value >= fact + length)
		return;
	if (!strcmp(fact, "trains") && sscanf(value, "process %" SCNu32, &whose) == 1 && whose == pid)
		facts->trains = true;
	if (!strcmp(fact, "rank") &&
	    sscanf(value, "%" SCNd32 " of %" SCNd32 ", process %" SCNu32, &rank, &world_size, &whose) == 3 &&
	    whose == pid && rank >= 0)
		facts->has_rank = true, facts->rank = rank, facts->world_size = world_size;
	if (!strcmp(fact, "captured") && sscanf(value, "%15[a-z], process %" SCNu32, word, &whose) == 2 && whose == pid)
		facts->captured = captured_of(word);
}

void own_facts_join(struct own_facts *facts, const struct own_facts *older)
{
	facts->trains |= older->trains;
	if (!facts->captured)
		facts->captured = older->captured;
	if (facts->has_rank || !older->has_rank)
		return;
	facts->has_rank = true;
	facts->rank = older->rank;
	facts->world_size = older->world_size;
}

void own_facts_apply(const struct own_facts *facts, struct stepscope_segment_header *header)
{
	if (facts->trains && header->role == STEPSCOPE_ROLE_WORKER)
		header->role = STEPSCOPE_ROLE_TRAINER;
	if (!facts->has_rank)
		return;
	header->rank = facts->rank;
	header->world_size = facts->world_size;
}
