/* SPDX-License-Identifier: Apache-2.0
 *
 * line_table.h: from an instruction to its line, by the three tables CPython has had. The bytes come one by one, so that a table of any length
 * needs no room.
 */
#ifndef PYFRAMES_LINE_TABLE_H
#define PYFRAMES_LINE_TABLE_H

#include "pyframes/versions.h"

struct pyframes_bytes {
	int (*next)(struct pyframes_bytes *bytes); /* -1: at the end, or not readable */
};

/* Line of the instruction at `offset` (bytes; negative: before the first); 0: it is on none, or the table does not say. */
uint32_t pyframes_line(enum pyframes_lines kind, struct pyframes_bytes *table, uint32_t first_line, int64_t offset);

#endif
