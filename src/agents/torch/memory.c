/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.c: see memory.h.
 */
#include "agents/torch/memory.h"

#include "agents/torch/process.h"
#include "recorder/emit.h"

#include <dlfcn.h>
#include <stdio.h>
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

static const char library[] = "libc10.so";
static const char new_name[] = "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm";
static const char delete_name[] = "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv";

static void (*original_new)(void *reporter, void *address, size_t bytes);
static void (*original_delete)(void *reporter, void *address);
static bool is_on; /* both lead through us: allocations without releases would be a leak that is none */

__attribute__((hot)) static void on_new(void *reporter, void *address, size_t bytes)
{
	if (is_on && bytes && (STEPSCOPE_ACTIVE_ & STEPSCOPE_ACTIVE_MEMORY))
		emit_alloc(address, bytes);
	original_new(reporter, address, bytes);
}

__attribute__((hot)) static void on_delete(void *reporter, void *address)
{
	if (is_on && (STEPSCOPE_ACTIVE_ & STEPSCOPE_ACTIVE_MEMORY))
		emit_free(address);
	original_delete(reporter, address);
}

/* Memory that the dynamic linker made read-only after it had filled it is writable for the moment of the store. */
static bool store(const struct loaded *loaded, void **slot, void *function)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)slot;
	void *page = (void *)(at & ~(page_bytes - 1));
	/* the linker protects whole pages only: the last, partial one stays writable */
	bool is_protected = at >= loaded->relro_start && at < (loaded->relro_end & ~(page_bytes - 1));
	if (is_protected && mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0)
		return false;
	__atomic_store_n(slot, function, __ATOMIC_RELEASE);
	if (is_protected)
		(void)mprotect(page, page_bytes, PROT_READ);
	return true;
}

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

/* How many entries lead through `function` now. */
static int redirect(const struct loaded *loaded, const struct tables *tables, const char *name, void *function)
{
	int count = 0;
	for (int list = 0; list < 2; list++) {
		for (size_t i = 0; tables->lists[list] && i < tables->bytes[list] / sizeof(ElfW(Rela)); i++) {
			const ElfW(Rela) *entry = &tables->lists[list][i];
			unsigned type = (unsigned)ELF64_R_TYPE(entry->r_info);
			const ElfW(Sym) *symbol = &tables->symbols[ELF64_R_SYM(entry->r_info)];
			if ((type == JUMP_SLOT || type == GLOB_DAT) &&
			    strcmp(tables->names + symbol->st_name, name) == 0)
				count += store(loaded, (void **)(loaded->base + entry->r_offset), function);
		}
	}
	return count;
}

bool memory_start(char *problem, size_t problem_bytes)
{
	struct loaded loaded;
	if (is_on)
		return true;
	process_find_library(&loaded, library);
	void *allocate = loaded.handle ? dlsym(loaded.handle, new_name) : NULL;
	void *release = loaded.handle ? dlsym(loaded.handle, delete_name) : NULL;
	struct tables tables = tables_of(&loaded);
	if (!allocate || !release || !tables.names || !tables.symbols) {
		snprintf(problem, problem_bytes, "%s",
		         loaded.count == 1 ? "this PyTorch does not report its allocations"
		                           : "there is not just one libc10 in the process");
		return false;
	}
	*(void **)&original_new = allocate;
	*(void **)&original_delete = release;
	union {
		void (*allocate)(void *, void *, size_t);
		void (*release)(void *, void *);
		void *address;
	} ours = {.allocate = on_new};
	int news = redirect(&loaded, &tables, new_name, ours.address);
	ours.release = on_delete;
	int deletes = redirect(&loaded, &tables, delete_name, ours.address);
	is_on = news && deletes;
	if (!is_on)
		snprintf(problem, problem_bytes, "libc10's calls could not be redirected");
	return is_on;
}

void memory_owners(const void *words, int count)
{
	for (int i = 0; i < count; i++) {
		uint64_t owner[3];
		memcpy(owner, (const char *)words + (size_t)i * sizeof(owner), sizeof(owner));
		const uint64_t payload[3] = {owner[1], owner[0], owner[2]};
		if (STEPSCOPE_ACTIVE_ & STEPSCOPE_ACTIVE_MEMORY)
			emit_event(STEPSCOPE_EVENT_EXTENDED, STEPSCOPE_EXTENDED_MEMORY_OWNER, payload, 3);
	}
}
