/* SPDX-License-Identifier: Apache-2.0
 *
 * test_open.c: what is open in a thread, and what ends in another one meanwhile: with real threads, also under ThreadSanitizer.
 */
#include "agents/torch/thread.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define OWNERS 3
#define ENDERS 2
#define ROUNDS 3000
#define RECORDS 12u /* open at once in a thread */

/* ---- one thread ---- */

static uint64_t records[OWNERS][RECORDS];

static void what_ends_beneath_others_leaves_them_open(void **state)
{
	static struct open_records open;
	const uint64_t *a = &records[0][0], *b = &records[0][1], *c = &records[0][2];

	open_push(&open, a, OPEN_IS_BEGUN);
	open_push(&open, b, OPEN_IS_BEGUN | OPEN_IS_COUNTED);
	open_push(&open, c, OPEN_IS_COUNTED);
	assert_int_equal(open_innermost_flags(&open, c), OPEN_IS_COUNTED);
	assert_true(open_innermost_flags(&open, a) >= OPEN_HAS_ENDED);
	assert_int_equal(open_find(&open, a), 1);
	assert_int_equal(open_count_above(&open, 1, OPEN_IS_BEGUN), 1);
	assert_int_equal(open_count_above(&open, 1, OPEN_IS_COUNTED), 2);
	assert_int_equal(open_remove(&open, 1), OPEN_IS_BEGUN);
	assert_int_equal(open_find(&open, a), 0);
	assert_int_equal(open_find(&open, b), 1);
	assert_int_equal(open_remove(&open, 2), OPEN_IS_COUNTED);
	open_forget_begun(&open);
	assert_int_equal(open_innermost_flags(&open, b), OPEN_IS_COUNTED);
	open_pop(&open);
	assert_int_equal(open.depth, 0);
}

static void the_same_address_is_the_innermost_of_its_own(void **state)
{
	static struct open_records open;

	open_push(&open, &records[0][0], OPEN_IS_BEGUN);
	open_push(&open, &records[0][1], 0);
	open_push(&open, &records[0][0], 0);
	open_push(&open, &records[0][2], 0);
	assert_int_equal(open_find(&open, &records[0][0]), 3);
}

/* ---- ends in other threads ---- */

/* An owner hands a record over, and an ender takes it: one place per record. */
static uint64_t *handed[OWNERS][RECORDS]; /* atomic; NULL: none */
static uint64_t ticks[OWNERS][RECORDS];   /* when they end; written by the owner before */
static unsigned ended[OWNERS];            /* atomic: how many of the owner's the enders have done */
static unsigned owners_left;              /* atomic */
static unsigned wrong;                    /* atomic: what cannot be checked in threads, cmocka leaves them by a jump */

static void check(bool is_right)
{
	if (!is_right)
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static void *end_those_of_others(void *nothing)
{
	while (__atomic_load_n(&owners_left, __ATOMIC_ACQUIRE)) {
		for (unsigned i = 0; i < OWNERS * RECORDS; i++) {
			unsigned owner = i % OWNERS, at = i / OWNERS;
			uint64_t *record = __atomic_exchange_n(&handed[owner][at], NULL, __ATOMIC_ACQ_REL);

			if (!record)
				continue;
			while (!open_end_elsewhere(record, ticks[owner][at])) /* its thread does not come to run */
				sched_yield();
			__atomic_fetch_add(&ended[owner], 1, __ATOMIC_RELEASE);
		}
		sched_yield();
	}
	return nothing;
}

/* Until all that were handed over are found to have ended: each once, and with its own tick and flags. */
static void take_marked(struct open_records *open, unsigned owner, unsigned expected)
{
	unsigned found = 0, seen = 0;
	uint64_t tick;

	for (bool is_last = false; !is_last;) {
		is_last = __atomic_load_n(&ended[owner], __ATOMIC_ACQUIRE) == expected;
		for (uint32_t level; (level = open_find_ended(open, &tick)) != 0; found++) {
			uint64_t flags = open_remove(open, level);
			unsigned at = (unsigned)(tick % RECORDS);

			check(tick == ticks[owner][at] && flags == (OPEN_HAS_ENDED | (at % 2 ? OPEN_IS_BEGUN : 0)));
			check(!(seen >> at & 1));
			seen |= 1u << at;
		}
		sched_yield();
	}
	check(found == expected);
	__atomic_store_n(&ended[owner], 0, __ATOMIC_RELAXED);
}

/* Ends the others itself, from the outermost on, so that those that are being ended elsewhere move. */
static void end_own(struct open_records *open, unsigned owner, unsigned handed_bits)
{
	for (unsigned at = 0; at < RECORDS; at++) {
		if (handed_bits >> at & 1)
			continue;
		uint32_t level = open_find(open, &records[owner][at]);

		check(level && open_remove(open, level) == (at % 2 ? OPEN_IS_BEGUN : 0));
	}
}

static void play_round(struct open_records *open, unsigned owner, unsigned round)
{
	unsigned handed_bits = round * 2654435761u >> 16 & ((1u << RECORDS) - 1);

	for (unsigned at = 0; at < RECORDS; at++) {
		ticks[owner][at] = (uint64_t)(round + 1) * RECORDS + at;
		open_push(open, &records[owner][at], at % 2 ? OPEN_IS_BEGUN : 0);
		if (handed_bits >> at & 1)
			__atomic_store_n(&handed[owner][at], &records[owner][at], __ATOMIC_RELEASE);
	}
	end_own(open, owner, handed_bits);
	take_marked(open, owner, (unsigned)__builtin_popcount(handed_bits));
	check(open->depth == 0);
}

static void *begin_and_end(void *argument)
{
	unsigned owner = (unsigned)(uintptr_t)argument;

	check(thread_make());
	for (unsigned round = 0; round < ROUNDS; round++)
		play_round(&torch_thread->open, owner, round);
	__atomic_fetch_sub(&owners_left, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void ends_in_other_threads_are_found_once(void **state)
{
	pthread_t threads[OWNERS + ENDERS];

	owners_left = OWNERS;
	for (uintptr_t i = 0; i < OWNERS + ENDERS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, i < OWNERS ? begin_and_end : end_those_of_others, (void *)i),
			0);
	for (unsigned i = 0; i < OWNERS + ENDERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(wrong, 0);
}

/* ---- threads that come and go ---- */

static pthread_barrier_t all_here;

static void *come_and_go(void *argument)
{
	uint64_t *own = argument;

	pthread_barrier_wait(&all_here);
	check(thread_make());
	check(torch_thread->open.depth == 0 && torch_thread->training[0] == 0);
	torch_thread->training[0] = (uintptr_t)own;
	open_push(&torch_thread->open, own, OPEN_IS_BEGUN);
	(void)open_end_elsewhere(own + 1, 1); /* it looks into all of them */
	sched_yield();
	check(torch_thread->training[0] == (uintptr_t)own && open_find(&torch_thread->open, own) == 1);
	return NULL; /* with a record open, as a thread that is cancelled */
}

static unsigned made(void)
{
	unsigned count = 0;

	for (struct torch_thread *thread = thread_first(); thread; thread = thread->next)
		count++;
	return count;
}

static void a_thread_gets_what_another_left(void **state)
{
	unsigned most = made() > OWNERS ? made() : OWNERS;

	pthread_barrier_init(&all_here, NULL, OWNERS);
	for (unsigned round = 0; round < 1000; round++) {
		pthread_t threads[OWNERS];

		for (unsigned i = 0; i < OWNERS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &records[i][0]), 0);
		for (unsigned i = 0; i < OWNERS; i++)
			pthread_join(threads[i], NULL);
	}
	pthread_barrier_destroy(&all_here);
	assert_int_equal(wrong, 0);
	assert_true(made() <= most);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_ends_beneath_others_leaves_them_open),
		cmocka_unit_test(the_same_address_is_the_innermost_of_its_own),
		cmocka_unit_test(ends_in_other_threads_are_found_once),
		cmocka_unit_test(a_thread_gets_what_another_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
