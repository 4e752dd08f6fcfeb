/* SPDX-License-Identifier: Apache-2.0
 *
 * read_ahead.c: see read_ahead.h. A ring of blocks; the thread fills them in order until the input ends or fails.
 */
#include "base/read_ahead.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 4u
#define BLOCK_BYTES ((size_t)256 * 1024)

struct read_ahead_block {
	size_t length;
	char bytes[BLOCK_BYTES];
};

struct read_ahead {
	struct input_stream *input;
	pthread_t thread;
	pthread_mutex_t
		lock; /* protects the fields after it, except the bytes of blocks: each block belongs to one side */
	pthread_cond_t is_changed;
	uint64_t filled, emptied; /* total number of blocks */
	uint64_t file_bytes;
	bool is_ended, is_stopped;
	struct error error; /* status STATUS_OK: the end of the input */
	size_t taken;       /* bytes taken of the first block that is not empty; used by the reader only */
	struct read_ahead_block blocks[BLOCKS];
};

/* Fills a block completely, or up to the end. Returns false if no more data comes. */
static bool fill_block(struct read_ahead *ahead, struct read_ahead_block *block, struct error *error)
{
	size_t n = 1;
	for (block->length = 0; n > 0 && block->length < BLOCK_BYTES; block->length += n)
		if (input_read(ahead->input, block->bytes + block->length, BLOCK_BYTES - block->length, &n, error) !=
		    STATUS_OK)
			return false;
	return n > 0;
}

static void *read_ahead_read_input(void *context)
{
	struct read_ahead *ahead = context;
	bool is_more = true;
	while (is_more) {
		struct error error = {0};
		pthread_mutex_lock(&ahead->lock);
		while (ahead->filled - ahead->emptied == BLOCKS && !ahead->is_stopped)
			pthread_cond_wait(&ahead->is_changed, &ahead->lock);
		is_more = !ahead->is_stopped;
		pthread_mutex_unlock(&ahead->lock);
		if (!is_more)
			break;
		is_more = fill_block(ahead, &ahead->blocks[ahead->filled % BLOCKS], &error);
		pthread_mutex_lock(&ahead->lock);
		ahead->filled++;
		ahead->file_bytes = input_file_bytes(ahead->input);
		ahead->is_ended = !is_more;
		ahead->error = error;
		pthread_cond_signal(&ahead->is_changed);
		pthread_mutex_unlock(&ahead->lock);
	}
	return NULL;
}

enum status read_ahead_open(struct input_stream *input, struct read_ahead **result, struct error *err)
{
	struct read_ahead *ahead = calloc(1, sizeof *ahead);
	sigset_t all, before;
	if (!ahead)
		return error_set(err, STATUS_NO_MEMORY, "out of memory");
	ahead->input = input;
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->is_changed, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are for the program's threads */
	int number = pthread_create(&ahead->thread, NULL, read_ahead_read_input, ahead);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (number != 0) {
		pthread_mutex_destroy(&ahead->lock);
		pthread_cond_destroy(&ahead->is_changed);
		free(ahead);
		return error_errno(err, STATUS_ENVIRONMENT, number, "cannot start a thread");
	}
	*result = ahead;
	return STATUS_OK;
}

/* Returns the first block with unread bytes. NULL: there will be no more. */
static const struct read_ahead_block *next_block(struct read_ahead *ahead)
{
	const struct read_ahead_block *block = NULL;
	pthread_mutex_lock(&ahead->lock);
	while (!block) {
		if (ahead->filled == ahead->emptied) {
			if (ahead->is_ended)
				break;
			pthread_cond_wait(&ahead->is_changed, &ahead->lock);
			continue;
		}
		block = &ahead->blocks[ahead->emptied % BLOCKS];
		if (ahead->taken < block->length)
			break;
		ahead->emptied++;
		ahead->taken = 0;
		block = NULL;
		if (ahead->filled - ahead->emptied <=
		    BLOCKS / 2) /* wakes the thread for half of the blocks at a time, because each wake-up costs */
			pthread_cond_signal(&ahead->is_changed);
	}
	pthread_mutex_unlock(&ahead->lock);
	return block;
}

enum status read_ahead_read(struct read_ahead *ahead, char *bytes, size_t capacity, size_t *length, struct error *err)
{
	const struct read_ahead_block *block = next_block(ahead);
	*length = 0;
	if (!block) {
		if (ahead->error.status != STATUS_OK)
			*err = ahead->error;
		return ahead->error.status;
	}
	*length = block->length - ahead->taken < capacity ? block->length - ahead->taken : capacity;
	memcpy(bytes, block->bytes + ahead->taken, *length);
	ahead->taken += *length;
	return STATUS_OK;
}

uint64_t read_ahead_file_bytes(struct read_ahead *ahead)
{
	pthread_mutex_lock(&ahead->lock);
	uint64_t bytes = ahead->file_bytes;
	pthread_mutex_unlock(&ahead->lock);
	return bytes;
}

void read_ahead_close(struct read_ahead *ahead)
{
	if (!ahead)
		return;
	pthread_mutex_lock(&ahead->lock);
	ahead->is_stopped = true;
	pthread_cond_signal(&ahead->is_changed);
	pthread_mutex_unlock(&ahead->lock);
	pthread_join(ahead->thread, NULL);
	pthread_mutex_destroy(&ahead->lock);
	pthread_cond_destroy(&ahead->is_changed);
	free(ahead);
}
