/* SPDX-License-Identifier: Apache-2.0
 *
 * thread.c: see thread.h.
 */
#include "agents/torch/thread.h"

#include <pthread.h>
#include <stdlib.h>

__thread struct torch_thread *torch_thread __attribute__((tls_model("initial-exec")));
static pthread_key_t key;
static bool has_key;

static void forget(void *thread)
{
	torch_thread = NULL;
	free(thread);
}

void thread_start(void)
{
	if (!has_key)
		has_key = pthread_key_create(&key, forget) == 0;
}

bool thread_make(void)
{
	torch_thread = has_key ? calloc(1, sizeof(*torch_thread)) : NULL;
	if (torch_thread)
		(void)pthread_setspecific(key, torch_thread);
	return torch_thread != NULL;
}
