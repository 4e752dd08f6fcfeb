/* SPDX-License-Identifier: Apache-2.0
 *
 * stream.c: the slow path: the first event of a thread, the next chunk, ticks beyond 2^32, signal handlers, drops.
 * Everything here may run in a signal handler.
 */
#include "recorder/stream.h"

#include "recorder/session.h"
#include "recorder/session_owner.h"
#include "recorder/session_state.h"
#include "recorder/thread_use.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CURSORS 8192u
#define RESERVE_PART 64u         /* 1/64 of the pool's chunks is reserved for coarse events */
#define SLOT_IS_TAKEN UINT32_MAX /* in slot->stream, until the slot has its number */
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

struct cursor cursor_none;
__thread struct cursor *cursor_mine __attribute__((tls_model("initial-exec"))) = &cursor_none;
static __thread bool is_attaching __attribute__((tls_model("initial-exec")));
struct streams streams;
static pthread_key_t exit_key;
static bool has_exit_key;

/* ---- drops ------------------------------------------------------------------------------------------------------- */

/* Enters the pool for a use outside an emission; streams_stop() waits until all visitors have left. Returns false if
 * the pool is going away. */
static bool stream_visit(void)
{
	if (!session_is_own()) /* a forked child that has not started its session yet: the pool is its parent's */
		return false;
	__atomic_fetch_add(&streams.visitors, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&streams.is_accepting, __ATOMIC_SEQ_CST))
		return true;
	__atomic_fetch_sub(&streams.visitors, 1, __ATOMIC_RELEASE);
	return false;
}

static void stream_leave(void)
{
	__atomic_fetch_sub(&streams.visitors, 1, __ATOMIC_RELEASE);
}

static void drop_without_slot(uint32_t head)
{
	if (stream_visit()) {
		__atomic_fetch_add(&streams.pool->header->dropped[head & 15], 1, __ATOMIC_RELAXED);
		stream_leave();
	} else if (session_is_starting()) {
		__atomic_fetch_add(&streams.early[head & 15], 1, __ATOMIC_RELAXED);
	}
}

void stream_drop(enum stepscope_event type)
{
	drop_without_slot((uint32_t)type);
}

static void drop(struct cursor *cursor, uint32_t head, uint64_t tick)
{
	struct stepscope_slot *slot = cursor->slot;
	uint32_t type = head & 15;
	if (slot->gap_count == 0)
		slot->gap_tick = tick;
	if (type == STEPSCOPE_EVENT_BEGIN)
		slot->gap_net++;
	if (type == STEPSCOPE_EVENT_END && --slot->gap_net < slot->gap_lowest)
		slot->gap_lowest = slot->gap_net;
	if (type == STEPSCOPE_EVENT_SWITCH && slot->gap_net - 1 < slot->gap_lowest)
		slot->gap_lowest = slot->gap_net - 1;
	__atomic_store_n(&slot->gap_count, slot->gap_count + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->dropped[type], slot->dropped[type] + 1, __ATOMIC_RELEASE);
}

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

static void store_event(struct cursor *cursor, uint32_t head, uint64_t tick, const uint64_t *payload)
{
	uint32_t count = head >> 4 & 15;
	uint64_t *at = cursor->next;
	for (uint32_t i = 0; i < count; i++)
		at[1 + i] = payload[i];
	__atomic_store_n(at, (uint64_t)head << 32 | (uint32_t)tick, __ATOMIC_RELEASE);
	cursor->next = at + 1 + count;
}

/* Writes a GAP for the events dropped before: their number, depth and first tick. */
static void store_gap(struct cursor *cursor, uint64_t tick)
{
	struct stepscope_slot *slot = cursor->slot;
	const uint64_t payload[3] = {
		slot->gap_count,
		(uint64_t)(uint32_t)slot->gap_net << 32 | (uint32_t)slot->gap_lowest,
		slot->gap_tick,
	};
	store_event(cursor, EMIT_HEAD(STEPSCOPE_EVENT_GAP, 3, 0), tick, payload);
	slot->gap_net = slot->gap_lowest = 0;
	__atomic_store_n(&slot->gap_count, 0, __ATOMIC_RELAXED);
}

/* Returns a chunk for any event or, if the pool is nearly full, one of the reserve for a coarse event. */
static struct stepscope_chunk *pop_chunk(struct cursor *cursor, bool is_coarse)
{
	uint32_t reserve = streams.pool->header->chunk_count / RESERVE_PART;
	struct stepscope_chunk *chunk = pool_pop_above(streams.pool, reserve);
	if (!chunk && drain_here(&session.drain)) /* no drainer thread: make room here */
		chunk = pool_pop_above(streams.pool, reserve);
	cursor->is_reserve = !chunk && is_coarse;
	return cursor->is_reserve ? pool_pop(streams.pool) : chunk;
}

static bool take_chunk(struct cursor *cursor, uint64_t tick, bool is_coarse)
{
	struct stepscope_chunk *chunk = pop_chunk(cursor, is_coarse);
	if (!chunk)
		return false;
	struct stepscope_chunk *old = cursor->chunk;
	if (old)
		cursor->position += (uint64_t)(cursor->next - old->words);
	chunk->stream = cursor->stream;
	chunk->tid = cursor->slot->tid;
	chunk->first_word = cursor->position;
	cursor->high = (uint32_t)(tick >> 32);
	chunk->base_tick = (uint64_t)cursor->high << 32;
	__atomic_store_n(&chunk->magic, STEPSCOPE_CHUNK_MAGIC, __ATOMIC_RELEASE);
	cursor->chunk = chunk;
	cursor->next = chunk->words;
	uint32_t number = pool_chunk_index(streams.pool, chunk) + 1;
	if (cursor->slot->gap_count)
		store_gap(cursor, tick);
	/* from here on the drainer may free the old chunk */
	if (old)
		__atomic_store_n(&old->next, number, __ATOMIC_RELEASE);
	else
		__atomic_store_n(&cursor->first_chunk, number, __ATOMIC_RELEASE);
	return true;
}

/* Returns true if the event fits into the thread's chunk, after a pending GAP. Detail does not go into a reserve
 * chunk. */
static bool stream_has_room(const struct cursor *cursor, uint32_t words, bool is_far, bool is_coarse)
{
	if (!cursor->chunk || !cursor->next || (cursor->is_reserve && !is_coarse))
		return false;
	uint32_t needed = words + (is_far ? 2 : 0) + (cursor->slot->gap_count ? 4 : 0);
	return cursor->next + needed <= cursor->chunk->words + STEPSCOPE_CHUNK_WORDS;
}

/* Lets the next event take the fast path, unless the chunk is a reserve chunk, which the fast path does not recognize.
 * streams_stop() clears the ends after it has stopped accepting: either it clears this one too, or this function sees
 * that it has begun. */
static void open_fast_path(struct cursor *cursor)
{
	uint64_t *end = cursor->is_reserve ? NULL : cursor->chunk->words + STEPSCOPE_CHUNK_WORDS;
	if (__atomic_load_n(&cursor->end, __ATOMIC_RELAXED) == end)
		return;
	__atomic_store_n(&cursor->end, end, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&streams.is_accepting, __ATOMIC_SEQ_CST))
		__atomic_store_n(&cursor->end, NULL, __ATOMIC_SEQ_CST);
}

static void put_into(struct cursor *cursor, uint32_t head, uint64_t tick, const uint64_t *payload)
{
	uint64_t base = (uint64_t)cursor->high << 32;
	bool is_far = cursor->chunk && tick >> 32 > cursor->high;
	bool is_coarse = event_is_coarse(head);
	if (cursor->chunk && tick < base)
		tick = base; /* another processor's counter may lag by a few ns */
	if (stream_has_room(cursor, 1 + (head >> 4 & 15), is_far, is_coarse)) {
		if (is_far) {
			base = tick & ~(uint64_t)UINT32_MAX;
			store_event(cursor, EMIT_HEAD(STEPSCOPE_EVENT_TIME, 1, 0), base, &base);
			cursor->high = (uint32_t)(base >> 32);
		}
		if (cursor->slot->gap_count)
			store_gap(cursor, tick);
	} else if (!take_chunk(cursor, tick, is_coarse)) {
		/* keep taking the slow path until there is a chunk */
		__atomic_store_n(&cursor->end, NULL, __ATOMIC_RELAXED);
		drop(cursor, head, tick);
		return;
	}
	store_event(cursor, head, tick, payload);
	open_fast_path(cursor);
}

/* ---- threads come and go ----------------------------------------------------------------------------------------- */

static void on_thread_exit(void *value)
{
	struct cursor *cursor = value;
	if (cursor_mine != cursor)
		return;
	cursor_mine = &cursor_none; /* a later destructor that records gets a new stream */
	if (!stream_visit()) {      /* between two sessions, or at the end of one */
		__atomic_store_n(&cursor->is_owned, 0, __ATOMIC_RELEASE);
		return;
	}
	if (cursor->stream == 0) {
		__atomic_store_n(&cursor->is_owned, 0, __ATOMIC_RELEASE);
	} else {
		if (cursor->signal)
			__atomic_store_n(&cursor->signal->is_exited, 1, __ATOMIC_RELEASE);
		__atomic_store_n(&cursor->is_exited, 1, __ATOMIC_RELEASE);
		/* many short threads must not use up the slots between two passes */
		if (__atomic_add_fetch(&streams.ends, 1, __ATOMIC_RELAXED) % (streams.capacity / 8) == 0)
			drain_wake(&session.drain);
	}
	stream_leave();
}

/* Claims slot `i`. fill_slot() gives it its stream number, so failed claims use up no number. */
static bool claim_index(uint32_t i)
{
	uint32_t expected = 0;
	uint32_t high = __atomic_load_n(&streams.high, __ATOMIC_ACQUIRE);
	uint32_t *slot_stream = &streams.pool->slots[i].stream;
	if (__atomic_load_n(slot_stream, __ATOMIC_RELAXED) != 0 ||
	    !__atomic_compare_exchange_n(slot_stream, &expected, SLOT_IS_TAKEN, false, __ATOMIC_ACQ_REL,
	                                 __ATOMIC_RELAXED))
		return false;
	while (high < i + 1 &&
	       !__atomic_compare_exchange_n(&streams.high, &high, i + 1, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
	return true;
}

/* Returns the length of text[0..length) without a truncated last character. */
static size_t whole_characters(const char *text, size_t length)
{
	size_t at = length;
	while (at > 0 && length - at < 3 && ((unsigned char)text[at - 1] & 0xc0) == 0x80)
		at--;
	unsigned char first = at ? (unsigned char)text[at - 1] : 0;
	size_t wanted = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
	return at && length - at + 1 < wanted ? at - 1 : length;
}

/* Writes word by word, because the drainer may read the name meanwhile. It reads the name again if name_version has
 * changed. */
static void write_name(struct stepscope_slot *slot, const char *name)
{
	char text[sizeof(slot->name)] = "";
	uint64_t words[sizeof(slot->name) / 8];
	memcpy(text, name, whole_characters(name, strnlen(name, sizeof(text) - 1)));
	memcpy(words, text, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / 8; i++)
		__atomic_store_n((uint64_t *)(void *)slot->name + i, words[i], __ATOMIC_RELAXED);
}

static struct cursor *fill_slot(uint32_t i, enum stepscope_stream_kind kind)
{
	struct stepscope_slot *slot = &streams.pool->slots[i];
	struct cursor *cursor = &streams.cursors[i];
	uint32_t stream = __atomic_add_fetch(&streams.last_stream, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->stream, stream, __ATOMIC_RELEASE);
	slot->kind = (uint32_t)kind;
	slot->tid = (uint32_t)syscall(SYS_gettid);
	char name[32] = "";
	prctl(PR_GET_NAME, name);
	write_name(slot, name);
	cursor->slot = slot;
	__atomic_store_n(&cursor->is_owned, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&cursor->stream, stream, __ATOMIC_RELEASE);
	return cursor;
}

/* Returns the cursor of a slot for the thread, or NULL. `mine` is the thread's cursor from an earlier session, or NULL
 * for any free one. */
static struct cursor *claim_slot(enum stepscope_stream_kind kind, const struct cursor *mine)
{
	if (mine) {
		uint32_t i = (uint32_t)(mine - streams.cursors);
		return i < streams.capacity && claim_index(i) ? fill_slot(i, kind) : NULL;
	}
	/* a thread without a slot calls this for every event: it searches again only after a slot was freed */
	uint32_t freed = __atomic_load_n(&streams.freed, __ATOMIC_ACQUIRE);
	if (__atomic_load_n(&streams.full_since, __ATOMIC_RELAXED) == freed + 1)
		return NULL;
	for (uint32_t i = 0; i < streams.capacity; i++)
		if (!__atomic_load_n(&streams.cursors[i].is_owned, __ATOMIC_RELAXED) && claim_index(i)) {
			/* between the two checks its owner may have returned from an earlier session: check again */
			if (!__atomic_load_n(&streams.cursors[i].is_owned, __ATOMIC_ACQUIRE)) {
				thread_use_close(&streams.cursors[i]); /* of a thread that ended between two sessions */
				return fill_slot(i, kind);
			}
			__atomic_store_n(&streams.pool->slots[i].stream, 0, __ATOMIC_RELEASE);
		}
	__atomic_store_n(&streams.full_since, freed + 1, __ATOMIC_RELAXED);
	return NULL;
}

struct cursor *stream_attach(enum stepscope_stream_kind kind)
{
	if (is_attaching)
		return NULL;
	is_attaching = true;
	struct cursor *cursor = NULL;
	if (session_enter() && stream_visit()) {
		struct cursor *mine = cursor_mine;
		/* a cursor of the parent process does not belong to this process */
		bool is_ours = mine >= streams.cursors && mine < streams.cursors + CURSORS && mine->is_owned;
		cursor = claim_slot(kind, is_ours ? mine : NULL);
		if (cursor) {
			if (has_exit_key)
				pthread_setspecific(exit_key, cursor);
			cursor_mine = cursor;
		}
		stream_leave();
	}
	is_attaching = false;
	return cursor;
}

/* Emits an event of a signal handler that interrupted its own thread inside an emission. */
static void put_signal(struct cursor *interrupted, uint32_t head, const uint64_t *payload)
{
	struct cursor *cursor = interrupted->signal;
	if (!cursor) {
		cursor = claim_slot(STEPSCOPE_STREAM_SIGNAL, NULL);
		interrupted->signal = cursor;
	}
	if (!cursor || cursor->busy) { /* this handler interrupted a handler that interrupted an emission */
		drop_without_slot(head);
		return;
	}
	cursor->busy = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	put_into(cursor, head, clock_ticks(), payload);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	cursor->busy = 0;
}

void stream_put_slow(struct cursor *cursor, uint32_t was_busy, uint32_t head, const uint64_t *payload)
{
	if (cursor == &cursor_none || cursor->stream == 0) { /* first event of the thread, or of a forked child */
		__atomic_store_n(&cursor->busy, 0, __ATOMIC_RELAXED);
		cursor = stream_attach(STEPSCOPE_STREAM_THREAD);
		if (!cursor) {
			drop_without_slot(head);
			return;
		}
		session_tell_start();
		__atomic_store_n(&cursor->busy, 1, __ATOMIC_SEQ_CST);
		was_busy = 0;
	}
	if (was_busy) {
		if (__atomic_load_n(&streams.is_accepting, __ATOMIC_ACQUIRE))
			put_signal(cursor, head, payload);
		return; /* still busy: the interrupted emission continues */
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	/* a stop and a start by another thread may have taken the stream away before `busy` was set */
	if (__atomic_load_n(&streams.is_accepting, __ATOMIC_SEQ_CST) &&
	    __atomic_load_n(&cursor->stream, __ATOMIC_SEQ_CST) != 0)
		put_into(cursor, head, clock_ticks(), payload);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&cursor->busy, 0, __ATOMIC_RELEASE);
}

void stream_name_thread(const char *name)
{
	struct cursor *cursor = cursor_mine;
	if (cursor == &cursor_none || cursor->stream == 0)
		cursor = stream_attach(STEPSCOPE_STREAM_THREAD);
	if (cursor)
		session_tell_start(); /* this may be the program's first call */
	if (!cursor || !stream_visit())
		return;
	if (cursor->stream) {
		write_name(cursor->slot, name);
		__atomic_fetch_add(&cursor->name_version, 1, __ATOMIC_RELEASE);
	}
	stream_leave();
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

bool streams_start(struct pool *pool, bool is_forked)
{
	if (!streams.cursors || is_forked) {
		size_t bytes = CURSORS * sizeof(struct cursor);
		void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		                    -1, 0);
		if (memory == MAP_FAILED)
			return false;
		madvise(memory, bytes, MADV_WIPEONFORK);
		streams.cursors = memory;
	}
	if (!has_exit_key)
		has_exit_key = pthread_key_create(&exit_key, on_thread_exit) == 0;
	streams.pool = pool;
	streams.capacity = pool->header->slot_count;
	__atomic_store_n(&streams.high, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&streams.full_since, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&streams.is_accepting, true, __ATOMIC_RELEASE);
	return true;
}

void streams_wipe(void)
{
	if (streams.cursors)
		madvise(streams.cursors, CURSORS * sizeof(struct cursor), MADV_DONTNEED);
}

static bool is_alive(uint32_t tid)
{
	return syscall(SYS_tgkill, getpid(), tid, 0) == 0 || errno != ESRCH;
}

void streams_find_dead(uint32_t count)
{
	static uint32_t at; /* used by the drainer only */
	uint32_t high = __atomic_load_n(&streams.high, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < count && i < high; i++) {
		at = at + 1 < high ? at + 1 : 0;
		struct cursor *cursor = &streams.cursors[at];
		/* a destructor of thread-local data may record after on_thread_exit() has run for the last time */
		if (__atomic_load_n(&cursor->stream, __ATOMIC_ACQUIRE) && cursor->slot->kind != STEPSCOPE_STREAM_SELF &&
		    !is_alive(cursor->slot->tid)) {
			(void)__atomic_load_n(&cursor->busy, __ATOMIC_ACQUIRE); /* acquire everything it wrote */
			__atomic_store_n(&cursor->is_exited, 1, __ATOMIC_RELEASE);
		}
	}
}

/* A cursor's thread may take another chunk meanwhile; then some words are missing from this result. */
__attribute__((no_sanitize("thread"))) uint64_t streams_words(void)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < __atomic_load_n(&streams.high, __ATOMIC_ACQUIRE); i++) {
		const struct cursor *cursor = &streams.cursors[i];
		uintptr_t chunk = (uintptr_t)__atomic_load_n(&cursor->chunk, __ATOMIC_RELAXED);
		uintptr_t next = (uintptr_t)__atomic_load_n(&cursor->next, __ATOMIC_RELAXED);
		sum += __atomic_load_n(&cursor->position, __ATOMIC_RELAXED);
		if (chunk && next > chunk && next <= chunk + STEPSCOPE_CHUNK_BYTES)
			sum += (next - chunk - offsetof(struct stepscope_chunk, words)) / 8;
	}
	return sum;
}

void streams_declare_early(void)
{
	for (int i = 0; i < STEPSCOPE_EVENT_TYPES; i++)
		__atomic_fetch_add(&streams.pool->header->dropped[i],
		                   __atomic_exchange_n(&streams.early[i], 0, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

void streams_forget(void)
{
	__atomic_store_n(&streams.is_accepting, false, __ATOMIC_SEQ_CST);
	__atomic_store_n(&streams.visitors, 0, __ATOMIC_SEQ_CST);
	memset(streams.early, 0, sizeof(streams.early));
}

void streams_prepare_stop(void)
{
	syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
}

static bool fence_all_threads(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
		return true;
	streams_prepare_stop();
	return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static bool wait_until_idle(struct cursor *cursor, int64_t deadline_ns)
{
	while (__atomic_load_n(&cursor->busy, __ATOMIC_ACQUIRE) && cursor != cursor_mine) {
		if (clock_raw_ns() > deadline_ns)
			return false;
		sched_yield();
	}
	return true;
}

static bool wait_for_visitors(int64_t deadline_ns)
{
	while (__atomic_load_n(&streams.visitors, __ATOMIC_ACQUIRE) > 0) {
		if (clock_raw_ns() > deadline_ns)
			return false;
		sched_yield();
	}
	return true;
}

bool streams_stop(void)
{
	int64_t deadline_ns = clock_raw_ns() + 1000000000;
	__atomic_store_n(&streams.is_accepting, false, __ATOMIC_SEQ_CST);
	bool is_quiet = wait_for_visitors(deadline_ns);
	uint32_t high = __atomic_load_n(&streams.high, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < high; i++)
		__atomic_store_n(&streams.cursors[i].end, NULL, __ATOMIC_SEQ_CST);
	/* after this fence every thread either is seen busy or sees the cleared end */
	if (!fence_all_threads())
		is_quiet = false;
	for (uint32_t i = 0; i < high; i++) {
		is_quiet &= wait_until_idle(&streams.cursors[i], deadline_ns);
		__atomic_store_n(&streams.cursors[i].end, NULL, __ATOMIC_SEQ_CST);
	}
	return is_quiet;
}

void streams_reset(void)
{
	for (uint32_t i = 0; i < streams.high; i++) {
		struct cursor *cursor = &streams.cursors[i];
		/* its thread did not record in this session, and still points here */
		if (cursor->stream == 0)
			continue;
		bool is_kept = __atomic_load_n(&cursor->is_owned, __ATOMIC_ACQUIRE) && !cursor->is_exited &&
		               cursor->slot->kind != STEPSCOPE_STREAM_SIGNAL && is_alive(cursor->slot->tid);
		/* is_owned of a kept cursor stays unchanged, because its thread may be ending just now */
		memset(cursor, 0, offsetof(struct cursor, is_owned));
		if (!is_kept) {
			thread_use_close(cursor);
			__atomic_store_n(&cursor->is_owned, 0, __ATOMIC_RELEASE);
		}
	}
}

void streams_unload(void)
{
	if (has_exit_key)
		pthread_key_delete(exit_key);
	has_exit_key = false;
}

uint32_t stream_call(uint32_t symbol)
{
	struct cursor *cursor = cursor_mine;
	if (cursor == &cursor_none || cursor->stream == 0) /* shared by all threads; or the parent's */
		return 0;
	uint32_t before = 0, was_busy = __atomic_load_n(&cursor->busy, __ATOMIC_RELAXED);
	/* as in an emission: while it is busy, the pool stays mapped */
	__atomic_store_n(&cursor->busy, 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (!was_busy && __atomic_load_n(&cursor->end, __ATOMIC_ACQUIRE)) {
		before = cursor->slot->call;
		__atomic_store_n(&cursor->slot->call, symbol, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&cursor->busy, was_busy, __ATOMIC_RELEASE);
	return before;
}

void streams_free_slot(uint32_t index)
{
	struct stepscope_slot *slot = &streams.pool->slots[index];
	thread_use_close(&streams.cursors[index]);
	memset(&streams.cursors[index], 0, sizeof(struct cursor));
	memset((uint8_t *)slot + sizeof(slot->stream), 0, sizeof(*slot) - sizeof(slot->stream));
	__atomic_store_n(&slot->stream, 0, __ATOMIC_RELEASE);
	__atomic_fetch_add(&streams.freed, 1, __ATOMIC_RELEASE);
}
