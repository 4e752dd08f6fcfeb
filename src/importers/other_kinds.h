/* SPDX-License-Identifier: Apache-2.0
 *
 * other_kinds.h: what a file is that is read by itself only, in words for errors where a trace is wanted.
 */
#ifndef IMPORTERS_OTHER_KINDS_H
#define IMPORTERS_OTHER_KINDS_H

#include <stdbool.h>
#include <stddef.h>

/* By its first bytes, decompressed, best INPUT_LONG_HEAD_BYTES: "an export of nsys (SQLite)"; NULL: none of those. */
const char *other_kind(const char *head, size_t length);
const char *other_kind_of_file(const char *path);
bool other_kind_is_speedscope(const char *head, size_t length);
bool other_kind_is_smi(const char *head, size_t length);
bool folded_begins(const char *head, size_t length); /* folded.c */

#endif
