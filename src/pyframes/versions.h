/* SPDX-License-Identifier: Apache-2.0
 *
 * versions.h: the layout of CPython's structures that make up a stack, one row per version. This needs no Python
 * header and does not link libpython. The numbers are data, so that the same code can read this process and, later,
 * another one.
 *
 *     const struct pyframes_layout *layout = pyframes_layout_find(Py_GetVersion(), problem, sizeof(problem));
 *
 * Only 64-bit builds with a global lock are supported. An unknown version is refused with a reason, never guessed. The
 * user of a row checks it on known stacks (src/agents/torch/lines.c).
 */
#ifndef PYFRAMES_VERSIONS_H
#define PYFRAMES_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pyframes_lines {        /* how a code object maps instructions to lines */
	PYFRAMES_LNOTAB,     /* to 3.9: pairs of bytes, increments of the instruction and of the line */
	PYFRAMES_LINE_TABLE, /* 3.10: the same with ranges; some instructions have no line */
	PYFRAMES_LOCATIONS,  /* since 3.11: entries of varying length, with columns */
};

/* Offsets in bytes. */
struct pyframes_layout {
	uint8_t minor; /* minor version of Python 3 */
	uint8_t lines; /* enum pyframes_lines */
	/* of the thread state: its innermost frame, or (is_indirect) a structure that holds that frame at c_frame */
	bool is_indirect;
	uint16_t thread_frame, c_frame;
	/* of a frame: its caller, its code object, its instruction */
	uint16_t previous, code, instruction;
	bool is_pointer; /* the instruction is an address in the code object; otherwise a number (int) of `unit`
	                  * bytes */
	uint8_t unit;    /* bytes per instruction number */
	uint8_t no_code; /* the frame is not of Python code if the byte `owner` is at least this; 0: no such frames */
	uint16_t owner;
	/* of a code object; bytecode: inside the code object, or (not is_pointer) a bytes object */
	uint16_t file, name, qualified_name /* 0: absent */, first_line, line_table, bytecode;
	/* of a str: start of the text if it is ASCII, and if not */
	uint16_t ascii_text, other_text;
};

/* Returns the row for a text of Py_GetVersion() ("3.11.7 (main, ...) [GCC ...]"). NULL: `problem` has the reason. */
const struct pyframes_layout *pyframes_layout_find(const char *version, char *problem, size_t problem_bytes);

#endif
