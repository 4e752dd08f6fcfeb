/* SPDX-License-Identifier: Apache-2.0
 *
 * open.c: see open.h. A record that is not found in the thread where it ends is searched in all threads. It is alive
 * until its end has returned. So an equal address belongs to that record, or to one that ended unseen long ago. Its
 * thread, which alone removes words, finds the mark.
 */
#include "agents/torch/open.h"

#include "agents/torch/thread.h"

#define TRIES 1000 /* while a thread moves its words; a thread that is stopped in the middle of that is given up */

static uint64_t word_of(const struct open_records *open, uint32_t level)
{
	return __atomic_load_n(&open->words[level], __ATOMIC_RELAXED);
}

static bool open_is_of(uint64_t word, const void *record)
{
	return (word & ~(uint64_t)OPEN_FLAGS) == (uintptr_t)record && !(word & OPEN_HAS_ENDED);
}

uint32_t open_find(const struct open_records *open, const void *record)
{
	uint32_t level = open->depth;
	while (level && !open_is_of(word_of(open, level), record))
		level--;
	return level;
}

uint32_t open_count_above(const struct open_records *open, uint32_t level, enum open_flag flag)
{
	uint32_t count = 0;
	for (uint32_t i = level + 1; i <= open->depth; i++)
		count += (word_of(open, i) & flag) != 0;
	return count;
}

/* A word that another thread marks meanwhile is moved with its mark: it is in one place, or, for an instant, in no
 * place. */
uint64_t open_remove(struct open_records *open, uint32_t level)
{
	uint64_t flags = word_of(open, level) & OPEN_FLAGS;
	if (level == open->depth) { /* no word moves */
		open_pop(open);
		return flags;
	}
	__atomic_fetch_add(&open->version, 1, __ATOMIC_ACQ_REL);
	for (uint32_t i = level; i < open->depth; i++)
		__atomic_store_n(&open->words[i], __atomic_exchange_n(&open->words[i + 1], 0, __ATOMIC_ACQ_REL),
		                 __ATOMIC_RELEASE);
	__atomic_store_n(&open->depth, open->depth - 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&open->version, 1, __ATOMIC_ACQ_REL);
	return flags;
}

void open_forget_begun(struct open_records *open)
{
	for (uint32_t i = 1; i <= open->depth; i++)
		__atomic_fetch_and(&open->words[i], ~(uint64_t)OPEN_IS_BEGUN, __ATOMIC_RELAXED);
}

static bool mark(struct open_records *open, const void *record, uint64_t tick)
{
	for (uint32_t level = __atomic_load_n(&open->depth, __ATOMIC_ACQUIRE); level; level--) {
		uint64_t word = word_of(open, level);
		uint64_t marked = tick << 3 | OPEN_HAS_ENDED | (word & OPEN_FLAGS);
		if (!open_is_of(word, record) || !__atomic_compare_exchange_n(&open->words[level], &word, marked, false,
		                                                              __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		__atomic_fetch_add(&open->ended, 1, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

/* Not a load, which could come before the reads above it: those must be complete. */
static uint32_t version_now(struct open_records *open)
{
	return __atomic_fetch_add(&open->version, 0, __ATOMIC_ACQ_REL);
}

bool open_end_elsewhere(const void *record, uint64_t tick)
{
	struct torch_thread *thread = thread_first();
	int tries = 0;
	while (thread && tries < TRIES) {
		uint32_t version = __atomic_load_n(&thread->open.version, __ATOMIC_ACQUIRE);
		if (mark(&thread->open, record, tick))
			return true;
		bool has_moved = version & 1 || version != version_now(&thread->open);
		tries = has_moved ? tries + 1 : 0;
		if (!has_moved)
			thread = thread->next;
	}
	return tries < TRIES;
}

uint32_t open_find_ended(struct open_records *open, uint64_t *tick)
{
	uint32_t marks = __atomic_load_n(&open->ended, __ATOMIC_ACQUIRE), level = marks ? open->depth : 0;
	while (level && !(word_of(open, level) & OPEN_HAS_ENDED))
		level--;
	/* a mark without a word belonged to the thread that had these words before */
	__atomic_fetch_sub(&open->ended, level ? 1 : marks, __ATOMIC_RELAXED);
	*tick = word_of(open, level) >> 3;
	return level;
}
