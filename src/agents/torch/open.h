/* SPDX-License-Identifier: Apache-2.0
 *
 * open.h: what is open in a thread: PyTorch's records, calls of modules and ranges of ours, each known by an address that nothing else has
 * while it is open. So an end finds its begin, also where spans overlap without one being in the other, and where a record ends in
 * another thread than it began in.
 *
 *     open_push(open, record, OPEN_IS_BEGUN);
 *     if (open_innermost_flags(open, record) == OPEN_IS_BEGUN)
 *             open_pop(open);                    as a rule
 *     else if ((level = open_find(open, record)))
 *             flags = open_remove(open, level);
 *     else
 *             open_end_elsewhere(record, tick);  the thread that began it finds it by open_find_ended()
 *
 * Of the thread that calls, but for the last one. No lock, no malloc; levels count from 1, the outermost.
 */
#ifndef AGENTS_TORCH_OPEN_H
#define AGENTS_TORCH_OPEN_H

#include <stdbool.h>
#include <stdint.h>

#define OPEN_MAX 256u

enum open_flag {
	OPEN_IS_BEGUN = 1,   /* its begin is in the recording */
	OPEN_IS_COUNTED = 2, /* training.c knows it */
	OPEN_HAS_ENDED = 4,  /* in another thread */
	OPEN_FLAGS = 7,
};

struct open_records {       /* zero at first */
	uint32_t depth;     /* atomic, as are the words: other threads look for records here */
	uint32_t deeper;    /* open ones that found no room */
	uint32_t ended;     /* how many have OPEN_HAS_ENDED, atomic */
	uint32_t version;   /* odd while words change their places, atomic */
	uint32_t told;      /* start of the recorder, or window, in which the thread's number was told */
	uint32_t recording; /* the one of OPEN_IS_BEGUN: its first start */
	uint64_t words[OPEN_MAX +
	               1]; /* [1, depth]: address | enum open_flag; tick of the end << 3 | flags where that was elsewhere */
};

static inline void open_push(struct open_records *open, const void *record, uint64_t flags)
{
	uint32_t level = open->depth + 1;
	__atomic_store_n(&open->words[level], (uintptr_t)record | flags, __ATOMIC_RELAXED);
	__atomic_store_n(&open->depth, level, __ATOMIC_RELAXED);
}

/* Flags of the record, if it is the innermost; else OPEN_HAS_ENDED, or more. */
static inline uint64_t open_innermost_flags(const struct open_records *open, const void *record)
{
	return __atomic_load_n(&open->words[open->depth], __ATOMIC_RELAXED) ^ (uintptr_t)record;
}

static inline void open_pop(struct open_records *open)
{
	__atomic_store_n(&open->depth, open->depth - 1, __ATOMIC_RELAXED);
}

/* The innermost level of the record; 0: none. */
uint32_t open_find(const struct open_records *open, const void *record);
/* Flags; what lies above goes down by one level. */
uint64_t open_remove(struct open_records *open, uint32_t level);
/* How many above the level have the flag. */
uint32_t open_count_above(const struct open_records *open, uint32_t level, enum open_flag flag);
/* Nothing here is begun any more. */
void open_forget_begun(struct open_records *open);

/* Marks the record where it is open, in whatever thread; nothing, when it began before we came. False: a thread was in the way for too long, and
 * the end is lost. */
bool open_end_elsewhere(const void *record, uint64_t tick);
/* The innermost level that was marked, and the tick; 0: none. It is to be removed. */
uint32_t open_find_ended(struct open_records *open, uint64_t *tick);

#endif
