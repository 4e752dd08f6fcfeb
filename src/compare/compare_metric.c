/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_metric.c: see the header.
 */
#include "compare/compare_metric.h"

const char *compare_metric_name(enum compare_metric metric)
{
	static const char *const names[COMPARE_METRIC_COUNT] = {
#define X(metric, name) [metric] = name,
		COMPARE_METRICS(X)
#undef X
	};

	return names[metric];
}
