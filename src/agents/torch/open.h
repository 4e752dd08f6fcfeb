/* SPDX-License-Identifier: Apache-2.0
 *
 * open.h: the open spans of a thread: PyTorch's records, calls of modules and our own ranges. Each is identified by an
 * address that is unique while it is open. So an end finds its start, even if spans overlap without nesting, and if a
 * record ends in another thread than it started in.
 *
 *     open_push(open, record, OPEN_IS_BEGUN);
 *     if (open_innermost_flags(open, record) == OPEN_IS_BEGUN)
 *             open_pop(open);                    the usual case
 *     else if ((level = open_find(open, record)))
 *             flags = open_remove(open, level);
 *     else
 *             open_end_elsewhere(record, tick);  the thread that began it finds it by open_find_ended()
 *
 * All functions but open_end_elsewhere() take the data of the calling thread. No lock, no malloc; levels count from 1,
 * the outermost.
 */
#ifndef AGENTS_TORCH_OPEN_H
#define AGENTS_TORCH_OPEN_H

#include <stdbool.h>
#include <stdint.h>

#define OPEN_MAX 256u

enum open_flag {
	OPEN_IS_BEGUN = 1,   /* its start is in the recording */
	OPEN_IS_COUNTED = 2, /* training.c counts it */
	OPEN_HAS_ENDED = 4,  /* it has ended in another thread */
	OPEN_FLAGS = 7,
};

struct open_records {       /* starts as zero */
	uint32_t depth;     /* atomic, like the words: other threads search them for records */
	uint32_t deeper;    /* number of open records without room */
	uint32_t ended;     /* number of records with OPEN_HAS_ENDED, atomic */
	uint32_t version;   /* odd while words are moved, atomic */
	uint32_t told;      /* start of the recorder, or window, in which the thread's number was recorded */
	uint32_t recording; /* the recording of OPEN_IS_BEGUN: its first start */
	uint64_t words[OPEN_MAX +
	               1]; /* [1, depth]: address | enum open_flag; if ended elsewhere, tick of the end << 3 | flags */
};

static inline void open_push(struct open_records *open, const void *record, uint64_t flags)
{
	uint32_t level = open->depth + 1;
	__atomic_store_n(&open->words[level], (uintptr_t)record | flags, __ATOMIC_RELAXED);
	__atomic_store_n(&open->depth, level, __ATOMIC_RELAXED);
}

/* Returns the flags of the record if it is the innermost; otherwise OPEN_HAS_ENDED, or more. */
static inline uint64_t open_innermost_flags(const struct open_records *open, const void *record)
{
	return __atomic_load_n(&open->words[open->depth], __ATOMIC_RELAXED) ^ (uintptr_t)record;
}

static inline void open_pop(struct open_records *open)
{
	__atomic_store_n(&open->depth, open->depth - 1, __ATOMIC_RELAXED);
}

/* Returns the innermost level of the record; 0: it is not open. */
uint32_t open_find(const struct open_records *open, const void *record);
/* Returns the flags; records above move down by one level. */
uint64_t open_remove(struct open_records *open, uint32_t level);
/* Returns the number of records above the level that have the flag. */
uint32_t open_count_above(const struct open_records *open, uint32_t level, enum open_flag flag);
/* Clears OPEN_IS_BEGUN of all records. */
void open_forget_begun(struct open_records *open);

/* Marks the record in the thread where it is open. Marks nothing if the record started before the agent. Returns false
 * if a thread was in the way for too long, and the end is lost. */
bool open_end_elsewhere(const void *record, uint64_t tick);
/* Returns the innermost level that was marked, and the tick; 0: no mark. The caller removes the level. */
uint32_t open_find_ended(struct open_records *open, uint64_t *tick);

#endif
