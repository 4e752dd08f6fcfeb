/* SPDX-License-Identifier: Apache-2.0
 *
 * The model of a loader and its workers: the time from one batch to the next, which follows from the pace of whoever is
 * slowest.
 */
#include "replay/loader_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define BATCHES 40u
#define IS(value, wanted) assert_true(fabs((value) - (wanted)) < 0.02 * (wanted))

static struct loader_batch batches[BATCHES];

static struct loader_case even(double fetch_cpu_ns, double fetch_sleep_ns, double loop_cpu_ns, double loop_sleep_ns)
{
	for (uint32_t i = 0; i < BATCHES; i++)
		batches[i] = (struct loader_batch){fetch_cpu_ns, fetch_sleep_ns, loop_cpu_ns, loop_sleep_ns};
	return (struct loader_case){.batches = batches, .count = BATCHES, .prefetch = 2, .processors = 8};
}

static double with_workers(struct loader_case loader, uint32_t workers)
{
	loader.workers = workers;
	return loader_model_step(&loader);
}

static void without_workers_the_loop_makes_batches(void **state)
{
	(void)state;
	IS(with_workers(even(10e6, 5e6, 3e6, 2e6), 0), 20e6);
}

static void the_slower_of_loop_and_workers_sets_the_pace(void **state)
{
	struct loader_case loader = even(0, 48e6, 2e6, 16e6);

	(void)state;
	IS(with_workers(loader, 1), 48e6);
	IS(with_workers(loader, 2), 24e6);
	IS(with_workers(loader, 4), 18e6);
	IS(with_workers(loader, 64), 18e6);
}

static void fault_F7_threads_share_the_processors(void **state)
{
	struct loader_case loader = even(24e6, 0, 4e6, 0);

	(void)state;
	loader.processors = 2;
	IS(with_workers(loader, 1), 24e6);
	IS(with_workers(loader, 6), 14e6); /* 28 ms of work on two processors, whatever the number of workers */
	loader.processors = 1;
	IS(with_workers(loader, 6), 28e6);
}

static void handing_over_takes_time_of_the_loop(void **state)
{
	struct loader_case loader = even(0, 10e6, 0, 6e6);

	(void)state;
	loader.unpickle_ns = 8e6;
	IS(with_workers(loader, 4), 14e6);
	loader.unpickle_ns = 0;
	loader.pickle_ns = 8e6; /* beside the next fetch: it delays a batch, not the pace */
	IS(with_workers(loader, 4), 6e6);
}

static void one_worker_waits_until_a_batch_is_taken(void **state)
{
	struct loader_case loader = even(0, 1e6, 0, 10e6);

	(void)state;
	loader.prefetch = 1;
	IS(with_workers(loader, 1), 10e6);
}

static void slow_batches_stay_slow(void **state)
{
	struct loader_case loader = even(0, 4e6, 0, 10e6);

	(void)state;
	for (uint32_t i = 0; i < BATCHES; i += 10)
		batches[i].fetch_sleep_ns = 104e6;
	/* two batches are ready when the worker begins a slow one: the loop waits for the rest of it */
	IS(with_workers(loader, 1), 18.4e6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_workers_the_loop_makes_batches),
		cmocka_unit_test(the_slower_of_loop_and_workers_sets_the_pace),
		cmocka_unit_test(fault_F7_threads_share_the_processors),
		cmocka_unit_test(handing_over_takes_time_of_the_loop),
		cmocka_unit_test(one_worker_waits_until_a_batch_is_taken),
		cmocka_unit_test(slow_batches_stay_slow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
