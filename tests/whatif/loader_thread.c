/* SPDX-License-Identifier: Apache-2.0
 *
 * loader_thread.c: a trainer with a thread that loads into two slots. A batch takes 36 ms of waiting, a step 15 ms.
 * without: a batch takes 4 ms.
 *
 *     loader_thread fault|without
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>
#include <time.h>

enum {
	STEPS = 90,
	SLOTS = 2,
	SKIP = 5
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int made, taken;
static double load_ms;

static double now_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Returns the time that this thread has waited for a processor. */
static double waited_ms(void)
{
	FILE *in = fopen("/proc/thread-self/schedstat", "r");
	double ran = 0, waited = 0;

	if (in == NULL)
		return 0;
	if (fscanf(in, "%lf %lf", &ran, &waited) != 2)
		waited = 0;
	fclose(in);
	return waited / 1e6;
}

static void burn(double ms)
{
	double end = now_ms(CLOCK_THREAD_CPUTIME_ID) + ms;

	while (now_ms(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

/* Waits as for a device or a disk. */
static void wait_ms(double ms)
{
	struct timespec t = {0, (long)(ms * 1e6)};

	nanosleep(&t, NULL);
}

static void *load(void *unused)
{
	stepscope_thread_name("loader");
	for (int n = 0; n < STEPS; n++) {
		pthread_mutex_lock(&lock);
		while (made - taken >= SLOTS)
			pthread_cond_wait(&changed, &lock);
		pthread_mutex_unlock(&lock);
		stepscope_range_push("load batch");
		wait_ms(load_ms);
		burn(0.5);
		stepscope_range_pop();
		pthread_mutex_lock(&lock);
		made++;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

static void take_batch(void)
{
	pthread_mutex_lock(&lock);
	while (made == taken)
		pthread_cond_wait(&changed, &lock);
	taken++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void step(int number)
{
	stepscope_step_begin(number);
	stepscope_phase_begin(STEPSCOPE_PHASE_DATA);
	take_batch();
	stepscope_phase_switch(STEPSCOPE_PHASE_FORWARD);
	wait_ms(6);
	stepscope_phase_switch(STEPSCOPE_PHASE_BACKWARD);
	wait_ms(8);
	stepscope_phase_switch(STEPSCOPE_PHASE_OPTIMIZER);
	burn(1);
	stepscope_phase_end();
	stepscope_step_end();
}

int main(int count, char **words)
{
	const char *variant = count > 1 ? words[1] : "fault", *path = getenv("WHATIF_OUT");
	double start_ms = 0, start_waited_ms = 0;
	pthread_t loader;

	load_ms = strcmp(variant, "fault") == 0 ? 36 : 4;
	if (pthread_create(&loader, NULL, load, NULL) != 0)
		return 1;
	for (int n = 0; n < STEPS; n++) {
		if (n == SKIP) {
			start_ms = now_ms(CLOCK_MONOTONIC);
			start_waited_ms = waited_ms();
		}
		step(n);
	}
	double mean_ms = (now_ms(CLOCK_MONOTONIC) - start_ms) / (STEPS - SKIP);
	double quiet_ms = mean_ms - (waited_ms() - start_waited_ms) / (STEPS - SKIP);

	pthread_join(loader, NULL);
	FILE *out = path ? fopen(path, "w") : stdout;
	if (out == NULL)
		return 1;
	fprintf(out, "{\"variant\": \"%s\", \"steps\": %d, \"mean_ms\": %.4f, \"quiet_ms\": %.4f}\n", variant,
	        STEPS - SKIP, mean_ms, quiet_ms);
	return fclose(out) ? 1 : 0;
}
