/* SPDX-License-Identifier: Apache-2.0 */
/* Saves and restores parameters, optimizer state and the step number in DIR/checkpoint.bin. A new file is written
 * beside the old one, synced, and renamed over it, so a crash leaves one whole checkpoint. Usually a thread writes a
 * copy of the state while training goes on; a synchronous save keeps the caller until the disk has it.
 *
 *      0 "GPTCKPT1"     8 bytes
 *      8 word size      u32: 4 float, 8 double
 *     12 symbols, context, width, heads, layers   5 x u32
 *     32 step           u64: steps done
 *     40 count          u64: parameters
 *     48 parameters, first moments, second moments   3 x count words
 *        checksum       u64 over all before it
 */
#ifndef TRAINER_CHECKPOINT_H
#define TRAINER_CHECKPOINT_H

#include "adamw.h"
#include "gpt.h"

#include <pthread.h>

struct checkpoint {
	const char *folder; /* NULL: saving does nothing */
	struct memory_pool *pool;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool has_thread, is_pending, stop;
	char *image; /* the bytes of the file */
	size_t bytes;
	struct failure failure; /* of the thread */
};

/* Makes the folder if necessary. `folder` must stay valid; NULL turns checkpoints off. */
int checkpoint_init(struct checkpoint *checkpoint, const char *folder, const struct gpt *gpt, struct failure *failure);

/* Waits for a pending write. Its failure, if any, was not reported by a later save: it is reported here. */
int checkpoint_release(struct checkpoint *checkpoint, struct failure *failure);

/* Copies the state (waiting for the previous write) and lets the thread write it. Fails when the previous one did. */
int checkpoint_save(struct checkpoint *checkpoint, const struct gpt *gpt, const struct adamw *adamw, long step,
                    struct failure *failure);

/* The same, but returns when the file is on disk. */
int checkpoint_save_now(struct checkpoint *checkpoint, const struct gpt *gpt, const struct adamw *adamw, long step,
                        struct failure *failure);

/* Reads a checkpoint of the same model; *step is the number of steps done. */
int checkpoint_load(const char *path, struct gpt *gpt, struct adamw *adamw, long *step, struct failure *failure);

#endif
