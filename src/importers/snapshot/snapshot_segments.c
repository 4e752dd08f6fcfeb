/* SPDX-License-Identifier: Apache-2.0
 *
 * snapshot_segments.c: the segments that the allocator had reserved when the snapshot was made, with sums over their
 * blocks.
 */
#include "importers/snapshot/snapshot.h"

static void snapshot_segments_add_block(struct memory_segment *segment, const struct snapshot_block *block)
{
	switch (block->state) {
	case BLOCK_ACTIVE:
		segment->active_bytes += block->bytes;
		segment->requested_bytes += block->requested_bytes;
		segment->active_blocks++;
		break;
	case BLOCK_PENDING:
		segment->pending_bytes += block->bytes;
		break;
	default:
		segment->free_blocks++;
		if (block->bytes > segment->largest_free_bytes)
			segment->largest_free_bytes = block->bytes;
	}
}

void snapshot_deliver_segments(struct snapshot *snapshot)
{
	for (uint32_t i = 0; i < snapshot->segments_count; i++) {
		struct snapshot_segment *segment = &snapshot->segments[i];
		wide_bytes sum = 0;
		segment->row.process = snapshot->process;
		for (uint32_t k = 0; k < segment->block_count; k++) {
			struct snapshot_block *block = &snapshot->blocks[segment->first_block + k];
			if (!block->has_address) /* older snapshots have only sizes: blocks are adjacent */
				block->address = segment->row.address + (uint64_t)sum;
			sum += (wide_bytes)block->bytes;
			if (sum <= (wide_bytes)segment->row.bytes) /* blocks beyond the end are impossible */
				snapshot_segments_add_block(&segment->row, block);
		}
		if (sum != (wide_bytes)segment->row.bytes)
			snapshot_repair(snapshot, SNAPSHOT_TILES, 1);
		model_add_segment(snapshot->model, &segment->row);
	}
}
