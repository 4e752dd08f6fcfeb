/* SPDX-License-Identifier: Apache-2.0
 *
 * export_record.c: makes the input of bench/export. Records N ops in steps of 2000 on two threads, one after the
 * other, and flushes often, so that no event is dropped.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <time.h>

#define NAMES 60
#define OPS_PER_STEP 2000

struct work {
	long ops;
	int has_steps;
	stepscope_name_t names[NAMES];
};

static void pause_ns(long ns)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < ns);
}

static void *work(void *opaque)
{
	struct work *work = opaque;
	unsigned random = 1;

	for (long done = 0, step = 0; done < work->ops; step++) {
		if (work->has_steps)
			stepscope_step_begin(step);
		for (int i = 0; i < OPS_PER_STEP && done < work->ops; i++, done++) {
			random = random * 1103515245 + 12345;
			stepscope_op_begin_name(work->names[(random >> 16) % NAMES]);
			pause_ns((random >> 24) & 127);
			stepscope_op_end();
		}
		if (work->has_steps)
			stepscope_step_end();
		if (step % 20 == 19)
			stepscope_flush();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct work half = {.ops = argc > 1 ? strtol(argv[1], NULL, 10) / 2 : 1000000, .has_steps = 1};
	pthread_t thread;
	char name[64];

	stepscope_step_begin(-1);
	stepscope_step_end();
	for (int i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "%s_%d", i % 3 ? "layer_norm_backward" : "matmul", i);
		half.names[i] = stepscope_name(STEPSCOPE_KIND_OP, name);
	}
	work(&half);
	half.has_steps = 0;
	pthread_create(&thread, NULL, work, &half);
	pthread_join(thread, NULL);
	return 0;
}
