/* SPDX-License-Identifier: Apache-2.0
 *
 * lean_record.c: see lean_record.h.
 */
#include "agents/torch/lean_record.h"

#include "agents/torch/inputs_layout.h"
#include "base/hot.h"

#include <dlfcn.h>

HOT struct lean_places lean_places;
const void *lean_table[4];
struct lean_library lean_libraries[LEAN_LIBRARIES];

#ifdef __x86_64__

#define NOISE 0xcc
#define RECORD_BYTES 512 /* more than the size of a record */
#define FIRST_PLACE ((int)sizeof(struct lean_record))

static struct {
	const void *const *functions; /* PyTorch's own table, after the words about the type */
	void (*free)(void *);         /* operator delete */
	struct lean_pair pairs[2];    /* by scope: of operators, which ask for inputs, and of nodes, which do not */
	unsigned good[2], bad;        /* number of records */
	void (*looks[2])(const struct lean_record *record); /* watch destroyed records in calibration */
	void (*construct)(void *record, uint8_t scope);     /* as the engine and ranges call it */
} known;

/* Replaces PyTorch's destructor. */
__attribute__((hot)) static void destroy(struct lean_record *record)
{
	if (__builtin_expect(!lean_record_is(record), 0))
		lean_places.destroy(record);
	else if (record->callbacks.thread == BEGUN)
		lean_places.end(record, NULL);
}

/* Destroys a record through a pointer, which PyTorch does not do. */
static void destroy_and_free(struct lean_record *record)
{
	destroy(record);
	known.free(record);
}

static void look_and_destroy(struct lean_record *record)
{
	for (int i = 0; i < 2; i++)
		if (known.looks[i])
			known.looks[i](record);
	lean_places.destroy(record);
}

static bool lean_record_lead(struct lean_library *library, void (*function)(struct lean_record *record))
{
	union {
		void (*function)(struct lean_record *record);
		void *address;
	} to = {function};
	return library->slots[LEAN_DESTROY].count && slots_lead(&library->slots[LEAN_DESTROY], to.address);
}

static const char *const call_names[LEAN_CALLS] = {
	[LEAN_CONSTRUCT] = "_ZN2at14RecordFunctionC1EONS_13StepCallbacksE",
	[LEAN_BEFORE] =
		"_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_traitsIcEESt17reference_wrapperIKN3c"
		"1014FunctionSchemaEEEEl",
	[LEAN_END] = "_ZN2at14RecordFunction3endEv",
	[LEAN_DESTROY] = "_ZN2at14RecordFunctionD1Ev",
	[LEAN_SCOPE] = "_ZN2at14RecordFunctionC1ENS_11RecordScopeE",
	[LEAN_EVALUATE] =
		"_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_11InputBuff"
		"erERKS2_INS0_10ReadyQueueEE",
};

void *lean_record_function(enum lean_call call)
{
	void *handle = lean_libraries[0].loaded.handle;
	return handle ? dlsym(handle, call_names[call]) : NULL;
}

size_t lean_record_scope_bytes(void)
{
	return slots_function_bytes(&lean_libraries[0].loaded, call_names[LEAN_SCOPE]);
}

/* Searches each library in one pass. */
static void find_libraries(void)
{
	static const char *const names[LEAN_LIBRARIES] = {TORCH_LIBRARY, "libtorch_python.so", "libtorch_cuda.so"};
	for (unsigned i = 0; i < LEAN_LIBRARIES; i++) {
		struct lean_library *library = &lean_libraries[i];
		process_find_library(&library->loaded, names[i]);
		bool is_there = library->loaded.count == 1;
		unsigned count = i ? LEAN_DESTROY + 1 : LEAN_CALLS;
		if (!is_there || slots_find_each(library->slots, &library->loaded, call_names, count) > count)
			memset(library->slots, 0, sizeof(library->slots));
	}
}

/* The end until there is an observer: callbacks of others may have no end. */
static void nobody(const void *record, void *context) {}

bool lean_record_find(void)
{
	find_libraries();
	lean_places.end = nobody;
	void *handle = lean_libraries[0].loaded.handle;
	const void *const *table = handle ? dlsym(handle, "_ZTVN2at14RecordFunctionE") : NULL;
	void *ask = handle ? dlsym(handle, "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE") : NULL;
	void *destroy_it = lean_record_function(LEAN_DESTROY), *construct = lean_record_function(LEAN_SCOPE);
	void *release = dlsym(RTLD_DEFAULT, "_ZdlPv");
	if (!release && handle)
		release = dlsym(handle, "_ZdlPv");
	*(void **)&lean_places.ask = ask;
	*(void **)&lean_places.destroy = destroy_it;
	*(void **)&known.construct = construct;
	*(void **)&known.free = release;
	known.functions = table && ask && destroy_it && construct && release ? table + 2 : NULL;
	return known.functions != NULL;
}

void lean_record_watch(void (*look)(const struct lean_record *record))
{
	if (!known.looks[0])
		for (unsigned i = 0; i < LEAN_LIBRARIES; i++)
			lean_libraries[i].is_led = lean_record_lead(&lean_libraries[i], look_and_destroy);
	known.looks[known.looks[0] != NULL] = look;
}

void lean_record_settle(bool is_wanted)
{
	for (unsigned i = 0; i < LEAN_LIBRARIES; i++)
		if (lean_libraries[i].is_led)
			(void)lean_record_lead(&lean_libraries[i], is_wanted ? destroy : lean_places.destroy);
}

static bool are_as_known(const struct lean_callbacks *callbacks, enum torch_scope scope)
{
	const struct lean_pair *expected = &known.pairs[scope];
	return callbacks->pairs == callbacks->local && callbacks->size == 1 && callbacks->capacity == 4 &&
	       callbacks->local[0].start == expected->start && callbacks->local[0].end == expected->end &&
	       callbacks->scope == (uint8_t)scope && callbacks->needs_inputs == (scope == TORCH_SCOPE_FUNCTION) &&
	       !callbacks->needs_outputs && !callbacks->needs_ids;
}

/* Also checks that a scope without observers has no callbacks. */
static bool answers_as_known(enum torch_scope scope)
{
	struct lean_asked asked, none;
	memset(&asked, NOISE, sizeof(asked));
	memset(&none, NOISE, sizeof(none));
	lean_places.ask(&asked, (uint8_t)scope);
	lean_places.ask(&none, TORCH_SCOPE_CUSTOM_CLASS);
	return asked.is_any == 1 && are_as_known(&asked.callbacks, scope) && none.is_any == 0;
}

void lean_record_expect(enum torch_scope scope, struct lean_pair pair)
{
	known.pairs[scope] = pair;
}

void lean_record_look(const void *given, enum torch_scope scope)
{
	const struct lean_record *record = given;
	if (!known.functions)
		return;
	bool is_good = record->table == known.functions && are_as_known(&record->callbacks, scope) &&
	               answers_as_known(scope);
	__atomic_add_fetch(is_good ? &known.good[scope] : &known.bad, 1, __ATOMIC_RELAXED);
}

/* Returns true if PyTorch finds the name in our record, of either kind. */
static bool has_name(const struct torch_entry *entry)
{
	static const char text[] = "a name";
	const char *schema[8] = {text};
	uint64_t words[2] = {(uintptr_t)text, (uintptr_t)schema};
	char bytes[RECORD_BYTES] = {0};
	bool has_both = true;
	for (int is_schema = 0; is_schema < 2; is_schema++) {
		memcpy(bytes + lean_places.schema, &words[is_schema], sizeof(words[0]));
		bytes[lean_places.kind] = (char)is_schema;
		has_both &= entry->name(bytes) == text;
	}
	return has_both;
}

/* A record that PyTorch made on top of noise, and the memory after it. */
union made_record {
	uint8_t bytes[2 * RECORD_BYTES];
	struct lean_record record;
};

static const uint8_t noises[2] = {NOISE, (uint8_t)~NOISE};

/* Returns true if the place is after the known fields and PyTorch writes all of it: bytes after a record belong to
 * others. A written byte, such as one of a pointer, equals one noise now and then, and both noises once in 65,536. */
static bool is_place(const union made_record made[2], int place, int size)
{
	bool is_written = place >= FIRST_PLACE && place + size <= RECORD_BYTES;
	for (int i = place; is_written && i < place + size; i++)
		is_written = made[0].bytes[i] != noises[0] || made[1].bytes[i] != noises[1];
	return is_written;
}

static bool has_places(void)
{
	union made_record made[2];
	int64_t sequence = 0;
	for (int i = 0; i < 2; i++) {
		memset(&made[i], noises[i], sizeof(made[i]));
		known.construct(&made[i], TORCH_SCOPE_CUSTOM_CLASS);
	}
	bool has_all = is_place(made, lean_places.schema, 6) && is_place(made, lean_places.kind, 1) &&
	               is_place(made, lean_places.sequence, 8) &&
	               (lean_places.inputs < 0 || is_place(made, lean_places.inputs, 16));
	if (has_all)
		memcpy(&sequence, made[0].bytes + lean_places.sequence, sizeof(sequence));
	for (int i = 0; i < 2; i++)
		lean_places.destroy(&made[i].record);
	return has_all && sequence == -1;
}

const char *lean_record_prove(const struct torch_entry *entry, const struct torch_layout *layout)
{
	struct lean_asked none;
	lean_places.schema = layout->schema;
	lean_places.kind = layout->kind;
	lean_places.sequence = layout->sequence;
	lean_places.inputs = inputs_layout.is_known ? (int)inputs_layout.inputs : -1;
	memset(&none, NOISE, sizeof(none));
	if (!known.functions)
		return "this PyTorch does not have all of its functions";
	lean_places.ask(&none, TORCH_SCOPE_FUNCTION);
	if (known.bad || !known.good[0] || !known.good[1] || none.is_any)
		return "its records start in an unknown way, or another observer is active";
	if (!has_places() || !has_name(entry))
		return "its records keep their contents in an unknown way";
	memcpy(lean_table, known.functions - 2, 2 * sizeof(lean_table[0]));
	lean_table[2] = (const void *)(uintptr_t)destroy;
	lean_table[3] = (const void *)(uintptr_t)destroy_and_free;
	return NULL;
}

#else

bool lean_record_find(void)
{
	return false;
}

void *lean_record_function(enum lean_call call)
{
	return NULL;
}

size_t lean_record_scope_bytes(void)
{
	return 0;
}

void lean_record_watch(void (*look)(const struct lean_record *record)) {}

void lean_record_expect(enum torch_scope scope, struct lean_pair pair) {}

void lean_record_look(const void *record, enum torch_scope scope) {}

const char *lean_record_prove(const struct torch_entry *entry, const struct torch_layout *layout)
{
	return "not on this processor";
}

void lean_record_settle(bool is_wanted) {}

#endif
