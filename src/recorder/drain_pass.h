/* SPDX-License-Identifier: Apache-2.0
 *
 * drain_pass.h: one pass of the drainer: encode what is new, write it with one writev(), then free the chunks. In this
 * order, so that a kill finds every event in the file or in the pool.
 */
#ifndef RECORDER_DRAIN_PASS_H
#define RECORDER_DRAIN_PASS_H

#include "recorder/drain.h"

/* Passes until nothing is waiting, up to a bound. `is_forced`: also chunks that are not full and were looked at lately.
 */
void drain_run_passes(struct drain *drain, bool is_forced);
/* Begins the next file, if this one is too large or too old. */
void drain_rotate_if_due(struct drain *drain, int64_t now_ns);
/* After the last pass: what threads dropped last, and the END block with drain->end_reason. */
void drain_put_end(struct drain *drain);

#endif
