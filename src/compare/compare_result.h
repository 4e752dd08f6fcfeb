/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_result.h: the possible results of a comparison: for a metric, a quantity of telemetry, a limit and the
 * verdict. Code decides by these values. Their names, which other programs read in tables and JSON, are only written
 * and never compared.
 */
#ifndef COMPARE_COMPARE_RESULT_H
#define COMPARE_COMPARE_RESULT_H

#include <stdbool.h>

/* value, name */
#define COMPARE_RESULTS(X)                                                                                             \
	X(RESULT_NOT_MEASURED, "not measured")     /* on one side or both */                                           \
	X(RESULT_REGRESSION, "regression")         /* the change is certain, large enough, and for the worse */        \
	X(RESULT_IMPROVEMENT, "improvement")       /* as regression, but for the better */                             \
	X(RESULT_CHANGED, "changed")               /* as regression, but neither better nor worse */                   \
	X(RESULT_SAME, "no difference")            /* a change that matters is ruled out */                            \
	X(RESULT_INCONCLUSIVE, "inconclusive")     /* none of the above is certain */                                  \
	X(RESULT_NOT_COMPARABLE, "not comparable") /* the sides differ in their work, recording or GPU */              \
	X(RESULT_KEPT, "kept")                     /* limits only: the change is within it */                          \
	X(RESULT_WARNING, "warning")               /* limits only: it is broken, but does not fail */                  \
	X(RESULT_BROKEN, "broken")                 /* limits only */

enum compare_result {
#define X(result, name) result,
	COMPARE_RESULTS(X)
#undef X
};

const char *compare_result_name(enum compare_result result);

/* Returns true for regression, improvement and no difference, which more runs do not change. */
bool compare_result_is_settled(enum compare_result result);

#endif
