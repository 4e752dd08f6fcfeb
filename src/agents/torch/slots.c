/* SPDX-License-Identifier: Apache-2.0
 *
 * slots.c: see slots.h.
 */
#include "agents/torch/slots.h"

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

static bool is_slot(const struct tables *tables, const ElfW(Rela) * entry, const char *name)
{
	unsigned type = (unsigned)ELF64_R_TYPE(entry->r_info);
	const ElfW(Sym) *symbol = &tables->symbols[ELF64_R_SYM(entry->r_info)];
	return (type == JUMP_SLOT || type == GLOB_DAT) && strcmp(tables->names + symbol->st_name, name) == 0;
}

bool slots_find(struct slots *slots, const struct loaded *loaded, const char *name)
{
	struct tables tables = tables_of(loaded);
	slots->count = 0;
	for (int list = 0; list < 2 && tables.names && tables.symbols; list++) {
		for (size_t i = 0; tables.lists[list] && i < tables.bytes[list] / sizeof(ElfW(Rela)); i++) {
			const ElfW(Rela) *entry = &tables.lists[list][i];
			if (!is_slot(&tables, entry, name))
				continue;
			if (slots->count == SLOTS_MAX)
				return false;
			uintptr_t at = loaded->base + entry->r_offset;
			slots->at[slots->count] = (void **)at;
			slots->is_protected[slots->count++] = is_protected(loaded, at);
		}
	}
	return slots->count != 0;
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

bool slots_lead(const struct slots *slots, void *function)
{
	bool is_writable = protect(slots, PROT_READ | PROT_WRITE);
	for (unsigned i = 0; is_writable && i < slots->count; i++)
		__atomic_store_n(slots->at[i], function, __ATOMIC_RELEASE);
	(void)protect(slots, PROT_READ);
	return is_writable;
}
