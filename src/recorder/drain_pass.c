/* SPDX-License-Identifier: Apache-2.0
 *
 * drain_pass.c: see the header.
 */
#include "recorder/drain_pass.h"

#include "format/block.h"
#include "recorder/clock.h"
#include "recorder/drain_head.h"
#include "recorder/drain_streams.h"
#include "recorder/emit.h"
#include "recorder/pool.h"
#include "recorder/stream.h"
#include "recorder/symbols.h"

#include <stdio.h>
#include <string.h>

#define ROTATION_RETRY_NS 1000000000ll

static void free_done(struct drain *drain)
{
	for (uint32_t i = 0; i < drain->done_count; i++)
		pool_push(drain->pool, drain->done[i]);
	for (uint32_t i = 0; i < drain->ended_count; i++) {
		drain->streams[drain->ended[i]] = (struct drained_stream){0};
		streams_free_slot(drain->ended[i]);
	}
	drain->freed_count += drain->done_count;
	drain->done_count = drain->ended_count = 0;
}

/* Returns the bytes that the files with operators may keep. The coarse file counts towards the limit, but operators
 * always get at least half of it. */
static int64_t left_to_keep(const struct drain *drain, int64_t keep_bytes)
{
	int64_t left = keep_bytes - (int64_t)drain->coarse.bytes;
	return left > keep_bytes / 2 ? left : keep_bytes / 2;
}

void drain_rotate_if_due(struct drain *drain, int64_t now_ns)
{
	const struct drain_limits *limits = &drain->limits;
	struct segment_file *file = &drain->file;
	int64_t age_limit = limits->keep_ns ? limits->keep_ns / 8 : 0;
	bool is_due = (limits->segment_bytes &&
	               file->bytes > drain->segment_head_bytes + (uint64_t)limits->segment_bytes) ||
	              (age_limit && now_ns - file->opened_ns > age_limit && file->bytes > 4096);
	if (!is_due || file->is_failing || file->is_lost || now_ns < drain->next_rotation_ns)
		return;
	int reason = segment_file_rotate(file, left_to_keep(drain, limits->keep_bytes), limits->keep_ns, now_ns);
	drain->next_rotation_ns = reason ? now_ns + ROTATION_RETRY_NS : 0;
	if (reason < 0) {
		file->is_lost = true;
		recorder_say("cannot create the next file in '%s': %s; training continues, but recording has stopped",
		             file->directory, strerror(-reason));
	}
	if (reason)
		return;
	if (limits->keep_bytes || limits->keep_ns)
		__atomic_fetch_add(&emit_rotations, 1, __ATOMIC_RELAXED);
	snprintf(drain->pool->header->segment_path, sizeof(drain->pool->header->segment_path), "%s", file->path);
	drain->pool->header->identity = file->identity;
	drain_begin_segment(drain, true);
	drain_put_symbols(drain);
	(void)drain_write_head(&drain->head, file);
	drain->segment_head_bytes = file->bytes;
}

static void write_coarse(struct drain *drain)
{
	struct drain_head *head = &drain->coarse_head;
	bool is_written = segment_file_append(&drain->coarse, head->data, head->bytes, drain->coarse_body,
	                                      drain->coarse_bytes);
	if (is_written || !drain_has_coarse(drain))
		head->bytes = 0;
	/* data that cannot be written now wait for the next pass, as long as there is room */
	if (is_written || DRAIN_COARSE_BYTES - drain->coarse_bytes < 2 * BLOCK_MAX_EVENT_BYTES)
		drain->coarse_bytes = 0;
}

static void write_pass(struct drain *drain)
{
	if (drain->head.bytes + drain->body_bytes + drain->done_count + drain->ended_count == 0)
		return;
	if (!segment_file_append(&drain->file, drain->head.data, drain->head.bytes, drain->body, drain->body_bytes))
		return; /* kept: the next pass tries again; until then the pool fills up and drops are counted */
	if (drain->coarse.path[0])
		write_coarse(drain);
	drain->head.bytes = drain->body_bytes = 0;
	free_done(drain);
	symbols_free_copies(drain_names_written(drain));
}

static void tell_full_table(struct drain *drain)
{
	if (drain->is_full_told || !symbols_are_full())
		return;
	drain->is_full_told = true;
	recorder_say("the program uses more names than the recorder can hold (about 250,000). It records "
	             "further names as '(too many names)', and drops and counts values of further counters");
}

/* Runs one pass over all streams. Returns true if more data are waiting. */
static bool run_pass(struct drain *drain, int64_t now_ns, bool is_forced)
{
	bool has_room = true, was_failing = drain->file.is_failing;
	uint32_t high = __atomic_load_n(&streams.high, __ATOMIC_ACQUIRE);
	if (drain->file.is_lost)
		return false;
	pool_mend(drain->pool);
	if (!was_failing) {
		/* continue where the last pass ran out of room, so that a busy thread does not keep others waiting */
		for (uint32_t i = 0; i < high && has_room; i++) {
			uint32_t slot = drain->next_slot < high ? drain->next_slot : 0;
			has_room = drain_body_has_room(drain) && drain_slot(drain, slot, now_ns, is_forced);
			drain->next_slot = has_room ? slot + 1 : slot;
		}
		drain_put_drops(drain, 0, drain->pool->header->dropped, &drain->dropped_without_slot);
		drain_put_symbols(drain);
		tell_full_table(drain);
	}
	write_pass(drain);
	/* a file that can be written again has received the kept data; the rest waits in the pool */
	return (!has_room || was_failing) && !drain->file.is_failing;
}

void drain_run_passes(struct drain *drain, bool is_forced)
{
	/* bounded, so that producers that never stop cannot keep a flush from ending; at the end there are no
	 * producers */
	for (int i = 0; (i < 64 || drain->is_stopping) && run_pass(drain, clock_raw_ns(), is_forced); i++)
		drain_rotate_if_due(drain, clock_raw_ns());
}

void drain_put_end(struct drain *drain)
{
	for (uint32_t i = 0; i < __atomic_load_n(&streams.high, __ATOMIC_ACQUIRE) && drain_body_has_room(drain); i++)
		if (drain->streams[i].stream && !drain->streams[i].is_ended)
			drain_last_gap(drain, &drain->streams[i], &drain->pool->slots[i]);
	drain_put_anchor(drain, clock_raw_ns());
	write_pass(drain);
	if (drain->file.is_failing)
		return; /* no END block: a reader must see that the recording did not end well */
	drain_put_head(drain, STEPSCOPE_BLOCK_END, 0, drain->end_reason, strlen(drain->end_reason));
	write_pass(drain);
}
