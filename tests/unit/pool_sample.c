/* SPDX-License-Identifier: Apache-2.0
 *
 * pool_sample.c: see pool_sample.h.
 */
#include "pool_sample.h"

#include "segment_builder.h"

#include <fcntl.h>
#include <unistd.h>

static const struct stepscope_segment_header identity = {
	.pid = 4242,
	.start_time = 99,
	.clock = STEPSCOPE_CLOCK_MONOTONIC,
	.rank = -1,
	.world_size = -1,
	.tick_hz = 1000000000,
	.session = 5,
};

static void add_symbol(struct stepscope_pool_header *header, uint8_t *symbols, uint32_t id, uint8_t kind,
                       const char *text)
{
	struct stepscope_symbol symbol = {.id = id, .length = (uint16_t)strlen(text), .kind = kind};

	memcpy(symbols + header->symbols_used, &symbol, sizeof(symbol));
	memcpy(symbols + header->symbols_used + sizeof(symbol), text, symbol.length);
	header->symbols_used += sizeof(symbol) + ((symbol.length + 7u) & ~7u);
}

static void put(struct stepscope_chunk *chunk, uint32_t *at, uint32_t type, uint32_t id, uint64_t tick, uint32_t count,
                uint64_t payload)
{
	chunk->words[*at] = (uint64_t)(id << 8 | count << 4 | type) << 32 | (uint32_t)tick;
	if (count)
		chunk->words[*at + 1] = payload;
	*at += 1 + count;
}

static void fill_chunk(struct stepscope_chunk *chunk, uint32_t stream)
{
	uint32_t at = 0;
	uint64_t tick = 5000000;

	*chunk = (struct stepscope_chunk){.magic = STEPSCOPE_CHUNK_MAGIC, .stream = stream, .tid = 4241 + stream};
	put(chunk, &at, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_BEGIN, tick, 1, 17);
	for (int i = 0; i < 100; i++) {
		put(chunk, &at, STEPSCOPE_EVENT_BEGIN, 20, tick += 100, 0, 0);
		put(chunk, &at, STEPSCOPE_EVENT_END, 0, tick += 100, 0, 0);
	}
	put(chunk, &at, STEPSCOPE_EVENT_TIME, 0, 1ull << 32, 1, 1ull << 32);
	put(chunk, &at, STEPSCOPE_EVENT_BEGIN, 21, (1ull << 32) + 77, 0, 0);
}

void pool_sample_make(uint8_t pool[POOL_SAMPLE_BYTES], const char *segment_path)
{
	struct stepscope_pool_header *header = (struct stepscope_pool_header *)(void *)pool;
	struct stepscope_slot *slots = (struct stepscope_slot *)(void *)(pool + POOL_SAMPLE_SLOTS_OFFSET);
	struct stepscope_chunk *chunks = (struct stepscope_chunk *)(void *)(pool + POOL_SAMPLE_CHUNKS_OFFSET);

	memset(pool, 0, POOL_SAMPLE_BYTES);
	memcpy(header->magic, STEPSCOPE_POOL_MAGIC, 8);
	header->header_bytes = 4096;
	header->slot_count = 2;
	header->pool_bytes = POOL_SAMPLE_BYTES;
	header->slots_offset = POOL_SAMPLE_SLOTS_OFFSET;
	header->symbols_offset = POOL_SAMPLE_SYMBOLS_OFFSET;
	header->symbols_bytes = 512;
	header->chunks_offset = POOL_SAMPLE_CHUNKS_OFFSET;
	header->chunk_count = POOL_SAMPLE_CHUNKS;
	header->identity = identity;
	header->first_anchor = (struct stepscope_anchor){
		.tick = 1000, .raw_ns = 1000, .clock = STEPSCOPE_CLOCK_MONOTONIC};
	header->last_anchor = (struct stepscope_anchor){
		.tick = 9000, .raw_ns = 9000, .clock = STEPSCOPE_CLOCK_MONOTONIC};
	snprintf(header->segment_path, sizeof(header->segment_path), "%s", segment_path);
	add_symbol(header, pool + POOL_SAMPLE_SYMBOLS_OFFSET, 20, STEPSCOPE_SYMBOL_RANGE, "work");
	add_symbol(header, pool + POOL_SAMPLE_SYMBOLS_OFFSET, 21, STEPSCOPE_SYMBOL_OP, "the last one");
	for (uint32_t i = 0; i < 2; i++) {
		slots[i] = (struct stepscope_slot){.stream = i + 1, .tid = 4242 + i, .name = "thread"};
		fill_chunk(&chunks[i], i + 1);
	}
	slots[0].dropped[STEPSCOPE_EVENT_BEGIN] = 5;
	slots[0].gap_count = 5;
	slots[0].gap_net = 5;
	slots[0].gap_tick = (1ull << 32) + 100;
}

void pool_sample_write(const char *path, const void *bytes, size_t length)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, bytes, length) != (ssize_t)length)
		abort();
	close(fd);
}

void pool_sample_write_segment(const char *path, uint64_t words)
{
	struct segment_builder segment;
	uint64_t tick = 5000000;

	segment_begin_with(&segment, &identity);
	if (words) {
		segment_put(&segment, 1, tick, STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_BEGIN, 1, (uint64_t)17);
		segment_symbol(&segment, 20, STEPSCOPE_SYMBOL_RANGE, "work");
	}
	for (uint64_t i = 2; i < words; i += 2) {
		segment_put(&segment, 1, tick += 100, STEPSCOPE_EVENT_BEGIN, 20, 0);
		segment_put(&segment, 1, tick += 100, STEPSCOPE_EVENT_END, 0, 0);
	}
	segment_end(&segment, NULL);
	pool_sample_write(path, segment.bytes.data, segment.bytes.length);
	segment_release(&segment);
}
