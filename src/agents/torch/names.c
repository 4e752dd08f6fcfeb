/* SPDX-License-Identifier: Apache-2.0
 *
 * names.c: an open hash table of entries that never change once they are in it.
 */
#include "agents/torch/names.h"

#include "recorder/emit.h"

#include <string.h>

#define SLOTS 8192u /* some 1500 operators are used by no program; half full is full */
#define AREA_BYTES (512u << 10)
#define PROBES 16u
#define LONGEST 4096u

struct name_entry {
	const char *address;
	uint32_t symbol;
	uint16_t scope, length;
	char text[];
};

static struct name_entry *table[SLOTS];
static uint8_t area[AREA_BYTES] __attribute__((aligned(8)));
static uint32_t area_used, count;

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
		break;
	}
	return STEPSCOPE_SYMBOL_OP;
}

static uint32_t slot_of(enum torch_scope scope, const char *name)
{
	uint64_t hash = ((uint64_t)(uintptr_t)name + (uint64_t)scope) * 0x9e3779b97f4a7c15u;
	return (uint32_t)(hash >> 48) % SLOTS;
}

static struct name_entry *make(enum torch_scope scope, const char *name, uint32_t length, uint32_t symbol)
{
	uint32_t bytes = ((uint32_t)sizeof(struct name_entry) + length + 8) & ~7u;
	if (__atomic_load_n(&count, __ATOMIC_RELAXED) >= SLOTS / 2 ||
	    __atomic_load_n(&area_used, __ATOMIC_RELAXED) + bytes > AREA_BYTES)
		return NULL;
	uint32_t at = __atomic_fetch_add(&area_used, bytes, __ATOMIC_RELAXED);
	if (at + bytes > AREA_BYTES)
		return NULL;
	struct name_entry *entry = (struct name_entry *)(void *)(area + at);
	entry->address = name;
	entry->symbol = symbol;
	entry->scope = (uint16_t)scope;
	entry->length = (uint16_t)length;
	memcpy(entry->text, name, length + 1);
	return entry;
}

static uint32_t add(enum torch_scope scope, const char *name)
{
	uint32_t length = (uint32_t)strnlen(name, LONGEST);
	uint32_t symbol = emit_symbol(kind_of(scope), name, length);
	struct name_entry *entry = symbol && length < LONGEST ? make(scope, name, length, symbol) : NULL;
	uint32_t slot = slot_of(scope, name);
	for (uint32_t i = 0; entry && i < PROBES; i++) {
		struct name_entry *none = NULL;
		if (__atomic_compare_exchange_n(&table[(slot + i) % SLOTS], &none, entry, false, __ATOMIC_RELEASE,
		                                __ATOMIC_RELAXED)) {
			__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
			break;
		}
	}
	return symbol;
}

uint32_t names_symbol(enum torch_scope scope, const char *name)
{
	if (!name)
		return 0;
	/* a range's name is made anew each time, anywhere */
	if (scope == TORCH_SCOPE_USER)
		return emit_symbol(kind_of(scope), name, (uint32_t)strnlen(name, LONGEST));
	uint32_t slot = slot_of(scope, name);
	for (uint32_t i = 0; i < PROBES; i++) {
		const struct name_entry *entry = __atomic_load_n(&table[(slot + i) % SLOTS], __ATOMIC_ACQUIRE);
		if (!entry)
			break;
		if (entry->address == name && entry->scope == scope && strcmp(entry->text, name) == 0)
			return entry->symbol;
	}
	return add(scope, name);
}
