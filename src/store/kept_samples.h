/* SPDX-License-Identifier: Apache-2.0
 *
 * kept_samples.h: the samples of a run in the history.
 */
#ifndef STORE_KEPT_SAMPLES_H
#define STORE_KEPT_SAMPLES_H

#include "store/database.h"

/* Write the samples into the tables functions and telemetry, and read them back. */
enum status kept_samples_write(const struct history *history, int64_t number, const struct compared_run *run,
                               struct error *err) MUST_CHECK;
enum status kept_samples_read(const struct history *history, int64_t number, struct compared_run *run,
                              struct error *err) MUST_CHECK;

#endif
