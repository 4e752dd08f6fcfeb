/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_records.c: see fake_records.h. One thread.
 */
#include "fake_records.h"

#include "agents/torch/lean_record.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define API __attribute__((visibility("default")))
#define OBSERVERS 8

enum {
	SCHEMA = 160,
	KIND = 192,
	SEQUENCE = 200,
	INPUTS = 208,
	FORWARD = 288,
	BYTES = 344
};

struct object { /* at::RecordFunction */
	struct lean_record begin;
	uint8_t rest[BYTES - sizeof(struct lean_record)];
};

struct function {
	uint64_t words[2];
	uint8_t is_schema, padding[7];
};

struct text { /* std::string, always with memory of its own */
	char *data;
	size_t length;
	char local[16];
};

API enum fake_way fake_way;
API unsigned fake_objects, fake_watched;

static struct torch_callback observers[OBSERVERS];
static bool is_off;
static int64_t next_sequence = 1000;

API void *_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE(struct lean_asked *asked, uint8_t scope);
API void _ZN2at14RecordFunctionC1EONS_13StepCallbacksE(struct object *object, struct lean_callbacks *callbacks);
API void _ZN2at14RecordFunctionC1ENS_11RecordScopeE(struct object *object, uint8_t scope);
API void _ZN2at14RecordFunctionD1Ev(struct object *object);
API void _ZN2at14RecordFunction3endEv(struct object *object);
API void
_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_traitsIcEESt17reference_wrapperIKN3c1014FunctionSchemaEEEEl(
	struct object *object, struct function function, int64_t sequence);
API void
_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_11InputBufferERKS2_INS0_10ReadyQueueEE(
	void *engine, void *task, const void *node, void *inputs, void *queue);
API struct text *_ZNK5torch8autograd4Node4nameB5cxx11Ev(struct text *text, const void *node);
API void *_Znwm(size_t bytes);
API void _ZdlPv(void *memory);

#define ask _ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE
#define construct _ZN2at14RecordFunctionC1EONS_13StepCallbacksE
#define construct_scope _ZN2at14RecordFunctionC1ENS_11RecordScopeE
#define destroy _ZN2at14RecordFunctionD1Ev
#define end_record _ZN2at14RecordFunction3endEv
#define before                                                                                                         \
	_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_traitsIcEESt17reference_wrapperIKN3c1014FunctionSchemaEEEEl
#define evaluate                                                                                                       \
	_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_11InputBufferERKS2_INS0_10ReadyQueueEE

static void nothing(void) {}

API const struct table {
	intptr_t to_top;
	const void *type;
	void (*functions[2])(void);
} _ZTVN2at14RecordFunctionE = {.functions = {nothing, nothing}};

/* ---- who observes ------------------------------------------------------------------------------------------------------- */

static uint64_t add(struct torch_callback callback)
{
	for (uint64_t i = 0; i < OBSERVERS; i++)
		if (!observers[i].start) {
			observers[i] = callback;
			return i + 1;
		}
	return 0;
}

static void remove_it(uint64_t handle)
{
	observers[handle - 1].start = NULL;
}

void *ask(struct lean_asked *asked, uint8_t scope)
{
	struct lean_callbacks *callbacks = &asked->callbacks;
	*callbacks = (struct lean_callbacks){.pairs = callbacks->local, .capacity = 4, .scope = scope, .thread = 7};
	for (int i = 0; i < OBSERVERS && !is_off; i++)
		if (observers[i].start && observers[i].scopes[scope]) {
			callbacks->local[callbacks->size++] = (struct lean_pair){observers[i].start, observers[i].end};
			callbacks->needs_inputs |= observers[i].needs_inputs;
		}
	if (fake_way == FAKE_PAIRS_MOVED) {
		memmove(callbacks->local + 1, callbacks->local, 3 * sizeof(callbacks->local[0]));
		callbacks->pairs++;
	}
	asked->is_any = callbacks->size > 0;
	if (fake_way == FAKE_FLAG_MOVED)
		asked->is_any ^= 1;
	return asked;
}

static bool is_any(const struct lean_asked *asked)
{
	return asked->callbacks.size > 0;
}

/* ---- records ------------------------------------------------------------------------------------------------------------ */

static void store(struct object *object, int place, uint64_t word)
{
	memcpy((char *)object + place, &word, sizeof(word));
}

static uint64_t load(const struct object *object, int place)
{
	uint64_t word;
	memcpy(&word, (const char *)object + place, sizeof(word));
	return word;
}

static int kind_place(void)
{
	return fake_way == FAKE_NAME_MOVED ? KIND + 1 : KIND;
}

void construct(struct object *object, struct lean_callbacks *callbacks)
{
	fake_objects++;
	memset((char *)object + sizeof(object->begin), 0,
	       sizeof(object->rest) - (fake_way == FAKE_PLACE_UNUSED ? BYTES - SEQUENCE : 0));
	object->begin.table = &_ZTVN2at14RecordFunctionE.functions;
	object->begin.callbacks = *callbacks;
	object->begin.callbacks.pairs = object->begin.callbacks.local + (fake_way == FAKE_PAIRS_MOVED);
	store(object, SCHEMA,
	      fake_way == FAKE_NOISY ? UINT64_C(0x0000cc33cccc3333) : (uint64_t)(uintptr_t)object + SCHEMA + 16);
	if (fake_way != FAKE_PLACE_UNUSED)
		store(object, SEQUENCE, UINT64_MAX);
}

__attribute__((noinline)) static struct lean_callbacks asked_for(uint8_t scope)
{
	struct lean_asked asked;
	ask(&asked, scope);
	asked.callbacks.pairs = NULL;
	return asked.callbacks;
}

void construct_scope(struct object *object, uint8_t scope)
{
	static struct lean_callbacks callbacks;
	callbacks = asked_for(scope);
	callbacks.pairs = callbacks.local + (fake_way == FAKE_PAIRS_MOVED);
	construct(object, &callbacks);
	__asm__ volatile("");
}

void before(struct object *object, struct function function, int64_t sequence)
{
	char *text = NULL;
	if (fake_way == FAKE_OTHER_TEXT && !function.is_schema)
		function = (struct function){{function.words[1], function.words[0]}, 0, {0}};
	if (!function.is_schema) {
		text = calloc(1, function.words[0] + 1);
		memcpy(text, (const void *)(uintptr_t)function.words[1], function.words[0]);
	}
	store(object, SCHEMA, text ? (uint64_t)(uintptr_t)text : function.words[0]);
	((uint8_t *)object)[kind_place()] = function.is_schema;
	store(object, SEQUENCE, (uint64_t)sequence);
	object->begin.callbacks.thread = 8;
	for (uint32_t i = 0; i < object->begin.callbacks.size; i++) {
		void *context;
		object->begin.callbacks.pairs[i].start(&context, object);
	}
}

static void end_here(struct object *object)
{
	for (uint32_t i = 0; i < object->begin.callbacks.size && object->begin.callbacks.thread == 8; i++)
		object->begin.callbacks.pairs[i].end(object, NULL);
	object->begin.callbacks.size = 0;
}

void end_record(struct object *object)
{
	end_here(object);
}

void destroy(struct object *object)
{
	if (object->begin.table != &_ZTVN2at14RecordFunctionE.functions)
		abort(); /* it has not what is to be taken down */
	end_here(object);
}

static const char *name_of(const void *record)
{
	const struct object *object = record;
	uint64_t word = load(object, SCHEMA);
	return ((const uint8_t *)object)[kind_place()] ? *(const char *const *)(uintptr_t)word
	                                               : (const char *)(uintptr_t)word;
}

/* ---- operators, ranges, backwards --------------------------------------------------------------------------------------- */

/* With nothing behind that looks like a part of it. */
static struct room {
	struct object object;
	uint8_t behind[512];
} rooms[16];
static unsigned depth;

static const char *schemas[2][8] = {{"aten::add"}, {"aten::mul"}};

static struct function of_schema(int which)
{
	return (struct function){{(uint64_t)(uintptr_t)schemas[which]}, 1, {0}};
}

static struct function of_text(const char *text)
{
	struct function function = {{strlen(text), (uint64_t)(uintptr_t)text}, 0, {0}};
	if (fake_way == FAKE_OTHER_TEXT)
		function = (struct function){{function.words[1], function.words[0]}, 0, {0}};
	return function;
}

API void fake_operate(int which)
{
	struct object *object = &rooms[depth++].object;
	struct lean_asked asked;
	ask(&asked, TORCH_SCOPE_FUNCTION);
	if (is_any(&asked)) {
		construct(object, &asked.callbacks);
		before(object, of_schema(which), next_sequence);
	}
	if (which == 1)
		fake_operate(0);
	if (is_any(&asked) && fake_way == FAKE_KEPT)
		end_here(object); /* not through a slot */
	else if (is_any(&asked))
		destroy(object);
	next_sequence += 3;
	depth--;
}

static void make_range(uint8_t scope)
{
	struct object *object = &rooms[depth++].object;
	construct_scope(object, scope);
	if (object->begin.table != &_ZTVN2at14RecordFunctionE.functions)
		abort(); /* others write what only an object of PyTorch's has room for */
	if (object->begin.callbacks.size)
		before(object, of_text("a range"), -1);
	fake_operate(0);
	end_record(object);
	destroy(object);
	depth--;
}

API void fake_range(void)
{
	make_range(TORCH_SCOPE_USER);
	make_range(TORCH_SCOPE_FUNCTION);
}

static struct text *give(struct text *text, const char *name)
{
	text->length = strlen(name);
	text->data = _Znwm(text->length + 1);
	memcpy(text->data, name, text->length + 1);
	return text;
}

static struct text *name_of_sum(struct text *text, const void *node)
{
	return give(text, "AddBackward0");
}

struct text *_ZNK5torch8autograd4Node4nameB5cxx11Ev(struct text *text, const void *node)
{
	return give(text, "torch::autograd::AccumulateGrad");
}

/* With AddressSanitizer both are its own. */
void *_Znwm(size_t bytes)
{
	return malloc(bytes);
}

void _ZdlPv(void *memory)
{
	free(memory);
}

/* What tells the type, whose name is second, lies before the functions; the third of them is name(). */
static const char *const types[2][2] = {{NULL, "N5torch8autograd9generated12AddBackward0E"},
                                        {NULL, "N5torch8autograd14AccumulateGradE"}};
typedef struct text *name_function(struct text *text, const void *node);
struct class
{
	intptr_t to_top;
	const void *type;
	void (*functions[2])(void);
	name_function *name;
};
API const struct class _ZTVN5torch8autograd4NodeE = {.functions = {nothing, nothing},
                                                     .name = _ZNK5torch8autograd4Node4nameB5cxx11Ev};
static const struct class classes[2] = {{0, types[0], {nothing, nothing}, name_of_sum},
                                        {0, types[1], {nothing, nothing}, _ZNK5torch8autograd4Node4nameB5cxx11Ev}};
static const struct node {
	void (*const *functions)(void);
} nodes[2] = {{classes[0].functions}, {classes[1].functions}};

static name_function *name_of_class(const struct node *node)
{
	return ((const struct class *)(const void *)((const char *)node->functions - offsetof(struct class, functions)))
	        ->name;
}

/* A node's own record. */
void evaluate(void *engine, void *task, const void *node, void *inputs, void *queue)
{
	struct object *object = &rooms[depth++].object;
	struct lean_asked asked;
	struct text text;
	ask(&asked, TORCH_SCOPE_BACKWARD);
	if (is_any(&asked)) {
		construct(object, &asked.callbacks);
		store(object, FORWARD, 3);
		name_of_class(node)(&text, node);
		before(object, of_text(text.data), 500);
		_ZdlPv(text.data);
		destroy(object);
	}
	depth--;
}

static void evaluate_in_record(const struct node *node)
{
	struct object *object = &rooms[depth++].object;
	struct text text;
	char name[200];
	if (fake_way == FAKE_NODE_FIRST)
		evaluate(NULL, NULL, node, NULL, NULL);
	construct_scope(object, TORCH_SCOPE_FUNCTION);
	if (object->begin.callbacks.size) {
		name_of_class(node)(&text, node);
		snprintf(name, sizeof(name), "autograd::engine::evaluate_%s: %s",
		         fake_way == FAKE_NAME_OF_ENGINE ? "node" : "function", text.data);
		_ZdlPv(text.data);
		before(object, of_text(name), -1);
	}
	if (fake_way != FAKE_NODE_FIRST)
		evaluate(NULL, NULL, node, NULL, NULL);
	destroy(object);
	depth--;
}

API void fake_backward(void)
{
	evaluate_in_record(&nodes[0]);
	evaluate_in_record(&nodes[1]);
}

/* ---- for tests ---------------------------------------------------------------------------------------------------------- */

static int64_t peek(void)
{
	return next_sequence;
}

static uint64_t thread_id(void)
{
	return 3;
}

API struct torch_entry fake_records_entry(void)
{
	return (struct torch_entry){.add_global_callback = add,
	                            .remove_callback = remove_it,
	                            .name = name_of,
	                            .sequence_peek = peek,
	                            .thread_id = thread_id};
}

static void *start_watching(void **context, const void *record)
{
	fake_watched++;
	*context = NULL;
	return context;
}

static void end_watching(const void *record, void *context)
{
	fake_watched++;
}

API void fake_watch(bool is_on)
{
	static uint64_t handle;
	struct torch_callback callback = {.start = start_watching, .end = end_watching, .scopes = {true, true}};
	if (is_on)
		handle = add(callback);
	else
		remove_it(handle);
}

API void fake_switch_off(bool is_off_now)
{
	is_off = is_off_now;
}
