/* SPDX-License-Identifier: Apache-2.0
 *
 * segment.h: reads one segment file, whatever happened to it. The reader drives, the consumer is a struct of optional
 * callbacks. Damaged blocks are skipped to the next good one and counted; a torn last block is dropped. Nothing read from
 * the file is trusted: every size is checked before use.
 */
#ifndef FORMAT_SEGMENT_H
#define FORMAT_SEGMENT_H

#include "base/error.h"

#include <stdbool.h>
#include <stepscope/format.h>

struct segment_event {
	uint64_t tick;
	uint32_t id;
	uint8_t type; /* enum stepscope_event */
	uint8_t payload_count;
	const uint64_t *payload; /* valid during the callback */
};

struct segment_stats {
	uint64_t file_bytes;
	uint64_t blocks, unknown_blocks;
	uint64_t events, rescued_events; /* rescued: in blocks that a rescue wrote */
	uint64_t damaged_bytes, damaged_places, first_damage_offset;
	uint64_t torn_bytes;    /* incomplete last block */
	uint64_t rescue_offset; /* where the last blocks are all of one rescue: their start; 0: they are not */
	uint64_t rescue;        /* and the pool it came from */
	int read_error;         /* errno: a part could not be read, which shows as damage or as a torn end; 0 none */
	bool is_closed;         /* an END block was seen */
};

/* Every member may be NULL. A callback that returns false stops the reading (not an error). */
struct segment_visitor {
	void *context;
	/* First. */
	bool (*header)(void *context, const struct stepscope_segment_header *header);
	bool (*symbol)(void *context, uint32_t id, uint8_t kind, const char *text, uint32_t length);
	bool (*stream)(void *context, uint32_t stream, const struct stepscope_stream_info *info, const char *name);
	bool (*clock)(void *context, const struct stepscope_anchor *anchor);
	bool (*meta)(void *context, const char *key, const char *value);
	bool (*drops)(void *context, uint32_t stream, const struct stepscope_drops *drops);
	bool (*track)(void *context, const struct stepscope_track_info *info, const char *name);
	bool (*stack)(void *context, const struct stepscope_stack_node *node);
	bool (*end)(void *context, const char *reason);
	/* The data of a ROWS block, decompressed: struct stepscope_rows and what follows. */
	bool (*rows)(void *context, const uint8_t *data, uint32_t bytes);
	/* Before the events of an EVENTS block are decoded; false skips the block (for a filter by time). */
	bool (*wants_events)(void *context, const struct stepscope_block *block);
	/* Decoded events of one block, in order. */
	bool (*events)(void *context, const struct stepscope_block *block, const struct segment_event *events,
	               uint32_t count);
};

/* Reads the whole file. STATUS_INPUT: no such file, not a segment (says what was found), nothing usable in it. Damage is
 * not an error: see stats. Blocks of one stream come in the order of its words; symbols come before their first use. */
enum status segment_read(const char *path, const struct segment_visitor *visitor, struct segment_stats *stats,
                         struct error *err) MUST_CHECK;

/* The same on bytes in memory; `name` is for messages. */
enum status segment_read_memory(const void *data, uint64_t bytes, const char *name,
                                const struct segment_visitor *visitor, struct segment_stats *stats,
                                struct error *err) MUST_CHECK;

#endif
