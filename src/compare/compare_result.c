/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_result.c: see the header.
 */
#include "compare/compare_result.h"

const char *compare_result_name(enum compare_result result)
{
	static const char *const names[] = {
#define X(result, name) [result] = name,
		COMPARE_RESULTS(X)
#undef X
	};

	return names[result];
}

bool compare_result_is_settled(enum compare_result result)
{
	return result == RESULT_REGRESSION || result == RESULT_IMPROVEMENT || result == RESULT_SAME;
}
