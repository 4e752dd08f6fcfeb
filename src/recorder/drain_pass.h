/* SPDX-License-Identifier: Apache-2.0
 *
 * drain_pass.h: one pass of the drainer: it encodes new events, writes them with one writev(), and then frees the
 * chunks. This order ensures that after a kill every event is in the file or in the pool.
 */
#ifndef RECORDER_DRAIN_PASS_H
#define RECORDER_DRAIN_PASS_H

#include "recorder/drain.h"

/* Runs passes until no events are waiting, up to a bound. `is_forced`: also takes chunks that are not full and were
 * read recently. */
void drain_run_passes(struct drain *drain, bool is_forced);
/* Starts the next file if this one is too large or too old. */
void drain_rotate_if_due(struct drain *drain, int64_t now_ns);
/* After the last pass: writes the last gap of each thread, and the END block with drain->end_reason. */
void drain_put_end(struct drain *drain);

#endif
