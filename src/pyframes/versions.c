/* SPDX-License-Identifier: Apache-2.0
 *
 * versions.c: offsetof() of the structures in CPython's own headers: Include/cpython/pystate.h, code.h,
 * unicodeobject.h, Include/internal/pycore_frame.h, and to 3.10 frameobject.h. They were compiled against 3.8.18,
 * 3.9.18, 3.10.13, 3.11.2, 3.11.7, 3.12.1, 3.13.0 and 3.14.10. tests/pyframes checks them on those interpreters.
 */
#include "pyframes/versions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct pyframes_layout layouts[] = {
	{.minor = 8,
         .lines = PYFRAMES_LNOTAB,
         .thread_frame = 24,
         .previous = 24,
         .code = 32,
         .instruction = 104,
         .unit = 1,
         .file = 104,
         .name = 112,
         .first_line = 40,
         .line_table = 120,
         .bytecode = 48,
         .ascii_text = 48,
         .other_text = 72},
	{.minor = 9,
         .lines = PYFRAMES_LNOTAB,
         .thread_frame = 24,
         .previous = 24,
         .code = 32,
         .instruction = 104,
         .unit = 1,
         .file = 104,
         .name = 112,
         .first_line = 40,
         .line_table = 120,
         .bytecode = 48,
         .ascii_text = 48,
         .other_text = 72},
	{.minor = 10,
         .lines = PYFRAMES_LINE_TABLE,
         .thread_frame = 24,
         .previous = 24,
         .code = 32,
         .instruction = 96,
         .unit = 2,
         .file = 104,
         .name = 112,
         .first_line = 40,
         .line_table = 120,
         .bytecode = 48,
         .ascii_text = 48,
         .other_text = 72},
	{.minor = 11,
         .lines = PYFRAMES_LOCATIONS,
         .is_indirect = true,
         .thread_frame = 56,
         .c_frame = 8,
         .previous = 48,
         .code = 32,
         .instruction = 56,
         .is_pointer = true,
         .file = 112,
         .name = 120,
         .qualified_name = 128,
         .first_line = 72,
         .line_table = 136,
         .bytecode = 184,
         .ascii_text = 48,
         .other_text = 72},
	{.minor = 12,
         .lines = PYFRAMES_LOCATIONS,
         .is_indirect = true,
         .thread_frame = 56,
         .c_frame = 0,
         .previous = 8,
         .code = 0,
         .instruction = 56,
         .is_pointer = true,
         .no_code = 3,
         .owner = 70,
         .file = 112,
         .name = 120,
         .qualified_name = 128,
         .first_line = 68,
         .line_table = 136,
         .bytecode = 192,
         .ascii_text = 40,
         .other_text = 56},
	{.minor = 13,
         .lines = PYFRAMES_LOCATIONS,
         .thread_frame = 72,
         .previous = 8,
         .code = 0,
         .instruction = 56,
         .is_pointer = true,
         .no_code = 3,
         .owner = 70,
         .file = 112,
         .name = 120,
         .qualified_name = 128,
         .first_line = 68,
         .line_table = 136,
         .bytecode = 200,
         .ascii_text = 40,
         .other_text = 56},
	{.minor = 14,
         .lines = PYFRAMES_LOCATIONS,
         .thread_frame = 72,
         .previous = 8,
         .code = 0,
         .instruction = 56,
         .is_pointer = true,
         .no_code = 3,
         .owner = 74,
         .file = 112,
         .name = 120,
         .qualified_name = 128,
         .first_line = 68,
         .line_table = 136,
         .bytecode = 208,
         .ascii_text = 40,
         .other_text = 56},
};

static const struct pyframes_layout *versions_refuse(const char *why, const char *version, char *problem,
                                                     size_t problem_bytes)
{
	snprintf(problem, problem_bytes, "%s: '%.60s'", why, version);
	return NULL;
}

const struct pyframes_layout *pyframes_layout_find(const char *version, char *problem, size_t problem_bytes)
{
	if (sizeof(void *) != 8)
		return versions_refuse("stacks are supported in 64-bit programs only", version, problem, problem_bytes);
	if (strstr(version, "PyPy") || strstr(version, "GraalVM"))
		return versions_refuse("this Python is not CPython", version, problem, problem_bytes);
	if (strstr(version, "free-threading"))
		return versions_refuse("stacks of free-threaded Python are not supported", version, problem,
		                       problem_bytes);
	char *end;
	long minor = strncmp(version, "3.", 2) == 0 ? strtol(version + 2, &end, 10) : -1;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].minor == minor)
			return &layouts[i];
	return versions_refuse("stacks are supported for Python 3.8 to 3.14 only", version, problem, problem_bytes);
}
