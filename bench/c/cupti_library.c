/* SPDX-License-Identifier: Apache-2.0
 *
 * cupti_library.c: see cupti_library.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cupti_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Returns the mapped CUPTI, or NULL. It comes before any other, since two in one process do not work. Its file name may
 * contain the full version. */
static void *mapped_library(void)
{
	char line[1024];
	void *library = NULL;
	FILE *file = fopen("/proc/self/maps", "re");
	while (file && !library && fgets(line, sizeof(line), file)) {
		char *path = strchr(line, '/');
		if (!path || !strstr(path, "/libcupti.so"))
			continue;
		path[strcspn(path, "\n")] = 0;
		library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	}
	if (file)
		fclose(file);
	return library;
}

static void *find(const char *path)
{
	static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
	void *library = mapped_library();
	for (int i = 0; i < 3 && !library; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
	for (int i = 0; i < 3 && !library; i++)
		library = dlopen(names[i], RTLD_NOW);
	return library || !path ? library : dlopen(path, RTLD_NOW);
}

bool cupti_library_find(struct cupti_functions *functions, const char *path, char *found, size_t found_bytes)
{
	void *library = find(path);
	if (!library)
		return false;
#define LOOK_UP(field, name, parameters) *(void **)&functions->field = dlsym(library, #name);
	CUPTI_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
	bool is_complete = true;
#define CHECK(field, name, parameters) is_complete = is_complete && functions->field;
	CUPTI_FUNCTIONS_NEEDED(CHECK)
#undef CHECK
	Dl_info info;
	if (is_complete && dladdr((void *)(uintptr_t)functions->get_version, &info) && info.dli_fname)
		snprintf(found, found_bytes, "%s", info.dli_fname);
	return is_complete;
}
