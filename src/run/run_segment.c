/* SPDX-License-Identifier: Apache-2.0
 *
 * run_segment.c: the scan steps from block to block and reads the data of few kinds, so that it costs little for any
 * size.
 */
#include "run/run_segment.h"

#include "base/crc32c.h"
#include "base/memory.h"
#include "format/segment.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DROPS 4096 /* streams with dropped events, per process */

/* ---- scan ---- */

struct run_drops { /* the totals only grow, so the largest are the last */
	uint32_t session, stream;
	uint64_t all, coarse;
};

static void note_drops(struct run_scan *scan, uint32_t session, uint32_t stream, const uint8_t *data, uint32_t bytes)
{
	struct stepscope_drops drops = {{0}};
	struct run_drops total = {.session = session, .stream = stream}, *found = NULL;

	memcpy(&drops, data, bytes < sizeof(drops) ? bytes : sizeof(drops));
	for (int type = 0; type < STEPSCOPE_EVENT_TYPES; type++)
		total.all += drops.by_type[type];
	/* only phases and micro-batches write SWITCH events */
	total.coarse = drops.by_type[STEPSCOPE_EVENT_STEP] + drops.by_type[STEPSCOPE_EVENT_SWITCH];
	for (uint32_t i = 0; i < scan->drops_count && !found; i++) {
		if (scan->drops[i].session == session && scan->drops[i].stream == stream)
			found = &scan->drops[i];
	}
	if (!found) {
		if (!total.all || scan->drops_count == MAX_DROPS)
			return;
		scan->drops = memory_resize(scan->drops, scan->drops_count + 1, sizeof(*scan->drops));
		found = &scan->drops[scan->drops_count++];
		*found = total;
	}
	if (total.all > found->all)
		*found = total;
}

struct scanned { /* one file */
	uint32_t pid, session;
	struct stepscope_block last;
	char capture[1024];
	struct own_facts own;
};

/* The fact "capture" has the form "capture NUL sentence". */
static void run_segment_note_capture(struct scanned *file, const char *text, uint32_t length)
{
	static const char key[] = "capture";

	if (length > sizeof(key) && memcmp(text, key, sizeof(key)) == 0)
		snprintf(file->capture, sizeof(file->capture), "%.*s", (int)(length - sizeof(key)), text + sizeof(key));
}

static void note_facts(struct scanned *file, const uint8_t *data, uint32_t bytes)
{
	for (uint64_t at = 0; at + sizeof(struct stepscope_symbol) <= bytes;) {
		const char *text = (const char *)data + at + sizeof(struct stepscope_symbol);
		struct stepscope_symbol symbol;

		memcpy(&symbol, data + at, sizeof(symbol));
		at += sizeof(symbol) + ((symbol.length + 7u) & ~7u);
		if (at > bytes || symbol.kind != STEPSCOPE_SYMBOL_META)
			continue;
		run_segment_note_capture(file, text, symbol.length);
		own_facts_add(&file->own, file->pid, text, symbol.length);
	}
}

/* Returns the data of a block if its checksum is right, otherwise NULL; the caller frees it. */
static uint8_t *read_data(int fd, off_t offset, const struct stepscope_block *block)
{
	uint8_t *data = memory_resize(NULL, block->bytes ? block->bytes : 1, 1);
	struct stepscope_block unsealed = *block;

	unsealed.crc = 0;
	if (pread(fd, data, block->bytes, offset) == (ssize_t)block->bytes &&
	    crc32c(crc32c(0, &unsealed, sizeof(unsealed)), data, block->bytes) == block->crc)
		return data;
	free(data);
	return NULL;
}

static void scan_blocks(struct run_scan *scan, struct scanned *file, int fd)
{
	off_t offset = sizeof(struct stepscope_segment_header);
	struct stepscope_block block;

	while (scan->blocks_left && pread(fd, &block, sizeof(block), offset) == (ssize_t)sizeof(block) &&
	       block.magic == STEPSCOPE_BLOCK_MAGIC && block.bytes <= STEPSCOPE_MAX_BLOCK_BYTES) {
		bool is_drops = block.kind == STEPSCOPE_BLOCK_DROPS;
		bool is_wanted = is_drops || block.kind == STEPSCOPE_BLOCK_SYMBOLS;
		uint8_t *data = is_wanted ? read_data(fd, offset + (off_t)sizeof(block), &block) : NULL;

		if (data && is_drops)
			note_drops(scan, file->session, block.stream, data, block.bytes);
		else if (data)
			note_facts(file, data, block.bytes);
		free(data);
		file->last = block;
		offset += (off_t)sizeof(block) + block.bytes;
		scan->blocks_left--;
	}
}

void run_scan_add(struct run_scan *scan, int directory_fd, const char *name)
{
	int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stepscope_segment_header header;
	struct scanned file = {.capture = ""};

	if (fd < 0)
		return;
	if (pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
	    !memcmp(header.magic, STEPSCOPE_SEGMENT_MAGIC, sizeof(header.magic)) &&
	    header.pid_namespace == scan->pid_namespace) {
		file.session = header.session;
		file.pid = header.pid;
		scan_blocks(scan, &file, fd);
		own_facts_join(&scan->own, &file.own);
		if (!scan->has_segment && !(header.flags & STEPSCOPE_SEGMENT_COARSE)) {
			scan->has_segment = true;
			scan->session = header.session;
			scan->newest = header.segment;
			scan->is_closed = file.last.kind == STEPSCOPE_BLOCK_END;
			scan->is_rescued = file.last.flags & STEPSCOPE_BLOCK_RESCUED;
		}
		if (scan->has_segment && scan->session == header.session && !scan->capture[0])
			memcpy(scan->capture, file.capture, sizeof(scan->capture));
	}
	close(fd);
}

void run_scan_finish(struct run_scan *scan)
{
	for (uint32_t i = 0; i < scan->drops_count; i++) {
		scan->dropped += scan->drops[i].all;
		scan->dropped_coarse += scan->drops[i].coarse;
	}
	free(scan->drops);
	scan->drops = NULL;
	scan->drops_count = 0;
}

/* ---- names ---- */

/* Reads the number between the dot before `end` and `end`; moves `end` to that dot. */
static bool number_before(const char *name, const char **end, uint64_t *number)
{
	const char *dot = *end;
	char *stop;

	while (dot > name && dot[-1] != '.')
		dot--;
	if (dot == name || dot == *end || *dot < '0' || *dot > '9')
		return false;
	*number = strtoull(dot, &stop, 10);
	if (stop != *end)
		return false;
	*end = dot - 1;
	return true;
}

bool run_segment_parse_name(struct run_segment_name *parts, const char *name)
{
	size_t length = strlen(name);
	const char *end;
	uint64_t number, start_time, pid;

	if (length < 5)
		return false;
	end = name + length - 4;
	if (strcmp(end, ".ssr") != 0)
		return false;
	if (!number_before(name, &end, &number))
		return false;
	parts->stem_length = (int)(end - name);
	if (!number_before(name, &end, &start_time) || !number_before(name, &end, &pid) || end == name)
		return false;
	if (pid > INT32_MAX || number > UINT32_MAX)
		return false;
	parts->number = (uint32_t)number;
	parts->start_time = start_time;
	parts->pid = (int64_t)pid;
	return true;
}
