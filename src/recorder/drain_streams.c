/* SPDX-License-Identifier: Apache-2.0
 *
 * drain_streams.c: see the header.
 */
#include "recorder/drain_streams.h"

#include "format/block.h"
#include "recorder/clock.h"
#include "recorder/drain_head.h"
#include "recorder/pool.h"
#include "recorder/stream.h"

#define STALE_NS 250000000 /* an active chunk is read this often */

/* Copies the coarse events of words[0..count), which holds complete events only, to the coarse file. */
static void copy_coarse(struct drain *drain, uint32_t stream, const uint64_t *words, size_t count, uint64_t base)
{
	bool is_begun = false;
	for (size_t at = 0; at < count;) {
		uint32_t head = (uint32_t)(words[at] >> 32);
		uint32_t payload = head >> 4 & 15;
		if ((head & 15) == STEPSCOPE_EVENT_TIME) {
			base = words[at + 1];
		} else if (event_is_coarse(head)) {
			uint64_t tick = base + (uint32_t)((uint32_t)words[at] - (uint32_t)base);
			if (!is_begun)
				encoder_begin(drain->coarse_encoder, stream, drain->coarse_words, recorder_clock.shift);
			is_begun = true;
			encoder_add_event(drain->coarse_encoder, head, tick, words + at + 1);
		}
		at += 1 + payload;
	}
	if (!is_begun)
		return;
	drain->coarse_words += encoder_words(drain->coarse_encoder);
	drain->coarse_bytes += encoder_finish(drain->coarse_encoder, 0, drain->coarse_body + drain->coarse_bytes);
}

static void finish_block(struct drain *drain, struct drained_stream *stream)
{
	__atomic_store_n(&drain->events, drain->events + encoder_events(drain->encoder), __ATOMIC_RELAXED);
	stream->next_word += encoder_words(drain->encoder);
	drain->body_bytes += encoder_finish(drain->encoder, 0, drain->body + drain->body_bytes);
}

bool drain_body_has_room(const struct drain *drain)
{
	return DRAIN_BODY_BYTES - drain->body_bytes >= 2 * BLOCK_MAX_EVENT_BYTES &&
	       drain->done_count < DRAIN_DONE_MAX &&
	       DRAIN_COARSE_BYTES - drain->coarse_bytes >= 2 * BLOCK_MAX_EVENT_BYTES;
}

/* Encodes the new events of a stream. Returns false if this pass has no more room. */
static bool drain_stream(struct drain *drain, struct drained_stream *stream)
{
	bool has_room = true;
	encoder_begin(drain->encoder, stream->stream, stream->next_word, recorder_clock.shift);
	for (;;) {
		/* first check for a successor, then read the words, so that no words are missed in between */
		uint32_t next = __atomic_load_n(&stream->chunk->next, __ATOMIC_ACQUIRE);
		const uint64_t *words = stream->chunk->words + stream->offset;
		uint64_t base = stream->base;
		size_t used = encoder_add(drain->encoder, words, STEPSCOPE_CHUNK_WORDS - stream->offset, &stream->base);
		if (drain->coarse.path[0] && used)
			copy_coarse(drain, stream->stream, words, used, base);
		stream->offset += (uint32_t)used;
		if (encoder_is_full(drain->encoder)) {
			finish_block(drain, stream);
			encoder_begin(drain->encoder, stream->stream, stream->next_word, recorder_clock.shift);
			has_room = drain_body_has_room(drain);
			if (!has_room)
				break;
			continue;
		}
		if (next == 0)
			break;
		drain->done[drain->done_count++] = stream->chunk;
		stream->chunk = &drain->pool->chunks[next - 1];
		stream->offset = 0;
		stream->base = stream->chunk->base_tick;
		has_room = drain_body_has_room(drain);
		if (!has_room)
			break;
	}
	finish_block(drain, stream);
	return has_room;
}

void drain_last_gap(struct drain *drain, struct drained_stream *stream, const struct stepscope_slot *slot)
{
	if (slot->gap_count == 0)
		return;
	const uint64_t payload[3] = {
		slot->gap_count, (uint64_t)(uint32_t)slot->gap_net << 32 | (uint32_t)slot->gap_lowest, slot->gap_tick};
	encoder_begin(drain->encoder, stream->stream, stream->next_word, recorder_clock.shift);
	encoder_add_event(drain->encoder, 3u << 4 | STEPSCOPE_EVENT_GAP, slot->gap_tick, payload);
	finish_block(drain, stream);
}

static bool slot_is_due(const struct drained_stream *stream, int64_t now_ns, bool is_forced)
{
	return is_forced || __atomic_load_n(&stream->chunk->next, __ATOMIC_ACQUIRE) != 0 ||
	       now_ns - stream->last_ns >= STALE_NS;
}

static bool begin_slot(struct drain *drain, uint32_t index)
{
	struct drained_stream *stream = &drain->streams[index];
	uint32_t number = __atomic_load_n(&streams.cursors[index].stream, __ATOMIC_ACQUIRE);
	if (number == 0 || number == stream->stream)
		return number != 0 && stream->chunk;
	uint32_t first = __atomic_load_n(&streams.cursors[index].first_chunk, __ATOMIC_ACQUIRE);
	if (first == 0)
		return false; /* no event yet: try again in a later pass */
	*stream = (struct drained_stream){.stream = number, .dropped = stream->dropped};
	stream->chunk = &drain->pool->chunks[first - 1];
	stream->base = stream->chunk->base_tick;
	return true;
}

bool drain_slot(struct drain *drain, uint32_t index, int64_t now_ns, bool is_forced)
{
	struct drained_stream *stream = &drain->streams[index];
	struct stepscope_slot *slot = &drain->pool->slots[index];
	struct cursor *cursor = &streams.cursors[index];
	bool is_exited = __atomic_load_n(&cursor->is_exited, __ATOMIC_ACQUIRE);
	bool has_room = true;
	if (stream->is_ended)
		return true;
	if (begin_slot(drain, index) && (is_exited || slot_is_due(stream, now_ns, is_forced))) {
		has_room = drain_stream(drain, stream);
		stream->last_ns = now_ns;
		if (!stream->is_described ||
		    stream->name_version != __atomic_load_n(&cursor->name_version, __ATOMIC_ACQUIRE))
			drain_put_stream(drain, index, false);
	}
	if (__atomic_load_n(&cursor->stream, __ATOMIC_RELAXED) == 0)
		return has_room;
	drain_put_drops(drain, cursor->stream, slot->dropped, &stream->dropped);
	if (is_exited && has_room && drain->done_count < DRAIN_DONE_MAX) {
		if (stream->stream) {
			drain_last_gap(drain, stream, slot);
			drain_put_stream(drain, index, true);
			drain->done[drain->done_count++] = stream->chunk;
		}
		/* its drops and its name stay in the slot until they are in the file */
		stream->is_ended = true;
		drain->ended[drain->ended_count++] = index;
	}
	return has_room;
}
