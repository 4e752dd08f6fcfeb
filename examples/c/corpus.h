/* SPDX-License-Identifier: Apache-2.0 */
/* Text files and their vocabulary: every distinct byte is a token. The last tenth of each file is for validation.
 * Windows are read from the files at each request, as a data set larger than memory would be. Any thread may read. */
#ifndef TRAINER_CORPUS_H
#define TRAINER_CORPUS_H

#include "failure.h"
#include "memory_pool.h"

#include <stdint.h>

enum corpus_split {
	CORPUS_TRAINING,
	CORPUS_VALIDATION
};

struct corpus_file {
	char *path;
	int descriptor;
	int64_t size;
};

struct corpus {
	struct corpus_file *files;
	int count;
	int context;
	int symbols;    /* tokens in the vocabulary, with one for bytes that are not in it */
	int token[256]; /* of each byte */
	int64_t bytes;  /* of all files */
};

/* One micro-batch: rows windows of context tokens, and the same shifted by one as targets. */
struct batch {
	int rows;
	int *tokens, *targets;
	char *text; /* as read: rows * (context + 1) bytes */
};

/* Opens the files, and all *.txt in those paths that are folders, and reads them once for the vocabulary. */
int corpus_init(struct corpus *corpus, char *const *paths, int count, int context, struct failure *failure);
void corpus_release(struct corpus *corpus);

/* Memory for a batch, from the pool. */
int batch_init(struct batch *batch, const struct corpus *corpus, int rows, struct memory_pool *pool,
               struct failure *failure);
void batch_release(struct batch *batch, struct memory_pool *pool);

/* Fills the batch with windows chosen by `seed`: read from the files, then turned into tokens. */
int corpus_read(const struct corpus *corpus, enum corpus_split split, uint64_t seed, struct batch *batch,
                struct failure *failure);
void corpus_tokenize(const struct corpus *corpus, struct batch *batch);

#endif
