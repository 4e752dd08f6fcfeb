/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.c: see memory.h.
 */
#include "agents/torch/memory.h"

#include "agents/torch/slots.h"
#include "base/hot.h"
#include "recorder/emit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char library[] = "libc10.so";
static const char new_name[] = "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm";
static const char delete_name[] = "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv";

static HOT struct {
	void (*allocate)(void *reporter, void *address, size_t bytes);
	void (*release)(void *reporter, void *address);
} originals;

/* Between two events the program's kernels push code out of the processor's caches. Each of these functions fits in
 * one cache line, because its last call need not save anything for later. */
__attribute__((hot, aligned(64))) static void on_new(void *reporter, void *address, size_t bytes)
{
	originals.allocate(reporter, address, bytes);
	if (__builtin_expect(STEPSCOPE_ACTIVE_ & STEPSCOPE_ACTIVE_MEMORY && bytes, 1))
		emit_alloc(address, bytes);
}

__attribute__((hot, aligned(64))) static void on_delete(void *reporter, void *address)
{
	originals.release(reporter, address);
	if (__builtin_expect(STEPSCOPE_ACTIVE_ & STEPSCOPE_ACTIVE_MEMORY, 1))
		emit_free(address);
}

/* Redirects both or neither: allocations without releases would look like a leak. */
static bool lead_here(const struct slots *news, const struct slots *deletes)
{
	union {
		void (*allocate)(void *, void *, size_t);
		void (*release)(void *, void *);
		void *address;
	} function = {.release = on_delete};
	if (!slots_lead(deletes, function.address))
		return false;
	function.allocate = on_new;
	if (slots_lead(news, function.address))
		return true;
	function.release = originals.release;
	(void)slots_lead(deletes, function.address);
	return false;
}

bool memory_start(char *problem, size_t problem_bytes)
{
	static bool is_on;
	struct loaded loaded;
	struct slots news, deletes;
	if (is_on)
		return true;
	process_find_library(&loaded, library);
	void *allocate = loaded.handle ? dlsym(loaded.handle, new_name) : NULL;
	void *release = loaded.handle ? dlsym(loaded.handle, delete_name) : NULL;
	if (!allocate || !release) {
		snprintf(problem, problem_bytes, "%s",
		         loaded.count == 1 ? "this PyTorch does not report its allocations"
		                           : "the process does not have exactly one libc10");
		return false;
	}
	*(void **)&originals.allocate = allocate;
	*(void **)&originals.release = release;
	is_on = slots_find(&news, &loaded, new_name) && slots_find(&deletes, &loaded, delete_name) &&
	        lead_here(&news, &deletes);
	if (!is_on)
		snprintf(problem, problem_bytes, "libc10's calls could not be redirected");
	return is_on;
}

void memory_owners(const void *words, int count)
{
	for (int i = 0; i < count; i++) {
		uint64_t owner[3];
		memcpy(owner, (const char *)words + (size_t)i * sizeof(owner), sizeof(owner));
		const uint64_t payload[3] = {owner[1], owner[0], owner[2]};
		if (STEPSCOPE_ACTIVE_ & STEPSCOPE_ACTIVE_MEMORY)
			emit_event(STEPSCOPE_EVENT_EXTENDED, STEPSCOPE_EXTENDED_MEMORY_OWNER, payload, 3);
	}
}
