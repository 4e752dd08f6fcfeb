/* SPDX-License-Identifier: Apache-2.0 */
/* Averaging over shared memory: every rank publishes its values, adds up one share of them over all ranks in the order
 * of the ranks, and reads the result. Two barriers per call. */
#include "rank_group_internal.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void ranks_wake(struct ranks_shared *shared)
{
	syscall(SYS_futex, &shared->round, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

int ranks_join(struct ranks *ranks, size_t capacity, struct failure *failure)
{
	if (ranks->size == 1)
		return 0;
	size_t bytes = RANKS_HEADER_BYTES + ((size_t)ranks->size + 1) * capacity * sizeof(real);
	if (ftruncate(ranks->descriptor, (off_t)bytes) != 0)
		return failure_set(failure, "cannot get %zu bytes of shared memory: %s", bytes, strerror(errno));
	void *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ranks->descriptor, 0);
	if (address == MAP_FAILED)
		return failure_set(failure, "cannot map %zu bytes of shared memory: %s", bytes, strerror(errno));
	munmap(ranks->shared, ranks->mapped_bytes);
	ranks->shared = address;
	ranks->mapped_bytes = bytes;
	ranks->capacity = capacity;
	return 0;
}

static real *slot(const struct ranks *ranks, int rank)
{
	return (real *)((char *)ranks->shared + RANKS_HEADER_BYTES) + (size_t)rank * ranks->capacity;
}

static int barrier(struct ranks *ranks, struct failure *failure)
{
	struct ranks_shared *shared = ranks->shared;
	uint32_t round = atomic_load(&shared->round);
	if (atomic_fetch_add(&shared->arrived, 1) + 1 == (uint32_t)ranks->size) {
		atomic_store(&shared->arrived, 0);
		atomic_fetch_add(&shared->round, 1);
		ranks_wake(shared);
		return 0;
	}
	while (atomic_load(&shared->round) == round) {
		uint32_t failed = atomic_load(&shared->failed);
		if (failed != 0)
			return failure_set(failure, "rank %u is gone; cannot go on without its gradients", failed - 1);
		const struct timespec look_again = {.tv_nsec = 100000000};
		syscall(SYS_futex, &shared->round, FUTEX_WAIT, round, &look_again, NULL, 0);
	}
	return 0;
}

static int wait_for_all(struct ranks *ranks, struct failure *failure)
{
	STEPSCOPE_RANGE_PUSH("wait for ranks");
	int status = barrier(ranks, failure);
	stepscope_range_pop();
	return status;
}

static void share_add_up(struct ranks *ranks, size_t count)
{
	size_t begin = count * (size_t)ranks->rank / (size_t)ranks->size;
	size_t end = count * ((size_t)ranks->rank + 1) / (size_t)ranks->size;
	real *sum = slot(ranks, ranks->size);
	memcpy(sum + begin, slot(ranks, 0) + begin, (end - begin) * sizeof(real));
	for (int rank = 1; rank < ranks->size; rank++) {
		const real *values = slot(ranks, rank);
		for (size_t i = begin; i < end; i++)
			sum[i] += values[i];
	}
	for (size_t i = begin; i < end; i++)
		sum[i] /= (real)ranks->size;
}

int ranks_average(struct ranks *ranks, const struct engine *engine, real *values, size_t count, struct failure *failure)
{
	if (ranks->size == 1)
		return 0;
	size_t bytes = count * sizeof(real);
	int status = -1;
	engine_op(engine, OP_ALL_REDUCE, (double)count * ranks->size, 4.0 * bytes, SHAPE1((int64_t)count), SHAPE_NONE);
	memcpy(slot(ranks, ranks->rank), values, bytes);
	if (wait_for_all(ranks, failure) == 0) {
		share_add_up(ranks, count);
		status = wait_for_all(ranks, failure);
	}
	if (status == 0)
		memcpy(values, slot(ranks, ranks->size), bytes);
	stepscope_op_end();
	return status;
}
