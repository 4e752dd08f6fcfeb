/* SPDX-License-Identifier: Apache-2.0
 *
 * library.c: see library.h.
 */
#include "agents/python/library.h"

#include "agents/torch/process.h"

#include <dlfcn.h>

#define FILE_NAME "libstepscope.so.0"

struct torch_library library;

/* Relative to the folder of this extension. STEPSCOPE_INSTALLED is the path to the installed library, from `make
 * install`. */
static const char *const places[] = {FILE_NAME, "../../src/recorder/" FILE_NAME, STEPSCOPE_INSTALLED "/" FILE_NAME};

static void *open_beside(void)
{
	char path[sizeof(library.path) + 64];
	Dl_info info;
	if (!dladdr(&library, &info) || !info.dli_fname)
		return NULL;
	const char *slash = strrchr(info.dli_fname, '/');
	int folder = slash ? (int)(slash - info.dli_fname) : 1;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%.*s/%s", folder, slash ? info.dli_fname : ".", places[i]);
		void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (handle)
			return handle;
	}
	return NULL;
}

/* Prefers the copy that the program is linked with. It is searched among the loaded files, because dlopen() would
 * search the disk. */
static void *open_library(void)
{
	const char *named = getenv("STEPSCOPE_LIBRARY");
	struct loaded loaded;
	process_find_library(&loaded, FILE_NAME);
	void *handle = loaded.handle;
	if (!handle && named && named[0])
		handle = dlopen(named, RTLD_NOW | RTLD_LOCAL);
	else if (!handle)
		handle = open_beside();
	return handle ? handle : dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
}

bool library_open(char *problem, size_t problem_bytes)
{
	Dl_info info;
	if (library.active)
		return true;
	void *handle = open_library();
	if (!handle) {
		const char *reason = dlerror();
		snprintf(problem, problem_bytes, "cannot load " FILE_NAME ": %s", reason ? reason : "not found");
		return false;
	}
	const unsigned *active = dlsym(handle, "stepscope_active");
	if (active && dladdr(active, &info) && info.dli_fname)
		snprintf(library.path, sizeof(library.path), "%s", info.dli_fname);
	const char *missing = active ? NULL : "stepscope_active";
#define FIND(name)                                                                                                     \
	if (!missing && !(*(void **)&library.name = dlsym(handle, #name)))                                             \
		missing = #name;
	LIBRARY_FUNCTIONS(FIND)
#undef FIND
	if (missing) {
		snprintf(problem, problem_bytes, "'%.400s' has another version than this Python package: it has no %s",
		         library.path, missing);
		return false;
	}
	library.active = active;
	return true;
}
