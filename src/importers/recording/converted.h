/* SPDX-License-Identifier: Apache-2.0
 *
 * converted.h: recognises files that `stepscope convert` made. Such a file holds a whole input. In a run directory it
 * is not part of the recorded run. Beside traces it is not another rank, since it may have been made from them.
 */
#ifndef IMPORTERS_RECORDING_CONVERTED_H
#define IMPORTERS_RECORDING_CONVERTED_H

#include <stdbool.h>
#include <stddef.h>

bool converted_begins(const char *head, size_t length); /* by its first bytes */
bool converted_is_file(const char *path);

#endif
