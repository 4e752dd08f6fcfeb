/* SPDX-License-Identifier: Apache-2.0
 *
 * cupti_library.h: finds CUPTI and looks its functions up. The library stays: it must never be closed.
 */
#ifndef BENCH_CUPTI_LIBRARY_H
#define BENCH_CUPTI_LIBRARY_H

#include "cupti_numbers.h"

#include <stdbool.h>

/* Takes the CUPTI that is mapped, else one by its names, else `path` (may be NULL). Fills in its functions, NULL for those that this
 * version has not, and where it is; false when there is none, or not with all that is needed. */
bool cupti_library_find(struct cupti_functions *functions, const char *path, char *found, size_t found_bytes);

#endif
