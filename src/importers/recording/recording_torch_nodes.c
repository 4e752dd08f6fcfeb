/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_torch_nodes.c: which forwards of a recording backwards have worked on; the rule is that of node_numbers.h.
 */
#include "importers/recording/recording_torch_scan.h"

void torch_nodes_note(struct torch_scan *scan, struct stream_scan *stream, uint64_t word)
{
	node_numbers_note(&scan->numbers, &stream->numbers, stream->node, word);
}

static void find_unused(const struct torch_scan *scan, struct stream_scan *stream)
{
	struct train_record *forward = NULL; /* whose numbers end with those of the next one */
	for (uint32_t r = 0; r <= stream->record_count; r++) {
		struct train_record *record = r < stream->record_count ? &stream->records[r] : NULL;
		if (record && (record->token != TOKEN_FORWARD || !record->sequence))
			continue;
		if (forward)
			forward->is_unused = !node_numbers_have(&scan->numbers, stream->torch_thread,
			                                        forward->sequence - 1,
			                                        record ? record->sequence - 1 : UINT64_MAX);
		forward = record;
	}
}

static void find_makers(const struct torch_scan *scan, struct stream_scan *stream)
{
	for (uint32_t r = 0; r < stream->record_count; r++) {
		struct train_record *record = &stream->records[r];
		if (record->is_maker && record->token == TOKEN_OP && scan->numbers.count &&
		    node_numbers_have(&scan->numbers, stream->torch_thread, record->sequence - 1, record->sequence))
			record->token = TOKEN_FORWARD;
	}
}

void torch_nodes_find_unused(struct torch_scan *scan)
{
	node_numbers_settle(&scan->numbers);
	for (uint32_t i = 0; i < scan->stream_count; i++)
		if (scan->streams[i].torch_thread) {
			find_makers(scan, &scan->streams[i]);
			find_unused(scan, &scan->streams[i]);
		}
}
