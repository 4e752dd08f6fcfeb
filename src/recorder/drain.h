/* SPDX-License-Identifier: Apache-2.0
 *
 * drain.h: the recorder's own thread. Every 10 to 100 ms, by the pace of the events, it takes what is in the pool,
 * encodes it and writes it; then the chunks are zeroed and free again, in this order, so that a kill finds everything
 * either in the file or in the pool.
 */
#ifndef RECORDER_DRAIN_H
#define RECORDER_DRAIN_H

#include "recorder/segment_file.h"
#include "recorder/start_problem.h"

#include <pthread.h>

struct drained_stream {  /* by slot: how far the stream is written */
	uint32_t stream; /* 0: none */
	uint32_t name_version;
	bool is_described;
	bool is_ended; /* its end is on the way to the file */
	struct stepscope_chunk *chunk;
	uint32_t offset; /* words of the chunk that are encoded */
	uint64_t base;
	uint64_t next_word;
	int64_t last_ns;  /* when it was last drained */
	uint64_t dropped; /* total that the last DROPS block said */
};

struct drain_head { /* what a pass puts before the events of a file: names, streams, clocks */
	uint8_t *data;
	size_t bytes;
	uint32_t symbols_from; /* the last name of the table that is in the file, or is left to the coarse one */
};

struct drain_limits { /* 0: none */
	int64_t segment_bytes, keep_bytes, keep_ns, fdatasync_ns;
	bool is_self_sampled;
};

enum drain_mode {
	DRAIN_OFF,
	DRAIN_BY_THREAD,
	DRAIN_HERE, /* there is no thread: see drain_here() */
};

struct drain {
	pthread_t thread;
	struct drain_limits limits;
	enum drain_mode mode; /* atomic: flushes and full pools look at it beside a stop */
	bool is_continued;    /* in the file of an earlier session of the process */
	uint32_t is_at_work;  /* DRAIN_HERE: somebody drains, or nobody may any more; atomic */
	uint32_t wake;        /* futex: counts requests */
	uint32_t is_stopping;
	uint32_t passes_done; /* futex: counts forced passes, for flush */
	uint32_t has_begun;   /* futex: the thread runs */
	struct pool *pool;
	struct segment_file file;
	struct segment_file coarse; /* path "" when there is no rotation */
	struct drained_stream *streams;
	struct encoder *encoder, *coarse_encoder;
	uint64_t coarse_words;
	struct drain_head head, coarse_head;
	uint64_t segment_head_bytes; /* of the file: what it began with, which is no reason to begin another one */
	uint8_t *body, *coarse_body; /* this pass: events; coarse events */
	size_t body_bytes, coarse_bytes;
	struct stepscope_chunk **done; /* written with this pass, then freed */
	uint32_t done_count;
	uint32_t *ended; /* slots whose end is written with this pass, then freed */
	uint32_t ended_count;
	int64_t next_anchor_ns, anchor_gap_ns;
	int64_t next_sample_ns, next_sync_ns, next_rotation_ns;
	uint32_t next_slot; /* where the next pass begins */
	uint64_t dropped_without_slot;
	uint64_t events;
	bool is_full_told;    /* the table of names */
	uint32_t freed_count; /* chunks, since the last wait */
	uint32_t idle_passes; /* in a row */
	char end_reason[128];
};

struct drain_start {
	struct pool *pool;
	const char *directory;
	const struct stepscope_segment_header *identity;
	struct drain_limits limits;
	bool is_inline;
};

/* Opens the files and starts the thread. START_OK, START_NO_MEMORY, or START_NO_FILE with an errno in *reason. */
enum start_problem drain_start(struct drain *drain, const struct drain_start *how, int *reason);
enum drain_mode drain_mode(const struct drain *drain);
/* Asks for a pass now, without waiting for it. */
void drain_wake(struct drain *drain);
/* Everything emitted before this call is in the file afterwards. */
void drain_flush(struct drain *drain);
/* Where there is no thread (none could be made, or none may be made because the C library's locks may be held by
 * threads that a bare fork left behind): does its work for once, for whoever finds the pool full. False: there is a
 * thread, or somebody is at it. */
bool drain_here(struct drain *drain);
/* Stops the thread, which writes the rest and the END block; needs streams_stop() before it. False when it did not end
 * in time: then it goes on, and nothing it uses may be taken away. */
bool drain_stop(struct drain *drain, const char *reason);
/* In a forked child: forgets the parent's thread and files without touching them. */
void drain_forget(struct drain *drain);

#endif
