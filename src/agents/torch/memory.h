/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.h: allocations of PyTorch's CPU allocator, from the two calls by which libc10 reports them to profilers. The
 * entries of libc10's own tables are redirected to us, in all threads, and we pass every call on to other listeners.
 */
#ifndef AGENTS_TORCH_MEMORY_H
#define AGENTS_TORCH_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Starts for good: the tables are never restored, because another thread may be inside our functions. Returns false on
 * failure, with the reason in `problem`. */
bool memory_start(char *problem, size_t problem_bytes);

/* See stepscope_torch_owners(). Any thread. */
void memory_owners(const void *words, int count);

#endif
