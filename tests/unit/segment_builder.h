/* SPDX-License-Identifier: Apache-2.0
 *
 * segment_builder.h: makes segments by hand, for tests. Ticks are nanoseconds of CLOCK_MONOTONIC_RAW unless the header says
 * otherwise. Starts with the builtin symbols; blocks are finished by themselves when the stream changes.
 *
 *     segment_begin(&s, 4242, 0);
 *     segment_stream(&s, 1, 4242, "main");
 *     segment_step(&s, 1, 1000, STEPSCOPE_STEP_BEGIN, 7);
 *     segment_symbol(&s, 20, STEPSCOPE_SYMBOL_OP, "matmul");
 *     segment_put(&s, 1, 1100, STEPSCOPE_EVENT_BEGIN, 20, 0);
 *     segment_end(&s, "exit");
 */
#ifndef SEGMENT_BUILDER_H
#define SEGMENT_BUILDER_H

#include "base/buffer.h"

#include <stepscope/format.h>

#define SEGMENT_STREAMS 64
#define SEGMENT_SAMPLE_START UINT64_C(1000000000) /* ns */

struct encoder;

struct segment_builder {
	struct stepscope_segment_header header;
	struct buffer bytes;
	struct encoder *encoder;
	bool is_open; /* an EVENTS block is being filled */
	uint32_t stream;
	uint64_t next_word[SEGMENT_STREAMS];
	uint64_t last_tick; /* all events so far, for segment_end() */
};

void segment_begin(struct segment_builder *segment, uint32_t pid, uint32_t number);
/* The same with a header of one's own (magic and crc are filled in). */
void segment_begin_with(struct segment_builder *segment, const struct stepscope_segment_header *header);
/* What the sample programs write: times from SEGMENT_SAMPLE_START on, and an anchor there. rank: of two, -1: it has none. */
void segment_begin_sample(struct segment_builder *segment, uint32_t pid, int rank, enum stepscope_role role);
/* Writes such a one into the directory, which it makes, and releases it. False: it could not be written. */
bool segment_save_sample(struct segment_builder *segment, const char *directory);
void segment_release(struct segment_builder *segment);

void segment_symbol(struct segment_builder *segment, uint32_t id, enum stepscope_symbol_kind kind, const char *text);
void segment_symbol_n(struct segment_builder *segment, uint32_t id, enum stepscope_symbol_kind kind, const char *text,
                      uint32_t length); /* with a NUL in it */
void segment_stream(struct segment_builder *segment, uint32_t stream, uint32_t tid, const char *name);
void segment_stream_of_kind(struct segment_builder *segment, uint32_t stream, uint32_t tid, const char *name,
                            uint32_t kind, uint32_t flags);
void segment_track(struct segment_builder *segment, uint32_t track, uint32_t kind, int32_t device, int32_t stream,
                   const char *name);
void segment_anchor(struct segment_builder *segment, const struct stepscope_anchor *anchor);
void segment_meta(struct segment_builder *segment, const char *key, const char *value);
void segment_block(struct segment_builder *segment, enum stepscope_block_kind kind, uint32_t stream, const void *data,
                   size_t bytes);
void segment_end(struct segment_builder *segment, const char *reason); /* NULL: as after a kill */

/* An event with up to five words of payload (uint64_t each). */
void segment_put(struct segment_builder *segment, uint32_t stream, uint64_t tick, enum stepscope_event type,
                 uint32_t id, int count, ...);
void segment_step(struct segment_builder *segment, uint32_t stream, uint64_t tick, enum stepscope_step_event what,
                  int64_t number);
/* Words that are in no block: removed or lost. */
void segment_skip_words(struct segment_builder *segment, uint32_t stream, uint64_t words);
/* Finishes the open block; flags 1: as written by the rescue. */
void segment_flush(struct segment_builder *segment, uint8_t flags);

#endif
