/* SPDX-License-Identifier: Apache-2.0
 *
 * recording.h: a run directory read back as counts and broken promises, for the recorder's tests. Pools of dead processes are
 * folded in first. Events whose loss would show: values of the counter "seq", which a thread emits as 1, 2, 3, ...
 */
#ifndef TESTS_RECORDING_H
#define TESTS_RECORDING_H

#include <stdbool.h>
#include <stdint.h>
#include <stepscope/format.h>

struct recorded_stream {
	uint32_t pid, session, stream, kind, tid, flags;
	char name[64];
	uint64_t by_type[STEPSCOPE_EVENT_TYPES];
	uint64_t dropped[STEPSCOPE_EVENT_TYPES];
	uint64_t gaps, in_gaps; /* GAP events and the drops they state */
	uint64_t next_word, last_tick;
	uint64_t disorder; /* time ran backwards */
	uint64_t holes;    /* words that are in no block */
	bool is_late;      /* its first words are missing: rotation, or a loss */
	uint64_t broken;   /* "seq" did not go on, with no GAP between */
	uint64_t endings;  /* without a beginning, and no GAP before them */
	uint64_t seq;      /* last value of "seq" */
	uint64_t seq_values;
	struct {
		uint64_t count, of_process, without_wait; /* readings of what the thread used */
		uint64_t cpu_ns, wait_ns;                 /* of the last one */
		uint64_t disorder;                        /* a total went down */
	} use;
	bool is_after_gap;
	int64_t depth, deepest;
	char story[600]; /* its first begins and ends: "(", ")", or how many that go on a span ends beneath; "t" behind it: with the time */
};

struct recorded_process {
	uint32_t pid, parent, session, role;
	uint64_t dropped[STEPSCOPE_EVENT_TYPES]; /* by threads without a stream */
	unsigned segments;
	bool is_closed;
	uint32_t clock;
	unsigned anchors;
	uint64_t last_step;
};

struct recording {
	struct recorded_stream *streams;
	unsigned stream_count, stream_capacity;
	struct recorded_process *processes;
	unsigned process_count, process_capacity;
	uint64_t rescued, damaged, torn, bytes, coarse_bytes;
	uint64_t coarse[STEPSCOPE_EVENT_TYPES]; /* events of coarse segments, by type */
	uint64_t inputs, coarse_inputs;         /* names of that kind; in coarse segments */
	unsigned files, coarse_files, unreadable;
	unsigned unnamed; /* events with a name that is not in the file */
};

/* Folds what dead processes left and reads every segment. Ends the test when one cannot be read. */
struct recording *recording_read(const char *directory);
void recording_free(struct recording *recording);

/* Events of that type over all streams; with the drops of that type added; drops alone. */
uint64_t recording_sum(const struct recording *recording, enum stepscope_event type);
uint64_t recording_drops(const struct recording *recording, enum stepscope_event type);
/* The stream of a thread name; NULL: none. `pid` 0: any. */
const struct recorded_stream *recording_stream(const struct recording *recording, uint32_t pid, const char *name);
const struct recorded_process *recording_process(const struct recording *recording, uint32_t pid);

/* Ends the test when a stream has disorder, holes or broken sequences, or when the file is damaged. With `is_rotated` a stream
 * may have lost its beginning. */
void recording_check_whole(const struct recording *recording, bool is_rotated);

#endif
