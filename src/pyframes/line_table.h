/* SPDX-License-Identifier: Apache-2.0
 *
 * line_table.h: finds the line of an instruction in the three kinds of tables that CPython has had. The bytes come one
 * by one, so a table of any length needs no memory.
 */
#ifndef PYFRAMES_LINE_TABLE_H
#define PYFRAMES_LINE_TABLE_H

#include "pyframes/versions.h"

struct pyframes_bytes {
	int (*next)(struct pyframes_bytes *bytes); /* -1: at the end, or unreadable */
};

/* Returns the line of the instruction at `offset` (bytes; negative: before the first). 0: the instruction has no line,
 * or it is not in the table. */
uint32_t pyframes_line(enum pyframes_lines kind, struct pyframes_bytes *table, uint32_t first_line, int64_t offset);

#endif
