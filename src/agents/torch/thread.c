/* SPDX-License-Identifier: Apache-2.0
 *
 * thread.c: see thread.h.
 */
#include "agents/torch/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

__thread struct torch_thread *torch_thread __attribute__((tls_model("initial-exec")));
static struct torch_thread *threads; /* atomic */
static pthread_key_t key;
static bool has_key;

/* Keeps the words of open spans: other threads may be reading them. */
static void thread_forget(void *value)
{
	struct torch_thread *thread = value;
	torch_thread = NULL;
	__atomic_store_n(&thread->open.depth, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&thread->open.ended, 0, __ATOMIC_RELAXED);
	thread->open.deeper = thread->open.told = thread->open.recording = thread->checked = 0;
	thread->lean = NULL;
	memset(thread->training, 0, sizeof(thread->training));
	memset(thread->lines, 0, sizeof(thread->lines));
	__atomic_store_n(&thread->is_taken, false, __ATOMIC_RELEASE);
}

static void make_key(void)
{
	has_key = pthread_key_create(&key, thread_forget) == 0;
}

struct torch_thread *thread_first(void)
{
	return __atomic_load_n(&threads, __ATOMIC_ACQUIRE);
}

static struct torch_thread *thread_take(void)
{
	struct torch_thread *thread = thread_first();
	while (thread && __atomic_exchange_n(&thread->is_taken, true, __ATOMIC_ACQUIRE))
		thread = thread->next;
	if (thread || !(thread = aligned_alloc(_Alignof(struct torch_thread), sizeof(*thread))))
		return thread;
	memset(thread, 0, sizeof(*thread));
	thread->is_taken = true;
	thread->next = thread_first();
	while (!__atomic_compare_exchange_n(&threads, &thread->next, thread, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return thread;
}

bool thread_make(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, make_key);
	torch_thread = has_key ? thread_take() : NULL;
	if (torch_thread)
		(void)pthread_setspecific(key, torch_thread);
	return torch_thread != NULL;
}
