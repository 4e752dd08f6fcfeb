/* SPDX-License-Identifier: Apache-2.0
 *
 * run_python.c: see run_python.h.
 */
#include "run/run_python.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Relative to the folder of the program: in a build, installed by `make install`, by pip, by Debian. STEPSCOPE_LIBDIR
 * comes from the build, such as lib/x86_64-linux-gnu. */
#define PLACES 4
#define PACKAGES "../lib/python3*/site-packages/"
#define DEBIAN_PACKAGES "../lib/python3*/dist-packages/"
static const char *const startups[PLACES] = {"../python/startup", "../share/stepscope/python/startup",
                                             PACKAGES "stepscope_startup", DEBIAN_PACKAGES "stepscope_startup"};
static const char *const libraries[PLACES] = {"recorder/libstepscope.so.0", "../" STEPSCOPE_LIBDIR "/libstepscope.so.0",
                                              PACKAGES "stepscope/libstepscope.so.0",
                                              DEBIAN_PACKAGES "stepscope/libstepscope.so.0"};

static bool find(char *out, const char *folder, const char *const *candidates)
{
	bool is_found = false;

	for (int i = 0; i < PLACES && !is_found; i++) {
		char path[2 * PATH_MAX];
		glob_t found = {0};

		snprintf(path, sizeof(path), "%s/%s", folder, candidates[i]);
		if (!strchr(candidates[i], '*'))
			is_found = realpath(path, out) != NULL;
		else if (glob(path, 0, NULL, &found) == 0)
			is_found = realpath(found.gl_pathv[0], out) != NULL;
		globfree(&found);
	}
	if (!is_found)
		out[0] = '\0';
	return is_found;
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
	return find(python->startup, folder, startups) && find(python->library, folder, libraries);
}
