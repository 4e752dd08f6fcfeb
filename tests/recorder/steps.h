/* SPDX-License-Identifier: Apache-2.0
 *
 * steps.h: counts the instructions of a victim one by one, between two of its STEPS_STOP().
 *
 *     in the victim:  steps_begin(); for (STEPS_WINDOWS times) { STEPS_STOP(); ...work...; STEPS_STOP(); } steps_end();
 *     in the test:    steps_need_optimized(); uint64_t fewest = steps_count(harness_start("victim", NULL));
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

#define STEPS_WINDOWS 3 /* the one with the fewest counts: another may have to take a chunk */

void steps_begin(void);
void steps_end(void);
void steps_need_optimized(void); /* skips the test elsewhere */
/* Of the window with the fewest; ends the victim. */
uint64_t steps_count(pid_t pid);

#endif
