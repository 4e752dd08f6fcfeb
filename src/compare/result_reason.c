/* SPDX-License-Identifier: Apache-2.0
 *
 * result_reason.c: see the header.
 */
#include "compare/result_reason.h"

#include "base/template.h"
#include "compare/comparison.h"

static const char *const templates[] = {
	[REASON_MISSING] = "{what}",
	[REASON_IN_PART] = "{what}",
	[REASON_ONE_STEP] = "a run with one step does not show how much steps vary",
	[REASON_BY_CHANCE] = ("{range} alone, but among this number of metrics one change of this size is likely by "
                              "chance"),
	[REASON_OPEN] = "the 95 % interval is {range}: neither 0 nor a change of {tolerance} % is ruled out",
	[REASON_NOT_ZERO] = "0 is ruled out: {range}",
	[REASON_SMALL] = "certain, but less than {smallest} %: {range}",
	[REASON_RULED_OUT] = "a change of {tolerance} % is ruled out: {range} (90 %)",
	[REASON_UNLIKE] = "{what}",
	[REASON_OTHER_WORK] = "the work per step is not the same",
	[REASON_EQUAL] = "the same on both sides",
	[REASON_COUNTED] = "counted, without noise",
	[REASON_NO_RATIO] = "one side is 0 or less, so the change has no ratio",
	[REASON_NO_INTERVAL] = "too few snapshots for an interval",
	[REASON_POSSIBLE] = "the 95 % interval is {range}",
	[REASON_TOO_LARGE] = "the values are too large to compute with",
	[REASON_OTHER_GPU] = "not the same GPU: {what}",
	[REASON_OTHER_UNIT] = "the sides use different units",
	[REASON_ONLY_NEW] = "only on the new side",
	[REASON_ONLY_BASE] = "only in the base",
	[REASON_NOT_ALL_RUNS] = "not in all runs",
};

const char *result_reason_text(enum result_reason reason, const char *range, const char *what,
                               const struct comparison_options *options, struct arena *arena)
{
	const struct template_text texts[] = {
		{"range", range},
		{"what", what},
		{"tolerance", arena_printf(arena, "%.3g", 100 * options->tolerance)},
		{"smallest", arena_printf(arena, "%.3g", 100 * options->smallest)},
	};

	return template_write(arena, templates[reason], texts, sizeof(texts) / sizeof(texts[0]));
}
