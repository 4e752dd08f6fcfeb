/* SPDX-License-Identifier: Apache-2.0
 *
 * registry.c: the array of all analyses, made from their list.
 */
#include "analysis/analysis.h"

#include <string.h>

#define ENTRY(name) &analysis_##name,

const struct analysis *const analyses[ANALYSIS_COUNT + 1] = {ANALYSES(ENTRY) NULL};

const struct analysis *analysis_find(const char *name)
{
	for (int i = 0; analyses[i]; i++) {
		if (!strcmp(analyses[i]->name, name))
			return analyses[i];
	}
	return NULL;
}
