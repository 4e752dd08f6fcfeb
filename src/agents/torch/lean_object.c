/* SPDX-License-Identifier: Apache-2.0
 *
 * lean_object.c: see lean_object.h. PyTorch makes a record of the callbacks that it asked for and passes the name to
 * before(). It ends the record by end() or by its destructor, even if an operator throws. Inline code of headers
 * writes the inputs, to their place in each record.
 *
 * A record that is made by scope alone is not a lean one. These are ranges of extensions: their other calls may not
 * come to us, and a lean record has no room for their arguments.
 */
#include "agents/torch/lean_object.h"

#include "agents/torch/lean_record.h"
#include "pytorch/names.h"

#include <dlfcn.h>
#include <pthread.h>

#ifdef __x86_64__

#define LEAST_LEARNED 4u /* of operators, and of nodes */
#define DEEPEST 64u
#define SHORT_BYTES 96u
#define TEXT_BYTES 4098u /* more than the recorder keeps of a name */

/* std::variant of a std::string_view and a reference to a schema, passed in memory. */
struct lean_function {
	uint64_t words[2]; /* length and address of a text; address of a schema */
	uint8_t is_schema, padding[7];
};

/* The functions that earlier versions have instead of before(). */
static const char *const other_names[] = {
	"_ZN2at14RecordFunction6beforeEPKcl", "_ZN2at14RecordFunction6beforeESsl",
	"_ZN2at14RecordFunction6beforeENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEl",
	"_ZN2at14RecordFunction6beforeESt17reference_wrapperIKN3c1014FunctionSchemaEEl"};

typedef void construct_record(struct lean_record *record, struct lean_callbacks *callbacks);
typedef void tell_record(struct lean_record *record, struct lean_function function, int64_t sequence);
typedef void end_record(struct lean_record *record);

static struct { /* written before the slots are redirected */
	construct_record *construct;
	tell_record *before;
	end_record *end;
	bool is_led;
} object;

static inline bool is_by_scope(const void *caller)
{
	return (uintptr_t)caller - lean_places.by_scope < lean_places.by_scope_bytes;
}

/* ---- how records are used ---------------------------------------------------------------------------------------- */

static struct {
	pthread_t thread;
	const char *(*name)(const void *record);
	const struct lean_record *open[DEEPEST];
	unsigned depth, good[2], bad; /* good: of nodes, of operators */
} learnt;

static bool is_innermost(const struct lean_record *record)
{
	return pthread_equal(pthread_self(), learnt.thread) && learnt.depth && learnt.open[learnt.depth - 1] == record;
}

static void learn_construct(struct lean_record *record, struct lean_callbacks *callbacks)
{
	const void *caller = __builtin_return_address(0);
	object.construct(record, callbacks);
	if (!pthread_equal(pthread_self(), learnt.thread) || is_by_scope(caller))
		return;
	if (learnt.depth < DEEPEST)
		learnt.open[learnt.depth++] = record;
	else
		learnt.bad++;
}

/* The engine's records are made by scope, so they are not among the open ones here. */
static void learn_before(struct lean_record *record, struct lean_function function, int64_t sequence)
{
	object.before(record, function, sequence);
	if (!is_innermost(record))
		return;
	const char *name = learnt.name(record);
	bool is_good;
	if (function.is_schema == 1)
		is_good = *(const char *const *)(uintptr_t)function.words[0] == name;
	else
		is_good = function.is_schema == 0 && strlen(name) == function.words[0] &&
		          memcmp(name, (const void *)(uintptr_t)function.words[1], function.words[0]) == 0 &&
		          !pytorch_begins(name, PYTORCH_ENGINE);
	learnt.bad += !is_good;
	learnt.good[function.is_schema == 1] += is_good;
}

static void learn_destroy(const struct lean_record *record)
{
	if (is_innermost(record))
		learnt.depth--;
}

/* ---- lean -------------------------------------------------------------------------------------------------------- */

__attribute__((hot)) static void construct(struct lean_record *record, struct lean_callbacks *callbacks)
{
	bool is_lean = lean_is_ours(callbacks) && callbacks->scope <= TORCH_SCOPE_BACKWARD &&
	               !is_by_scope(__builtin_return_address(0));
	if (__builtin_expect(!is_lean, 0)) {
		object.construct(record, callbacks);
		return;
	}
	record->table = &lean_table[2];
	record->callbacks.pairs = record->callbacks.local;
	record->callbacks.size = 1;
	record->callbacks.capacity = 4;
	record->callbacks.local[0] = callbacks->pairs[0];
	record->callbacks.thread = NOT_BEGUN;
	memcpy(&record->callbacks.scope, &callbacks->scope, 8);
}

/* Copies the text, which need not end with a NUL. */
static inline __attribute__((always_inline)) void
begin_text(struct lean_record *record, const struct lean_function *function, int64_t sequence, char *text, size_t bytes)
{
	size_t length = function->words[0] < bytes ? function->words[0] : bytes - 1;
	memcpy(text, (const void *)(uintptr_t)function->words[1], length);
	text[length] = '\0';
	lean_record_begin(record, record->callbacks.local[0].start, (uintptr_t)text, false, sequence);
}

static __attribute__((noinline)) void begin_long(struct lean_record *record, const struct lean_function *function,
                                                 int64_t sequence)
{
	char text[TEXT_BYTES];
	begin_text(record, function, sequence, text, sizeof(text));
}

/* Keeps the stack small: deep parts of the stack are rarely in the processor's caches. */
static __attribute__((hot, noinline)) void begin_named(struct lean_record *record, const struct lean_function *function,
                                                       int64_t sequence)
{
	char text[SHORT_BYTES];
	if (__builtin_expect(function->words[0] >= SHORT_BYTES, 0))
		begin_long(record, function, sequence);
	else
		begin_text(record, function, sequence, text, sizeof(text));
}

__attribute__((hot)) static void before(struct lean_record *record, struct lean_function function, int64_t sequence)
{
	if (__builtin_expect(!lean_record_is(record), 0))
		object.before(record, function, sequence);
	else if (__builtin_expect(function.is_schema, 1))
		lean_record_begin(record, record->callbacks.local[0].start, function.words[0], true, sequence);
	else
		begin_named(record, &function, sequence);
}

static void lean_object_end(struct lean_record *record)
{
	if (__builtin_expect(!lean_record_is(record), 0)) {
		object.end(record);
		return;
	}
	bool is_begun = record->callbacks.thread == BEGUN;
	record->callbacks.thread = NOT_BEGUN;
	record->callbacks.size = 0;
	if (is_begun)
		lean_places.end(record, NULL);
}

/* ---- leading ----------------------------------------------------------------------------------------------------- */

/* Redirects one library. The function that makes records comes last, and only if all others that the library calls are
 * redirected. */
static bool lean_object_lead(unsigned library, construct_record *made, tell_record *told, end_record *ended)
{
	union {
		construct_record *construct;
		tell_record *before;
		end_record *end;
		void *address;
	} function = {.before = told};
	const struct slots *slots = lean_libraries[library].slots;
	bool is_led = lean_libraries[library].is_led && slots_lead(&slots[LEAN_BEFORE], function.address);
	function.end = ended;
	is_led = is_led && slots_lead(&slots[LEAN_END], function.address);
	function.construct = made;
	return is_led && slots_lead(&slots[LEAN_CONSTRUCT], function.address);
}

static bool lead_all(construct_record *made, tell_record *told, end_record *ended)
{
	bool is_led = false;
	for (unsigned i = LEAN_LIBRARIES; i-- > 0;)
		is_led = lean_libraries[i].slots[LEAN_CONSTRUCT].count && lean_object_lead(i, made, told, ended);
	return is_led; /* of the first library */
}

/* A library may call its own functions without slots, so libtorch_cpu must have slots for all of them. Other libraries
 * use slots for all calls. */
static bool lean_object_find(void)
{
	const struct lean_library *library = &lean_libraries[0];
	void *addresses[] = {lean_record_function(LEAN_CONSTRUCT), lean_record_function(LEAN_BEFORE),
	                     lean_record_function(LEAN_END)};
	bool has_all = addresses[0] && addresses[1] && addresses[2] && library->loaded.handle;
	for (int call = LEAN_CONSTRUCT; call <= LEAN_DESTROY; call++)
		has_all &= library->slots[call].count > 0;
	for (size_t i = 0; has_all && i < sizeof(other_names) / sizeof(other_names[0]); i++)
		has_all = !dlsym(library->loaded.handle, other_names[i]);
	*(void **)&object.construct = addresses[0];
	*(void **)&object.before = addresses[1];
	*(void **)&object.end = addresses[2];
	lean_places.by_scope = (uintptr_t)lean_record_function(LEAN_SCOPE);
	lean_places.by_scope_bytes = lean_record_scope_bytes();
	return has_all && lean_places.by_scope && lean_places.by_scope_bytes;
}

void lean_object_learn(const struct torch_entry *entry)
{
	if (!lean_object_find())
		return;
	learnt.thread = pthread_self();
	learnt.name = entry->name;
	lean_record_watch(learn_destroy);
	object.is_led = lead_all(learn_construct, learn_before, object.end);
}

static const char *doubt(const char *problem)
{
	if (problem)
		return problem;
	if (!object.is_led)
		return "this PyTorch does not have all of its functions, or does not call all of them through "
		       "writable slots";
	bool is_good = !learnt.bad && !learnt.depth && learnt.good[0] >= LEAST_LEARNED &&
	               learnt.good[1] >= LEAST_LEARNED;
	return is_good ? NULL : "its records are used in an unknown way";
}

const char *lean_object_start(const char *problem)
{
	problem = doubt(problem);
	if (!object.is_led)
		return problem;
	if (problem)
		(void)lead_all(object.construct, object.before, object.end);
	else if (!lead_all(construct, before, lean_object_end))
		return "the slots are read-only";
	return problem;
}

#else

void lean_object_learn(const struct torch_entry *entry) {}

const char *lean_object_start(const char *problem)
{
	return problem;
}

#endif
