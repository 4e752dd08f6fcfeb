/* SPDX-License-Identifier: Apache-2.0
 *
 * What the observer's count of steps does when the program forks: with real threads and real forks.
 */
#include "agents/torch/training.h"
#include "agents/torch/training_count.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define FORKS 200

static const struct torch_entry entry;
static const struct torch_layout layout = {.sequence = -1, .forward_thread = -1};
static int is_over; /* atomic */

static void *make_optimizers(void *nothing)
{
	(void)nothing;
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
		(void)training_optimizer_made();
	return NULL;
}

/* Somebody is nearly always counting while these forks happen, and does not exist in the child. */
static void a_child_counts_whoever_counted_in_its_parent(void **state)
{
	pthread_t thread;
	int failed = 0;
	(void)state;
	training_start(&entry, &layout);
	assert_int_equal(pthread_create(&thread, NULL, make_optimizers, NULL), 0);
	for (int i = 0; i < FORKS; i++) {
		int status;
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0)
			_exit(training_optimizer_made() ? 0 : 1);
		assert_int_equal(waitpid(child, &status, 0), child);
		failed += status != 0;
	}
	__atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(failed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_counts_whoever_counted_in_its_parent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
