/* SPDX-License-Identifier: Apache-2.0
 *
 * test_pool.c: chunks come zeroed, each to one owner at a time, and are all there again afterwards, from any number of threads.
 */
#include "recorder/pool.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define THREADS 4

static struct pool pool;

static int set_up(void **state)
{
	return pool_create(&pool, 1 << 20, (unsigned)getpid(), 12345) ? 0 : -1;
}

static int tear_down(void **state)
{
	pool_destroy(&pool, true);
	return 0;
}

static void assert_zero(const struct stepscope_chunk *chunk)
{
	static const struct stepscope_chunk zero;

	assert_memory_equal(chunk, &zero, sizeof(zero));
}

static void all_chunks_are_handed_out_once(void **state)
{
	uint32_t count = pool.header->chunk_count;
	struct stepscope_chunk **taken = test_calloc(count, sizeof(*taken));

	assert_true(count > 50);
	for (int round = 0; round < 3; round++) {
		uint8_t *seen = test_calloc(count, 1);
		for (uint32_t i = 0; i < count; i++) {
			taken[i] = pool_pop(&pool);
			assert_non_null(taken[i]);
			assert_zero(taken[i]);
			assert_int_equal(seen[pool_chunk_index(&pool, taken[i])]++, 0);
			memset(taken[i], 0x55, sizeof(*taken[i]));
		}
		assert_null(pool_pop(&pool));
		for (uint32_t i = 0; i < count; i++)
			pool_push(&pool, taken[i]);
		test_free(seen);
	}
	test_free(taken);
}

/* The file gets its blocks with the pages: what cannot be had is never touched, and there are fewer chunks. */
static void a_full_shm_leaves_what_is_there(void **state)
{
	uint32_t count = 0;

	if (!pool.is_lazy)
		return; /* an old kernel: all of it is there from the start */
	pool_populate(&pool, 10);
	assert_false(pool_is_populated(&pool));
	pool.is_full = true;
	while (pool_pop(&pool))
		count++;
	assert_int_equal(count, 10);
	assert_true(pool_is_populated(&pool));
}

static void *pop_and_push(void *argument)
{
	uint64_t *problems = argument;

	for (int i = 0; i < 20000; i++) {
		struct stepscope_chunk *chunk[3];
		for (int k = 0; k < 3; k++) {
			chunk[k] = pool_pop(&pool);
			if (chunk[k] && __atomic_exchange_n(&chunk[k]->stream, 1, __ATOMIC_ACQ_REL) != 0)
				++*problems; /* somebody else has it */
		}
		for (int k = 2; k >= 0; k--)
			if (chunk[k])
				pool_push(&pool, chunk[k]);
	}
	return NULL;
}

static void threads_never_share_a_chunk(void **state)
{
	pthread_t threads[THREADS];
	uint64_t problems[THREADS] = {0};

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, pop_and_push, &problems[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(problems[i], 0);
	}
	all_chunks_are_handed_out_once(state);
}

static void the_layout_fits(void **state)
{
	for (size_t bytes = 1; bytes < (64u << 20); bytes = bytes * 3 + 4097) {
		struct pool other;
		assert_true(pool_create(&other, bytes, (unsigned)getpid(), 777));
		const struct stepscope_pool_header *header = other.header;
		assert_true(header->slots_offset + header->slot_count * sizeof(struct stepscope_slot) <=
		            header->symbols_offset);
		pool_grow_symbols(&other);
		if (other.kind == POOL_SHM)
			assert_int_equal(header->symbols_bytes, (other.bytes / 16) & ~(uint64_t)4095);
		assert_true(header->symbols_offset + header->symbols_bytes <= header->chunks_offset);
		assert_true(header->chunks_offset + header->chunk_count * sizeof(struct stepscope_chunk) <=
		            header->pool_bytes);
		assert_true(header->chunk_count > 10 && header->slot_count >= 32);
		other.chunks[header->chunk_count - 1].words[STEPSCOPE_CHUNK_WORDS - 1] = 1; /* the last word is ours */
		pool_populate(&other, UINT32_MAX);
		pool_destroy(&other, true);
	}
}

static void a_pool_is_found_in_its_own_process_only(void **state)
{
	int status;

	assert_true(pool_exists_in_process((unsigned)getpid(), 12345));
	assert_false(pool_exists_in_process((unsigned)getpid() + 1, 12345));
	pid_t pid = fork();
	if (pid == 0) /* not mapped into children */
		_exit(pool_exists_in_process((unsigned)getppid(), 12345));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void the_lock_tells_a_living_process(void **state)
{
	int status;

	if (pool.kind != POOL_SHM)
		skip();
	pid_t pid = fork();
	if (pid == 0) {
		struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
		int fd = open(pool.path, O_RDWR | O_CLOEXEC);
		_exit(fd < 0 || fcntl(fd, F_SETLK, &lock) == 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(access(pool.path, R_OK | W_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_chunks_are_handed_out_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_full_shm_leaves_what_is_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(threads_never_share_a_chunk, set_up, tear_down),
		cmocka_unit_test(the_layout_fits),
		cmocka_unit_test_setup_teardown(a_pool_is_found_in_its_own_process_only, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_lock_tells_a_living_process, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
