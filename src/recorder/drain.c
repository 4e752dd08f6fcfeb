/* SPDX-License-Identifier: Apache-2.0
 *
 * drain.c: the drainer's thread: its start, its sleep between two passes, and its stop.
 */
#include "recorder/drain.h"

#include "format/block.h"
#include "recorder/background.h"
#include "recorder/clock.h"
#include "recorder/drain_head.h"
#include "recorder/drain_pass.h"
#include "recorder/drain_streams.h"
#include "recorder/own_fd.h"
#include "recorder/pool.h"
#include "recorder/self.h"
#include "recorder/stream.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SHORTEST_WAIT_NS 10000000
#define LONGEST_WAIT_NS 50000000
#define IDLE_WAIT_NS 100000000 /* twice that after this many in a row: */
#define IDLE_PASSES 10
#define WAIT_PART 64 /* 1/64 of the pool may fill up between two passes */
#define SECOND 1000000000ll
#define STACK_BYTES (256u << 10)
#define STOP_SECONDS 10 /* the program must end even if the disk does not answer */

static void every_second(struct drain *drain, int64_t now_ns)
{
	const struct drain_limits *limits = &drain->limits;
	drain->next_sample_ns = now_ns + SECOND;
	segment_file_check(&drain->file);
	streams_find_dead(256);
	if (limits->is_self_sampled)
		self_sample(drain->events, CLOCK_THREAD_CPUTIME_ID);
	if (limits->fdatasync_ns && now_ns >= drain->next_sync_ns && own_fd_is_ours(&drain->file.file)) {
		fdatasync(drain->file.file.fd);
		drain->next_sync_ns = now_ns + limits->fdatasync_ns;
	}
}

/* Returns the time until a part of the pool is full, at the rate of the last `since_ns`. So blocks are large, and there
 * is room for a burst at many times that rate. */
static int64_t next_wait_ns(struct drain *drain, int64_t since_ns)
{
	uint32_t count = drain->pool->header->chunk_count, freed = drain->freed_count;
	drain->freed_count = 0;
	if (!pool_is_populated(drain->pool))
		return 0;
	if (freed == 0)
		return ++drain->idle_passes > IDLE_PASSES ? 2 * IDLE_WAIT_NS : IDLE_WAIT_NS;
	drain->idle_passes = 0;
	int64_t wait_ns = since_ns / freed * (count / WAIT_PART);
	return wait_ns < SHORTEST_WAIT_NS ? SHORTEST_WAIT_NS : wait_ns > LONGEST_WAIT_NS ? LONGEST_WAIT_NS : wait_ns;
}

static void sleep_until_woken(struct drain *drain, uint32_t seen, int64_t ns)
{
	struct timespec wait = {.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
	if (ns == 0)
		return;
	syscall(SYS_futex, &drain->wake, FUTEX_WAIT_PRIVATE, seen, &wait, NULL, 0);
}

/* Returns the number of the request, which passes_done reaches once it is served. */
static uint32_t wake(struct drain *drain)
{
	uint32_t number = __atomic_add_fetch(&drain->wake, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &drain->wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	return number;
}

static void tell_number(uint32_t *at, uint32_t number)
{
	__atomic_store_n(at, number, __ATOMIC_RELEASE);
	syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Waits until tell_number() has published the number. Bounded, because a stuck disk must not hold up the program
 * forever. */
static void await_number(const uint32_t *at, uint32_t number)
{
	for (;;) {
		uint32_t now = __atomic_load_n(at, __ATOMIC_ACQUIRE);
		const struct timespec wait = {.tv_sec = 1};
		if ((int32_t)(now - number) >= 0)
			return;
		if (syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, now, &wait, NULL, 0) != 0 && errno == ETIMEDOUT)
			return;
	}
}

static void *drain_main(void *argument)
{
	struct drain *drain = argument;
	uint32_t served = 0;
	int64_t last_ns = clock_raw_ns();
	prctl(PR_SET_NAME, "stepscope");
	tell_number(&drain->has_begun, 1);
	streams_prepare_stop();
	pool_grow_symbols(drain->pool);
	for (;;) {
		uint32_t seen = __atomic_load_n(&drain->wake, __ATOMIC_ACQUIRE);
		bool is_forced = seen != served;
		bool is_stopping = __atomic_load_n(&drain->is_stopping, __ATOMIC_ACQUIRE);
		int64_t now_ns = clock_raw_ns();
		if (now_ns >= drain->next_sample_ns && !is_stopping)
			every_second(drain, now_ns);
		if (now_ns >= drain->next_anchor_ns)
			drain_put_anchor(drain, now_ns);
		drain_rotate_if_due(drain, now_ns);
		pool_populate(drain->pool, 128);
		if (is_stopping)
			streams_find_dead(UINT32_MAX);
		drain_run_passes(drain, is_forced || is_stopping);
		background_work();
		if (is_forced) {
			served = seen;
			tell_number(&drain->passes_done, seen);
		}
		if (is_stopping) {
			drain_put_end(drain);
			return NULL;
		}
		sleep_until_woken(drain, seen, next_wait_ns(drain, now_ns - last_ns));
		last_ns = now_ns;
	}
}

/* ---- start and stop ---- */

static void *map_zeroed(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

/* The memory is kept for the life of the process, and a later session uses it again. */
static bool get_memory(struct drain *drain)
{
	if (drain->streams) {
		memset(drain->streams, 0, DRAIN_MAX_SLOTS * sizeof(*drain->streams));
		return true;
	}
	drain->encoder = map_zeroed(encoder_bytes());
	drain->coarse_encoder = map_zeroed(encoder_bytes());
	drain->head.data = map_zeroed(DRAIN_HEAD_BYTES);
	drain->coarse_head.data = map_zeroed(DRAIN_HEAD_BYTES);
	drain->body = map_zeroed(DRAIN_BODY_BYTES);
	drain->coarse_body = map_zeroed(DRAIN_COARSE_BYTES);
	drain->done = map_zeroed(DRAIN_DONE_MAX * sizeof(*drain->done));
	drain->ended = map_zeroed(DRAIN_MAX_SLOTS * sizeof(*drain->ended));
	struct drained_stream *all = map_zeroed(DRAIN_MAX_SLOTS * sizeof(*all));
	if (!drain->encoder || !drain->coarse_encoder || !drain->head.data || !drain->coarse_head.data ||
	    !drain->body || !drain->coarse_body || !drain->done || !drain->ended)
		return false;
	drain->streams = all;
	return all != NULL;
}

/* Continues in the file of an earlier session of this process, if there is one. */
static bool reopen_files(struct drain *drain, const struct drain_start *how)
{
	bool is_ours = drain->file.path[0] && drain->file.identity.pid == how->identity->pid &&
	               drain->file.identity.clock == how->identity->clock && /* ticks continue in the same unit */
	               strcmp(drain->file.directory, how->directory) == 0 && !drain->file.is_lost;
	if (!is_ours || segment_file_reopen(&drain->file) != 0)
		return false;
	if (drain->coarse.path[0] && segment_file_reopen(&drain->coarse) != 0) {
		drain->coarse.path[0] = 0;
		drain->head.symbols_from = 0; /* the names in that file are gone */
	}
	return true;
}

static int open_files(struct drain *drain, const struct drain_start *how)
{
	segment_file_init(&drain->file, how->directory, how->identity);
	segment_file_init(&drain->coarse, how->directory, how->identity);
	drain->coarse.identity.flags |= STEPSCOPE_SEGMENT_COARSE;
	bool has_coarse = how->limits.keep_bytes || how->limits.keep_ns;
	int reason = has_coarse ? segment_file_open(&drain->coarse) : 0;
	if (reason == 0)
		reason = segment_file_open(&drain->file);
	if (reason && drain->coarse.file.fd >= 0) {
		segment_file_close(&drain->coarse);
		unlink(drain->coarse.path);
	}
	return reason;
}

static int start_thread(struct drain *drain)
{
	sigset_t all, old;
	pthread_attr_t attributes;
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	/* the drainer must not inherit the priority of a real-time thread */
	int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
	if (policy == SCHED_FIFO || policy == SCHED_RR)
		pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* the program's signal handlers never run in the drainer's thread */
	int reason = pthread_create(&drain->thread, &attributes, drain_main, drain);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attributes);
	return reason;
}

enum drain_mode drain_mode(const struct drain *drain)
{
	return __atomic_load_n(&drain->mode, __ATOMIC_ACQUIRE);
}

static void set_mode(struct drain *drain, enum drain_mode mode)
{
	__atomic_store_n(&drain->mode, mode, __ATOMIC_RELEASE);
}

/* Returns true if no other thread drains, now or later. */
static bool take_work(struct drain *drain)
{
	return drain_mode(drain) == DRAIN_HERE && __atomic_exchange_n(&drain->is_at_work, 1, __ATOMIC_ACQ_REL) == 0;
}

static void leave_work(struct drain *drain)
{
	__atomic_store_n(&drain->is_at_work, 0, __ATOMIC_RELEASE);
}

enum start_problem drain_start(struct drain *drain, const struct drain_start *how, int *reason)
{
	if (!get_memory(drain))
		return START_NO_MEMORY;
	drain->pool = how->pool;
	drain->limits = how->limits;
	drain->head.bytes = drain->coarse_head.bytes = drain->body_bytes = drain->coarse_bytes = 0;
	drain->done_count = drain->ended_count = 0;
	drain->is_stopping = drain->has_begun = 0;
	drain->next_rotation_ns = 0;
	drain->dropped_without_slot = 0;
	bool was_failing = drain->file.is_failing; /* names and streams in failed writes were lost */
	bool is_new = !reopen_files(drain, how);
	drain->is_continued = !is_new;
	*reason = is_new ? open_files(drain, how) : 0;
	if (*reason)
		return START_NO_FILE;
	struct stepscope_pool_header *header = how->pool->header;
	snprintf(header->segment_path, sizeof(header->segment_path), "%s", drain->file.path);
	header->identity = drain->file.identity;
	header->shift = recorder_clock.shift;
	clock_anchor(&header->first_anchor);
	header->last_anchor = header->first_anchor;
	drain->anchor_gap_ns = 1000000;
	drain->next_anchor_ns = clock_raw_ns() + 10000000;
	drain->next_sample_ns = clock_raw_ns() + 5000000;
	if (is_new || was_failing)
		drain->coarse_head.symbols_from = 0;
	drain_begin_segment(drain, is_new || was_failing);
	drain_write_first_names(drain, is_new);
	pool_populate(how->pool, 4);
	if (!how->is_inline && start_thread(drain) == 0) {
		set_mode(drain, DRAIN_BY_THREAD);
		/* a starting thread allocates: a fork at that moment leaves the locks of some allocators (ASan's) held
		 * forever */
		await_number(&drain->has_begun, 1);
	} else {
		leave_work(drain);
		set_mode(drain, DRAIN_HERE);
		pool_grow_symbols(how->pool);
		background_work();
	}
	return START_OK;
}

/* Called between take_work() and leave_work(). */
static void drain_once(struct drain *drain)
{
	int64_t now_ns = clock_raw_ns();
	if (now_ns >= drain->next_anchor_ns)
		drain_put_anchor(drain, now_ns);
	drain_rotate_if_due(drain, now_ns);
	drain_run_passes(drain, true);
}

bool drain_here(struct drain *drain)
{
	if (!take_work(drain))
		return false;
	drain_once(drain);
	leave_work(drain);
	return true;
}

void drain_wake(struct drain *drain)
{
	(void)wake(drain);
}

void drain_flush(struct drain *drain)
{
	if (drain_mode(drain) == DRAIN_HERE)
		(void)drain_here(drain);
	else if (drain_mode(drain) == DRAIN_BY_THREAD)
		await_number(&drain->passes_done, wake(drain));
}

bool drain_stop(struct drain *drain, const char *reason)
{
	struct timespec deadline;
	const enum drain_mode mode = drain_mode(drain);
	if (mode == DRAIN_OFF)
		return true;
	snprintf(drain->end_reason, sizeof(drain->end_reason), "%s", reason);
	__atomic_store_n(&drain->is_stopping, 1, __ATOMIC_RELEASE);
	(void)wake(drain);
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += STOP_SECONDS;
	if (mode == DRAIN_HERE) {
		if (!take_work(drain)) /* never released: a concurrent flush finds nothing to do */
			return false;
		drain_once(drain);
		drain_put_end(drain);
	} else if (pthread_timedjoin_np(drain->thread, NULL, &deadline) != 0) {
		recorder_say("cannot finish '%s' within %d s; its rest stays in memory for the rescue",
		             drain->file.path, STOP_SECONDS);
		return false;
	}
	set_mode(drain, DRAIN_OFF);
	segment_file_close(&drain->file);
	segment_file_close(&drain->coarse);
	bool has_names = !drain_has_coarse(drain) || drain->coarse_head.bytes == 0;
	drain->pool->header->is_closed = !drain->file.is_failing && !drain->file.is_lost && drain->body_bytes == 0 &&
	                                 has_names;
	return true;
}

void drain_forget(struct drain *drain)
{
	segment_file_close(&drain->file); /* these are the parent's files; its own descriptors stay open */
	segment_file_close(&drain->coarse);
	drain->file.path[0] = drain->coarse.path[0] = 0;
	drain->mode = DRAIN_OFF;
	drain->wake = drain->passes_done = 0;
	drain->events = 0;
}
