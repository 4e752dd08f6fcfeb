/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_baseline.h: loads the base of a comparison from the run history, for --baseline.
 */
#ifndef STORE_COMPARE_BASELINE_H
#define STORE_COMPARE_BASELINE_H

#include "base/buffer.h"
#include "compare/compared_run.h"
#include "store/history.h"

#define BASELINE_RUNS 50   /* most runs of one comparison */
#define BASELINE_NAME 255  /* most bytes */
#define BASELINE_NOTE 1024 /* most bytes */

struct compare_baseline {
	const char *word;    /* best, last, last:N, a number or a name; NULL: no baseline is wanted */
	const char *history; /* file; NULL: the default file */
	const char *series;  /* NULL: the series of the new runs */
};

/* Reads the runs into `base` (room for BASELINE_RUNS) and counts them. `series` and `except` (store/key_numbers.h) come
 * from the new runs. `scatter` describes the runs among which `best` is the fastest; for other words it has no runs.
 * `note` receives a remark about the choice, without a newline, or stays empty. On failure nothing needs to be
 * released. */
enum status compare_baseline_load(const struct compare_baseline *baseline, const char *series,
                                  const struct history_except *except, struct compared_run *base, int *count,
                                  struct history_scatter *scatter, struct buffer *note, struct error *err) MUST_CHECK;

#endif
