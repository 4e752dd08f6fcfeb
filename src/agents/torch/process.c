/* SPDX-License-Identifier: Apache-2.0
 *
 * process.c: see process.h.
 */
#include "agents/torch/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

struct process_search {
	struct loaded *loaded;
	const char *name;
};

static int process_look_at(struct dl_phdr_info *info, size_t bytes, void *context)
{
	const struct process_search *search = context;
	struct loaded *loaded = search->loaded;
	const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
	const char *name = slash ? slash + 1 : info->dlpi_name;
	(void)bytes;
	if (!name || strncmp(name, search->name, strlen(search->name)) != 0)
		return 0;
	loaded->count++;
	loaded->base = info->dlpi_addr;
	snprintf(loaded->path, sizeof(loaded->path), "%s", info->dlpi_name);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		if (header->p_type == PT_DYNAMIC)
			loaded->dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + header->p_vaddr);
		if (header->p_type == PT_GNU_RELRO) {
			loaded->relro_start = info->dlpi_addr + header->p_vaddr;
			loaded->relro_end = loaded->relro_start + header->p_memsz;
		}
	}
	return 0;
}

void process_find_library(struct loaded *loaded, const char *name)
{
	struct process_search search = {loaded, name};
	*loaded = (struct loaded){.count = 0};
	dl_iterate_phdr(process_look_at, &search);
	if (loaded->count == 1)
		loaded->handle = dlopen(loaded->path, RTLD_NOLOAD | RTLD_LAZY);
}

struct data_search {
	uint64_t address, bytes;
	bool is_protected;
};

static bool process_is_in(const struct data_search *search, uint64_t start, uint64_t bytes)
{
	return search->address >= start && search->address + search->bytes <= start + bytes;
}

static int look_for_data(struct dl_phdr_info *info, size_t bytes, void *context)
{
	struct data_search *search = context;
	(void)bytes;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		bool is_here = process_is_in(search, info->dlpi_addr + header->p_vaddr, header->p_memsz);
		search->is_protected |= is_here && header->p_type == PT_LOAD && !(header->p_flags & PF_W);
		search->is_protected |= is_here && header->p_type == PT_GNU_RELRO;
	}
	return search->is_protected;
}

bool process_may_write(uint64_t address, size_t bytes)
{
	struct data_search search = {address, bytes, false};
	return dl_iterate_phdr(look_for_data, &search) == 0;
}

bool process_can_write(void **word)
{
	void *value = __atomic_load_n(word, __ATOMIC_RELAXED);
	struct iovec from = {&value, sizeof(value)}, to = {word, sizeof(value)};
	ssize_t count = process_vm_writev(getpid(), &from, 1, &to, 1, 0);
	return count == sizeof(value) || (count < 0 && (errno == EPERM || errno == ENOSYS));
}

/* For systems that forbid the call (containers) or do not have it (emulators). */
static bool copy_from_file(uint64_t address, void *to, size_t bytes)
{
	int file = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return false;
	bool is_good = address <= INT64_MAX && pread(file, to, bytes, (off_t)address) == (ssize_t)bytes;
	close(file);
	return is_good;
}

bool process_copy(uint64_t address, void *to, size_t bytes)
{
	struct iovec into = {to, bytes}, from = {(void *)(uintptr_t)address, bytes};
	ssize_t count = process_vm_readv(getpid(), &into, 1, &from, 1, 0);
	if (count < 0 && (errno == EPERM || errno == ENOSYS))
		return copy_from_file(address, to, bytes);
	return count == (ssize_t)bytes;
}

unsigned process_read_words(uint64_t address, uint64_t *words, unsigned count)
{
	for (; count > 0; count = count > 8 ? count - 8 : 0) {
		if (process_copy(address, words, count * sizeof(*words)))
			return count;
	}
	return 0;
}
