/* SPDX-License-Identifier: Apache-2.0
 *
 * cupti_library.h: finds CUPTI and looks up its functions. The library stays loaded: it must never be closed.
 */
#ifndef BENCH_CUPTI_LIBRARY_H
#define BENCH_CUPTI_LIBRARY_H

#include "cupti_numbers.h"

#include <stdbool.h>

/* Finds the mapped CUPTI, otherwise one by its names, otherwise at `path` (may be NULL). Sets its functions, NULL if
 * this version lacks one, and its path in `found`. Returns false without CUPTI, or if it lacks a needed function. */
bool cupti_library_find(struct cupti_functions *functions, const char *path, char *found, size_t found_bytes);

#endif
