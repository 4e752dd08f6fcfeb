/* SPDX-License-Identifier: Apache-2.0
 *
 * run_python.c: see run_python.h.
 */
#include "commands/run_python.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Relative to the folder of the program. STEPSCOPE_LIBDIR is the build's, such as lib/x86_64-linux-gnu. */
static const char *const startups[] = {"../python/startup", "../share/stepscope/python/startup"};
static const char *const libraries[] = {"recorder/libstepscope.so.0", "../" STEPSCOPE_LIBDIR "/libstepscope.so.0"};

static bool find(char *out, const char *folder, const char *const *candidates, int count)
{
	for (int i = 0; i < count; i++) {
		char path[2 * PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s", folder, candidates[i]);
		if (realpath(path, out))
			return true;
	}
	out[0] = '\0';
	return false;
}

bool run_python_find(struct run_python *python)
{
	char folder[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
	char *slash;

	*python = (struct run_python){.startup = ""};
	if (length <= 0)
		return false;
	folder[length] = '\0';
	memcpy(python->program, folder, (size_t)length + 1);
	slash = strrchr(folder, '/');
	*slash = '\0';
	return find(python->startup, folder, startups, 2) && find(python->library, folder, libraries, 2);
}
