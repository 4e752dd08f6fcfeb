/* SPDX-License-Identifier: Apache-2.0
 *
 * kept_run.h: a run in the history, without its samples.
 */
#ifndef STORE_KEPT_RUN_H
#define STORE_KEPT_RUN_H

#include "store/database.h"

/* Write the part of a run that comparisons read into the tables facts, metrics, steps and parts, and read it back. */
enum status kept_run_write(const struct history *history, int64_t number, const struct compared_run *run,
                           struct error *err) MUST_CHECK;
enum status kept_run_read(struct history *history, int64_t number, struct compared_run *run,
                          struct error *err) MUST_CHECK;

#endif
