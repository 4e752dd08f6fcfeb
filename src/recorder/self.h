/* SPDX-License-Identifier: Apache-2.0
 *
 * self.h: figures of the process from /proc/self, recorded by the drainer once a second as counters named process.*.
 */
#ifndef RECORDER_SELF_H
#define RECORDER_SELF_H

#include <stdint.h>
#include <time.h>

/* Emits the figures that can be read now. `events` is the number of events the recorder has written; the clock is the
 * CPU time of the recorder's thread. */
void self_sample(uint64_t events, clockid_t recorder_clock_id);

#endif
