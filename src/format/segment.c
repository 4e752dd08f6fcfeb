/* SPDX-License-Identifier: Apache-2.0
 *
 * segment.c: walks the blocks of one file and skips damaged ones. It reads through a window, so memory is bounded by
 * the largest block, and the file may grow or shrink meanwhile.
 */
#include "format/segment.h"

#include "base/crc32c.h"
#include "format/block.h"
#include "format/decode.h"
#include "format/stream_map.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW_BYTES (1u << 20)
#define MAX_META_SYMBOLS 4096u
#define META_FILTER_BITS 4096u
#define MAX_WASTE (64u << 20)
#define NAME_BYTES 256

struct meta_symbol { /* facts come as marks; this holds their texts */
	uint32_t id;
	char *text;
	uint32_t length;
};

struct segment_walk {
	const char *name;
	int fd; /* -1: all data are in `memory` */
	const uint8_t *memory;
	uint64_t bytes;
	uint8_t *window; /* file bytes [window_start, window_start + window_length) */
	size_t window_capacity, window_length;
	uint64_t window_start;
	const struct segment_visitor *visitor;
	struct segment_stats *stats;
	struct decoder decoder;
	struct stream_map covered; /* words of each stream that were delivered */
	struct meta_symbol *metas;
	uint32_t meta_count, meta_capacity;
	uint64_t meta_filter[META_FILTER_BITS / 64]; /* indexed by number modulo its size: the number may be a fact */
	/* Bytes checksummed in vain. Bounded, because a hostile file may have a block start every few bytes. */
	uint64_t wasted_bytes;
	bool is_coarse;
	bool are_symbols_told;
	bool is_stopped;
};

/* Returns the bytes [offset, offset + length) of the file, or NULL if the file is shorter. Valid until the next
 * call. */
static const uint8_t *view(struct segment_walk *walk, uint64_t offset, size_t length)
{
	if (offset > walk->bytes || length > walk->bytes - offset)
		return NULL;
	if (walk->fd < 0)
		return walk->memory + offset;
	if (offset >= walk->window_start && offset + length <= walk->window_start + walk->window_length)
		return walk->window + (offset - walk->window_start);
	size_t wanted = length > WINDOW_BYTES ? length : WINDOW_BYTES;
	if (wanted > walk->window_capacity) {
		uint8_t *grown = realloc(walk->window, wanted);
		if (!grown) {
			walk->stats->read_error = ENOMEM;
			return NULL;
		}
		walk->window = grown;
		walk->window_capacity = wanted;
	}
	walk->window_start = offset;
	walk->window_length = 0;
	while (walk->window_length < wanted) {
		ssize_t n = pread(walk->fd, walk->window + walk->window_length, wanted - walk->window_length,
		                  (off_t)(offset + walk->window_length));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			walk->stats->read_error = errno;
		if (n <= 0)
			break;
		walk->window_length += (size_t)n;
	}
	return walk->window_length >= length ? walk->window : NULL;
}

static bool block_is_plausible(const struct stepscope_block *block)
{
	return block->magic == STEPSCOPE_BLOCK_MAGIC && block->bytes <= STEPSCOPE_MAX_BLOCK_BYTES &&
	       block->raw_bytes <= STEPSCOPE_MAX_BLOCK_BYTES;
}

/* Returns the data of the good block at `offset`, or NULL if there is none. */
static const uint8_t *good_block(struct segment_walk *walk, uint64_t offset, struct stepscope_block *block)
{
	const uint8_t *bytes = view(walk, offset, sizeof(*block));
	if (!bytes)
		return NULL;
	memcpy(block, bytes, sizeof(*block));
	if (!block_is_plausible(block) || walk->wasted_bytes > 4 * walk->bytes + MAX_WASTE)
		return NULL;
	bytes = view(walk, offset, sizeof(*block) + block->bytes);
	if (!bytes)
		return NULL;
	struct stepscope_block unsealed = *block;
	unsealed.crc = 0;
	uint32_t crc = crc32c(crc32c(0, &unsealed, sizeof(unsealed)), bytes + sizeof(*block), block->bytes);
	if (crc == block->crc)
		return bytes + sizeof(*block);
	walk->wasted_bytes += sizeof(*block) + block->bytes;
	return NULL;
}

/* Returns the next offset at or after `offset` where a block may start, or the file's end. */
static uint64_t next_magic(struct segment_walk *walk, uint64_t offset)
{
	const uint32_t magic = STEPSCOPE_BLOCK_MAGIC;
	while (walk->bytes - offset >= sizeof(magic)) {
		size_t length = walk->bytes - offset < WINDOW_BYTES ? (size_t)(walk->bytes - offset) : WINDOW_BYTES;
		const uint8_t *bytes = view(walk, offset, length);
		if (!bytes)
			return walk->bytes;
		const uint8_t *found = memmem(bytes, length, &magic, sizeof(magic));
		if (found)
			return offset + (uint64_t)(found - bytes);
		offset += length - (sizeof(magic) - 1);
	}
	return walk->bytes;
}

/* ---- one handler per kind of block; false stops the walk --------------------------------------------------------- */

static void remember_meta(struct segment_walk *walk, uint32_t id, const char *text, uint32_t length)
{
	if (walk->meta_count == walk->meta_capacity) {
		uint32_t capacity = walk->meta_capacity ? walk->meta_capacity * 2 : 64;
		struct meta_symbol *grown = capacity <= MAX_META_SYMBOLS
		                                    ? realloc(walk->metas, capacity * sizeof(*grown))
		                                    : NULL;
		if (!grown)
			return;
		walk->metas = grown;
		walk->meta_capacity = capacity;
	}
	char *copy = calloc(1, (size_t)length + 2); /* two NULs: terminates both key and value */
	if (!copy)
		return;
	memcpy(copy, text, length);
	walk->metas[walk->meta_count++] = (struct meta_symbol){id, copy, length};
	walk->meta_filter[id % META_FILTER_BITS / 64] |= 1ull << id % 64;
}

static bool on_symbols(struct segment_walk *walk, const uint8_t *data, uint32_t bytes)
{
	/* walk_symbols() delivered them first, except those that damage hid */
	if (walk->are_symbols_told && walk->stats->damaged_places == 0)
		return true;
	for (uint32_t at = 0; bytes - at >= sizeof(struct stepscope_symbol) && at < bytes;) {
		struct stepscope_symbol symbol;
		memcpy(&symbol, data + at, sizeof(symbol));
		at += sizeof(symbol);
		if (symbol.length > bytes - at)
			break;
		const char *text = (const char *)data + at;
		if (symbol.kind == STEPSCOPE_SYMBOL_META)
			remember_meta(walk, symbol.id, text, symbol.length);
		if (symbol.id && walk->visitor->symbol &&
		    !walk->visitor->symbol(walk->visitor->context, symbol.id, symbol.kind, text, symbol.length))
			return false;
		at += (symbol.length + 7u) & ~7u;
		if (at > bytes)
			break;
	}
	return true;
}

/* Copies as much of a name as exists and fits. */
static void copy_name(char name[NAME_BYTES], size_t wanted, const uint8_t *bytes, size_t there)
{
	size_t length = wanted < there ? wanted : there;
	if (length > NAME_BYTES - 1)
		length = NAME_BYTES - 1;
	memcpy(name, bytes, length);
	name[length] = 0;
}

static bool on_stream(struct segment_walk *walk, const struct stepscope_block *block, const uint8_t *data)
{
	struct stepscope_stream_info info;
	char name[NAME_BYTES];
	if (block->bytes < sizeof(info) || !walk->visitor->stream)
		return true;
	memcpy(&info, data, sizeof(info));
	copy_name(name, info.name_bytes, data + sizeof(info), block->bytes - sizeof(info));
	return walk->visitor->stream(walk->visitor->context, block->stream, &info, name);
}

static bool on_track(struct segment_walk *walk, const struct stepscope_block *block, const uint8_t *data)
{
	struct stepscope_track_info info;
	char name[NAME_BYTES];
	if (block->bytes < sizeof(info) || !walk->visitor->track)
		return true;
	memcpy(&info, data, sizeof(info));
	copy_name(name, info.name_bytes, data + sizeof(info), block->bytes - sizeof(info));
	return walk->visitor->track(walk->visitor->context, &info, name);
}

static bool on_clock(struct segment_walk *walk, const struct stepscope_block *block, const uint8_t *data)
{
	for (uint32_t at = 0; walk->visitor->clock && block->bytes - at >= sizeof(struct stepscope_anchor);
	     at += (uint32_t)sizeof(struct stepscope_anchor)) {
		struct stepscope_anchor anchor;
		memcpy(&anchor, data + at, sizeof(anchor));
		if (!walk->visitor->clock(walk->visitor->context, &anchor))
			return false;
	}
	return true;
}

static bool on_stacks(struct segment_walk *walk, const struct stepscope_block *block, const uint8_t *data)
{
	for (uint32_t at = 0; walk->visitor->stack && block->bytes - at >= sizeof(struct stepscope_stack_node);
	     at += (uint32_t)sizeof(struct stepscope_stack_node)) {
		struct stepscope_stack_node node;
		memcpy(&node, data + at, sizeof(node));
		if (!walk->visitor->stack(walk->visitor->context, &node))
			return false;
	}
	return true;
}

static bool tell_meta(struct segment_walk *walk, const char *pair, const char *end)
{
	const char *value = memchr(pair, 0, (size_t)(end - pair));
	if (!value || !walk->visitor->meta)
		return true;
	return walk->visitor->meta(walk->visitor->context, pair, value + 1);
}

static bool on_meta(struct segment_walk *walk, const struct stepscope_block *block, const uint8_t *data)
{
	const char *at = (const char *)data, *end = at + block->bytes;
	while (at < end) {
		const char *value = memchr(at, 0, (size_t)(end - at));
		const char *next = value && value + 1 < end ? memchr(value + 1, 0, (size_t)(end - value - 1)) : NULL;
		if (!next)
			return true;
		if (!tell_meta(walk, at, next))
			return false;
		at = next + 1;
	}
	return true;
}

static bool on_drops(struct segment_walk *walk, const struct stepscope_block *block, const uint8_t *data)
{
	struct stepscope_drops drops = {{0}};
	if (!walk->visitor->drops)
		return true;
	memcpy(&drops, data, block->bytes < sizeof(drops) ? block->bytes : sizeof(drops));
	return walk->visitor->drops(walk->visitor->context, block->stream, &drops);
}

static bool segment_on_end(struct segment_walk *walk, const struct stepscope_block *block, const uint8_t *data)
{
	char reason[256] = "";
	memcpy(reason, data, block->bytes < sizeof(reason) - 1 ? block->bytes : sizeof(reason) - 1);
	walk->stats->is_closed = true;
	return !walk->visitor->end || walk->visitor->end(walk->visitor->context, reason);
}

/* Returns true if the words of the block were delivered before: an interrupted rescue ran again. */
static bool is_repeat(struct segment_walk *walk, const struct stepscope_block *block)
{
	uint64_t *covered = walk->is_coarse ? NULL : stream_map_at(&walk->covered, block->stream);
	uint64_t end = block->first_word + block->words;
	if (!covered)
		return false;
	if (end <= *covered)
		return true;
	*covered = end;
	return false;
}

static const struct meta_symbol *find_meta(const struct segment_walk *walk, uint32_t id)
{
	if (!(walk->meta_filter[id % META_FILTER_BITS / 64] & 1ull << id % 64))
		return NULL;
	for (uint32_t i = 0; i < walk->meta_count; i++)
		if (walk->metas[i].id == id)
			return &walk->metas[i];
	return NULL;
}

/* Removes the marks that are facts from the events and delivers the facts. Returns the number of remaining events. */
static uint32_t take_facts(struct segment_walk *walk, struct segment_event *events, uint32_t count)
{
	uint32_t kept = 0;
	if (walk->meta_count == 0)
		return count;
	for (uint32_t i = 0; i < count; i++) {
		const struct meta_symbol *meta = events[i].type == STEPSCOPE_EVENT_MARK ? find_meta(walk, events[i].id)
		                                                                        : NULL;
		if (!meta)
			events[kept++] = events[i];
		else if (!tell_meta(walk, meta->text, meta->text + meta->length + 1))
			walk->is_stopped = true;
	}
	return kept;
}

static bool on_events(struct segment_walk *walk, const struct stepscope_block *block, const uint8_t *data)
{
	if (is_repeat(walk, block))
		return true;
	walk->stats->is_closed = false;
	walk->stats->events += block->events;
	if (block->flags & STEPSCOPE_BLOCK_RESCUED)
		walk->stats->rescued_events += block->events;
	if (walk->visitor->wants_events && !walk->visitor->wants_events(walk->visitor->context, block))
		return true;
	if (!walk->visitor->events && !walk->visitor->meta)
		return true;
	if (!decoder_run(&walk->decoder, block, data))
		return true; /* the checksum is right, so this is a newer encoding */
	uint32_t count = take_facts(walk, walk->decoder.events, block->events);
	if (walk->is_stopped)
		return false;
	return !walk->visitor->events ||
	       walk->visitor->events(walk->visitor->context, block, walk->decoder.events, count);
}

static bool on_rows(struct segment_walk *walk, const struct stepscope_block *block, const uint8_t *data)
{
	const uint8_t *raw = walk->visitor->rows ? decoder_unpack(&walk->decoder, block, data) : NULL;
	return !raw || walk->visitor->rows(walk->visitor->context, raw, block->raw_bytes);
}

static bool on_block(struct segment_walk *walk, const struct stepscope_block *block, const uint8_t *data)
{
	walk->stats->blocks++;
	switch (block->kind) {
	case STEPSCOPE_BLOCK_EVENTS:
		return on_events(walk, block, data);
	case STEPSCOPE_BLOCK_SYMBOLS:
		return on_symbols(walk, data, block->bytes);
	case STEPSCOPE_BLOCK_STREAM:
		return on_stream(walk, block, data);
	case STEPSCOPE_BLOCK_TRACK:
		return on_track(walk, block, data);
	case STEPSCOPE_BLOCK_CLOCK:
		return on_clock(walk, block, data);
	case STEPSCOPE_BLOCK_STACKS:
		return on_stacks(walk, block, data);
	case STEPSCOPE_BLOCK_META:
		return on_meta(walk, block, data);
	case STEPSCOPE_BLOCK_DROPS:
		return on_drops(walk, block, data);
	case STEPSCOPE_BLOCK_END:
		return segment_on_end(walk, block, data);
	case STEPSCOPE_BLOCK_ROWS:
		return on_rows(walk, block, data);
	default:
		walk->stats->unknown_blocks++;
		return true;
	}
}

static void segment_note_damage(struct segment_walk *walk, uint64_t from, uint64_t to)
{
	if (walk->stats->damaged_places++ == 0)
		walk->stats->first_damage_offset = from;
	walk->stats->damaged_bytes += to - from;
}

static void note_rescue(struct segment_walk *walk, const struct stepscope_block *block, uint64_t offset)
{
	bool is_rescued = block->flags & STEPSCOPE_BLOCK_RESCUED;
	if (!is_rescued)
		walk->stats->rescue_offset = 0;
	else if (walk->stats->rescue_offset == 0 || walk->stats->rescue != block->rescue)
		walk->stats->rescue_offset = offset;
	walk->stats->rescue = block->rescue;
}

/* A name may come after its first use, because its thread was slow to write it. Therefore this delivers all names
 * first. */
static void walk_symbols(struct segment_walk *walk)
{
	uint64_t offset = sizeof(struct stepscope_segment_header);
	while (offset < walk->bytes && !walk->is_stopped) {
		struct stepscope_block block;
		const uint8_t *bytes = view(walk, offset, sizeof(block));
		if (!bytes)
			break;
		memcpy(&block, bytes, sizeof(block));
		if (!block_is_plausible(&block)) {
			offset = next_magic(walk, offset + 1);
			continue;
		}
		const uint8_t *data = block.kind == STEPSCOPE_BLOCK_SYMBOLS ? good_block(walk, offset, &block) : NULL;
		if (data && !on_symbols(walk, data, block.bytes))
			walk->is_stopped = true;
		offset += sizeof(block) + block.bytes;
	}
	walk->are_symbols_told = true;
}

static void walk_blocks(struct segment_walk *walk)
{
	uint64_t offset = sizeof(struct stepscope_segment_header);
	while (offset < walk->bytes) {
		struct stepscope_block block;
		const uint8_t *data = good_block(walk, offset, &block);
		if (data) {
			note_rescue(walk, &block, offset);
			offset += sizeof(block) + block.bytes;
			if (!on_block(walk, &block, data))
				return;
			continue;
		}
		uint64_t next = offset;
		do
			next = next_magic(walk, next + 1);
		while (next < walk->bytes && !good_block(walk, next, &block));
		if (next >= walk->bytes) {
			walk->stats->torn_bytes = walk->bytes - offset;
			return;
		}
		segment_note_damage(walk, offset, next);
		offset = next;
	}
}

static enum status walk_header(struct segment_walk *walk, struct error *err)
{
	struct stepscope_segment_header header;
	const uint8_t *bytes = view(walk, 0, sizeof(header));
	if (!bytes) {
		error_set(err, STATUS_INPUT,
		          "'%s' is too short for a recording: %" PRIu64 " bytes, its header alone has %zu", walk->name,
		          walk->bytes, sizeof(header));
		return STATUS_INPUT;
	}
	memcpy(&header, bytes, sizeof(header));
	if (memcmp(header.magic, STEPSCOPE_SEGMENT_MAGIC, 8) != 0)
		return error_set(err, STATUS_INPUT, "'%s' is not a stepscope recording: byte 0 should start \"%s\"",
		                 walk->name, STEPSCOPE_SEGMENT_MAGIC);
	if (!segment_header_is_good(&header)) {
		/* the blocks have their own checksums: continue with a header that may be wrong */
		segment_note_damage(walk, 0, sizeof(header));
		if (header.clock < STEPSCOPE_CLOCK_TSC || header.clock > STEPSCOPE_CLOCK_NANOSECONDS)
			header.clock = STEPSCOPE_CLOCK_TSC;
	}
	walk->is_coarse = header.flags & STEPSCOPE_SEGMENT_COARSE;
	if (walk->visitor->header && !walk->visitor->header(walk->visitor->context, &header))
		walk->is_stopped = true;
	return STATUS_OK;
}

static enum status walk_all(struct segment_walk *walk, struct error *err)
{
	*walk->stats = (struct segment_stats){.file_bytes = walk->bytes};
	enum status status = walk_header(walk, err);
	if (status == STATUS_OK && !walk->is_stopped)
		walk_symbols(walk);
	if (status == STATUS_OK && !walk->is_stopped)
		walk_blocks(walk);
	for (uint32_t i = 0; i < walk->meta_count; i++)
		free(walk->metas[i].text);
	free(walk->metas);
	stream_map_release(&walk->covered);
	free(walk->window);
	decoder_release(&walk->decoder);
	return status;
}

enum status segment_read_memory(const void *data, uint64_t bytes, const char *name,
                                const struct segment_visitor *visitor, struct segment_stats *stats, struct error *err)
{
	struct segment_walk walk = {
		.name = name, .fd = -1, .memory = data, .bytes = bytes, .visitor = visitor, .stats = stats};
	return walk_all(&walk, err);
}

enum status segment_read(const char *path, const struct segment_visitor *visitor, struct segment_stats *stats,
                         struct error *err)
{
	struct stat info;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* opening a pipe would wait for a writer */
	if (fd < 0)
		return error_errno(err, STATUS_INPUT, errno, "cannot open '%s'", path);
	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
		close(fd);
		return error_set(err, STATUS_INPUT, "'%s' is not a regular file", path);
	}
	struct segment_walk walk = {
		.name = path, .fd = fd, .bytes = (uint64_t)info.st_size, .visitor = visitor, .stats = stats};
	enum status status = walk_all(&walk, err);
	close(fd);
	return status;
}
