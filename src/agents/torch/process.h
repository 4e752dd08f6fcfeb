/* SPDX-License-Identifier: Apache-2.0
 *
 * process.h: looking at what this process has loaded and at its memory, before anything is known of it.
 */
#ifndef AGENTS_TORCH_PROCESS_H
#define AGENTS_TORCH_PROCESS_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct loaded {
	char path[1024];
	ElfW(Addr) base, relro_start, relro_end;
	const ElfW(Dyn) * dynamic;
	int count; /* of files with such a name; the rest tells of the last one */
	void *handle; /* for dlsym(); never closed: code that may be called back must not go away. NULL unless count is 1 */
};

/* The library whose file name begins so ("libc10.so"; Debian's go on behind it); loads nothing itself. */
void process_find_library(struct loaded *loaded, const char *name);

/* Returns true if these bytes, which can be read, lie in no part of a loaded library that is read-only. */
bool process_may_write(uint64_t address, size_t bytes);

/* Whether a word can be written to, whoever made its page read-only: by writing what is there. True where the kernel does not say. Cannot fault. */
bool process_can_write(void **word);

/* Copies bytes of this process. Cannot fault, whatever the address is. */
bool process_copy(uint64_t address, void *to, size_t bytes);
/* Copies up to `count` words, as many as can be read in steps of eight; returns how many. Cannot fault, whatever the address is. */
unsigned process_read_words(uint64_t address, uint64_t *words, unsigned count);

#endif
