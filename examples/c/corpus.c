/* SPDX-License-Identifier: Apache-2.0 */
/* Opens text files, builds the vocabulary of bytes, reads random windows and tokenises them. */
#include "corpus.h"

#include "random.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int file_add(struct corpus *corpus, const char *path, struct failure *failure)
{
	struct corpus_file *files = realloc(corpus->files, ((size_t)corpus->count + 1) * sizeof(*files));
	if (files == NULL)
		return failure_memory(failure, ((size_t)corpus->count + 1) * sizeof(*files));
	corpus->files = files;
	struct corpus_file *file = &files[corpus->count];
	*file = (struct corpus_file){.path = strdup(path), .descriptor = -1};
	if (file->path == NULL)
		return failure_memory(failure, strlen(path) + 1);
	corpus->count++;
	file->descriptor = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	if (file->descriptor < 0 || fstat(file->descriptor, &status) != 0)
		return failure_set(failure, "cannot read '%s': %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return failure_set(failure, "cannot read '%s': not a file or folder of text", path);
	file->size = status.st_size;
	if (file->size < 20 * (int64_t)(corpus->context + 1))
		return failure_set(failure,
		                   "'%s' is too short: %lld bytes, a context of %d needs at least %lld; use longer "
		                   "text or a smaller --context",
		                   path, (long long)file->size, corpus->context, 20 * ((long long)corpus->context + 1));
	corpus->bytes += file->size;
	return 0;
}

static int is_text(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);
	return length > 4 && strcmp(entry->d_name + length - 4, ".txt") == 0;
}

/* Files in the order of their names, so that a run does not depend on the file system. */
static int folder_add(struct corpus *corpus, const char *path, struct failure *failure)
{
	struct dirent **entries = NULL;
	int count = scandir(path, &entries, is_text, alphasort);
	if (count < 0)
		return failure_set(failure, "cannot read folder '%s': %s", path, strerror(errno));
	int status = count > 0 ? 0 : failure_set(failure, "no *.txt files in folder '%s'", path);
	for (int i = 0; i < count; i++) {
		char name[4096];
		int length = snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
		if (status == 0 && length >= (int)sizeof(name))
			status = failure_set(failure, "path too long in folder '%s'", path);
		if (status == 0)
			status = file_add(corpus, name, failure);
		free(entries[i]);
	}
	free(entries);
	return status;
}

static int file_read(const struct corpus_file *file, char *text, size_t bytes, int64_t offset, struct failure *failure)
{
	while (bytes > 0) {
		ssize_t got = pread(file->descriptor, text, bytes, offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return failure_set(failure, "cannot read '%s' at %lld: %s", file->path, (long long)offset,
			                   got < 0 ? strerror(errno) : "the file became shorter");
		text += got;
		bytes -= (size_t)got;
		offset += got;
	}
	return 0;
}

/* Token 0 stands for every byte that does not occur. */
static int vocabulary_build(struct corpus *corpus, struct failure *failure)
{
	unsigned char seen[256] = {0};
	char text[65536];
	for (int i = 0; i < corpus->count; i++) {
		const struct corpus_file *file = &corpus->files[i];
		for (int64_t offset = 0; offset < file->size; offset += (int64_t)sizeof(text)) {
			int64_t left = file->size - offset;
			size_t bytes = left < (int64_t)sizeof(text) ? (size_t)left : sizeof(text);
			if (file_read(file, text, bytes, offset, failure) != 0)
				return -1;
			for (size_t k = 0; k < bytes; k++)
				seen[(unsigned char)text[k]] = 1;
		}
	}
	corpus->symbols = 1;
	for (int byte = 0; byte < 256; byte++)
		corpus->token[byte] = seen[byte] ? corpus->symbols++ : 0;
	return 0;
}

int corpus_init(struct corpus *corpus, char *const *paths, int count, int context, struct failure *failure)
{
	*corpus = (struct corpus){.context = context};
	for (int i = 0; i < count; i++) {
		struct stat status;
		if (stat(paths[i], &status) != 0)
			return failure_set(failure, "cannot read '%s': %s", paths[i], strerror(errno));
		int result = S_ISDIR(status.st_mode) ? folder_add(corpus, paths[i], failure)
		                                     : file_add(corpus, paths[i], failure);
		if (result != 0)
			return -1;
	}
	STEPSCOPE_RANGE_PUSH("corpus.scan");
	int result = vocabulary_build(corpus, failure);
	stepscope_range_pop();
	return result;
}

void corpus_release(struct corpus *corpus)
{
	for (int i = 0; i < corpus->count; i++) {
		if (corpus->files[i].descriptor >= 0)
			close(corpus->files[i].descriptor);
		free(corpus->files[i].path);
	}
	free(corpus->files);
	*corpus = (struct corpus){0};
}

int batch_init(struct batch *batch, const struct corpus *corpus, int rows, struct memory_pool *pool,
               struct failure *failure)
{
	size_t tokens = (size_t)rows * corpus->context;
	batch->rows = rows;
	batch->tokens = memory_take(pool, tokens * sizeof(int), STEPSCOPE_MEMORY_INPUT);
	batch->targets = memory_take(pool, tokens * sizeof(int), STEPSCOPE_MEMORY_INPUT);
	batch->text = memory_take(pool, tokens + (size_t)rows, STEPSCOPE_MEMORY_INPUT);
	if (batch->tokens == NULL || batch->targets == NULL || batch->text == NULL)
		return failure_memory(failure, tokens * sizeof(int));
	return 0;
}

void batch_release(struct batch *batch, struct memory_pool *pool)
{
	memory_give(pool, batch->tokens);
	memory_give(pool, batch->targets);
	memory_give(pool, batch->text);
	*batch = (struct batch){0};
}

int corpus_read(const struct corpus *corpus, enum corpus_split split, uint64_t seed, struct batch *batch,
                struct failure *failure)
{
	size_t window = (size_t)corpus->context + 1;
	for (int row = 0; row < batch->rows; row++) {
		int64_t position = (int64_t)(random_uniform(&seed) * (double)corpus->bytes);
		int index = 0; /* a file in proportion to its size */
		while (index + 1 < corpus->count && position >= corpus->files[index].size)
			position -= corpus->files[index++].size;
		const struct corpus_file *file = &corpus->files[index];
		int64_t border = file->size - file->size / 10;
		int64_t begin = split == CORPUS_TRAINING ? 0 : border;
		int64_t end = split == CORPUS_TRAINING ? border : file->size;
		int64_t choices = end - begin - (int64_t)window + 1;
		int64_t offset = begin + (int64_t)(random_uniform(&seed) * (double)choices);
		if (file_read(file, batch->text + (size_t)row * window, window, offset, failure) != 0)
			return -1;
	}
	return 0;
}

void corpus_tokenize(const struct corpus *corpus, struct batch *batch)
{
	int context = corpus->context;
	for (int row = 0; row < batch->rows; row++) {
		const unsigned char *text = (const unsigned char *)batch->text + (size_t)row * (context + 1);
		for (int i = 0; i < context; i++) {
			batch->tokens[(size_t)row * context + i] = corpus->token[text[i]];
			batch->targets[(size_t)row * context + i] = corpus->token[text[i + 1]];
		}
	}
}
