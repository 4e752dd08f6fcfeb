/* SPDX-License-Identifier: Apache-2.0
 *
 * stream.h: writes a thread's events into the pool. The fast path is here and inline; stream.c has the rest.
 *
 * A cursor belongs to one thread. `busy` is set while the thread is inside an emission. A signal handler that finds it
 * set writes to the thread's second cursor instead. fork() clears the memory of cursors in the child (MADV_WIPEONFORK).
 * So after any kind of fork, a child's first event takes the slow path and gets a new stream.
 */
#ifndef RECORDER_STREAM_H
#define RECORDER_STREAM_H

#include "recorder/clock.h"
#include "recorder/emit.h"
#include "recorder/pool.h"

struct cursor {
	uint64_t *next; /* position of the next word */
	uint64_t *end;  /* end of the chunk; NULL sends the thread to the slow path */
	uint32_t high;  /* high half of the current ticks; the base of the low halves is a multiple of 2^32 */
	uint32_t busy;
	uint32_t stream; /* 0: no stream */
	struct stepscope_slot *slot;
	struct stepscope_chunk *chunk;
	uint64_t position;     /* words of the stream before chunk->words[0] */
	struct cursor *signal; /* cursor for handlers that interrupt this thread */
	uint32_t first_chunk;  /* index + 1 of the stream's first chunk, for the drainer */
	uint32_t name_version; /* counts changes of slot->name, for the drainer */
	uint32_t is_exited;
	uint32_t is_owned;     /* a thread's cursor_mine points here, even between two sessions */
	uint32_t is_reserve;   /* the chunk is from the reserve for steps, phases and marks */
	uint32_t use_file;     /* of thread_use.c: its file; 0: not opened yet */
	uint64_t next_reading; /* of thread_use.c: ticks before which there is no reading, */
	uint64_t next_process; /* and none with the process's CPU time */
	uint32_t reserved[6];
};
static_assert(sizeof(struct cursor) == 128, "cursor");

extern struct cursor cursor_none;
extern __thread struct cursor *cursor_mine __attribute__((tls_model("initial-exec")));

/* Counts an event that cannot be recorded because it has no name. */
void stream_drop(enum stepscope_event type);

void stream_put_slow(struct cursor *cursor, uint32_t was_busy, uint32_t head, const uint64_t *payload);

/* Returns true for events that the interpretation of all others depends on: few, kept for good, and the last to be
 * dropped. */
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

/* Prefetches a line for writing. The drainer zeroed it in another processor's cache, and a store that has to wait for
 * the line delays the program's next atomic operation. Therefore it is requested some events earlier. */
static inline __attribute__((always_inline)) void fetch_line(const uint64_t *at)
{
#ifdef __x86_64__
	__asm__ volatile(
		"prefetchw %0" ::"m"(*at)); /* gcc prefetches for reading only, unless the processor is named */
#else
	__builtin_prefetch(at, 1);
#endif
}

/* Emits one event with `count` payload words, and stores `stored` words, a constant, so that the loop is unrolled; the
 * words beyond the count are 0. Returns false in all rare cases, which are left to the slow path, including a clock
 * that is not a counter. The caller calls the slow path last, so no register has to be saved here. */
static inline __attribute__((always_inline)) bool stream_try(struct cursor *cursor, uint32_t *was_busy, uint32_t head,
                                                             const uint64_t *payload, unsigned count, unsigned stored)
{
	/* the order matters for signal handlers: first busy, then the clock, then the position */
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

/* ---- for session and drainer ------------------------------------------------------------------------------------- */

struct streams {
	/* Indexed by slot; never unmapped, because threads keep pointers. A forked child gets new ones. */
	struct cursor *cursors;
	uint32_t capacity;    /* number of cursors */
	uint32_t high;        /* slots [0, high) have been used, atomic */
	uint32_t last_stream; /* number of the newest stream, atomic */
	uint32_t ends;        /* threads that have ended, atomic */
	uint32_t freed;       /* slots returned, atomic */
	uint32_t full_since;  /* 1 + `freed` at the time no free slot was found; 0: never; atomic */
	struct pool *pool;
	bool is_accepting;                     /* atomic */
	int32_t visitors;                      /* threads that use the pool outside an emission, atomic */
	uint64_t early[STEPSCOPE_EVENT_TYPES]; /* events emitted while another thread started the recorder, atomic */
};
extern struct streams streams;

bool streams_start(struct pool *pool, bool is_forked); /* creates cursors for the pool's slots */
void streams_wipe(void);                               /* in a forked child, if the kernel did not clear the cursors */
/* Called by the drainer at its start: the kernel takes about 10 ms, which the thread that stops should not wait for. */
void streams_prepare_stop(void);
/* Stops accepting events and waits until no thread is inside an emission. Returns false after one second; then the pool
 * must stay mapped. */
bool streams_stop(void);
/* Checks up to `count` streams, continuing at the next ones with each call. A stream whose thread has ended unnoticed
 * is marked as ended. */
void streams_find_dead(uint32_t count);
/* Counts the events that came too early to be recorded as dropped. */
void streams_declare_early(void);
/* Returns the approximate number of words that all threads have written, without waiting for any of them. When a thread
 * ends, its words are subtracted. */
uint64_t streams_words(void);
/* In a forked child: forgets the parent's pool. */
void streams_forget(void);
/* After streams_stop(): forgets all streams. Live threads keep their (empty) cursors. */
void streams_reset(void);
/* The library is being unloaded: threads that end later must not call into it. */
void streams_unload(void);
/* Frees the slot of an ended thread; called by the drainer. */
void streams_free_slot(uint32_t index);

/* Returns a cursor for the calling thread, or NULL. */
struct cursor *stream_attach(enum stepscope_stream_kind kind);
void stream_name_thread(const char *name);

#endif
