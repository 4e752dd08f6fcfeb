/* SPDX-License-Identifier: Apache-2.0
 *
 * Segments by hand, with the encoder that the recorder uses.
 */
#include "segment_builder.h"

#include "format/block.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_SEGMENT ((size_t)4 << 30)

static char *room(struct segment_builder *segment, size_t bytes)
{
	char *out = buffer_reserve(&segment->bytes, bytes);
	if (!out)
		abort();
	return out;
}

void segment_flush(struct segment_builder *segment, uint8_t flags)
{
	if (!segment->is_open)
		return;
	segment->is_open = false;
	segment->next_word[segment->stream] += encoder_words(segment->encoder);
	char *out = room(segment, BLOCK_MAX_EVENT_BYTES);
	segment->bytes.length += encoder_finish(segment->encoder, flags, out);
}

void segment_block(struct segment_builder *segment, enum stepscope_block_kind kind, uint32_t stream, const void *data,
                   size_t bytes)
{
	segment_flush(segment, 0);
	char *out = room(segment, sizeof(struct stepscope_block) + bytes);
	segment->bytes.length += block_write(out, kind, stream, data, bytes);
}

void segment_symbol_n(struct segment_builder *segment, uint32_t id, enum stepscope_symbol_kind kind, const char *text,
                      uint32_t length)
{
	char data[1024] = "";
	struct stepscope_symbol symbol = {.id = id, .length = (uint16_t)length, .kind = (uint8_t)kind};
	memcpy(data, &symbol, sizeof symbol);
	memcpy(data + sizeof symbol, text, symbol.length);
	segment_block(segment, STEPSCOPE_BLOCK_SYMBOLS, 0, data, sizeof symbol + (symbol.length + 7u) / 8 * 8);
}

void segment_symbol(struct segment_builder *segment, uint32_t id, enum stepscope_symbol_kind kind, const char *text)
{
	segment_symbol_n(segment, id, kind, text, (uint32_t)strlen(text));
}

static void add_builtins(struct segment_builder *segment)
{
	static const struct {
		const char *text;
		enum stepscope_symbol_kind kind;
	} builtins[] = {
		{"", 0},
		{"data", STEPSCOPE_SYMBOL_PHASE},
		{"forward", STEPSCOPE_SYMBOL_PHASE},
		{"backward", STEPSCOPE_SYMBOL_PHASE},
		{"optimizer", STEPSCOPE_SYMBOL_PHASE},
		{"communication", STEPSCOPE_SYMBOL_PHASE},
		{"checkpoint", STEPSCOPE_SYMBOL_PHASE},
		{"evaluation", STEPSCOPE_SYMBOL_PHASE},
		{"micro-batch", STEPSCOPE_SYMBOL_MICRO_BATCH},
		{"index", STEPSCOPE_SYMBOL_TEXT},
		{"shape", STEPSCOPE_SYMBOL_TEXT},
		{"dtype", STEPSCOPE_SYMBOL_TEXT},
		{"flops", STEPSCOPE_SYMBOL_TEXT},
		{"bytes", STEPSCOPE_SYMBOL_TEXT},
	};
	for (uint32_t id = 1; id < sizeof builtins / sizeof *builtins; id++)
		segment_symbol(segment, id, builtins[id].kind, builtins[id].text);
}

void segment_begin_with(struct segment_builder *segment, const struct stepscope_segment_header *header)
{
	*segment = (struct segment_builder){.header = *header};
	segment_header_seal(&segment->header);
	buffer_init(&segment->bytes, MAX_SEGMENT);
	segment->encoder = calloc(1, encoder_bytes());
	if (!segment->encoder)
		abort();
	buffer_add(&segment->bytes, &segment->header, sizeof segment->header);
	add_builtins(segment);
}

void segment_begin(struct segment_builder *segment, uint32_t pid, uint32_t number)
{
	struct stepscope_segment_header header = {
		.pid = pid,
		.segment = number,
		.start_time = 1000 + pid,
		.boot_id = "boot of the test",
		.clock = STEPSCOPE_CLOCK_MONOTONIC,
		.rank = -1,
		.world_size = -1,
		.tick_hz = 1000000000,
	};
	segment_begin_with(segment, &header);
}

void segment_begin_sample(struct segment_builder *segment, uint32_t pid, int rank, enum stepscope_role role)
{
	const struct stepscope_segment_header header = {.pid = pid,
	                                                .start_time = 5242,
	                                                .boot_id = "boot of the test",
	                                                .clock = STEPSCOPE_CLOCK_MONOTONIC,
	                                                .role = role,
	                                                .rank = rank,
	                                                .world_size = rank < 0 ? -1 : 2,
	                                                .tick_hz = 1000000000,
	                                                .tick_step = 1,
	                                                .parent_pid = 4200,
	                                                .first_tick = SEGMENT_SAMPLE_START};
	const struct stepscope_anchor anchor = {.tick = SEGMENT_SAMPLE_START,
	                                        .raw_ns = (int64_t)SEGMENT_SAMPLE_START,
	                                        .monotonic_ns = (int64_t)SEGMENT_SAMPLE_START,
	                                        .realtime_ns = 1795248189000000000,
	                                        .window_ticks = 1,
	                                        .clock = STEPSCOPE_CLOCK_MONOTONIC};

	segment_begin_with(segment, &header);
	segment_anchor(segment, &anchor);
}

bool segment_save_sample(struct segment_builder *segment, const char *directory)
{
	char path[512];
	mkdir(directory, 0777);
	snprintf(path, sizeof path, "%s/node-1.%u.5242.0.ssr", directory, segment->header.pid);
	FILE *file = fopen(path, "wb");
	bool is_good = file && fwrite(segment->bytes.data, 1, segment->bytes.length, file) == segment->bytes.length;
	if (file && fclose(file) != 0)
		is_good = false;
	segment_release(segment);
	return is_good;
}

void segment_release(struct segment_builder *segment)
{
	buffer_release(&segment->bytes);
	free(segment->encoder);
	segment->encoder = NULL;
}

void segment_stream_of_kind(struct segment_builder *segment, uint32_t stream, uint32_t tid, const char *name,
                            uint32_t kind, uint32_t flags)
{
	char data[256];
	struct stepscope_stream_info info = {
		.kind = kind, .tid = tid, .flags = flags, .name_bytes = (uint32_t)strlen(name)};
	memcpy(data, &info, sizeof info);
	memcpy(data + sizeof info, name, info.name_bytes);
	segment_block(segment, STEPSCOPE_BLOCK_STREAM, stream, data, sizeof info + info.name_bytes);
}

void segment_stream(struct segment_builder *segment, uint32_t stream, uint32_t tid, const char *name)
{
	segment_stream_of_kind(segment, stream, tid, name, STEPSCOPE_STREAM_THREAD, tid == segment->header.pid);
}

void segment_track(struct segment_builder *segment, uint32_t track, uint32_t kind, int32_t device, int32_t stream,
                   const char *name)
{
	char data[256];
	struct stepscope_track_info info = {.track = track,
	                                    .kind = kind,
	                                    .device = device,
	                                    .stream = stream,
	                                    .process = segment->header.pid,
	                                    .name_bytes = (uint32_t)strlen(name)};
	memcpy(data, &info, sizeof info);
	memcpy(data + sizeof info, name, info.name_bytes);
	segment_block(segment, STEPSCOPE_BLOCK_TRACK, 0, data, sizeof info + info.name_bytes);
}

void segment_anchor(struct segment_builder *segment, const struct stepscope_anchor *anchor)
{
	segment_block(segment, STEPSCOPE_BLOCK_CLOCK, 0, anchor, sizeof *anchor);
}

void segment_meta(struct segment_builder *segment, const char *key, const char *value)
{
	char data[512];
	int length = snprintf(data, sizeof data, "%s%c%s", key, 0, value);
	segment_block(segment, STEPSCOPE_BLOCK_META, 0, data, (size_t)length + 1);
}

void segment_end(struct segment_builder *segment, const char *reason)
{
	segment_flush(segment, 0);
	if (reason)
		segment_block(segment, STEPSCOPE_BLOCK_END, 0, reason, strlen(reason));
}

void segment_put(struct segment_builder *segment, uint32_t stream, uint64_t tick, enum stepscope_event type,
                 uint32_t id, int count, ...)
{
	uint64_t payload[5] = {0};
	va_list arguments;
	va_start(arguments, count);
	for (int i = 0; i < count; i++)
		payload[i] = va_arg(arguments, uint64_t);
	va_end(arguments);
	if (segment->is_open && (segment->stream != stream || encoder_is_full(segment->encoder)))
		segment_flush(segment, 0);
	if (!segment->is_open) {
		encoder_begin(segment->encoder, stream, segment->next_word[stream], 0);
		segment->stream = stream;
		segment->is_open = true;
	}
	encoder_add_event(segment->encoder, id << 8 | (uint32_t)count << 4 | type, tick, payload);
	segment->last_tick = tick;
}

void segment_step(struct segment_builder *segment, uint32_t stream, uint64_t tick, enum stepscope_step_event what,
                  int64_t number)
{
	segment_put(segment, stream, tick, STEPSCOPE_EVENT_STEP, what, 1, (uint64_t)number);
}

void segment_skip_words(struct segment_builder *segment, uint32_t stream, uint64_t words)
{
	segment_flush(segment, 0);
	segment->next_word[stream] += words;
}
