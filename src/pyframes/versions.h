/* SPDX-License-Identifier: Apache-2.0
 *
 * versions.h: where CPython keeps what a stack is made of, one row per version. Needs no Python header and links no libpython: the
 * numbers are data, so that the same code reads this process and, later, another one.
 *
 *     const struct pyframes_layout *layout = pyframes_layout_find(Py_GetVersion(), problem, sizeof(problem));
 *
 * 64-bit builds with a global lock only. What is not known is refused with a sentence, never guessed; who uses a row checks it on stacks
 * that are known (src/agents/torch/lines.c).
 */
#ifndef PYFRAMES_VERSIONS_H
#define PYFRAMES_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pyframes_lines {        /* how a code object says which instruction is on which line */
	PYFRAMES_LNOTAB,     /* to 3.9: pairs of bytes, steps of the instruction and of the line */
	PYFRAMES_LINE_TABLE, /* 3.10: the same with ranges, and some instructions on no line */
	PYFRAMES_LOCATIONS,  /* 3.11 on: entries of varying length, with columns */
};

/* Offsets in bytes. */
struct pyframes_layout {
	uint8_t minor; /* of version 3 */
	uint8_t lines; /* enum pyframes_lines */
	/* of the thread state: its innermost frame, or (is_indirect) a structure that holds it at c_frame */
	bool is_indirect;
	uint16_t thread_frame, c_frame;
	/* of a frame: the one that called it, its code object, where it is */
	uint16_t previous, code, instruction;
	bool is_pointer; /* the instruction is an address in the code object; else a number (int), of `unit` bytes each */
	uint8_t unit;    /* bytes of an instruction's number */
	uint8_t no_code; /* from this value of the byte `owner` on, the frame is none of Python code; 0: there are no such frames */
	uint16_t owner;
	/* of a code object; bytecode: inside of it, or (not is_pointer) a bytes object */
	uint16_t file, name, qualified_name /* 0: has none */, first_line, line_table, bytecode;
	/* of a str: where the text begins when it is ASCII, and when not */
	uint16_t ascii_text, other_text;
};

/* The row for what Py_GetVersion() says ("3.11.7 (main, ...) [GCC ...]"); NULL: `problem` says why there is none. */
const struct pyframes_layout *pyframes_layout_find(const char *version, char *problem, size_t problem_bytes);

#endif
