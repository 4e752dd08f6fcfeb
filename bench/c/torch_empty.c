/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_empty.c: callbacks around PyTorch's operators that do nothing, one per scope as ours: what any observer has to pay.
 * A shared object for bench/torch_step.py.
 */
#include "agents/torch/entry.h"

#include <dlfcn.h>

static uint64_t handles[4];
static unsigned count;
static void (*remove_callback)(uint64_t handle);

static void *start(void **context, const void *record)
{
	(void)record;
	*context = NULL;
	return context;
}

static void end(const void *record, void *context)
{
	(void)record;
	(void)context;
}

/* `library` is the path of the libtorch_cpu that is loaded; -1: it lacks a function. */
int torch_empty_start(const char *library, int needs_inputs)
{
	static const int scopes[4] = {TORCH_SCOPE_FUNCTION, TORCH_SCOPE_BACKWARD, TORCH_SCOPE_TORCHSCRIPT,
	                              TORCH_SCOPE_USER};
	uint64_t (*add)(struct torch_callback callback);
	void *handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY);
	if (!handle)
		return -1;
	*(void **)&add = dlsym(handle, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
	*(void **)&remove_callback = dlsym(handle, "_ZN2at14removeCallbackEm");
	if (!add || !remove_callback)
		return -1;
	while (count < 4) {
		struct torch_callback callback = {.start = start, .end = end, .probability = 1.0};
		callback.scopes[scopes[count]] = true;
		callback.needs_inputs = needs_inputs != 0;
		handles[count++] = add(callback);
	}
	return 0;
}

void torch_empty_stop(void)
{
	while (count)
		remove_callback(handles[--count]);
}
