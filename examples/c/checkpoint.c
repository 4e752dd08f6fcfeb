/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoint files: build the image in memory, write it in a thread or at once. Format in checkpoint.h. Numbers are in
 * the machine's byte order: a checkpoint is for going on, not for exchange. */
#include "checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct checkpoint_header {
	char magic[8];
	uint32_t word, symbols, context, width, heads, layers;
	uint64_t step, count;
};

_Static_assert(sizeof(struct checkpoint_header) == 48, "the header is the file's layout");

static const char magic[8] = {'G', 'P', 'T', 'C', 'K', 'P', 'T', '1'};

static struct checkpoint_header header_of(const struct gpt *gpt, long step)
{
	struct checkpoint_header header = {
		.word = sizeof(real),
		.symbols = (uint32_t)gpt->config.symbols,
		.context = (uint32_t)gpt->config.context,
		.width = (uint32_t)gpt->config.width,
		.heads = (uint32_t)gpt->config.heads,
		.layers = (uint32_t)gpt->config.layers,
		.step = (uint64_t)step,
		.count = gpt->parameter_count,
	};
	memcpy(header.magic, magic, sizeof(magic));
	return header;
}

/* FNV-1a over 4-byte words; all parts of the file are multiples of that. */
static uint64_t checksum(const char *bytes, size_t count)
{
	uint64_t sum = 0xcbf29ce484222325u;
	for (size_t i = 0; i + 4 <= count; i += 4) {
		uint32_t word;
		memcpy(&word, bytes + i, 4);
		sum = (sum ^ word) * 0x100000001b3u;
	}
	return sum;
}

static size_t image_size(const struct gpt *gpt)
{
	return sizeof(struct checkpoint_header) + 3 * gpt->parameter_count * sizeof(real) + sizeof(uint64_t);
}

static void image_fill(struct checkpoint *checkpoint, const struct gpt *gpt, const struct adamw *adamw, long step)
{
	struct checkpoint_header header = header_of(gpt, step);
	size_t words = gpt->parameter_count * sizeof(real);
	char *at = checkpoint->image;
	STEPSCOPE_RANGE_PUSH("checkpoint.copy");
	memcpy(at, &header, sizeof(header));
	memcpy(at += sizeof(header), gpt->parameters, words);
	memcpy(at += words, adamw->first, words);
	memcpy(at + words, adamw->second, words);
	stepscope_range_pop();
}

static int write_all(int descriptor, const char *bytes, size_t count)
{
	while (count > 0) {
		ssize_t written = write(descriptor, bytes, count);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -1;
		bytes += written;
		count -= (size_t)written;
	}
	return 0;
}

static int sync_folder(const char *folder)
{
	int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (descriptor < 0)
		return -1;
	int status = fsync(descriptor);
	close(descriptor);
	return status;
}

static int image_write(const struct checkpoint *checkpoint, struct failure *failure)
{
	char path[4096], temporary[4096 + 8];
	snprintf(path, sizeof(path), "%s/checkpoint.bin", checkpoint->folder);
	snprintf(temporary, sizeof(temporary), "%s.part", path);
	uint64_t sum = checksum(checkpoint->image, checkpoint->bytes - sizeof(sum));
	memcpy(checkpoint->image + checkpoint->bytes - sizeof(sum), &sum, sizeof(sum));
	int descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (descriptor < 0)
		return failure_set(failure, "cannot create checkpoint '%s': %s", temporary, strerror(errno));
	STEPSCOPE_RANGE_PUSH("checkpoint.write");
	int status = write_all(descriptor, checkpoint->image, checkpoint->bytes);
	STEPSCOPE_RANGE_SWITCH("checkpoint.fsync");
	if (status == 0)
		status = fsync(descriptor);
	int error = errno;
	stepscope_range_pop();
	close(descriptor);
	if (status != 0) {
		unlink(temporary);
		return failure_set(failure, "cannot write checkpoint '%s': %s", temporary, strerror(error));
	}
	if (rename(temporary, path) != 0 || sync_folder(checkpoint->folder) != 0)
		return failure_set(failure, "cannot rename checkpoint to '%s': %s", path, strerror(errno));
	return 0;
}

static void *thread_main(void *argument)
{
	struct checkpoint *checkpoint = argument;
	stepscope_thread_name("checkpoint writer");
	pthread_mutex_lock(&checkpoint->lock);
	for (;;) {
		while (!checkpoint->stop && !checkpoint->is_pending)
			pthread_cond_wait(&checkpoint->changed, &checkpoint->lock);
		if (!checkpoint->is_pending)
			break;
		pthread_mutex_unlock(&checkpoint->lock);
		image_write(checkpoint, &checkpoint->failure);
		pthread_mutex_lock(&checkpoint->lock);
		checkpoint->is_pending = false;
		pthread_cond_broadcast(&checkpoint->changed);
	}
	pthread_mutex_unlock(&checkpoint->lock);
	return NULL;
}

int checkpoint_init(struct checkpoint *checkpoint, const char *folder, const struct gpt *gpt, struct failure *failure)
{
	memset(checkpoint, 0, sizeof(*checkpoint));
	if (folder == NULL)
		return 0;
	if (strlen(folder) > 4000)
		return failure_set(failure, "the name of the folder for checkpoints is too long");
	if (mkdir(folder, 0777) != 0 && errno != EEXIST)
		return failure_set(failure, "cannot make folder '%s' for checkpoints: %s", folder, strerror(errno));
	checkpoint->pool = &gpt->engine->memory;
	checkpoint->bytes = image_size(gpt);
	checkpoint->image = memory_take(checkpoint->pool, checkpoint->bytes, STEPSCOPE_MEMORY_OTHER);
	if (checkpoint->image == NULL)
		return failure_memory(failure, checkpoint->bytes);
	checkpoint->folder = folder;
	pthread_mutex_init(&checkpoint->lock, NULL);
	pthread_cond_init(&checkpoint->changed, NULL);
	int error = pthread_create(&checkpoint->thread, NULL, thread_main, checkpoint);
	if (error != 0)
		return failure_set(failure, "cannot start the checkpoint thread: %s", strerror(error));
	checkpoint->has_thread = true;
	return 0;
}

int checkpoint_release(struct checkpoint *checkpoint, struct failure *failure)
{
	int status = 0;
	if (checkpoint->folder != NULL) {
		pthread_mutex_lock(&checkpoint->lock);
		checkpoint->stop = true;
		pthread_cond_broadcast(&checkpoint->changed);
		pthread_mutex_unlock(&checkpoint->lock);
		if (checkpoint->has_thread)
			pthread_join(checkpoint->thread, NULL);
		pthread_mutex_destroy(&checkpoint->lock);
		pthread_cond_destroy(&checkpoint->changed);
		memory_give(checkpoint->pool, checkpoint->image);
		if (checkpoint->failure.text[0] != '\0')
			status = failure_set(failure, "%s", checkpoint->failure.text);
	}
	memset(checkpoint, 0, sizeof(*checkpoint));
	return status;
}

/* Returns when the thread is idle: then the image is ours. */
static int wait_idle(struct checkpoint *checkpoint, struct failure *failure)
{
	pthread_mutex_lock(&checkpoint->lock);
	if (checkpoint->is_pending) {
		STEPSCOPE_RANGE_PUSH("checkpoint.wait");
		while (checkpoint->is_pending)
			pthread_cond_wait(&checkpoint->changed, &checkpoint->lock);
		stepscope_range_pop();
	}
	pthread_mutex_unlock(&checkpoint->lock);
	if (checkpoint->failure.text[0] != '\0')
		return failure_set(failure, "%s", checkpoint->failure.text);
	return 0;
}

int checkpoint_save(struct checkpoint *checkpoint, const struct gpt *gpt, const struct adamw *adamw, long step,
                    struct failure *failure)
{
	if (checkpoint->folder == NULL)
		return 0;
	if (wait_idle(checkpoint, failure) != 0)
		return -1;
	image_fill(checkpoint, gpt, adamw, step);
	pthread_mutex_lock(&checkpoint->lock);
	checkpoint->is_pending = true;
	pthread_cond_broadcast(&checkpoint->changed);
	pthread_mutex_unlock(&checkpoint->lock);
	return 0;
}

int checkpoint_save_now(struct checkpoint *checkpoint, const struct gpt *gpt, const struct adamw *adamw, long step,
                        struct failure *failure)
{
	if (checkpoint->folder == NULL)
		return 0;
	if (wait_idle(checkpoint, failure) != 0)
		return -1;
	image_fill(checkpoint, gpt, adamw, step);
	return image_write(checkpoint, failure);
}

static int image_accept(const char *image, const char *path, struct gpt *gpt, struct adamw *adamw, long *step,
                        struct failure *failure)
{
	struct checkpoint_header header, wanted = header_of(gpt, 0);
	size_t bytes = image_size(gpt), words = gpt->parameter_count * sizeof(real);
	uint64_t sum;
	memcpy(&header, image, sizeof(header));
	memcpy(&sum, image + bytes - sizeof(sum), sizeof(sum));
	wanted.step = header.step;
	if (memcmp(&header, &wanted, sizeof(header)) != 0)
		return failure_set(failure, "checkpoint '%s' is of another model; use the same sizes and text", path);
	if (sum != checksum(image, bytes - sizeof(sum)))
		return failure_set(failure, "checkpoint '%s' is damaged: its checksum is wrong", path);
	image += sizeof(header);
	memcpy(gpt->parameters, image, words);
	memcpy(adamw->first, image + words, words);
	memcpy(adamw->second, image + 2 * words, words);
	*step = (long)header.step;
	return 0;
}

int checkpoint_load(const char *path, struct gpt *gpt, struct adamw *adamw, long *step, struct failure *failure)
{
	size_t bytes = image_size(gpt);
	char *image = memory_take(&gpt->engine->memory, bytes + 1, STEPSCOPE_MEMORY_TEMPORARY);
	if (image == NULL)
		return failure_memory(failure, bytes + 1);
	int status = -1;
	FILE *file = fopen(path, "rbe");
	if (file == NULL)
		failure_set(failure, "cannot read checkpoint '%s': %s", path, strerror(errno));
	else if (fread(image, 1, bytes + 1, file) != bytes)
		failure_set(failure, "checkpoint '%s' is of another model or damaged: expected %zu bytes", path, bytes);
	else
		status = image_accept(image, path, gpt, adamw, step, failure);
	if (file != NULL)
		fclose(file);
	memory_give(&gpt->engine->memory, image);
	return status;
}
