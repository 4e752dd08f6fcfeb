/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_files.h: the files that `stepscope compare` writes besides its report, for CI systems. A file is replaced as
 * a whole or not at all. The files that GitHub provides for a step are appended to.
 */
#ifndef OUTPUT_COMPARE_COMPARE_FILES_H
#define OUTPUT_COMPARE_COMPARE_FILES_H

#include "output/compare/compare_outputs.h"

struct compare_files {
	const char *markdown, *junit, *smaller, *bigger, *canary; /* paths; NULL: not wanted */
	/* also write annotations to stderr, and summary and outputs to the files that the environment names */
	bool is_github;
};

enum status compare_files_write(const struct compare_files *files, const struct compare_output *of,
                                struct error *err) MUST_CHECK;

#endif
