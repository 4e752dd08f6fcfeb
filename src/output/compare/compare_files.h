/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_files.h: what `stepscope compare` writes besides its report, for CI systems. A file is replaced at once or not at all; what GitHub
 * gives a step to append to is appended to.
 */
#ifndef OUTPUT_COMPARE_COMPARE_FILES_H
#define OUTPUT_COMPARE_COMPARE_FILES_H

#include "output/compare/compare_outputs.h"

struct compare_files {
	const char *markdown, *junit, *smaller, *bigger, *canary; /* paths; NULL: not wanted */
	bool is_github; /* annotations on stderr, summary and outputs where the environment says */
};

enum status compare_files_write(const struct compare_files *files, const struct compare_output *of,
                                struct error *err) MUST_CHECK;

#endif
