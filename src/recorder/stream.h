/* SPDX-License-Identifier: Apache-2.0
 *
 * stream.h: one thread's way into the pool. The fast path is here and inline; everything else is stream.c.
 *
 * A cursor belongs to one thread. `busy` is set while the thread is inside an emission: a signal handler that finds it set writes
 * to the thread's second cursor instead. Cursors lie in memory that fork() clears in the child (MADV_WIPEONFORK), so that a
 * child's first event, by whatever kind of fork, takes the slow path and gets a stream of its own.
 */
#ifndef RECORDER_STREAM_H
#define RECORDER_STREAM_H

#include "recorder/clock.h"
#include "recorder/emit.h"
#include "recorder/pool.h"

struct cursor {
	uint64_t *next; /* where the next word goes */
	uint64_t *end;  /* of the chunk; NULL sends the thread to the slow path */
	uint32_t high;  /* half of the ticks of what is written now; the base of the low halves is a multiple of 2^32 */
	uint32_t busy;
	uint32_t stream; /* 0: the cursor has none */
	struct stepscope_slot *slot;
	struct stepscope_chunk *chunk;
	uint64_t position;     /* words of the stream before chunk->words[0] */
	struct cursor *signal; /* for handlers that interrupt us */
	uint32_t first_chunk;  /* index + 1 of the stream's first chunk, for the drainer */
	uint32_t name_version; /* counts changes of slot->name, for the drainer */
	uint32_t is_exited;
	uint32_t is_owned;   /* a thread's cursor_mine points here, also between two sessions */
	uint32_t is_reserve; /* the chunk is one of those kept for steps, phases and marks */
	uint32_t reserved[11];
};
static_assert(sizeof(struct cursor) == 128, "cursor");

extern struct cursor cursor_none;
extern __thread struct cursor *cursor_mine __attribute__((tls_model("initial-exec")));

/* Counts an event that cannot be recorded: it has no name. */
void stream_drop(enum stepscope_event type);

void stream_put_slow(struct cursor *cursor, uint32_t was_busy, uint32_t head, const uint64_t *payload);

/* The events that say where everything else belongs: few, kept for good, and the last to be dropped. */
static inline bool event_is_coarse(uint32_t head)
{
	uint32_t id = head >> 8;
	switch (head & 15) {
	case STEPSCOPE_EVENT_STEP:
	case STEPSCOPE_EVENT_VALUE:
	case STEPSCOPE_EVENT_MARK:
		return true;
	case STEPSCOPE_EVENT_BEGIN:
	case STEPSCOPE_EVENT_SWITCH:
		return id <= STEPSCOPE_BUILTIN_MICRO_BATCH;
	case STEPSCOPE_EVENT_END:
		return id == STEPSCOPE_END_PHASE;
	case STEPSCOPE_EVENT_EXTENDED:
		return id == STEPSCOPE_EXTENDED_TORCH_THREAD;
	default:
		return false;
	}
}

#define LINES_AHEAD 2

/* The drainer zeroed the line in another processor's cache. A store that has to wait for it holds up the program's next atomic operation,
 * so it is asked for some events earlier. */
static inline __attribute__((always_inline)) void fetch_line(const uint64_t *at)
{
#ifdef __x86_64__
	__asm__ volatile(
		"prefetchw %0" ::"m"(*at)); /* what gcc knows is for reading only, unless the processor is named */
#else
	__builtin_prefetch(at, 1);
#endif
}

/* Emits one event of `count` words, and stores `stored` of them, a constant, so that the loop is unrolled: those beyond the count are 0. False:
 * everything rare, also a clock that is no counter, is the slow path's: called last, it leaves no register to save here. */
static inline __attribute__((always_inline)) bool stream_try(struct cursor *cursor, uint32_t *was_busy, uint32_t head,
                                                             const uint64_t *payload, unsigned count, unsigned stored)
{
	/* the order matters for handlers that interrupt us: first busy, then the clock, then the position */
	*was_busy = __atomic_load_n(&cursor->busy, __ATOMIC_RELAXED);
	__atomic_store_n(&cursor->busy, 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(*was_busy || !clock_is_counter(), 0))
		return false;
	struct clock_halves tick = clock_read_counter();
	uint64_t *at = cursor->next;
	if (__builtin_expect(
		    at + stored >= __atomic_load_n(&cursor->end, __ATOMIC_RELAXED) || tick.high != cursor->high, 0))
		return false;
	fetch_line(at + LINES_AHEAD * 8);
	for (unsigned i = 0; i < stored; i++)
		at[1 + i] = payload[i];
	__atomic_store_n(at, (uint64_t)head << 32 | tick.low, __ATOMIC_RELEASE);
	cursor->next = at + 1 + count;
	__atomic_store_n(&cursor->busy, 0, __ATOMIC_RELEASE);
	return true;
}

/* `count` should be a constant. */
static inline __attribute__((always_inline)) void stream_put(enum stepscope_event type, uint32_t id,
                                                             const uint64_t *payload, unsigned count)
{
	struct cursor *cursor = cursor_mine;
	uint32_t head = EMIT_HEAD(type, count, id), was_busy;
	if (__builtin_expect(!stream_try(cursor, &was_busy, head, payload, count, count), 0))
		stream_put_slow(cursor, was_busy, head, payload);
}

/* See emit_call(). */
uint32_t stream_call(uint32_t symbol);

/* ---- for session and drainer -------------------------------------------------------------------------------------------- */

struct streams {
	struct cursor *cursors; /* by slot; never unmapped: threads keep pointers. A forked child makes new ones */
	uint32_t capacity;      /* of cursors */
	uint32_t high;          /* slots [0, high) have been used, atomic */
	uint32_t last_stream;   /* number of the newest stream, atomic */
	uint32_t ends;          /* counts threads that have ended, atomic */
	uint32_t freed;         /* counts slots given back, atomic */
	uint32_t full_since;    /* 1 + `freed` when no free slot was found; 0 never; atomic */
	struct pool *pool;
	bool is_accepting;                     /* atomic */
	int32_t visitors;                      /* threads that use the pool outside an emission, atomic */
	uint64_t early[STEPSCOPE_EVENT_TYPES]; /* events that came while another thread started the recorder, atomic */
};
extern struct streams streams;

bool streams_start(struct pool *pool, bool is_forked); /* cursors for the pool's slots */
void streams_wipe(void); /* in a forked child, where the kernel did not clear the cursors */
/* By the drainer at its start: the kernel takes some 10 ms over it, which the thread that stops should not have to wait. */
void streams_prepare_stop(void);
/* Stops accepting and returns when no thread is inside an emission any more (true), or gives up after a second (false: then the
 * pool must stay mapped). */
bool streams_stop(void);
/* Looks at up to `count` streams, further round with each call: whose thread has ended without a word is marked as ended. */
void streams_find_dead(uint32_t count);
/* Counts as dropped what came too early to be recorded. */
void streams_declare_early(void);
/* How many words all threads have written by now, about: without waiting for any of them. A thread that ends takes its words away. */
uint64_t streams_words(void);
/* In a forked child: nothing of the parent's pool is ours. */
void streams_forget(void);
/* After streams_stop(): forgets all streams; live threads keep their (empty) cursors. */
void streams_reset(void);
/* The library is going away: no thread that ends later may come here. */
void streams_unload(void);
/* The drainer is done with a thread that has exited. */
void streams_free_slot(uint32_t index);

/* A cursor for the calling thread, or NULL. */
struct cursor *stream_attach(enum stepscope_stream_kind kind);
void stream_name_thread(const char *name);

#endif
