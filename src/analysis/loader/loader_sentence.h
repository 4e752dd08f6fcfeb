/* SPDX-License-Identifier: Apache-2.0
 *
 * loader_sentence.h: a sentence on the part that limits a data loader.
 */
#ifndef ANALYSIS_LOADER_LOADER_SENTENCE_H
#define ANALYSIS_LOADER_LOADER_SENTENCE_H

#include "analysis/loader/loader_limit.h"
#include "base/arena.h"

/* Returns a sentence with the numbers that support the verdict. */
const char *loader_sentence(const struct loader_sums *sums, const struct loader_verdict *verdict, struct arena *arena);

#endif
