/* SPDX-License-Identifier: Apache-2.0
 *
 * slots.c: see slots.h.
 */
#include "agents/torch/slots.h"

#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __aarch64__
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOB_DAT R_AARCH64_GLOB_DAT
#else
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOB_DAT R_X86_64_GLOB_DAT
#endif

struct tables {
	const char *names;
	const ElfW(Sym) * symbols;
	const ElfW(Rela) * lists[2];
	size_t bytes[2];
	const uint32_t *hashes;
	size_t relative; /* number of leading entries in the second list that have no name */
};

static struct tables tables_of(const struct loaded *loaded)
{
	struct tables tables = {.names = NULL};
	for (const ElfW(Dyn) *entry = loaded->dynamic; entry && entry->d_tag != DT_NULL; entry++) {
		const void *at = (const void *)entry->d_un.d_ptr; /* made absolute by the dynamic linker */
		switch (entry->d_tag) {
		case DT_STRTAB:
			tables.names = at;
			break;
		case DT_SYMTAB:
			tables.symbols = at;
			break;
		case DT_JMPREL:
			tables.lists[0] = at;
			break;
		case DT_PLTRELSZ:
			tables.bytes[0] = entry->d_un.d_val;
			break;
		case DT_RELA:
			tables.lists[1] = at;
			break;
		case DT_RELASZ:
			tables.bytes[1] = entry->d_un.d_val;
			break;
		case DT_GNU_HASH:
			tables.hashes = at;
			break;
		case DT_RELACOUNT:
			tables.relative = entry->d_un.d_val;
			break;
		default:
			break;
		}
	}
	return tables;
}

static uintptr_t page_bytes(void)
{
	return (uintptr_t)sysconf(_SC_PAGESIZE);
}

/* The linker protects whole pages only: the last, partial one stays writable. */
static bool is_protected(const struct loaded *loaded, uintptr_t at)
{
	return at >= loaded->relro_start && at < (loaded->relro_end & ~(page_bytes() - 1));
}

static bool is_slot_of_any(const ElfW(Rela) * entry)
{
	unsigned type = (unsigned)ELF64_R_TYPE(entry->r_info);
	return type == JUMP_SLOT || type == GLOB_DAT;
}

static bool is_slot(const struct tables *tables, const ElfW(Rela) * entry, const char *name)
{
	const ElfW(Sym) *symbol = &tables->symbols[ELF64_R_SYM(entry->r_info)];
	return is_slot_of_any(entry) && strcmp(tables->names + symbol->st_name, name) == 0;
}

static bool slots_add(struct slots *slots, const struct loaded *loaded, const ElfW(Rela) * entry)
{
	uintptr_t at = loaded->base + entry->r_offset;
	if (slots->count == SLOTS_MAX)
		return false;
	slots->at[slots->count] = (void **)at;
	slots->is_protected[slots->count++] = is_protected(loaded, at);
	return true;
}

bool slots_find(struct slots *slots, const struct loaded *loaded, const char *name)
{
	struct tables tables = tables_of(loaded);
	slots->count = 0;
	for (int list = 0; list < 2 && tables.names && tables.symbols; list++) {
		for (size_t i = 0; tables.lists[list] && i < tables.bytes[list] / sizeof(ElfW(Rela)); i++) {
			const ElfW(Rela) *entry = &tables.lists[list][i];
			if (is_slot(&tables, entry, name) && !slots_add(slots, loaded, entry))
				return false;
		}
	}
	return slots->count != 0;
}

/* ---- several at once --------------------------------------------------------------------------------------------- */

#define EACH_MAX 16

struct wanted {
	const char *const *names;
	size_t numbers[EACH_MAX]; /* of its symbol, if the library defines it; otherwise 0 */
	unsigned count;
	bool is_by_name; /* some names have no number */
	size_t common;   /* bytes with which all names start: few other names do */
};

/* Searches the library's hash table of the symbols that it defines. The table starts with the number of buckets, the
 * number of the first symbol, the words of the filter, and a shift. Then come the filter, the first symbol of each
 * bucket, and a hash per symbol, whose lowest bit ends the bucket. */
static size_t slots_number_of(const struct tables *tables, const char *name)
{
	uint32_t hash = 5381;
	for (const char *at = name; *at; at++)
		hash = hash * 33 + (unsigned char)*at;
	if (!tables->hashes || !tables->hashes[0])
		return 0;
	const uint32_t *buckets = tables->hashes + 4 + 2 * (size_t)tables->hashes[2], first = tables->hashes[1];
	const uint32_t *chain = buckets + tables->hashes[0];
	for (uint32_t number = buckets[hash % tables->hashes[0]]; number >= first && number; number++) {
		uint32_t other = chain[number - first];
		if ((other | 1) == (hash | 1) && strcmp(tables->names + tables->symbols[number].st_name, name) == 0)
			return number;
		if (other & 1)
			break;
	}
	return 0;
}

size_t slots_function_bytes(const struct loaded *loaded, const char *name)
{
	struct tables tables = tables_of(loaded);
	size_t number = tables.names && tables.symbols ? slots_number_of(&tables, name) : 0;
	return number ? tables.symbols[number].st_size : 0;
}

/* Returns the index of the name that the entry has; the count: no such name. */
static unsigned find_wanted(const struct wanted *wanted, const struct tables *tables, const ElfW(Rela) * entry)
{
	size_t number = ELF64_R_SYM(entry->r_info);
	unsigned i = 0;
	while (i < wanted->count && wanted->numbers[i] != number)
		i++;
	if (i < wanted->count || !wanted->is_by_name)
		return i;
	const char *name = tables->names + tables->symbols[number].st_name;
	if (strncmp(name, wanted->names[0], wanted->common) != 0)
		return wanted->count;
	for (i = 0; i < wanted->count && (wanted->numbers[i] || strcmp(name, wanted->names[i]) != 0);)
		i++;
	return i;
}

static size_t common_of(const char *const *names, unsigned count)
{
	size_t common = strlen(names[0]);
	for (unsigned i = 1; i < count; i++)
		while (strncmp(names[0], names[i], common) != 0)
			common--;
	return common;
}

unsigned slots_find_each(struct slots *each, const struct loaded *loaded, const char *const *names, unsigned count)
{
	struct tables tables = tables_of(loaded);
	struct wanted wanted = {.names = names, .count = count};
	unsigned found = 0;
	wanted.common = common_of(names, count);
	if (count > EACH_MAX || !tables.names || !tables.symbols)
		return 0;
	for (unsigned i = 0; i < count; i++) {
		each[i].count = 0;
		wanted.numbers[i] = slots_number_of(&tables, names[i]);
		wanted.is_by_name |= !wanted.numbers[i];
	}
	for (int list = 0; list < 2; list++) {
		for (size_t i = list ? tables.relative : 0;
		     tables.lists[list] && i < tables.bytes[list] / sizeof(ElfW(Rela)); i++) {
			const ElfW(Rela) *entry = &tables.lists[list][i];
			unsigned which = is_slot_of_any(entry) ? find_wanted(&wanted, &tables, entry) : count;
			found += which < count && !each[which].count;
			if (which < count && !slots_add(&each[which], loaded, entry))
				return UINT_MAX;
		}
	}
	return found;
}

static bool protect(const struct slots *slots, int how)
{
	bool is_done = true;
	for (unsigned i = 0; i < slots->count; i++) {
		void *page = (void *)((uintptr_t)slots->at[i] & ~(page_bytes() - 1));
		is_done &= !slots->is_protected[i] || mprotect(page, page_bytes(), how) == 0;
	}
	return is_done;
}

/* If the dynamic linker binds a slot between the read and the write of process_can_write(), the next call binds it
 * again. */
static bool can_write(const struct slots *slots)
{
	bool can_all = true;
	for (unsigned i = 0; i < slots->count; i++)
		can_all &= process_can_write(slots->at[i]);
	return can_all;
}

bool slots_lead(const struct slots *slots, void *function)
{
	bool is_writable = protect(slots, PROT_READ | PROT_WRITE) && can_write(slots);
	for (unsigned i = 0; is_writable && i < slots->count; i++)
		__atomic_store_n(slots->at[i], function, __ATOMIC_RELEASE);
	(void)protect(slots, PROT_READ);
	return is_writable;
}
