/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_segment.c: the reader of segment files, with every callback used; as the bytes are, and with all checksums put right, so that
 * nothing hides behind them. What is told must be readable, and must be told the same way twice.
 */
#include "base/crc32c.h"
#include "format/block.h"
#include "format/segment.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool add(void *context, const void *bytes, size_t length)
{
	uint32_t *sum = context;

	*sum = crc32c(*sum, bytes, length);
	return true;
}

static bool on_symbol(void *context, uint32_t id, uint8_t kind, const char *text, uint32_t length)
{
	return add(context, &id, sizeof(id)) && add(context, &kind, 1) && add(context, text, length);
}

static bool on_stream(void *context, uint32_t stream, const struct stepscope_stream_info *info, const char *name)
{
	return add(context, &stream, sizeof(stream)) && add(context, info, sizeof(*info)) &&
	       add(context, name, strlen(name));
}

static bool on_clock(void *context, const struct stepscope_anchor *anchor)
{
	return add(context, anchor, sizeof(*anchor));
}

static bool on_meta(void *context, const char *key, const char *value)
{
	return add(context, key, strlen(key)) && add(context, value, strlen(value));
}

static bool on_drops(void *context, uint32_t stream, const struct stepscope_drops *drops)
{
	return add(context, &stream, sizeof(stream)) && add(context, drops, sizeof(*drops));
}

static bool on_track(void *context, const struct stepscope_track_info *info, const char *name)
{
	return add(context, info, sizeof(*info)) && add(context, name, strlen(name));
}

static bool on_stack(void *context, const struct stepscope_stack_node *node)
{
	return add(context, node, sizeof(*node));
}

static bool on_end(void *context, const char *reason)
{
	return add(context, reason, strlen(reason));
}

static bool on_events(void *context, const struct stepscope_block *block, const struct segment_event *events,
                      uint32_t count)
{
	uint64_t last = block->first_tick;

	for (uint32_t i = 0; i < count; i++) {
		add(context, &events[i].tick, sizeof(events[i].tick));
		add(context, &events[i].id, sizeof(events[i].id));
		add(context, events[i].payload, 8 * (size_t)events[i].payload_count);
		if (events[i].type >= STEPSCOPE_EVENT_TYPES || events[i].payload_count > 15 || events[i].id >> 24)
			abort();
		last = events[i].tick;
	}
	return add(context, &last, sizeof(last));
}

static uint32_t sum_of(const uint8_t *bytes, size_t size)
{
	uint32_t sum = 0;
	const struct segment_visitor visitor = {
		.context = &sum,
		.symbol = on_symbol,
		.stream = on_stream,
		.clock = on_clock,
		.meta = on_meta,
		.drops = on_drops,
		.track = on_track,
		.stack = on_stack,
		.end = on_end,
		.events = on_events,
	};
	struct segment_stats stats;
	struct error err;

	if (segment_read_memory(bytes, size, "input", &visitor, &stats, &err) == STATUS_OK &&
	    stats.damaged_bytes + stats.torn_bytes > size)
		abort();
	return sum;
}

/* Makes the file good as far as checksums go. */
static void seal(uint8_t *bytes, size_t size)
{
	struct stepscope_segment_header header;

	if (size < sizeof(header))
		return;
	memcpy(&header, bytes, sizeof(header));
	segment_header_seal(&header);
	memcpy(bytes, &header, sizeof(header));
	for (size_t at = sizeof(header); size - at >= sizeof(struct stepscope_block);) {
		struct stepscope_block block;
		size_t room = size - at - sizeof(block);
		memcpy(&block, bytes + at, sizeof(block));
		block.magic = STEPSCOPE_BLOCK_MAGIC;
		if (block.bytes > room)
			block.bytes = (uint32_t)room;
		block.crc = 0;
		block.crc = crc32c(crc32c(0, &block, sizeof(block)), bytes + at + sizeof(block), block.bytes);
		memcpy(bytes + at, &block, sizeof(block));
		at += sizeof(block) + block.bytes;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	if (sum_of(copy, size) != sum_of(copy, size))
		abort();
	seal(copy, size);
	if (sum_of(copy, size) != sum_of(copy, size))
		abort();
	free(copy);
	return 0;
}
