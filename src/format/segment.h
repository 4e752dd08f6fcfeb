/* SPDX-License-Identifier: Apache-2.0
 *
 * segment.h: reads one segment file, even if it is damaged. The reader calls the optional callbacks of a struct. It
 * skips damaged blocks up to the next good one and counts them, and drops a torn last block. Nothing read from the file
 * is trusted: every size is checked before use.
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
	uint64_t events, rescued_events; /* rescued: events in blocks that a rescue wrote */
	uint64_t damaged_bytes, damaged_places, first_damage_offset;
	uint64_t torn_bytes;    /* incomplete last block */
	uint64_t rescue_offset; /* start of the last blocks if one rescue wrote all of them; 0: no such blocks */
	uint64_t rescue;        /* number of the pool of that rescue */
	int read_error;         /* errno if a part could not be read, which shows as damage or a torn end; 0: none */
	bool is_closed;         /* an END block was seen */
};

/* Every member may be NULL. If a callback returns false, reading stops (not an error). */
struct segment_visitor {
	void *context;
	/* Called first. */
	bool (*header)(void *context, const struct stepscope_segment_header *header);
	bool (*symbol)(void *context, uint32_t id, uint8_t kind, const char *text, uint32_t length);
	bool (*stream)(void *context, uint32_t stream, const struct stepscope_stream_info *info, const char *name);
	bool (*clock)(void *context, const struct stepscope_anchor *anchor);
	bool (*meta)(void *context, const char *key, const char *value);
	bool (*drops)(void *context, uint32_t stream, const struct stepscope_drops *drops);
	bool (*track)(void *context, const struct stepscope_track_info *info, const char *name);
	bool (*stack)(void *context, const struct stepscope_stack_node *node);
	bool (*end)(void *context, const char *reason);
	/* The decompressed data of a ROWS block: struct stepscope_rows and the rows. */
	bool (*rows)(void *context, const uint8_t *data, uint32_t bytes);
	/* Called before the events of an EVENTS block are decoded. If it returns false, the block is skipped (for
	 * filters by time). */
	bool (*wants_events)(void *context, const struct stepscope_block *block);
	/* The decoded events of one block, in order. */
	bool (*events)(void *context, const struct stepscope_block *block, const struct segment_event *events,
	               uint32_t count);
};

/* Reads the whole file. Returns STATUS_INPUT if the file cannot be opened, is not a regular file, is too short or does
 * not start like a segment. Damage is not an error: see stats. Blocks of one stream come in the order of their words;
 * symbols come before their first use. */
enum status segment_read(const char *path, const struct segment_visitor *visitor, struct segment_stats *stats,
                         struct error *err) MUST_CHECK;

/* Like segment_read(), for bytes in memory; `name` is for messages. */
enum status segment_read_memory(const void *data, uint64_t bytes, const char *name,
                                const struct segment_visitor *visitor, struct segment_stats *stats,
                                struct error *err) MUST_CHECK;

#endif
