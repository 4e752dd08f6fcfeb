/* SPDX-License-Identifier: Apache-2.0
 *
 * entry.c: see entry.h.
 */
#include "agents/torch/entry.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

static const char library[] = "libtorch_cpu.so";

struct search {
	char *path;
	size_t bytes;
	int found;
};

/* Debian's name ends in ".so.1.13". */
static int look_at(struct dl_phdr_info *info, size_t bytes, void *context)
{
	struct search *search = context;
	const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
	const char *name = slash ? slash + 1 : info->dlpi_name;
	(void)bytes;
	if (!name || strncmp(name, library, sizeof(library) - 1) != 0)
		return 0;
	search->found++;
	snprintf(search->path, search->bytes, "%s", info->dlpi_name);
	return 0;
}

static bool lack(const char *what, const char *path, char *problem, size_t problem_bytes)
{
	snprintf(problem, problem_bytes, "'%.200s' has no %s: this PyTorch cannot be observed", path, what);
	return false;
}

bool torch_entry_find(struct torch_entry *entry, char *problem, size_t problem_bytes)
{
	struct search search = {entry->path, sizeof(entry->path), 0};
	memset(entry, 0, sizeof(*entry));
	dl_iterate_phdr(look_at, &search);
	if (search.found == 0) {
		snprintf(problem, problem_bytes, "no %s is loaded", library);
		return false;
	}
	if (search.found > 1) {
		snprintf(problem, problem_bytes, "%d copies of %s are loaded, the last of them '%.200s'", search.found,
		         library, entry->path);
		return false;
	}
	void *handle = dlopen(entry->path, RTLD_NOLOAD | RTLD_LAZY);
	if (!handle) {
		snprintf(problem, problem_bytes, "cannot open '%.200s': %.200s", entry->path, dlerror());
		return false;
	}
	/* the handle stays: code that may be called back must not go away */
	*(void **)&entry->add_global_callback = dlsym(handle, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
	*(void **)&entry->remove_callback = dlsym(handle, "_ZN2at14removeCallbackEm");
	*(void **)&entry->name = dlsym(handle, "_ZNK2at14RecordFunction4nameEv");
	*(void **)&entry->sequence_peek = dlsym(handle, "_ZN2at15sequence_number4peekEv");
	*(void **)&entry->thread_id = dlsym(handle, "_ZN2at14RecordFunction15currentThreadIdEv");
	if (!entry->add_global_callback || !entry->remove_callback)
		return lack("at::addGlobalCallback()", entry->path, problem, problem_bytes);
	return entry->name || lack("at::RecordFunction::name()", entry->path, problem, problem_bytes);
}
