/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_baseline.h: the base of a comparison out of the run history, for --baseline.
 */
#ifndef COMMANDS_COMPARE_BASELINE_H
#define COMMANDS_COMPARE_BASELINE_H

#include "compare/compared_run.h"

struct compare_baseline {
	const char *word;    /* best, last, a number, a name; NULL: not wanted */
	const char *history; /* file; NULL: the default */
	const char *series;  /* NULL: that of the new run */
};

/* `series` and `identity` are the new run's (store/key_numbers.h). On failure nothing needs to be released. */
enum status compare_baseline_load(const struct compare_baseline *baseline, const char *series, const char *identity,
                                  struct compared_run *base, struct error *err) MUST_CHECK;

#endif
