/* SPDX-License-Identifier: Apache-2.0
 *
 * converted.h: which files `stepscope convert` made. Such a one holds a whole input: in a directory it is no part of the run that was
 * recorded there, and no rank beside the traces it may have been made of.
 */
#ifndef IMPORTERS_RECORDING_CONVERTED_H
#define IMPORTERS_RECORDING_CONVERTED_H

#include <stdbool.h>
#include <stddef.h>

bool converted_begins(const char *head, size_t length); /* by its first bytes */
bool converted_is_file(const char *path);

#endif
