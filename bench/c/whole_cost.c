/* SPDX-License-Identifier: Apache-2.0
 *
 * whole_cost.c: restores the original targets of calls that libstepscope has redirected, and redirects them again.
 * Without that, "nothing" would include the redirected calls. It finds the calls by their targets, so it needs no list
 * of names. A shared object for bench/whole_cost_step.py.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
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

#define MAX_SLOTS 256

struct tables {
	const char *names;
	const ElfW(Sym) * symbols;
	const ElfW(Rela) * lists[2];
	size_t bytes[2];
};

static struct {
	void **at, *ours, *original;
	bool is_memory;
} slots[MAX_SLOTS];
static int count;
static uintptr_t our_start, our_end; /* addresses of libstepscope; dladdr() for all slots would take minutes */

static bool is_ours(const void *address)
{
	return (uintptr_t)address >= our_start && (uintptr_t)address < our_end;
}

static int look_for_us(struct dl_phdr_info *info, size_t bytes, void *file)
{
	(void)bytes;
	if (strcmp(info->dlpi_name, file) != 0)
		return 0;
	our_start = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			our_end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
	return 1;
}

static struct tables tables_of(const struct dl_phdr_info *info)
{
	struct tables tables = {.names = NULL};
	const ElfW(Dyn) *entry = NULL;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		const void *at = (const void *)entry->d_un.d_ptr;
		if (entry->d_tag == DT_STRTAB)
			tables.names = at;
		else if (entry->d_tag == DT_SYMTAB)
			tables.symbols = at;
		else if (entry->d_tag == DT_JMPREL)
			tables.lists[0] = at;
		else if (entry->d_tag == DT_PLTRELSZ)
			tables.bytes[0] = entry->d_un.d_val;
		else if (entry->d_tag == DT_RELA)
			tables.lists[1] = at;
		else if (entry->d_tag == DT_RELASZ)
			tables.bytes[1] = entry->d_un.d_val;
	}
	return tables;
}

static void keep(void **at, const char *name, void *library)
{
	void *original = library ? dlsym(library, name) : NULL;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	if (count == MAX_SLOTS || !original || is_ours(original))
		return;
	if (mprotect((void *)((uintptr_t)at & ~(page - 1)), page, PROT_READ | PROT_WRITE) != 0)
		return;
	slots[count].at = at;
	slots[count].ours = *at;
	slots[count].original = original;
	slots[count++].is_memory = strstr(name, "ProfiledCPUMemoryReporter") != NULL;
}

static int look_at(struct dl_phdr_info *info, size_t bytes, void *context)
{
	(void)bytes;
	(void)context;
	if (!strstr(info->dlpi_name, "/libtorch") && !strstr(info->dlpi_name, "/libc10"))
		return 0;
	struct tables tables = tables_of(info);
	void *library = dlopen(info->dlpi_name, RTLD_NOLOAD | RTLD_LAZY);
	for (int list = 0; list < 2 && tables.names && tables.symbols; list++)
		for (size_t i = 0; tables.lists[list] && i < tables.bytes[list] / sizeof(ElfW(Rela)); i++) {
			const ElfW(Rela) *entry = &tables.lists[list][i];
			unsigned type = (unsigned)ELF64_R_TYPE(entry->r_info);
			void **at = (void **)(info->dlpi_addr + entry->r_offset);
			if ((type == JUMP_SLOT || type == GLOB_DAT) && is_ours(*at))
				keep(at, tables.names + tables.symbols[ELF64_R_SYM(entry->r_info)].st_name, library);
		}
	return 0;
}

/* Finds the redirected calls. `file` is the path from which libstepscope was loaded. Call it while no call is restored.
 * Returns -1 if `file` is not loaded, otherwise 0. */
int whole_cost_find(char *file)
{
	count = 0;
	if (!dl_iterate_phdr(look_for_us, file))
		return -1;
	(void)dl_iterate_phdr(look_at, NULL);
	return 0;
}

int whole_cost_count(int is_memory)
{
	int found = 0;
	for (int i = 0; i < count; i++)
		found += slots[i].is_memory == (is_memory != 0);
	return found;
}

/* Restores (is_back) or redirects the calls of the two memory reports, or all others. Call it between steps, while no
 * record is open. */
void whole_cost_lead(int is_memory, int is_back)
{
	for (int i = 0; i < count; i++)
		if (slots[i].is_memory == (is_memory != 0))
			__atomic_store_n(slots[i].at, is_back ? slots[i].original : slots[i].ours, __ATOMIC_RELEASE);
}
