/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_empty.c: empty callbacks around PyTorch's operators, one per scope like ours, to measure the minimum cost of an
 * observer. Also an empty listener for reports of allocations and releases, and a timer around any listener. A shared
 * object for bench/torch_step.py.
 */
#include "agents/torch/entry.h"
#include "agents/torch/slots.h"
#include "recorder/clock.h"

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

/* `library` is the path of the loaded libtorch_cpu. Returns -1 if it lacks a function, otherwise 0. */
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

/* ---- memory ----------------------------------------------------------------------------------------------------------------- */

typedef void allocated(void *reporter, void *address, size_t bytes);
typedef void released(void *reporter, void *address);

enum listener {
	LISTENER_NONE,
	LISTENER_EMPTY,
	LISTENER_FOUND,
	LISTENERS
};

static struct {
	struct slots news, deletes;
	allocated *allocated[LISTENERS];
	released *released[LISTENERS];
	enum listener listener;      /* the timed listener */
	uint64_t ticks, allocations; /* of the timed calls */
} memory;

static void on_new(void *reporter, void *address, size_t bytes)
{
	memory.allocated[LISTENER_NONE](reporter, address, bytes);
}

static void on_delete(void *reporter, void *address)
{
	memory.released[LISTENER_NONE](reporter, address);
}

/* Returns the counter after all earlier instructions are complete. */
static uint64_t ticks(void)
{
#ifdef __x86_64__
	__asm__ volatile("lfence" ::: "memory");
#else
	__asm__ volatile("isb" ::: "memory");
#endif
	struct clock_halves tick = clock_read_counter();
	return tick.high << 32 | tick.low;
}

static void watch_new(void *reporter, void *address, size_t bytes)
{
	uint64_t start = ticks();
	memory.allocated[memory.listener](reporter, address, bytes);
	memory.ticks += ticks() - start;
	memory.allocations++;
}

static void watch_delete(void *reporter, void *address)
{
	uint64_t start = ticks();
	memory.released[memory.listener](reporter, address);
	memory.ticks += ticks() - start;
}

static void lead(allocated *allocated, released *released)
{
	slots_lead(&memory.news, *(void **)&allocated);
	slots_lead(&memory.deletes, *(void **)&released);
}

/* Keeps the current listener as LISTENER_FOUND. Returns -1 if this PyTorch has no reports, otherwise 0. */
int torch_empty_memory_find(void)
{
	static const char new_name[] = "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm";
	static const char delete_name[] = "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv";
	struct loaded loaded;
	process_find_library(&loaded, "libc10.so");
	if (!slots_find(&memory.news, &loaded, new_name) || !slots_find(&memory.deletes, &loaded, delete_name))
		return -1;
	*(void **)&memory.allocated[LISTENER_NONE] = dlsym(loaded.handle, new_name);
	*(void **)&memory.released[LISTENER_NONE] = dlsym(loaded.handle, delete_name);
	memory.allocated[LISTENER_EMPTY] = on_new;
	memory.released[LISTENER_EMPTY] = on_delete;
	*(void **)&memory.allocated[LISTENER_FOUND] = *memory.news.at[0];
	*(void **)&memory.released[LISTENER_FOUND] = *memory.deletes.at[0];
	return 0;
}

void torch_empty_memory(int listener)
{
	lead(memory.allocated[listener], memory.released[listener]);
}

/* Times a listener until torch_empty_memory(). */
void torch_empty_memory_watch(int listener)
{
	memory.listener = (enum listener)listener;
	memory.ticks = memory.allocations = 0;
	lead(watch_new, watch_delete);
}

/* Returns the ticks per allocation and release since torch_empty_memory_watch(). */
double torch_empty_memory_ticks(void)
{
	return (double)memory.ticks / (double)memory.allocations;
}

uint64_t torch_empty_ticks(void)
{
	return ticks();
}
