/* SPDX-License-Identifier: Apache-2.0
 *
 * thread_use.c: see the header. The kernel updates the first number of schedstat only at its ticks, so the CPU time
 * comes from the thread's clock. The second number, the wait, is exact while the thread runs.
 */
#include "recorder/thread_use.h"

#include "base/time_now.h"
#include "recorder/own_fd.h"
#include "recorder/session.h"
#include "recorder/session_state.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 8
#define MOST_COST 16u /* a reading that takes longer was interrupted: it counts as this many times the usual cost */
#define NO_FILE UINT32_MAX

static struct {
	uint64_t cost_ticks, process_ticks; /* of a reading, and of the process's CPU time; 0: not available */
	struct {
		uint32_t is_taken; /* atomic */
		struct own_fd file;
	} files[THREAD_USE_FILES];
} thread_use;

static bool use_clock(clockid_t clock, uint64_t *ns)
{
	struct timespec now;
	bool is_known = clock_gettime(clock, &now) == 0;
	*ns = is_known ? (uint64_t)timespec_ns(&now) : 0;
	return is_known;
}

/* ---- schedstat: CPU time, wait for a processor, number of times that the thread got a processor ------------------ */

static const char *use_number(const char *at, uint64_t *number)
{
	*number = 0;
	if (!at || *at < '0' || *at > '9')
		return NULL;
	for (; *at >= '0' && *at <= '9'; at++)
		*number = 10 * *number + (uint64_t)(*at - '0');
	return *at == ' ' || *at == '\n' ? at + 1 : NULL;
}

/* A kernel that does not count writes three times 0. */
static bool use_read_file(int fd, uint64_t *wait_ns)
{
	char text[80];
	uint64_t cpu_ns, times;
	ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
	text[length > 0 && length < (ssize_t)sizeof(text) ? length : 0] = 0;
	const char *rest = use_number(use_number(use_number(text, &cpu_ns), wait_ns), &times);
	return rest && !*rest && times;
}

static int use_open_file(void)
{
	return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

static void use_free_file(uint32_t index)
{
	own_fd_close(&thread_use.files[index].file);
	__atomic_store_n(&thread_use.files[index].is_taken, 0, __ATOMIC_RELEASE);
}

/* Returns 1 + the index of the thread's file, or NO_FILE. */
static uint32_t use_take_file(void)
{
	uint32_t index = 0;
	uint64_t wait_ns;
	while (index < THREAD_USE_FILES && __atomic_exchange_n(&thread_use.files[index].is_taken, 1, __ATOMIC_ACQUIRE))
		index++;
	if (index == THREAD_USE_FILES)
		return NO_FILE;
	own_fd_take(&thread_use.files[index].file, use_open_file());
	if (use_read_file(thread_use.files[index].file.fd, &wait_ns))
		return index + 1;
	use_free_file(index);
	return NO_FILE;
}

/* Returns STEPSCOPE_USE_UNKNOWN if the wait is unknown. If the program has closed the file, the next reading opens it
 * again. */
static uint64_t use_wait_ns(struct cursor *cursor)
{
	uint64_t wait_ns;
	if (!cursor->use_file)
		cursor->use_file = use_take_file();
	if (cursor->use_file == NO_FILE)
		return STEPSCOPE_USE_UNKNOWN;
	uint32_t index = cursor->use_file - 1;
	if (use_read_file(thread_use.files[index].file.fd, &wait_ns))
		return wait_ns;
	cursor->use_file = own_fd_is_ours(&thread_use.files[index].file) ? NO_FILE : 0;
	use_free_file(index);
	return STEPSCOPE_USE_UNKNOWN;
}

void thread_use_close(struct cursor *cursor)
{
	if (cursor->use_file && cursor->use_file != NO_FILE)
		use_free_file(cursor->use_file - 1);
	cursor->use_file = 0;
}

void thread_use_forget(void)
{
	for (uint32_t i = 0; i < THREAD_USE_FILES; i++)
		if (__atomic_load_n(&thread_use.files[i].is_taken, __ATOMIC_ACQUIRE))
			use_free_file(i);
}

/* ---- readings ---------------------------------------------------------------------------------------------------- */

static uint64_t use_ticks(int fd, clockid_t clock)
{
	uint64_t best = UINT64_MAX, ns;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start = clock_ticks();
		if (!use_clock(clock, &ns))
			return 0;
		if (fd >= 0)
			(void)use_read_file(fd, &ns);
		uint64_t ticks = clock_ticks() - start;
		best = ticks < best ? ticks : best;
	}
	return best ? best : 1;
}

void thread_use_start(void)
{
	int before = errno, fd = use_open_file();
	thread_use.cost_ticks = use_ticks(fd, CLOCK_THREAD_CPUTIME_ID);
	thread_use.process_ticks = use_ticks(-1, CLOCK_PROCESS_CPUTIME_ID);
	if (fd >= 0)
		close(fd);
	errno = before;
}

bool thread_use_cost_ns(double *ns, double *process_ns)
{
	*ns = (double)thread_use.cost_ticks * 1e9 / (double)recorder_clock.tick_hz;
	*process_ns = (double)thread_use.process_ticks * 1e9 / (double)recorder_clock.tick_hz;
	return thread_use.cost_ticks > 0;
}

/* Returns NULL if the thread is inside an event, or cannot record. */
static struct cursor *use_cursor(void)
{
	struct cursor *cursor = cursor_mine;
	if (cursor == &cursor_none || !cursor->stream) {
		cursor = stream_attach(STEPSCOPE_STREAM_THREAD);
		if (cursor)
			session_tell_start();
	}
	return cursor && !__atomic_load_n(&cursor->busy, __ATOMIC_RELAXED) ? cursor : NULL;
}

static void use_read(struct cursor *cursor, bool with_process)
{
	uint64_t words[3] = {0}, start = clock_ticks(), most = MOST_COST * thread_use.cost_ticks;
	if (start < (with_process ? cursor->next_process : cursor->next_reading))
		return;
	bool is_known = use_clock(CLOCK_THREAD_CPUTIME_ID, &words[0]);
	words[1] = is_known ? use_wait_ns(cursor) : 0;
	bool has_process = is_known && with_process && use_clock(CLOCK_PROCESS_CPUTIME_ID, &words[2]);
	uint64_t now = clock_ticks();
	cursor->next_reading = now + THREAD_USE_PART * (now - start < most ? now - start : most);
	if (with_process)
		cursor->next_process = cursor->next_reading;
	if (is_known)
		stream_put(STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_USE, words, has_process ? 3 : 2);
}

void thread_use_read(bool with_process)
{
	int before = errno;
	struct cursor *cursor = use_cursor();
	if (cursor && thread_use.cost_ticks)
		use_read(cursor, with_process);
	errno = before;
}
