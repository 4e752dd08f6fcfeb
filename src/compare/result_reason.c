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
	[REASON_ONE_STEP] = "of a run with one step it is not known how much its steps differ",
	[REASON_BY_CHANCE] = "{range} by itself, but of this many metrics one looks like that by chance",
	[REASON_OPEN] = "anything from {range} is possible: neither is 0 ruled out nor a change of {tolerance} %",
	[REASON_NOT_ZERO] = "0 is ruled out: {range}",
	[REASON_SMALL] = "certain, but less than {smallest} %: {range}",
	[REASON_RULED_OUT] = "a change of {tolerance} % is ruled out: {range} (90 %)",
	[REASON_UNLIKE] = "{what}",
	[REASON_OTHER_WORK] = "the work per step is not the same",
	[REASON_EQUAL] = "the same on both sides",
	[REASON_COUNTED] = "counted, without noise",
	[REASON_NO_RATIO] = "a change from or to 0 or less has no ratio",
	[REASON_NO_INTERVAL] = "one snapshot each, or few: no interval",
	[REASON_POSSIBLE] = "anything from {range} is possible",
	[REASON_TOO_LARGE] = "the values are too large to compute with",
	[REASON_OTHER_GPU] = "not the same GPU: {what}",
	[REASON_OTHER_UNIT] = "not in the same unit on both sides",
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
