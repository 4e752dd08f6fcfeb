/* SPDX-License-Identifier: Apache-2.0
 *
 * slots.h: the entries of a loaded library's own tables through which it calls a function by its name, also one of its own. What they lead
 * to can be changed, for all threads, while they call.
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

/* Of a function of this name, which the library must know; false: there are none, or too many. */
bool slots_find(struct slots *slots, const struct loaded *loaded, const char *name);

/* The same for several names in one pass, `each` for one: how many names the library calls through slots. One that it defines itself is looked for by
 * the number of its symbol, since texts of tens of thousands of symbols would have to be read. UINT_MAX: some name has too many slots. */
unsigned slots_find_each(struct slots *each, const struct loaded *loaded, const char *const *names, unsigned count);

/* Of a function that the library defines; 0: it does not. */
size_t slots_function_bytes(const struct loaded *loaded, const char *name);

/* All, or none (false). Threads that are on their way through the earlier one are not waited for. */
bool slots_lead(const struct slots *slots, void *function);

#endif
