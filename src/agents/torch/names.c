/* SPDX-License-Identifier: Apache-2.0
 *
 * names.c: between two operators the processor's caches fill with tensors, so that what counts here is how many of their lines a look
 * touches. A name that lies still is found by its address in a slot of one line, together with the text to compare. Names that PyTorch
 * puts together for each record ("autograd::engine::evaluate_function: ...") are long or lie on the stack, and are found by their text.
 */
#include "agents/torch/names.h"

#include "base/utf8.h"
#include "pytorch/names.h"
#include "recorder/emit.h"

#include <string.h>

#define SLOTS 1024u /* a program uses some hundred operators */
#define SHORTEST_LONG 48u
#define LONGEST_TINY 7u /* without its 0; no operator's */
#define PAGE_BYTES 4096u
#define TEXT_SLOTS 4096u
#define PROBES 8u
#define AREA_BYTES (512u << 10)
#define UNIT 8u /* of the area; an entry's number is its offset in units */
#define LONGEST 4096u

/* Filled once. */
struct slot {
	uint64_t address; /* 0: free; 1: being filled; atomic */
	uint32_t symbol;
	uint16_t scope, bytes; /* bytes: of text, its 0 included */
	char text[SHORTEST_LONG];
};
_Static_assert(sizeof(struct slot) == 64, "a line of the cache");

struct entry {
	uint32_t symbol;
	uint16_t scope, length;
	char text[];
};

static struct slot slots[SLOTS] __attribute__((aligned(64)));
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

/* ---- by address --------------------------------------------------------------------------------------------------------- */

static struct slot *slot_of(enum torch_scope scope, const char *name)
{
	uint64_t hash = ((uint64_t)(uintptr_t)name + (uint64_t)scope) * 0x9e3779b97f4a7c15u;
	return &slots[(hash >> 48) % SLOTS];
}

static void fill(struct slot *slot, enum torch_scope scope, const char *name, uint32_t length, uint32_t symbol)
{
	uint64_t none = 0;
	if (!__atomic_compare_exchange_n(&slot->address, &none, 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	slot->symbol = symbol;
	slot->scope = (uint16_t)scope;
	slot->bytes = (uint16_t)(length + 1);
	memcpy(slot->text, name, length); /* what follows is 0 */
	__atomic_store_n(&slot->address, (uint64_t)(uintptr_t)name, __ATOMIC_RELEASE);
}

static __attribute__((noinline)) uint32_t look_up(enum torch_scope scope, const char *name, struct slot *slot)
{
	uint32_t length = length_of(name);
	uint32_t symbol = symbol_by_text(scope, name, length);
	if (slot && symbol && length < SHORTEST_LONG && length > LONGEST_TINY)
		fill(slot, scope, name, length, symbol);
	return symbol;
}

static inline uint64_t word_of(const char *text)
{
	uint64_t word;
	memcpy(&word, text, sizeof(word));
	return word;
}

/* strcmp(slot->text, name) == 0 without a call; false also where that cannot be told. Should a shorter text lie there by now, some bytes
 * behind it are read, of the same page. */
static inline bool is_surely_same(const struct slot *slot, const char *name)
{
	if (((uintptr_t)name & (PAGE_BYTES - 1)) > PAGE_BYTES - SHORTEST_LONG)
		return false;
	unsigned last = slot->bytes - 8u;
	uint64_t other = word_of(slot->text + last) ^ word_of(name + last);
	for (unsigned i = 0; i < last; i += 8)
		other |= word_of(slot->text + i) ^ word_of(name + i);
	return other == 0;
}

static __attribute__((noinline)) uint32_t symbol_elsewhere(enum torch_scope scope, const char *name)
{
	/* a range's name, or a node's, is made anew each time, anywhere */
	if (!name || scope == TORCH_SCOPE_USER)
		return name ? emit_symbol(kind_of(scope), name, length_of(name)) : 0;
	if (scope == TORCH_SCOPE_BACKWARD)
		return look_up(scope, name, NULL);
	struct slot *slot = slot_of(scope, name);
	for (unsigned i = 0; i < 2; i++, slot = &slots[(slot - slots) ^ 1]) {
		uint64_t address = __atomic_load_n(&slot->address, __ATOMIC_ACQUIRE);
		if (address == (uint64_t)(uintptr_t)name && slot->scope == scope && strcmp(slot->text, name) == 0)
			return slot->symbol;
		if (address == 0)
			return look_up(scope, name, slot);
	}
	return look_up(scope, name, NULL);
}

__attribute__((hot)) uint32_t names_symbol(enum torch_scope scope, const char *name)
{
	const struct slot *slot = slot_of(scope, name);
	if (__builtin_expect(!name || __atomic_load_n(&slot->address, __ATOMIC_ACQUIRE) != (uint64_t)(uintptr_t)name ||
	                             slot->scope != scope || !is_surely_same(slot, name),
	                     0))
		return symbol_elsewhere(scope, name);
	return slot->symbol;
}
