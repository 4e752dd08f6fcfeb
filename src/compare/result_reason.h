/* SPDX-License-Identifier: Apache-2.0
 *
 * result_reason.h: the reason for the result of a metric or of a quantity of telemetry: as a value for decisions, and
 * in words for the columns `reason`.
 */
#ifndef COMPARE_RESULT_REASON_H
#define COMPARE_RESULT_REASON_H

#include "base/arena.h"

struct comparison_options;

enum result_reason {
	REASON_MISSING,     /* a run does not have the value, and says why */
	REASON_IN_PART,     /* as REASON_MISSING, but a part was recorded, so no other quantity may replace it */
	REASON_ONE_STEP,    /* the scatter of steps is unknown if a run has one step */
	REASON_BY_CHANCE,   /* the interval excludes 0, but not after the adjustment for the number of metrics */
	REASON_OPEN,        /* neither 0 nor a change that matters is ruled out */
	REASON_NOT_ZERO,    /* 0 is ruled out */
	REASON_SMALL,       /* 0 is ruled out, and so is a change that matters */
	REASON_RULED_OUT,   /* a change that matters is ruled out */
	REASON_UNLIKE,      /* operators were recorded on one side only */
	REASON_OTHER_WORK,  /* the work of a step differs */
	REASON_EQUAL,       /* the same number on both sides */
	REASON_COUNTED,     /* a count, so any change is certain */
	REASON_NO_RATIO,    /* 0 or less on one side */
	REASON_NO_INTERVAL, /* too few snapshots */
	/* for telemetry: */
	REASON_POSSIBLE,   /* 0 is not ruled out */
	REASON_TOO_LARGE,  /* to compute with */
	REASON_OTHER_GPU,  /* the GPU has another name */
	REASON_OTHER_UNIT, /* the sides measure in different units */
	REASON_ONLY_NEW,
	REASON_ONLY_BASE,
	REASON_NOT_ALL_RUNS,
};

/* Returns the reason in words, in the arena. `range` is the interval that shows it, or NULL. `what` depends on the
 * reason: the run's own words for REASON_MISSING, REASON_IN_PART and REASON_UNLIKE, the names of both GPUs for
 * REASON_OTHER_GPU, and otherwise NULL. */
const char *result_reason_text(enum result_reason reason, const char *range, const char *what,
                               const struct comparison_options *options, struct arena *arena);

#endif
