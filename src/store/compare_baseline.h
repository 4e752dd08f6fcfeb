/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_baseline.h: the base of a comparison out of the run history, for --baseline.
 */
#ifndef STORE_COMPARE_BASELINE_H
#define STORE_COMPARE_BASELINE_H

#include "base/buffer.h"
#include "compare/compared_run.h"
#include "store/history.h"

#define BASELINE_RUNS 50   /* of one comparison at most */
#define BASELINE_NAME 255  /* bytes at most */
#define BASELINE_NOTE 1024 /* the same */

struct compare_baseline {
	const char *word;    /* best, last, last:N, a number, a name; NULL: not wanted */
	const char *history; /* file; NULL: the default */
	const char *series;  /* NULL: that of the new runs */
};

/* Reads them into `base` (room for BASELINE_RUNS) and counts them. `series` and `except` (store/key_numbers.h) are those of the new
 * runs. `scatter`: of the runs among which `best` is the fastest; else without runs. `note`: what to tell about
 * the choice, without a line's end; left empty if there is nothing. On failure nothing needs to be released. */
enum status compare_baseline_load(const struct compare_baseline *baseline, const char *series,
                                  const struct history_except *except, struct compared_run *base, int *count,
                                  struct history_scatter *scatter, struct buffer *note, struct error *err) MUST_CHECK;

#endif
