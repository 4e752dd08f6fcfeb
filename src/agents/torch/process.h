/* SPDX-License-Identifier: Apache-2.0
 *
 * process.h: looks at the loaded files and the memory of this process, before anything is known about them.
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
	int count;    /* number of files with such a name; the other fields describe the last one */
	void *handle; /* for dlsym(); never closed: code that may be called back must not go away. NULL unless count is
	               * 1 */
};

/* Finds the library whose file name starts with `name` ("libc10.so"; Debian appends more); loads nothing itself. */
void process_find_library(struct loaded *loaded, const char *name);

/* Returns true if these bytes, which must be readable, are in no read-only part of a loaded library. */
bool process_may_write(uint64_t address, size_t bytes);

/* Returns true if a word can be written to, whatever made its page read-only: writes its present value. Also returns
 * true if the kernel cannot tell. Cannot fault. */
bool process_can_write(void **word);

/* Copies bytes of this process. Cannot fault, whatever the address is. */
bool process_copy(uint64_t address, void *to, size_t bytes);
/* Copies up to `count` words; if they are not all readable, tries eight fewer each time. Returns the number of words
 * copied. Cannot fault, whatever the address is. */
unsigned process_read_words(uint64_t address, uint64_t *words, unsigned count);

#endif
