/* SPDX-License-Identifier: Apache-2.0
 *
 * thread.h: what the agent remembers per thread. It is made at the thread's first need, for a library that may be loaded late has little
 * static memory per thread, and goes to another thread when that one has ended: what looks into all of them never meets freed memory.
 */
#ifndef AGENTS_TORCH_THREAD_H
#define AGENTS_TORCH_THREAD_H

#include "agents/torch/open.h"

struct torch_thread { /* zero at first; each part is of the file that it is called after */
	/* in whole lines of the cache, of which each operator needs the first, and, when it lies deep, one more */
	struct open_records open __attribute__((aligned(64)));
	struct torch_thread *next;
	bool is_taken; /* atomic */
	uint32_t checked; /* of observer.c: 1 + the start of the recorder, or window, in which it looked for what is of an earlier one */
	void *lean; /* of lean_engine.c */
	uint64_t training[84];
	uint64_t lines[20];
};

/* NULL: not made yet. */
extern __thread struct torch_thread *torch_thread __attribute__((tls_model("initial-exec")));

bool thread_make(void);                  /* False: no memory. */
struct torch_thread *thread_first(void); /* of all that were ever made, by `next` */

#endif
