/* SPDX-License-Identifier: Apache-2.0
 *
 * slots.h: the entries of a loaded library's own tables through which it calls a function by name, including its own
 * functions. They can be redirected, for all threads, while the threads call.
 *
 *     if (slots_find(&slots, &loaded, "name"))
 *             slots_lead(&slots, function);
 */
#ifndef AGENTS_TORCH_SLOTS_H
#define AGENTS_TORCH_SLOTS_H

#include "agents/torch/process.h"

#define SLOTS_MAX 8 /* one is usual */

struct slots {
	void **at[SLOTS_MAX];
	bool is_protected[SLOTS_MAX]; /* the dynamic linker has made its page read-only */
	unsigned count;
};

/* Finds the slots of a function with this name. Returns false if there are none, or too many. */
bool slots_find(struct slots *slots, const struct loaded *loaded, const char *name);

/* Finds the slots of several names in one pass, with one element of `each` per name. Returns the number of names that
 * the library calls through slots, or UINT_MAX if a name has too many slots. Names that the library defines are
 * searched by the number of their symbol. Otherwise the texts of tens of thousands of symbols would have to be read. */
unsigned slots_find_each(struct slots *each, const struct loaded *loaded, const char *const *names, unsigned count);

/* Returns the code size of a function that the library defines; 0: it does not define it. */
size_t slots_function_bytes(const struct loaded *loaded, const char *name);

/* Redirects all slots, or none (returns false). Does not wait for threads that are inside the earlier function. */
bool slots_lead(const struct slots *slots, void *function);

#endif
