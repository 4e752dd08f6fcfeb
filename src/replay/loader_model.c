/* SPDX-License-Identifier: Apache-2.0
 *
 * loader_model.c: see loader_model.h. Events in the order of time: the next one is the end of the work of one thread.
 */
#include "replay/loader_model.h"

#include <math.h>
#include <stdbool.h>

#define NOTHING_NS 1e-3 /* what is left of work that is done, but for rounding */

#define READY (LOADER_MOST_PREFETCH + 1) /* batches of a worker that can lie ready */

struct runner {                  /* a worker, or the loop */
	double cpu_ns, sleep_ns; /* left of its work; it sleeps first */
	bool is_busy;
};

struct loader_run {
	const struct loader_case *loader;
	struct runner workers[LOADER_MOST_WORKERS], loop;
	uint32_t made[LOADER_MOST_WORKERS];          /* batches that each worker has made */
	double ready_ns[LOADER_MOST_WORKERS][READY]; /* when the newest of them are pickled, by their number mod READY */
	uint32_t taken;                              /* by the loop */
	double now_ns;
};

static const struct loader_batch *batch_of(const struct loader_run *run, uint32_t number)
{
	return &run->loader->batches[number % run->loader->count];
}

/* The loop takes batch `taken` if it is made, and works with it. */
static void start_loop(struct loader_run *run)
{
	const struct loader_case *loader = run->loader;
	const struct loader_batch *batch = batch_of(run, run->taken);
	uint32_t worker = loader->workers ? run->taken % loader->workers : 0;

	double fetch_cpu_ns = loader->workers ? 0 : batch->fetch_cpu_ns;
	double wait_ns = loader->workers ? loader->unpickle_ns : batch->fetch_sleep_ns;

	if (loader->workers && run->made[worker] <= run->taken / loader->workers)
		return;
	if (loader->workers)
		wait_ns += fmax(0, run->ready_ns[worker][run->taken / loader->workers % READY] - run->now_ns);
	run->loop = (struct runner){.cpu_ns = batch->loop_cpu_ns + fetch_cpu_ns,
	                            .sleep_ns = batch->loop_sleep_ns + wait_ns,
	                            .is_busy = true};
	run->taken++;
}

static void start_worker(struct loader_run *run, uint32_t worker)
{
	const struct loader_case *loader = run->loader;
	uint32_t number = run->made[worker] * loader->workers + worker;
	const struct loader_batch *batch = batch_of(run, number);

	if (number >= run->taken + loader->prefetch * loader->workers)
		return;
	run->workers[worker] = (struct runner){
		.cpu_ns = batch->fetch_cpu_ns, .sleep_ns = batch->fetch_sleep_ns, .is_busy = true};
}

static void start_all(struct loader_run *run)
{
	if (!run->loop.is_busy)
		start_loop(run);
	for (uint32_t worker = 0; worker < run->loader->workers; worker++)
		if (!run->workers[worker].is_busy)
			start_worker(run, worker);
}

static uint32_t can_run(const struct runner *runner)
{
	return runner->is_busy && runner->sleep_ns <= NOTHING_NS && runner->cpu_ns > NOTHING_NS;
}

static double time_left(const struct runner *runner, double speed)
{
	if (!runner->is_busy)
		return INFINITY;
	return runner->sleep_ns > NOTHING_NS ? runner->sleep_ns : runner->cpu_ns / speed;
}

/* Returns true if its work is done. */
static bool advance(struct runner *runner, double passed_ns, double speed)
{
	if (!runner->is_busy)
		return false;
	if (runner->sleep_ns > NOTHING_NS)
		runner->sleep_ns -= passed_ns;
	else
		runner->cpu_ns -= passed_ns * speed;
	runner->is_busy = runner->sleep_ns > NOTHING_NS || runner->cpu_ns > NOTHING_NS;
	return !runner->is_busy;
}

/* Goes on to the next end of a sleep or of a thread's work. */
static void next_event(struct loader_run *run)
{
	uint32_t runnable = can_run(&run->loop);
	double passed_ns, speed;

	for (uint32_t worker = 0; worker < run->loader->workers; worker++)
		runnable += can_run(&run->workers[worker]);
	speed = runnable > run->loader->processors ? run->loader->processors / runnable : 1;
	passed_ns = time_left(&run->loop, speed);
	for (uint32_t worker = 0; worker < run->loader->workers; worker++)
		passed_ns = fmin(passed_ns, time_left(&run->workers[worker], speed));
	run->now_ns += passed_ns;
	advance(&run->loop, passed_ns, speed);
	for (uint32_t worker = 0; worker < run->loader->workers; worker++)
		if (advance(&run->workers[worker], passed_ns, speed))
			run->ready_ns[worker][run->made[worker]++ % READY] = run->now_ns + run->loader->pickle_ns;
}

double loader_model_step(const struct loader_case *loader)
{
	struct loader_run run = {.loader = loader};
	uint32_t first = loader->count / 4, last = first + loader->count;
	double first_ns = -1;

	for (;;) {
		start_all(&run);
		if (run.taken > first && first_ns < 0)
			first_ns = run.now_ns;
		if (run.taken > last)
			return (run.now_ns - first_ns) / (last - first);
		next_event(&run);
	}
}
