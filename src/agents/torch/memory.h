/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.h: allocations of PyTorch's CPU allocator, from the two calls by which libc10 reports them to whoever profiles. Their entries in
 * libc10's own tables are made to lead through us, in all threads, and whatever else listens goes on hearing of them.
 */
#ifndef AGENTS_TORCH_MEMORY_H
#define AGENTS_TORCH_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* For good: the tables are not put back, for another thread may be on its way through. False: `problem` says why. */
bool memory_start(char *problem, size_t problem_bytes);

/* See stepscope_torch_owners(). Any thread. */
void memory_owners(const void *words, int count);

#endif
