/* SPDX-License-Identifier: Apache-2.0
 *
 * test_background.c: who holds waits for what is at work, and nothing begins until all have gone on.
 */
#include "recorder/background.c" /* NOLINT(bugprone-suspicious-include) */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

static uint32_t has_begun, calls; /* atomic */

static void count_call(void)
{
	__atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
}

static void wait_and_count(void)
{
	__atomic_store_n(&has_begun, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&background.holders, __ATOMIC_SEQ_CST))
		;
	for (int i = 0; i < 1000000; i++) /* long enough for one that does not wait to be first */
		__asm__ volatile("" ::: "memory");
	count_call();
}

static void *work(void *unused)
{
	background_work();
	return NULL;
}

static void what_is_asked_is_done_once(void **state)
{
	calls = 0;
	background_work();
	assert_int_equal(calls, 0);
	background_ask(count_call);
	assert_int_equal(calls, 0);
	background_work();
	background_work();
	assert_int_equal(calls, 1);
}

static void a_fork_waits_for_what_is_at_work(void **state)
{
	pthread_t thread;
	calls = has_begun = 0;
	background_ask(wait_and_count);
	assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
	while (!__atomic_load_n(&has_begun, __ATOMIC_SEQ_CST))
		;
	background_hold();
	assert_int_equal(__atomic_load_n(&calls, __ATOMIC_SEQ_CST), 1);
	background_go_on();
	pthread_join(thread, NULL);
}

static void nothing_begins_while_somebody_forks(void **state)
{
	calls = 0;
	background_hold();
	background_hold(); /* another thread */
	background_ask(count_call);
	background_work();
	background_go_on();
	background_work();
	assert_int_equal(calls, 0);
	background_go_on();
	background_work();
	assert_int_equal(calls, 1);
}

static void a_child_does_what_its_parent_had_not_begun(void **state)
{
	calls = 0;
	background_ask(count_call);
	background_hold();
	background_hold();
	background_forget(); /* of the threads that forked, only one is here */
	background_work();
	assert_int_equal(calls, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_asked_is_done_once),
		cmocka_unit_test(a_fork_waits_for_what_is_at_work),
		cmocka_unit_test(nothing_begins_while_somebody_forks),
		cmocka_unit_test(a_child_does_what_its_parent_had_not_begun),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
