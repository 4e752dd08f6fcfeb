/* SPDX-License-Identifier: Apache-2.0
 *
 * steps.h: counts the instructions of a victim one by one, between two of its STEPS_STOP(), and the lines of the library's code that they
 * lie in: where a program's kernels have pushed it out of the processor's caches, those are what takes the time.
 *
 *     in the victim:  steps_begin(); for (STEPS_WINDOWS times) { STEPS_STOP(); for (STEPS_CALLS times) ...work...; STEPS_STOP(); } steps_end();
 *     in the test:    steps_need_optimized(); struct steps fewest = steps_count(harness_start("victim", NULL));
 */
#ifndef TESTS_STEPS_H
#define TESTS_STEPS_H

#include "harness.h"

#include <signal.h>

#if defined(__x86_64__)
#define STEPS_STOP() __asm__ volatile("int3" ::: "memory")
#else
#define STEPS_STOP() raise(SIGTRAP)
#endif

#define STEPS_CALLS 100
#define STEPS_WINDOWS 3 /* the one with the fewest counts: another may have to take a chunk */

struct steps {
	uint64_t count;
	unsigned lines; /* of 64 bytes, that each call needs */
};

void steps_begin(void);
void steps_end(void);
void steps_need_optimized(void); /* skips the test elsewhere */
/* Of the window with the fewest; ends the victim. */
struct steps steps_count(pid_t pid);

#endif
