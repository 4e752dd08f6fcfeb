/* SPDX-License-Identifier: Apache-2.0
 *
 * storage_sweep.c: limits the resident pages of temporary files. A thread checks their number. If there are too many,
 * it drops all of them from our page table. Pages in use come back from the page cache with a fault.
 */
#include "base/memory.h"
#include "base/storage_file.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define RESIDENT_BYTES ((uint64_t)96 << 20) /* of files, including our program's */
#define PERIOD_NS 5000000L

/* Returns the bytes of files and shared memory that are resident; 0: unknown. */
static uint64_t resident_bytes(int statm)
{
	char text[128];
	unsigned long long size, resident, shared;
	ssize_t length = statm < 0 ? -1 : pread(statm, text, sizeof text - 1, 0);
	if (length <= 0)
		return 0;
	text[length] = '\0';
	if (sscanf(text, "%llu %llu %llu", &size, &resident, &shared) != 3)
		return 0;
	return shared * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void drop_all(const struct storage_sweep *sweep)
{
	for (uint32_t i = 0; i < sweep->count; i++)
		madvise(sweep->ranges[i].start, sweep->ranges[i].bytes, MADV_DONTNEED);
}

static void wait_a_period(struct storage_sweep *sweep)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += PERIOD_NS;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	pthread_cond_timedwait(&sweep->stop, &sweep->lock, &until);
}

static void *storage_sweep_run(void *context)
{
	struct storage_sweep *sweep = context;
	int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	pthread_mutex_lock(&sweep->lock);
	while (!sweep->is_stopping) {
		if (resident_bytes(statm) > RESIDENT_BYTES)
			drop_all(sweep);
		wait_a_period(sweep);
	}
	pthread_mutex_unlock(&sweep->lock);
	if (statm >= 0)
		close(statm);
	return NULL;
}

void storage_sweep_init(struct storage_sweep *sweep)
{
	pthread_condattr_t attributes;
	*sweep = (struct storage_sweep){0};
	pthread_mutex_init(&sweep->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&sweep->stop, &attributes);
	pthread_condattr_destroy(&attributes);
}

void storage_sweep_release(struct storage_sweep *sweep)
{
	if (sweep->is_running) {
		pthread_mutex_lock(&sweep->lock);
		sweep->is_stopping = true;
		pthread_cond_signal(&sweep->stop);
		pthread_mutex_unlock(&sweep->lock);
		pthread_join(sweep->thread, NULL);
	}
	pthread_cond_destroy(&sweep->stop);
	pthread_mutex_destroy(&sweep->lock);
	free(sweep->ranges);
}

/* Without the thread, only residency is not limited: the kernel reclaims the pages when it needs memory. */
static void start(struct storage_sweep *sweep)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	sweep->is_running = pthread_create(&sweep->thread, NULL, storage_sweep_run, sweep) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void storage_sweep_add(struct storage_sweep *sweep, char *at, size_t bytes)
{
	pthread_mutex_lock(&sweep->lock);
	MEMORY_GROW(sweep->ranges, sweep->count, sweep->capacity, 16);
	sweep->ranges[sweep->count++] = (struct sweep_range){at, bytes};
	pthread_mutex_unlock(&sweep->lock);
	if (!sweep->is_running)
		start(sweep);
}

void storage_sweep_remove(struct storage_sweep *sweep, const char *at)
{
	pthread_mutex_lock(&sweep->lock);
	uint32_t i = 0;
	while (i < sweep->count && sweep->ranges[i].start != at)
		i++;
	assert(i < sweep->count);
	sweep->ranges[i] = sweep->ranges[--sweep->count];
	pthread_mutex_unlock(&sweep->lock);
}
