/* SPDX-License-Identifier: Apache-2.0 */
/* Loader threads and their queue: a ring of slots, filled by ticket, taken in order. */
#include "loader.h"

#include "monotonic.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int batch_prepare(struct loader *loader, struct batch *batch, long number, struct failure *failure)
{
	const struct loader_options *options = &loader->options;
	STEPSCOPE_RANGE_PUSH("loader.read");
	if (options->slow_ms > 0 && (number + 1) % options->slow_every == 0)
		monotonic_sleep_ns(options->slow_ms * INT64_C(1000000));
	int status = corpus_read(loader->corpus, CORPUS_TRAINING, random_stream(options->seed, 2, (uint64_t)number),
	                         batch, failure);
	STEPSCOPE_RANGE_SWITCH("loader.tokenize");
	if (status == 0)
		corpus_tokenize(loader->corpus, batch);
	stepscope_range_pop();
	return status;
}

static void announce_queue(const struct loader *loader)
{
	stepscope_counter("loader queue", loader->queued);
}

/* Prepares one batch; the lock is held on entry and on return, but not in between. False: no more to do. */
static bool thread_turn(struct loader *loader)
{
	if (!loader->stop && loader->next - loader->taken >= loader->options.capacity) {
		STEPSCOPE_RANGE_PUSH("loader.queue_full");
		while (!loader->stop && loader->next - loader->taken >= loader->options.capacity)
			pthread_cond_wait(&loader->room, &loader->lock);
		stepscope_range_pop();
	}
	if (loader->stop)
		return false;
	long number = loader->next++;
	struct loader_slot *slot = &loader->slots[number % loader->options.capacity];
	struct failure failure = {0};
	pthread_mutex_unlock(&loader->lock);
	int status = batch_prepare(loader, &slot->batch, number, &failure);
	pthread_mutex_lock(&loader->lock);
	if (status != 0) {
		failure_set(&loader->failure, "%s", failure.text);
		loader->stop = true;
	} else {
		slot->is_ready = true;
		loader->queued++;
		announce_queue(loader);
	}
	pthread_cond_broadcast(&loader->ready);
	return status == 0;
}

static void *thread_main(void *argument)
{
	struct loader *loader = argument;
	char name[32];
	pthread_mutex_lock(&loader->lock);
	snprintf(name, sizeof(name), "loader %d", loader->named++);
	stepscope_thread_name(name);
	while (thread_turn(loader))
		;
	pthread_mutex_unlock(&loader->lock);
	return NULL;
}

int loader_init(struct loader *loader, const struct loader_options *options, const struct corpus *corpus,
                struct memory_pool *pool, struct failure *failure)
{
	memset(loader, 0, sizeof(*loader));
	loader->options = *options;
	loader->corpus = corpus;
	loader->pool = pool;
	loader->next = loader->taken = options->first;
	pthread_mutex_init(&loader->lock, NULL);
	pthread_cond_init(&loader->room, NULL);
	pthread_cond_init(&loader->ready, NULL);
	loader->slots = calloc((size_t)options->capacity, sizeof(*loader->slots));
	loader->threads = calloc((size_t)options->threads, sizeof(*loader->threads));
	if (loader->slots == NULL || loader->threads == NULL)
		return failure_memory(failure, (size_t)options->capacity * sizeof(*loader->slots));
	for (int i = 0; i < options->capacity; i++)
		if (batch_init(&loader->slots[i].batch, corpus, options->rows, pool, failure) != 0)
			return -1;
	for (int i = 0; i < options->threads; i++) {
		int error = pthread_create(&loader->threads[i], NULL, thread_main, loader);
		if (error != 0)
			return failure_set(failure, "cannot start loader thread %d: %s", i, strerror(error));
		loader->started++;
	}
	return 0;
}

void loader_release(struct loader *loader)
{
	if (loader->corpus == NULL)
		return;
	pthread_mutex_lock(&loader->lock);
	loader->stop = true;
	pthread_cond_broadcast(&loader->room);
	pthread_mutex_unlock(&loader->lock);
	for (int i = 0; i < loader->started; i++)
		pthread_join(loader->threads[i], NULL);
	for (int i = 0; loader->slots != NULL && i < loader->options.capacity; i++)
		batch_release(&loader->slots[i].batch, loader->pool);
	free(loader->slots);
	free(loader->threads);
	pthread_cond_destroy(&loader->room);
	pthread_cond_destroy(&loader->ready);
	pthread_mutex_destroy(&loader->lock);
	memset(loader, 0, sizeof(*loader));
}

struct batch *loader_take(struct loader *loader, int64_t *blocked_ns, struct failure *failure)
{
	pthread_mutex_lock(&loader->lock);
	struct loader_slot *slot = &loader->slots[loader->taken % loader->options.capacity];
	if (!slot->is_ready && !loader->stop) {
		int64_t begin = monotonic_ns();
		STEPSCOPE_RANGE_PUSH("wait for loader");
		while (!slot->is_ready && !loader->stop)
			pthread_cond_wait(&loader->ready, &loader->lock);
		stepscope_range_pop();
		*blocked_ns += monotonic_ns() - begin;
	}
	bool is_ready = slot->is_ready;
	if (is_ready) {
		slot->is_ready = false;
		loader->queued--;
		announce_queue(loader);
	} else {
		failure_set(failure, "%s", loader->failure.text);
	}
	pthread_mutex_unlock(&loader->lock);
	return is_ready ? &slot->batch : NULL;
}

void loader_give(struct loader *loader)
{
	pthread_mutex_lock(&loader->lock);
	loader->taken++;
	pthread_cond_broadcast(&loader->room);
	pthread_mutex_unlock(&loader->lock);
}
