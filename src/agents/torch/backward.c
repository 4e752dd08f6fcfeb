/* SPDX-License-Identifier: Apache-2.0
 *
 * backward.c: see backward.h.
 */
#include "agents/torch/backward.h"

#include "pytorch/names.h"
#include "recorder/emit.h"

static struct {
	const char *(*name)(const void *record);
	void (*call)(void); /* kept after the last watch: a thread may be about to call it */
	uint64_t handle;
	bool has_handle;
	uint32_t but;   /* not in this part of the recording; 0: in any part */
	bool is_wanted; /* atomic */
} backward;

/* Returns a number for the part of the recording. Both counters only grow. */
static uint32_t part_now(void)
{
	return __atomic_load_n(&emit_starts, __ATOMIC_RELAXED) + __atomic_load_n(&emit_rotations, __ATOMIC_RELAXED);
}

static bool backward_is_wanted(void)
{
	return __atomic_load_n(&backward.is_wanted, __ATOMIC_ACQUIRE) &&
	       (STEPSCOPE_ACTIVE_ & STEPSCOPE_ACTIVE_MEMORY) && part_now() != backward.but;
}

TORCH_START_BODY static void look_at_node(const void *record)
{
	if (!backward_is_wanted())
		return;
	const char *name = backward.name(record);
	if (name && pytorch_begins(name, PYTORCH_ACCUMULATE) &&
	    __atomic_exchange_n(&backward.is_wanted, false, __ATOMIC_RELAXED))
		backward.call();
}
TORCH_START(start_backward_node, look_at_node)

static void end_node(const void *record, void *context) {}

static void add_callback(const struct torch_entry *entry)
{
	struct torch_callback callback = {.start = start_backward_node, .end = end_node, .probability = 1.0};
	callback.scopes[TORCH_SCOPE_BACKWARD] = true;
	backward.name = entry->name;
	backward.handle = entry->add_global_callback(callback);
	backward.has_handle = true;
}

void backward_watch(const struct torch_entry *entry, void (*call)(void), bool is_later)
{
	if (!call && backward.has_handle) {
		__atomic_store_n(&backward.is_wanted, false, __ATOMIC_RELEASE);
		entry->remove_callback(backward.handle);
		backward.has_handle = false;
	}
	if (!call)
		return;
	backward.call = call;
	backward.but = is_later ? part_now() : 0;
	__atomic_store_n(&backward.is_wanted, true, __ATOMIC_RELEASE);
	if (!backward.has_handle)
		add_callback(entry);
}
