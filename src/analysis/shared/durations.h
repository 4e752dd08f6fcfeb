/* SPDX-License-Identifier: Apache-2.0
 *
 * durations.h: number and durations of the calls of one name. Calls without a known start or end are in no mean.
 *
 *     struct durations calls = DURATIONS_NONE;
 *     durations_add(&calls, dur_ns, span_is_timed(flags));
 */
#ifndef ANALYSIS_SHARED_DURATIONS_H
#define ANALYSIS_SHARED_DURATIONS_H

#include "base/clamped.h"

#include <stdbool.h>
#include <stdint.h>

struct durations {
	int64_t count, total_ns;
	int64_t timed, timed_ns; /* those with known start and end */
	int64_t min_ns, max_ns;  /* of the timed ones */
};

#define DURATIONS_NONE                                                                                                 \
	{                                                                                                              \
		.min_ns = INT64_MAX                                                                                    \
	}

static inline void durations_add(struct durations *calls, int64_t dur_ns, bool is_timed)
{
	calls->count++;
	clamped_add(&calls->total_ns, dur_ns);
	if (!is_timed)
		return;
	calls->timed++;
	clamped_add(&calls->timed_ns, dur_ns);
	calls->min_ns = dur_ns < calls->min_ns ? dur_ns : calls->min_ns;
	calls->max_ns = dur_ns > calls->max_ns ? dur_ns : calls->max_ns;
}

/* The column with the number of calls left out of mean, min and max. */
#define DURATIONS_INCOMPLETE                                                                                           \
	{                                                                                                              \
		.name = "incomplete_calls", .title = "incomplete", .type = TABLE_INT, .unit = UNIT_COUNT,              \
		.role = ROLE_EVIDENCE,                                                                                 \
		.definition = "calls whose start or end was not recorded: sums of time include their known part; "     \
			      "mean, min and max leave them out",                                                      \
		.is_hidden = true, .more = MORE_SUM                                                                    \
	}

#endif
