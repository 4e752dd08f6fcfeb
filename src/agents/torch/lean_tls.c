/* SPDX-License-Identifier: Apache-2.0
 *
 * lean_tls.c: see lean_tls.h. PyTorch throws if there is no memory, so this is compiled with -fexceptions.
 */
#include "agents/torch/lean_tls.h"

#include "agents/torch/slots.h"

#include <dlfcn.h>
#include <string.h>

static const char get_name[] = "_ZN2at24get_record_function_tls_Ev";
static const char set_name[] = "_ZN2at24set_record_function_tls_ERKNS_17RecordFunctionTLSE";

/* at::RecordFunctionTLS: a std::vector and a bool. */
struct observers {
	const void *begin, *end, *room;
	uint8_t makes_records, padding[7];
};
_Static_assert(sizeof(struct observers) == 32, "at::RecordFunctionTLS");

static struct { /* written once */
	const struct observers *(*get)(void);
	void (*set)(const struct observers *observers);
} torch;

/* Skips a change that changes nothing. If the global observers have changed, each operator still computes its
 * callbacks again. */
static void set_observers(const struct observers *observers)
{
	const struct observers *now = torch.get();
	bool is_empty = now->begin == now->end && observers->begin == observers->end;
	if (__builtin_expect(!is_empty || now->makes_records != observers->makes_records, 0))
		torch.set(observers);
}

/* ---- proof: the words are those that PyTorch's functions change, and all of them --------------------------------- */

static bool is_so(const struct torch_entry *entry, bool makes_records, bool is_empty)
{
	const struct observers *now = torch.get();
	uintptr_t begin = (uintptr_t)now->begin, end = (uintptr_t)now->end, room = (uintptr_t)now->room;
	return now->makes_records == makes_records && entry->makes_records() == makes_records &&
	       (begin == end) == is_empty && entry->has_thread_callbacks() == !is_empty && begin <= end && end <= room;
}

TORCH_START_BODY static void nothing(const void *record) {}
TORCH_START(start_lean_nothing, nothing)

static void end_nothing(const void *record, void *context) {}

static bool shows_list(const struct torch_entry *entry, bool makes_records)
{
	struct torch_callback callback = {.start = start_lean_nothing, .end = end_nothing, .probability = 1.0};
	callback.scopes[TORCH_SCOPE_CUSTOM_CLASS] = true;
	uint64_t handle = entry->add_thread_callback(callback);
	bool is_shown = is_so(entry, makes_records, false);
	entry->remove_callback(handle);
	return is_shown && is_so(entry, makes_records, true);
}

static bool shows_switch(const struct torch_entry *entry, bool makes_records)
{
	entry->make_records(!makes_records);
	bool is_shown = is_so(entry, !makes_records, true);
	entry->make_records(makes_records);
	return is_shown && is_so(entry, makes_records, true);
}

/* Returns true if PyTorch takes exactly 32 bytes. The bytes after them also read as an empty list; none of them may
 * get to PyTorch. */
static bool takes_all(const struct torch_entry *entry, bool makes_records)
{
	static const char mark;
	union {
		struct observers observers;
		const void *words[16];
	} given;
	uint64_t words[16];
	for (int i = 0; i < 16; i++)
		given.words[i] = &mark;
	given.observers = (struct observers){.makes_records = !makes_records};
	torch.set(&given.observers);
	bool is_taken = is_so(entry, !makes_records, true);
	unsigned count = process_read_words((uint64_t)(uintptr_t)torch.get(), words, 16);
	for (unsigned i = 4; i < count; i++)
		is_taken &= words[i] != (uintptr_t)&mark;
	given.observers.makes_records = makes_records;
	torch.set(&given.observers);
	return is_taken && count >= 8 && is_so(entry, makes_records, true);
}

static bool is_proven(const struct torch_entry *entry)
{
	bool makes_records = entry->makes_records();
	const void *first = torch.get();
	return torch.get() == first && is_so(entry, makes_records, true) && shows_list(entry, makes_records) &&
	       shows_switch(entry, makes_records) && takes_all(entry, makes_records);
}

const char *lean_tls_start(const struct torch_entry *entry, const struct loaded *loaded)
{
	static const char *const names[] = {set_name};
	union {
		void (*set)(const struct observers *observers);
		void *address;
	} function = {.set = set_observers};
	struct slots slots;
	void *get = loaded->handle ? dlsym(loaded->handle, get_name) : NULL;
	void *set = loaded->handle ? dlsym(loaded->handle, set_name) : NULL;
	if (!get || !set || !entry->add_thread_callback || !entry->makes_records)
		return "this PyTorch does not have all of its functions";
	*(void **)&torch.get = get;
	*(void **)&torch.set = set;
	if (entry->has_thread_callbacks())
		return "a profiler of the program is active";
	if (!is_proven(entry))
		return "the observers of a thread are kept in an unknown way";
	if (slots_find_each(&slots, loaded, names, 1) != 1)
		return "libtorch_cpu calls it without slots";
	return slots_lead(&slots, function.address) ? NULL : "the slots are read-only";
}
