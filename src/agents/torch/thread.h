/* SPDX-License-Identifier: Apache-2.0
 *
 * thread.h: the agent's data per thread. It is made when the thread first needs it, because a library that may be
 * loaded late has little static memory per thread. When the thread has ended, another thread gets the data: code that
 * looks into the data of all threads never meets freed memory.
 */
#ifndef AGENTS_TORCH_THREAD_H
#define AGENTS_TORCH_THREAD_H

#include "agents/torch/open.h"

struct torch_thread { /* starts as zero; each part belongs to the file that it is named after */
	/* in whole cache lines; each operator needs the first line, and one more if it is nested deeply */
	struct open_records open __attribute__((aligned(64)));
	struct torch_thread *next;
	bool is_taken;    /* atomic */
	uint32_t checked; /* of observer.c: 1 + the start of the recorder, or window, of its last check for earlier
	                   * spans */
	void *lean;       /* of lean_engine.c */
	uint64_t training[84];
	uint64_t lines[20];
};

/* NULL: not made yet. */
extern __thread struct torch_thread *torch_thread __attribute__((tls_model("initial-exec")));

bool thread_make(void);                  /* Returns false if there is no memory. */
struct torch_thread *thread_first(void); /* the first of all that were ever made; then follow `next` */

#endif
