/* SPDX-License-Identifier: Apache-2.0
 *
 * thread.h: what the agent remembers per thread beyond a few bytes. It is made at the thread's first need and freed at its end, for a
 * library that may be loaded late has little static memory per thread.
 */
#ifndef AGENTS_TORCH_THREAD_H
#define AGENTS_TORCH_THREAD_H

#include <stdbool.h>
#include <stdint.h>

struct torch_thread { /* zero at first; each part is of the file that it is called after */
	uint64_t training[44];
	uint64_t lines[20];
};

/* NULL: not made yet. */
extern __thread struct torch_thread *torch_thread __attribute__((tls_model("initial-exec")));

void thread_start(void); /* before the first record */
bool thread_make(void);  /* False: no memory. */

#endif
