/* SPDX-License-Identifier: Apache-2.0
 *
 * entry.c: see entry.h.
 */
#include "agents/torch/entry.h"

#include "agents/torch/process.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char library[] = TORCH_LIBRARY;

static bool lack(const char *what, const char *path, char *problem, size_t problem_bytes)
{
	snprintf(problem, problem_bytes, "'%.200s' has no %s: this PyTorch cannot be observed", path, what);
	return false;
}

bool torch_entry_find(struct torch_entry *entry, char *problem, size_t problem_bytes)
{
	struct loaded loaded;
	memset(entry, 0, sizeof(*entry));
	process_find_library(&loaded, library);
	snprintf(entry->path, sizeof(entry->path), "%s", loaded.path);
	if (loaded.count == 0) {
		snprintf(problem, problem_bytes, "no %s is loaded", library);
		return false;
	}
	if (loaded.count > 1) {
		snprintf(problem, problem_bytes, "%d copies of %s are loaded, the last of them '%.200s'", loaded.count,
		         library, entry->path);
		return false;
	}
	void *handle = loaded.handle;
	if (!handle) {
		snprintf(problem, problem_bytes, "cannot open '%.200s'", entry->path);
		return false;
	}
	*(void **)&entry->add_global_callback = dlsym(handle, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
	*(void **)&entry->remove_callback = dlsym(handle, "_ZN2at14removeCallbackEm");
	*(void **)&entry->name = dlsym(handle, "_ZNK2at14RecordFunction4nameEv");
	*(void **)&entry->sequence_peek = dlsym(handle, "_ZN2at15sequence_number4peekEv");
	*(void **)&entry->thread_id = dlsym(handle, "_ZN2at14RecordFunction15currentThreadIdEv");
	*(void **)&entry->add_thread_callback = dlsym(handle,
	                                              "_ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE");
	*(void **)&entry->has_thread_callbacks = dlsym(handle, "_ZN2at23hasThreadLocalCallbacksEv");
	if (!entry->add_thread_callback || !entry->has_thread_callbacks)
		entry->add_thread_callback = NULL, entry->has_thread_callbacks = NULL;
	*(void **)&entry->makes_records = dlsym(handle, "_ZN2at23isRecordFunctionEnabledEv");
	*(void **)&entry->make_records = dlsym(handle, "_ZN2at20enableRecordFunctionEb");
	if (!entry->makes_records || !entry->make_records)
		entry->makes_records = NULL, entry->make_records = NULL;
	*(void **)&entry->dispatcher = dlsym(handle, "_ZN3c1010Dispatcher13realSingletonEv");
	*(void **)&entry->add_listener = dlsym(handle, "_ZN3c1010Dispatcher23addRegistrationListenerESt10unique_ptrINS_"
	                                               "22OpRegistrationListenerESt14default_deleteIS2_EE");
	if (!entry->dispatcher || !entry->add_listener)
		entry->dispatcher = NULL, entry->add_listener = NULL;
#ifndef __aarch64__ /* the place of the result is in a register that C cannot name */
	*(void **)&entry->callbacks_of = dlsym(handle, "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE");
#endif
	if (!entry->add_global_callback || !entry->remove_callback)
		return lack("at::addGlobalCallback()", entry->path, problem, problem_bytes);
	return entry->name || lack("at::RecordFunction::name()", entry->path, problem, problem_bytes);
}
