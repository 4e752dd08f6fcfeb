/* SPDX-License-Identifier: Apache-2.0
 *
 * drain_streams.h: encodes the events of threads from their chunks in the pool into drain->body. Coarse events also go
 * into drain->coarse_body.
 */
#ifndef RECORDER_DRAIN_STREAMS_H
#define RECORDER_DRAIN_STREAMS_H

#include "recorder/drain.h"

#define DRAIN_BODY_BYTES (4u << 20)
#define DRAIN_COARSE_BYTES (1u << 20)
#define DRAIN_DONE_MAX 4096u
#define DRAIN_MAX_SLOTS 8192u

/* Returns true if the pass can take another stream. */
bool drain_body_has_room(const struct drain *drain);
/* Encodes the new events of one slot. Returns false if the pass has no more room. */
bool drain_slot(struct drain *drain, uint32_t index, int64_t now_ns, bool is_forced);
/* Adds a GAP for the events that a thread dropped last, because the thread has ended and cannot write it. */
void drain_last_gap(struct drain *drain, struct drained_stream *stream, const struct stepscope_slot *slot);

#endif
