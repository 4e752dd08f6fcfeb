/* SPDX-License-Identifier: Apache-2.0
 *
 * names.c: between two operators the processor forgets what lies where, so that what counts here is how many pages and lines a look
 * touches. An operator is found by the address of its schema, which its record holds, without a look at the schema. Other names, and those of
 * operators where that is not proven, are found by their text.
 */
#include "agents/torch/names.h"

#include "agents/torch/operators.h"
#include "agents/torch/process.h"
#include "base/utf8.h"
#include "pytorch/names.h"
#include "recorder/emit.h"

#include <string.h>

#define LINES 48u /* a program uses some hundred operators */
#define WAYS 4u   /* as many as a line of the processor's cache holds */
#define TEXT_SLOTS 4096u
#define PROBES 8u
#define AREA_BYTES (512u << 10)
#define UNIT 8u /* of the area; an entry's number is its offset in units */
#define LONGEST 4096u

/* Filled once. */
struct place {
	uint64_t schema; /* 0: free; TAKEN: being filled, or of no use any more; atomic */
	uint32_t symbol;
	uint32_t scope;
};
#define TAKEN 1u

struct entry {
	uint32_t symbol;
	uint16_t scope, length;
	char text[];
};

static struct {
	struct place places[LINES * WAYS] __attribute__((aligned(64)));
	const char *(*name)(const void *record); /* NULL: nothing is recorded yet */
	int schema;                              /* see struct torch_layout */
	bool is_sure;                            /* schemas stay where they are; atomic */
} names;
static uint16_t text_slots[TEXT_SLOTS]; /* number of an entry; 0: free; atomic */
static uint8_t area[AREA_BYTES] __attribute__((aligned(8)));
static uint32_t area_used = UNIT; /* atomic */
_Static_assert(AREA_BYTES / UNIT <= 1u << 16, "numbers of entries");

static enum stepscope_symbol_kind kind_of(enum torch_scope scope)
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

/* What the static runtime runs has a name of its own: an operator in it that does use PyTorch's dispatcher is not counted twice. */
static uint32_t new_symbol(enum torch_scope scope, const char *name, uint32_t length)
{
	static const char before[] = PYTORCH_STATIC;
	char text[256];
	if (scope != TORCH_SCOPE_STATIC_OP && scope != TORCH_SCOPE_STATIC_MODEL)
		return emit_symbol(kind_of(scope), name, length);
	length = (uint32_t)utf8_cut(name, length, sizeof(text) - sizeof(before));
	memcpy(text, before, sizeof(before) - 1);
	memcpy(text + sizeof(before) - 1, name, length);
	return emit_symbol(kind_of(scope), text, length + (uint32_t)sizeof(before) - 1);
}

/* ---- by text ---------------------------------------------------------------------------------------------------------- */

static uint32_t hash_text(enum torch_scope scope, const char *text, uint32_t length)
{
	uint64_t hash = 0x9e3779b97f4a7c15u + (uint64_t)scope, word;
	for (; length >= 8; length -= 8, text += 8) {
		memcpy(&word, text, 8);
		hash = (hash ^ word) * 0xff51afd7ed558ccdu;
		hash ^= hash >> 32;
	}
	word = length;
	memcpy(&word, text, length);
	hash = (hash ^ word ^ (uint64_t)length << 56) * 0xff51afd7ed558ccdu;
	return (uint32_t)(hash >> 40);
}

/* Number of a new entry; 0: no room. */
static uint16_t make(enum torch_scope scope, const char *name, uint32_t length, uint32_t symbol)
{
	uint32_t bytes = ((uint32_t)sizeof(struct entry) + length + UNIT - 1) & ~(UNIT - 1);
	if (__atomic_load_n(&area_used, __ATOMIC_RELAXED) > AREA_BYTES - bytes)
		return 0;
	uint32_t at = __atomic_fetch_add(&area_used, bytes, __ATOMIC_RELAXED);
	if (at > AREA_BYTES - bytes)
		return 0;
	struct entry *entry = (struct entry *)(void *)(area + at);
	entry->symbol = symbol;
	entry->scope = (uint16_t)scope;
	entry->length = (uint16_t)length;
	memcpy(entry->text, name, length);
	return (uint16_t)(at / UNIT);
}

/* What finds no room is looked up each time, in the table of all symbols, which is large and rarely in the processor's caches. */
static uint32_t symbol_by_text(enum torch_scope scope, const char *name, uint32_t length)
{
	uint32_t hash = hash_text(scope, name, length);
	for (uint32_t i = 0; i < PROBES; i++) {
		uint16_t *place = &text_slots[(hash + i) % TEXT_SLOTS];
		uint16_t number = __atomic_load_n(place, __ATOMIC_ACQUIRE);
		const struct entry *entry = (const struct entry *)(const void *)(area + number * UNIT);
		if (number && entry->scope == scope && entry->length == length &&
		    memcmp(entry->text, name, length) == 0)
			return entry->symbol;
		if (number)
			continue;
		uint32_t symbol = new_symbol(scope, name, length);
		uint16_t made = symbol && length < LONGEST ? make(scope, name, length, symbol) : 0;
		if (made) /* another thread may have been faster: then ours stays unused */
			__atomic_compare_exchange_n(place, &number, made, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
		return symbol;
	}
	return new_symbol(scope, name, length);
}

/* ---- by schema ---------------------------------------------------------------------------------------------------------- */

static inline uint64_t schema_of(const void *record)
{
	uint64_t schema;
	memcpy(&schema, (const char *)record + names.schema, sizeof(schema));
	return schema;
}

static inline struct place *place_of(enum torch_scope scope, uint64_t schema)
{
	uint64_t hash = (schema + (uint64_t)scope) * 0x9e3779b97f4a7c15u;
	return &names.places[(hash >> 32) * (LINES * WAYS) >> 32];
}

static inline bool is_of(const struct place *place, enum torch_scope scope, uint64_t schema)
{
	return __atomic_load_n(&place->schema, __ATOMIC_ACQUIRE) == schema && place->scope == (uint32_t)scope;
}

/* The other ways of its line. */
static struct place *other_way(struct place *place, unsigned way)
{
	return &names.places[(size_t)(place - names.places) ^ way];
}

/* Some operator goes, and another one may come to lie in its place: from here on their texts are compared. */
static void forget(void)
{
	if (!__atomic_exchange_n(&names.is_sure, false, __ATOMIC_SEQ_CST))
		return;
	for (unsigned i = 0; i < LINES * WAYS; i++)
		__atomic_store_n(&names.places[i].schema, TAKEN, __ATOMIC_SEQ_CST);
}

/* What a record that has no schema holds there is the address of its text. */
static bool is_schema(uint64_t word, const char *name)
{
	uint64_t text = 0;
	return word != (uintptr_t)name && process_read(word, &text, 1) == 1 && text == (uintptr_t)name;
}

static void remember(enum torch_scope scope, uint64_t schema, const char *name, uint32_t symbol)
{
	struct place *place = place_of(scope, schema);
	unsigned way = 0;
	while (way < WAYS && __atomic_load_n(&other_way(place, way)->schema, __ATOMIC_RELAXED))
		way++;
	if (way == WAYS || !symbol || !is_schema(schema, name))
		return;
	uint64_t none = 0;
	place = other_way(place, way);
	if (!__atomic_compare_exchange_n(&place->schema, &none, TAKEN, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	place->symbol = symbol;
	place->scope = (uint32_t)scope;
	__atomic_store_n(&place->schema, schema, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&names.is_sure, __ATOMIC_SEQ_CST)) /* meanwhile, and this one may have been overlooked */
		__atomic_store_n(&place->schema, TAKEN, __ATOMIC_SEQ_CST);
}

/* In no place. */
static uint32_t symbol_by_name(enum torch_scope scope, const void *record)
{
	const char *name = names.name ? names.name(record) : NULL;
	if (!name)
		return 0;
	if (scope == TORCH_SCOPE_USER) /* made anew each time, anywhere */
		return emit_symbol(kind_of(scope), name, length_of(name));
	uint32_t symbol = symbol_by_text(scope, name, length_of(name));
	if (scope != TORCH_SCOPE_BACKWARD && __atomic_load_n(&names.is_sure, __ATOMIC_ACQUIRE))
		remember(scope, schema_of(record), name, symbol);
	return symbol;
}

static __attribute__((noinline)) uint32_t symbol_elsewhere(enum torch_scope scope, const void *record)
{
	uint64_t schema = schema_of(record);
	for (unsigned way = 1; way < WAYS; way++) {
		const struct place *place = other_way(place_of(scope, schema), way);
		if (is_of(place, scope, schema))
			return place->symbol;
	}
	return symbol_by_name(scope, record);
}

/* Before it is known where a record holds its schema, and after one has gone, nothing is found by it. */
__attribute__((hot)) uint32_t names_symbol(enum torch_scope scope, const void *record)
{
	uint64_t schema = schema_of(record);
	const struct place *place = place_of(scope, schema);
	return __builtin_expect(is_of(place, scope, schema), 1) ? place->symbol : symbol_elsewhere(scope, record);
}

void names_start(const struct torch_entry *entry, int schema)
{
	if (names.name)
		return;
	names.name = entry->name;
	if (schema < 0)
		return;
	names.schema = schema;
	__atomic_store_n(&names.is_sure, true, __ATOMIC_SEQ_CST); /* first: it may be told at once */
	if (!operators_watch(entry, forget))
		forget();
}
