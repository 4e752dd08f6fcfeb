/* SPDX-License-Identifier: Apache-2.0
 *
 * names.c: the processor's caches lose this data between two operators. So the cost of a look-up is the number of
 * pages and lines that it touches. An operator is found by the address of its schema, which its record holds, without
 * reading the schema.
 *
 * A hash of the text finds other names, and operators if the place of the schema is not proven. PyTorch often builds
 * such texts again for each record ("autograd::engine::evaluate_function: ..."). The hash has 64 bits: no program has
 * two names with the same one.
 */
#include "agents/torch/names.h"

#include "agents/torch/operators.h"
#include "agents/torch/process.h"
#include "base/hash.h"
#include "base/hot.h"
#include "base/utf8.h"
#include "pytorch/names.h"
#include "recorder/emit.h"

#include <string.h>

#define LINES 256u /* a program has some hundred names */
#define WAYS 4u    /* the number that a cache line holds */
#define LONGEST 4096u
#define IS_TEXT (1ull << 63) /* no address has this bit */
#define TAKEN 1u

/* Filled once. A name without room is looked up each time in the table of all symbols, which is large and rarely in
 * the processor's caches. */
struct name_place {
	uint64_t key; /* address of a schema, or hash of a text; 0: free, TAKEN: being filled, or invalid; atomic */
	uint32_t symbol;
	uint32_t scope;
};

enum schemas {
	SCHEMAS_UNKNOWN, /* it is not known yet whether PyTorch reports operators that go away */
	SCHEMAS_STAY,
	SCHEMAS_GO, /* a schema may go, and another one may reuse its address: they are not looked up */
};

static struct name_place places[LINES * WAYS] __attribute__((aligned(64)));

static HOT struct {
	const struct torch_entry *entry;
	const char *(*name)(const void *record); /* NULL: nothing is recorded yet */
	int schema;                              /* see struct torch_layout */
	enum schemas schemas;                    /* atomic */
} names;

static enum stepscope_symbol_kind names_kind_of(enum torch_scope scope)
{
	switch (scope) {
	case TORCH_SCOPE_BACKWARD:
		return STEPSCOPE_SYMBOL_BACKWARD;
	case TORCH_SCOPE_USER:
		return STEPSCOPE_SYMBOL_ANNOTATION;
	case TORCH_SCOPE_TORCHSCRIPT:
		return STEPSCOPE_SYMBOL_SCRIPT;
	case TORCH_SCOPE_FUNCTION:
	case TORCH_SCOPE_CUSTOM_CLASS:
	case TORCH_SCOPE_STATIC_OP:
	case TORCH_SCOPE_STATIC_MODEL:
		break;
	}
	return STEPSCOPE_SYMBOL_OP;
}

static uint32_t length_of(const char *name)
{
	return (uint32_t)utf8_cut(name, strnlen(name, LONGEST + 1), LONGEST);
}

/* Names of the static runtime get a prefix: an operator in it that uses PyTorch's dispatcher is not counted twice. */
static uint32_t new_symbol(enum torch_scope scope, const char *name, uint32_t length)
{
	static const char before[] = PYTORCH_STATIC;
	char text[256];
	if (scope != TORCH_SCOPE_STATIC_OP && scope != TORCH_SCOPE_STATIC_MODEL)
		return emit_symbol(names_kind_of(scope), name, length);
	length = (uint32_t)utf8_cut(name, length, sizeof(text) - sizeof(before));
	memcpy(text, before, sizeof(before) - 1);
	memcpy(text + sizeof(before) - 1, name, length);
	return emit_symbol(names_kind_of(scope), text, length + (uint32_t)sizeof(before) - 1);
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static inline struct name_place *names_place_of(enum torch_scope scope, uint64_t key)
{
	return &places[(hash_word(key + (uint64_t)scope) >> 32) * (LINES * WAYS) >> 32];
}

static inline bool names_is_of(const struct name_place *place, enum torch_scope scope, uint64_t key)
{
	return __atomic_load_n(&place->key, __ATOMIC_ACQUIRE) == key && place->scope == (uint32_t)scope;
}

/* Returns a way of the place's line; 0: the place itself. */
static inline struct name_place *way_of(struct name_place *place, unsigned way)
{
	return &places[(size_t)(place - places) ^ way];
}

/* Returns 0 if the name is in no place. */
static uint32_t names_find(enum torch_scope scope, uint64_t key)
{
	for (unsigned way = 0; way < WAYS; way++) {
		const struct name_place *place = way_of(names_place_of(scope, key), way);
		if (names_is_of(place, scope, key))
			return place->symbol;
	}
	return 0;
}

static bool names_has_room(enum torch_scope scope, uint64_t key)
{
	bool has_any = false;
	for (unsigned way = 0; way < WAYS; way++)
		has_any |= !__atomic_load_n(&way_of(names_place_of(scope, key), way)->key, __ATOMIC_RELAXED);
	return has_any;
}

/* Takes a place that is still free; NULL: none. */
static struct name_place *names_take(enum torch_scope scope, uint64_t key)
{
	for (unsigned way = 0; way < WAYS; way++) {
		struct name_place *place = way_of(names_place_of(scope, key), way);
		uint64_t none = 0;
		if (__atomic_compare_exchange_n(&place->key, &none, TAKEN, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return place;
	}
	return NULL;
}

static struct name_place *names_remember(enum torch_scope scope, uint64_t key, uint32_t symbol)
{
	struct name_place *place = names_take(scope, key);
	if (!place)
		return NULL;
	place->symbol = symbol;
	place->scope = (uint32_t)scope;
	__atomic_store_n(&place->key, key, __ATOMIC_SEQ_CST);
	return place;
}

/* ---- by schema --------------------------------------------------------------------------------------------------- */

static inline uint64_t schema_of(const void *record)
{
	uint64_t schema;
	memcpy(&schema, (const char *)record + names.schema, sizeof(schema));
	return schema;
}

/* An operator goes away: from now on texts are compared. */
static void names_forget(void)
{
	if (__atomic_exchange_n(&names.schemas, SCHEMAS_GO, __ATOMIC_SEQ_CST) != SCHEMAS_STAY)
		return;
	for (unsigned i = 0; i < LINES * WAYS; i++)
		if (!(__atomic_load_n(&places[i].key, __ATOMIC_SEQ_CST) & IS_TEXT))
			__atomic_store_n(&places[i].key, TAKEN, __ATOMIC_SEQ_CST);
}

/* Returns true if the word is a schema's address. A record without a schema has the address of its text at this
 * place. */
static bool is_schema(uint64_t word, const char *name)
{
	uint64_t text = 0;
	return word != (uintptr_t)name && process_read_words(word, &text, 1) == 1 && text == (uintptr_t)name;
}

static void remember_schema(enum torch_scope scope, uint64_t schema, uint32_t symbol)
{
	struct name_place *place = names_remember(scope, schema, symbol);
	if (place && __atomic_load_n(&names.schemas, __ATOMIC_SEQ_CST) != SCHEMAS_STAY)
		__atomic_store_n(&place->key, TAKEN,
		                 __ATOMIC_SEQ_CST); /* names_forget() may have missed this place meanwhile */
}

/* ---- by text ----------------------------------------------------------------------------------------------------- */

static inline uint64_t word_of(const char *text)
{
	uint64_t word;
	memcpy(&word, text, sizeof(word));
	return word;
}

static uint64_t names_hash_text(const char *text, uint32_t length)
{
	uint64_t hash = HASH_FACTOR + length;
	if (length < sizeof(uint64_t)) {
		for (uint32_t i = 0; i < length; i++)
			hash = hash_mix(hash, (uint8_t)text[i]);
		return hash;
	}
	for (uint32_t i = 0; i < length - sizeof(uint64_t); i += sizeof(uint64_t))
		hash = hash_mix(hash, word_of(text + i));
	return hash_mix(hash, word_of(text + length - sizeof(uint64_t))); /* hashes some bytes a second time */
}

/* Remembers a new name. While it is not known whether schemas stay, names that may have one are not remembered,
 * because they would be found by their text for good. */
static __attribute__((noinline, cold)) void remember_new(enum torch_scope scope, const void *record, const char *name,
                                                         uint64_t key, uint32_t symbol)
{
	uint64_t schema = schema_of(record);
	enum schemas schemas = scope == TORCH_SCOPE_BACKWARD ? SCHEMAS_GO
	                                                     : __atomic_load_n(&names.schemas, __ATOMIC_ACQUIRE);
	/* is_schema() makes a system call: not each time if there is no room */
	if (schemas == SCHEMAS_STAY && names_has_room(scope, schema) && is_schema(schema, name))
		remember_schema(scope, schema, symbol);
	else if (schemas != SCHEMAS_UNKNOWN)
		names_remember(scope, key, symbol);
}

static uint32_t symbol_by_text(enum torch_scope scope, const char *name, const void *record)
{
	uint32_t length = (uint32_t)strnlen(name, LONGEST);
	uint64_t key = names_hash_text(name, length) | IS_TEXT;
	uint32_t symbol = length < LONGEST ? names_find(scope, key) : 0;
	if (symbol || !(symbol = new_symbol(scope, name, length_of(name))))
		return symbol;
	if (length < LONGEST)
		remember_new(scope, record, name, key, symbol);
	return symbol;
}

/* Step numbers from 1 on show that the program calls a profiler's step(). */
static uint32_t symbol_of_range(const char *name, uint32_t length)
{
	if (pytorch_profiler_step(name, length) > 1)
		emit_note_profiler("torch.profiler");
	return emit_symbol(names_kind_of(TORCH_SCOPE_USER), name, length);
}

static __attribute__((noinline)) uint32_t symbol_elsewhere(enum torch_scope scope, const void *record)
{
	uint32_t symbol = scope == TORCH_SCOPE_BACKWARD ? 0 : names_find(scope, schema_of(record));
	if (symbol)
		return symbol;
	const char *name = names.name ? names.name(record) : NULL;
	if (!name)
		return 0;
	if (scope == TORCH_SCOPE_USER) /* made again each time, at any address */
		return symbol_of_range(name, length_of(name));
	return symbol_by_text(scope, name, record);
}

/* Before the place of the schema in a record is known, and after a schema has gone, no name is found by it. */
__attribute__((hot)) uint32_t names_symbol(enum torch_scope scope, const void *record)
{
	uint64_t schema = schema_of(record);
	const struct name_place *place = names_place_of(scope, schema);
	return __builtin_expect(names_is_of(place, scope, schema), 1) ? place->symbol : symbol_elsewhere(scope, record);
}

/* Takes one millisecond: PyTorch reports each of its thousands of operators at once. */
static void watch(void)
{
	enum schemas unknown = SCHEMAS_UNKNOWN; /* unless one has gone meanwhile */
	bool is_told = operators_watch(names.entry, names_forget);
	__atomic_compare_exchange_n(&names.schemas, &unknown, is_told ? SCHEMAS_STAY : SCHEMAS_GO, false,
	                            __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void names_start(const struct torch_entry *entry, int schema)
{
	if (names.entry)
		return;
	names.entry = entry;
	if (schema >= 0) {
		names.schema = schema;
		emit_in_background(watch);
	} else {
		names.schemas = SCHEMAS_GO;
	}
	names.name = entry->name; /* last: from now on it may be called */
}
