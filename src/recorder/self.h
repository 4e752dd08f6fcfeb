/* SPDX-License-Identifier: Apache-2.0
 *
 * self.h: the process's own figures from /proc/self, as counters named process.*, once a second by the drainer.
 */
#ifndef RECORDER_SELF_H
#define RECORDER_SELF_H

#include <stdint.h>
#include <time.h>

/* Emits what can be read now; what cannot is not emitted. `events` is how many the recorder has written, the clock is that
 * of its thread's CPU time. */
void self_sample(uint64_t events, clockid_t recorder_clock_id);

#endif
