/* SPDX-License-Identifier: Apache-2.0
 *
 * work.h: threads that emit and count what they emit, and the check of the sum afterwards.
 */
#ifndef TESTS_WORK_H
#define TESTS_WORK_H

#include "harness.h"
#include "recording.h"

#include <pthread.h>
#include <stdint.h>
#include <stepscope/stepscope.h>

/* Thread `number` of this victim: emits seq = 1, 2, ..., with a begin and an end, `rounds` times (0: for ever), `pause` turns of an
 * empty loop after each. Its stream is called "w<number>", its events are counted in counters[8 * number]. */
struct work {
	unsigned number;
	uint64_t rounds;
	unsigned pause;
	pthread_t thread;
};

void work_run(const struct work *work);
void work_start(struct work *work);  /* in a thread */
void work_finish(struct work *work); /* joins it */

/* Ends the test unless recorded + dropped is issued, or one less when `is_killed`, for threads [0, count) of process pid (0: any). */
void work_check(const struct recording *recording, uint32_t pid, unsigned count, bool is_killed);

/* Argument i of a victim as a number, 0 when it is not there. */
long work_number(int argc, char **argv, int i);

#endif
