/* SPDX-License-Identifier: Apache-2.0
 *
 * drain.h: the drainer, the recorder's thread. Every 10 to 200 ms, depending on the rate of events, it encodes the
 * events in the pool and writes them to the file. Only then does it zero and free the chunks, so that after a kill
 * every event is in the file or in the pool.
 */
#ifndef RECORDER_DRAIN_H
#define RECORDER_DRAIN_H

#include "recorder/segment_file.h"
#include "recorder/start_problem.h"

#include <pthread.h>

struct drained_stream {  /* indexed by slot: how far the stream is written */
	uint32_t stream; /* 0: none */
	uint32_t name_version;
	bool is_described;
	bool is_ended; /* its end is encoded; the slot is freed once the end is written */
	struct stepscope_chunk *chunk;
	uint32_t offset; /* words of the chunk encoded so far */
	uint64_t base;
	uint64_t next_word;
	int64_t last_ns;  /* time of the last drain */
	uint64_t dropped; /* total in the last DROPS block */
};

struct drain_head { /* blocks that a pass writes before the events: names, streams, clocks */
	uint8_t *data;
	size_t bytes;
	uint32_t symbols_from; /* number of the last name that is in the file or left to the coarse file */
};

struct drain_limits { /* 0: no limit, or never */
	int64_t segment_bytes, keep_bytes, keep_ns, fdatasync_ns;
	bool is_self_sampled;
};

enum drain_mode {
	DRAIN_OFF,
	DRAIN_BY_THREAD,
	DRAIN_HERE, /* there is no drainer thread: see drain_here() */
};

struct drain {
	pthread_t thread;
	struct drain_limits limits;
	enum drain_mode mode; /* atomic: a flush or a full pool reads it while another thread stops the drainer */
	bool is_continued;    /* the recording continues in the file of an earlier session of the process */
	uint32_t is_at_work;  /* DRAIN_HERE: a thread is draining, or no thread may drain any more; atomic */
	uint32_t wake;        /* futex: counts requests */
	uint32_t is_stopping;
	uint32_t passes_done; /* futex: counts forced passes, for flush */
	uint32_t has_begun;   /* futex: 1 once the thread runs */
	struct pool *pool;
	struct segment_file file;
	struct segment_file coarse; /* path "" if there is no rotation */
	struct drained_stream *streams;
	struct encoder *encoder, *coarse_encoder;
	uint64_t coarse_words;
	struct drain_head head, coarse_head;
	uint64_t segment_head_bytes; /* size of the blocks at the file's start, which do not count towards rotation */
	uint8_t *body, *coarse_body; /* this pass: events; coarse events */
	size_t body_bytes, coarse_bytes;
	struct stepscope_chunk **done; /* chunks written with this pass, freed afterwards */
	uint32_t done_count;
	uint32_t *ended; /* slots whose end is written with this pass, freed afterwards */
	uint32_t ended_count;
	int64_t next_anchor_ns, anchor_gap_ns;
	int64_t next_sample_ns, next_sync_ns, next_rotation_ns;
	uint32_t next_slot; /* slot where the next pass starts */
	uint64_t dropped_without_slot;
	uint64_t events;
	bool is_full_told;    /* the message about the full table of names was printed */
	uint32_t freed_count; /* chunks freed since the last wait */
	uint32_t idle_passes; /* idle passes in a row */
	char end_reason[128];
};

struct drain_start {
	struct pool *pool;
	const char *directory;
	const struct stepscope_segment_header *identity;
	struct drain_limits limits;
	bool is_inline;
};

/* Opens the files and starts the thread. Returns START_OK, START_NO_MEMORY, or START_NO_FILE with an errno in
 * *reason. */
enum start_problem drain_start(struct drain *drain, const struct drain_start *how, int *reason);
enum drain_mode drain_mode(const struct drain *drain);
/* Asks for a pass now, without waiting for it. */
void drain_wake(struct drain *drain);
/* Writes everything emitted before this call to the file. Gives up if the disk is stuck for a second. */
void drain_flush(struct drain *drain);
/* Does the drainer's work once in the calling thread, for callers that find the pool full or flush. Returns false if
 * there is a drainer thread or another thread is draining. There is no drainer thread if it could not be created, or
 * must not be: after a fork by a bare system call, threads of the parent may hold the C library's locks forever. */
bool drain_here(struct drain *drain);
/* Stops the thread, which first writes the rest and the END block. Call streams_stop() before it. Returns false if the
 * thread did not end in time: it continues then, and everything it uses must stay valid. */
bool drain_stop(struct drain *drain, const char *reason);
/* In a forked child: forgets the parent's thread and files without changing them. */
void drain_forget(struct drain *drain);

#endif
