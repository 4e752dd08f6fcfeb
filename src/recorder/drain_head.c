/* SPDX-License-Identifier: Apache-2.0
 *
 * drain_head.c: see the header.
 */
#include "recorder/drain_head.h"

#include "format/block.h"
#include "recorder/clock.h"
#include "recorder/drain_streams.h"
#include "recorder/emit.h"
#include "recorder/pool.h"
#include "recorder/stream.h"
#include "recorder/symbols.h"

#include <string.h>
#include <unistd.h>

#define ANCHOR_GAP_NS 1000000000ll /* longest gap */

bool drain_has_coarse(const struct drain *drain)
{
	return drain->coarse.path[0] && !drain->coarse.is_lost;
}

static bool head_has_room(const struct drain_head *head, size_t bytes)
{
	return DRAIN_HEAD_BYTES - head->bytes >= bytes + sizeof(struct stepscope_block);
}

bool drain_write_head(struct drain_head *head, struct segment_file *file)
{
	if (file->is_failing || !segment_file_append(file, head->data, head->bytes, NULL, 0))
		return false;
	head->bytes = 0;
	return true;
}

/* Adds a block to one head. Returns false if there is no room because the file cannot be written. */
static bool put_block(struct drain_head *head, struct segment_file *file, enum stepscope_block_kind kind,
                      uint32_t stream, const void *data, size_t bytes)
{
	if (!head_has_room(head, bytes) && !drain_write_head(head, file))
		return false;
	head->bytes += block_write(head->data + head->bytes, kind, stream, data, bytes);
	return true;
}

bool drain_put_head(struct drain *drain, enum stepscope_block_kind kind, uint32_t stream, const void *data,
                    size_t bytes)
{
	if (drain_has_coarse(drain))
		(void)put_block(&drain->coarse_head, &drain->coarse, kind, stream, data, bytes);
	return put_block(&drain->head, &drain->file, kind, stream, data, bytes);
}

static void put_names(struct drain_head *head, struct segment_file *file, bool has_details)
{
	for (;;) {
		uint8_t *room = head->data + head->bytes + sizeof(struct stepscope_block);
		size_t maximum = head_has_room(head, 0)
		                         ? DRAIN_HEAD_BYTES - head->bytes - sizeof(struct stepscope_block)
		                         : 0;
		size_t bytes = symbols_take(&head->symbols_from, has_details, room, maximum);
		if (bytes) {
			put_block(head, file, STEPSCOPE_BLOCK_SYMBOLS, 0, room, bytes);
			continue;
		}
		if (maximum >= SYMBOLS_MAX_TEXT + 16 || !drain_write_head(head, file))
			return;
	}
}

void drain_put_symbols(struct drain *drain)
{
	uint32_t late = symbols_take_late();
	struct drain_head *heads[] = {&drain->head, &drain->coarse_head};
	for (int i = 0; i < 2; i++)
		if (late && late <= heads[i]->symbols_from)
			heads[i]->symbols_from = late - 1;
	if (drain_has_coarse(drain))
		put_names(&drain->coarse_head, &drain->coarse, true);
	put_names(&drain->head, &drain->file, !drain_has_coarse(drain));
}

uint32_t drain_names_written(const struct drain *drain)
{
	bool is_whole = drain->head.bytes == 0 && (!drain_has_coarse(drain) || drain->coarse_head.bytes == 0);
	uint32_t details = drain_has_coarse(drain) ? drain->coarse_head.symbols_from : UINT32_MAX;
	if (!is_whole)
		return 0;
	return details < drain->head.symbols_from ? details : drain->head.symbols_from;
}

/* A forked child has all names of its parent, which may be more than its pool has room for. Therefore the names that
 * exist at the start go to the files at once. The pool holds only names added since the last pass. */
void drain_write_first_names(struct drain *drain, bool is_new)
{
	drain_put_symbols(drain);
	(void)drain_write_head(&drain->head, &drain->file);
	if (drain_has_coarse(drain))
		(void)drain_write_head(&drain->coarse_head, &drain->coarse);
	if (is_new)
		drain->segment_head_bytes = drain->file.bytes;
	symbols_attach_pool(drain->pool, drain_names_written(drain));
}

void drain_put_stream(struct drain *drain, uint32_t index, bool is_exited)
{
	const struct stepscope_slot *slot = &drain->pool->slots[index];
	uint32_t version = __atomic_load_n(&streams.cursors[index].name_version, __ATOMIC_ACQUIRE);
	struct {
		struct stepscope_stream_info info;
		char name[32];
	} data = {{slot->kind, slot->tid, 0, 0}, ""};
	uint64_t words[sizeof(data.name) / 8];
	for (size_t i = 0; i < sizeof(words) / 8; i++)
		words[i] = __atomic_load_n((const uint64_t *)(const void *)slot->name + i, __ATOMIC_RELAXED);
	memcpy(data.name, words, sizeof(data.name));
	data.name[31] = 0;
	data.info.name_bytes = (uint32_t)strlen(data.name);
	data.info.flags = (slot->tid == (uint32_t)getpid() ? 1u : 0u) | (is_exited ? 2u : 0u);
	drain->streams[index].name_version = version;
	drain->streams[index].is_described = drain_put_head(drain, STEPSCOPE_BLOCK_STREAM, drain->streams[index].stream,
	                                                    &data, sizeof(data.info) + data.info.name_bytes);
}

void drain_put_drops(struct drain *drain, uint32_t stream, const uint64_t *by_type, uint64_t *said)
{
	struct stepscope_drops drops; /* a copy, because the threads continue counting */
	uint64_t sum = 0;
	for (int i = 0; i < STEPSCOPE_EVENT_TYPES; i++)
		sum += drops.by_type[i] = __atomic_load_n(&by_type[i], __ATOMIC_RELAXED);
	if (sum == *said)
		return;
	if (drain_put_head(drain, STEPSCOPE_BLOCK_DROPS, stream, &drops, sizeof(drops)))
		*said = sum;
}

void drain_put_anchor(struct drain *drain, int64_t now_ns)
{
	struct stepscope_anchor anchor;
	bool was_replaced = clock_recheck();
	clock_anchor(&anchor);
	drain_put_head(drain, STEPSCOPE_BLOCK_CLOCK, 0, &anchor, sizeof(anchor));
	drain->pool->header->last_anchor = anchor;
	/* dense at the start, so that a short run has a rate; later once a second */
	drain->anchor_gap_ns = drain->anchor_gap_ns * 10 < ANCHOR_GAP_NS ? drain->anchor_gap_ns * 10 : ANCHOR_GAP_NS;
	drain->next_anchor_ns = now_ns + drain->anchor_gap_ns;
	if (was_replaced)
		recorder_say("the kernel no longer trusts the processor's time stamp counter; recording continues "
		             "with the system clock");
}

void drain_begin_segment(struct drain *drain, bool is_new)
{
	struct stepscope_anchor anchor;
	if (is_new)
		drain->head.symbols_from = 0;
	clock_anchor(&anchor);
	drain_put_head(drain, STEPSCOPE_BLOCK_CLOCK, 0, &drain->pool->header->first_anchor, sizeof(anchor));
	drain_put_head(drain, STEPSCOPE_BLOCK_CLOCK, 0, &anchor, sizeof(anchor));
	for (uint32_t i = 0; i < __atomic_load_n(&streams.high, __ATOMIC_ACQUIRE) && i < DRAIN_MAX_SLOTS; i++)
		if (drain->streams[i].stream)
			drain_put_stream(drain, i, false);
}
