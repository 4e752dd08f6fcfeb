/* SPDX-License-Identifier: Apache-2.0
 *
 * python_source.h: the text of a line of the program, if its file is on the machine that reads the recording, and has
 * not changed. The recorded line must be the one that called.
 *
 *     struct python_source source;
 *     python_source_init(&source, model);
 *     const char *text = python_source_line(&source, "/home/me/train.py", 41, &reason);     NULL: reason says why
 *     python_source_release(&source);     texts are gone with it
 */
#ifndef ANALYSIS_OPERATORS_PYTHON_SOURCE_H
#define ANALYSIS_OPERATORS_PYTHON_SOURCE_H

#include "base/arena.h"
#include "model/model.h"

struct source_file {
	const char *name;
	const char *reason; /* NULL: the text was read */
	char *text;
	size_t length;
};

struct python_source {
	struct arena arena;
	const char *folder; /* start of relative names; NULL: unknown */
	bool has_time, is_of_functions;
	int64_t started_s; /* start of the run, wall time */
	struct source_file *files;
	uint32_t count, capacity;
};

void python_source_init(struct python_source *source, const struct model *model);
void python_source_release(struct python_source *source);
/* Returns true if frames have the line where their function starts, as in traces of torch.profiler, not the calling
 * line. */
bool python_lines_are_of_functions(const struct model *model);
/* Returns the text without the blanks around it. */
const char *python_source_line(struct python_source *source, const char *file, uint32_t line, const char **reason);

#endif
