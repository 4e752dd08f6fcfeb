/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_nodes.c: see kineto_nodes.h.
 */
#include "importers/kineto/kineto_nodes.h"

#include "importers/kineto/kineto_deliver.h"

/* *lowest: the lowest number of an operator. */
static void note_nodes(struct kineto_group *group, const struct kineto_import *import, const struct staged_track *track,
                       uint64_t *lowest)
{
	uint32_t last = NO_NODE_RANGE;
	for (uint32_t i = 0; i < track->count; i++) {
		uint64_t sequence = kineto_tokens_sequence_of(import, &track->spans[i]);
		if (sequence == STEPSCOPE_NO_SEQUENCE)
			continue;
		if (sequence >> NODE_NUMBER_BITS)
			node_numbers_note(&group->nodes, &last, 0,
			                  ALL_THREADS << NODE_NUMBER_BITS | kineto_tokens_number_of(sequence));
		else if (sequence < *lowest)
			*lowest = sequence;
	}
}

/* Nodes that are older than each operator of the trace belong to forwards before it. */
static void count_early(struct kineto_group *group, const struct kineto_import *import,
                        const struct staged_track *track, uint64_t lowest)
{
	for (uint32_t i = 0; i < track->count; i++) {
		uint64_t sequence = kineto_tokens_sequence_of(import, &track->spans[i]);
		bool is_numbered = sequence != STEPSCOPE_NO_SEQUENCE && sequence >> NODE_NUMBER_BITS;
		group->node_count += is_numbered;
		group->early_nodes += is_numbered && kineto_tokens_number_of(sequence) < lowest;
	}
}

/* A file that lacks parts may lack another backward after the last node. */
static void note_missing(struct node_numbers *nodes)
{
	uint64_t behind = 0;
	uint32_t last = NO_NODE_RANGE;
	for (uint32_t i = 0; i < nodes->count; i++)
		behind = nodes->list[i].highest + 1 > behind ? nodes->list[i].highest + 1 : behind;
	if (!behind)
		return;
	node_numbers_note(nodes, &last, 0, ALL_THREADS << NODE_NUMBER_BITS | kineto_tokens_number_of(UINT64_MAX));
	node_numbers_note(nodes, &last, 0, ALL_THREADS << NODE_NUMBER_BITS | behind);
}

void kineto_nodes_find(struct kineto_import *import, struct kineto_group *group, const uint8_t *kinds)
{
	uint64_t lowest = STEPSCOPE_NO_SEQUENCE;
	for (uint32_t i = 0; i < group->count; i++) {
		struct staged_track *track = &import->stage.tracks[group->tracks[i]];
		if (kinds[group->tracks[i]] != TRACK_THREAD || !track->count)
			continue;
		kineto_sort(&import->stage, track);
		note_nodes(group, import, track, &lowest);
	}
	for (uint32_t i = 0; i < group->count && group->nodes.count; i++)
		if (kinds[group->tracks[i]] == TRACK_THREAD)
			count_early(group, import, &import->stage.tracks[group->tracks[i]], lowest);
	if (import->is_repaired)
		note_missing(&group->nodes);
	node_numbers_settle(&group->nodes);
}
