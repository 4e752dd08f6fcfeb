/* SPDX-License-Identifier: Apache-2.0
 *
 * compress.c: a ring of blocks between the formatting thread and the thread that compresses and writes. A failed write
 * does not stop the ring, so neither thread ever waits for the other in vain.
 */
#include "output/export/compress.h"

#include "output/export/codec.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_COUNT 4u

struct output {
	char *path;      /* final name; symbolic links resolved */
	char *temporary; /* its name until then, NULL: none (the file is unnamed, or written directly) */
	int fd;          /* -1: bytes are only counted */
	bool is_atomic;
	const struct codec *codec; /* NULL: no compression */
	void *state;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	char *blocks[BLOCK_COUNT];
	size_t lengths[BLOCK_COUNT];
	uint64_t submitted, written; /* numbers of blocks */
	bool is_ending;
	int failure; /* errno, -1: the codec failed */
	uint64_t bytes_raw, bytes_file;
};

static const struct codec *const codecs[] = {&codec_gzip, &codec_zstd, NULL};

static const struct codec *find_codec(const char *path)
{
	size_t length = strlen(path);

	for (int i = 0; codecs[i]; i++) {
		size_t suffix = strlen(codecs[i]->suffix);

		if (length > suffix && strcmp(path + length - suffix, codecs[i]->suffix) == 0)
			return codecs[i];
	}
	return NULL;
}

size_t output_stem_length(const char *path)
{
	const struct codec *codec = find_codec(path);

	return strlen(path) - (codec ? strlen(codec->suffix) : 0);
}

/* ---- the writing thread ---- */

static void set_failure(struct output *output, int number)
{
	__atomic_store_n(&output->failure, number, __ATOMIC_RELAXED);
}

static bool compress_write_all(void *opaque, const char *bytes, size_t length)
{
	struct output *output = opaque;

	while (length) {
		ssize_t n = write(output->fd, bytes, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			set_failure(output, errno);
			return false;
		}
		bytes += n;
		length -= (size_t)n;
		output->bytes_file += (uint64_t)n;
	}
	return true;
}

static void consume(struct output *output, const char *bytes, size_t length, bool is_last)
{
	if (output_is_failed(output))
		return;
	if (!output->codec)
		compress_write_all(output, bytes, length);
	else if (!output->codec->feed(output->state, bytes, length, is_last, compress_write_all, output) &&
	         !output_is_failed(output))
		set_failure(output, -1);
}

static void *write_blocks(void *opaque)
{
	struct output *output = opaque;

	pthread_mutex_lock(&output->mutex);
	for (;;) {
		while (output->written == output->submitted && !output->is_ending)
			pthread_cond_wait(&output->changed, &output->mutex);
		if (output->written == output->submitted)
			break;
		size_t slot = output->written % BLOCK_COUNT;

		pthread_mutex_unlock(&output->mutex);
		consume(output, output->blocks[slot], output->lengths[slot], false);
		pthread_mutex_lock(&output->mutex);
		output->written++;
		pthread_cond_signal(&output->changed);
	}
	pthread_mutex_unlock(&output->mutex);
	if (output->codec)
		consume(output, "", 0, true);
	return NULL;
}

/* ---- open ---- */

static int open_unnamed(const char *path)
{
	char directory[4096];
	const char *slash = strrchr(path, '/');

	if (access("/proc/self/fd", X_OK) < 0) { /* without /proc the file could not get a name in the end */
		errno = EOPNOTSUPP;
		return -1;
	}
	if (!slash)
		return open(".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
	snprintf(directory, sizeof(directory), "%.*s", (int)(slash - path) + 1, path);
	return open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
}

/* Readers scan directories for *.json and *.gz, so the temporary name must end in neither. */
static char *temporary_name(const char *path)
{
	size_t bytes = strlen(path) + 32;
	char *name = malloc(bytes);

	if (name)
		snprintf(name, bytes, "%s.%ld.tmp", path, (long)getpid());
	return name;
}

static enum status compress_open_file(struct output *output, struct error *err)
{
	struct stat info;

	if (stat(output->path, &info) == 0 && S_ISDIR(info.st_mode))
		return error_set(err, STATUS_IO, "cannot write '%s': it is a directory", output->path);
	if (stat(output->path, &info) == 0 && !S_ISREG(info.st_mode)) {
		output->fd = open(output->path, O_WRONLY | O_CLOEXEC);
	} else {
		output->is_atomic = true;
		output->fd = open_unnamed(output->path);
		if (output->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
			output->temporary = temporary_name(output->path);
			if (!output->temporary)
				return error_set(err, STATUS_NO_MEMORY, "out of memory");
			unlink(output->temporary);
			output->fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		}
	}
	if (output->fd < 0)
		return error_errno(err, STATUS_IO, errno, "cannot write '%s'", output->path);
	return STATUS_OK;
}

static void compress_release(struct output *output)
{
	if (output->temporary)
		unlink(output->temporary);
	if (output->fd > STDERR_FILENO)
		close(output->fd);
	if (output->state)
		output->codec->close(output->state);
	for (size_t i = 0; i < BLOCK_COUNT; i++)
		free(output->blocks[i]);
	pthread_mutex_destroy(&output->mutex);
	pthread_cond_destroy(&output->changed);
	free(output->temporary);
	free(output->path);
	free(output);
}

static struct output *allocate(const char *path)
{
	struct output *output = calloc(1, sizeof(*output));
	char *resolved = strcmp(path, "-") == 0 ? NULL : realpath(path, NULL);

	if (!output) {
		free(resolved);
		return NULL;
	}
	output->fd = -1;
	output->path = resolved ? resolved : strdup(path);
	pthread_mutex_init(&output->mutex, NULL);
	pthread_cond_init(&output->changed, NULL);
	for (size_t i = 0; i < BLOCK_COUNT; i++) {
		output->blocks[i] = malloc(OUTPUT_BLOCK_BYTES);
		if (!output->blocks[i] || !output->path) {
			compress_release(output);
			return NULL;
		}
	}
	return output;
}

enum status output_open(const char *path, struct output **result, struct error *err)
{
	struct output *output = allocate(path);
	enum status status = STATUS_OK;

	if (!output)
		return error_set(err, STATUS_NO_MEMORY, "out of memory");
	if (strcmp(path, "-") == 0)
		output->fd = STDOUT_FILENO;
	else
		status = compress_open_file(output, err);
	output->codec = find_codec(path);
	if (status == STATUS_OK && output->codec) {
		output->state = output->codec->open();
		if (!output->state)
			status = error_set(err, STATUS_NO_MEMORY, "out of memory");
	}
	if (status == STATUS_OK && pthread_create(&output->thread, NULL, write_blocks, output) != 0)
		status = error_set(err, STATUS_ENVIRONMENT, "cannot start a thread");
	if (status != STATUS_OK) {
		compress_release(output);
		return status;
	}
	output->has_thread = true;
	*result = output;
	return STATUS_OK;
}

struct output *output_open_nowhere(void)
{
	struct output *output = allocate("-");

	if (!output)
		abort();
	return output;
}

/* ---- use ---- */

char *output_block(struct output *output)
{
	if (output->has_thread) {
		pthread_mutex_lock(&output->mutex);
		while (output->submitted - output->written == BLOCK_COUNT)
			pthread_cond_wait(&output->changed, &output->mutex);
		pthread_mutex_unlock(&output->mutex);
	}
	return output->blocks[output->submitted % BLOCK_COUNT];
}

void output_submit(struct output *output, size_t length)
{
	assert(length <= OUTPUT_BLOCK_BYTES);
	output->bytes_raw += length;
	if (!output->has_thread)
		return;
	pthread_mutex_lock(&output->mutex);
	output->lengths[output->submitted % BLOCK_COUNT] = length;
	output->submitted++;
	pthread_cond_signal(&output->changed);
	pthread_mutex_unlock(&output->mutex);
}

bool output_is_failed(struct output *output)
{
	return __atomic_load_n(&output->failure, __ATOMIC_RELAXED) != 0;
}

uint64_t output_raw_bytes(const struct output *output)
{
	return output->bytes_raw;
}

void writer_bytes(struct writer *w, const void *bytes, size_t length)
{
	const char *from = bytes;

	while (length) {
		size_t room = (size_t)(w->end - w->at);
		size_t n = length < room ? length : room;

		memcpy(w->at, from, n);
		w->at += n;
		from += n;
		length -= n;
		if (length)
			writer_flush(w);
	}
}

void writer_printf(struct writer *w, const char *format, ...)
{
	char text[1024];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	assert(length >= 0 && (size_t)length < sizeof(text));
	writer_bytes(w, text, (size_t)length);
}

/* ---- close ---- */

static void compress_join(struct output *output)
{
	if (!output->has_thread)
		return;
	pthread_mutex_lock(&output->mutex);
	output->is_ending = true;
	pthread_cond_signal(&output->changed);
	pthread_mutex_unlock(&output->mutex);
	pthread_join(output->thread, NULL);
	output->has_thread = false;
}

/* Gives an unnamed file a temporary name first, because a link cannot replace an existing file. */
static bool give_name(struct output *output)
{
	char self[64];

	if (!output->temporary) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", output->fd);
		output->temporary = temporary_name(output->path);
		if (!output->temporary)
			return false;
		unlink(output->temporary);
		if (linkat(AT_FDCWD, self, AT_FDCWD, output->temporary, AT_SYMLINK_FOLLOW) < 0)
			return false;
	}
	return true;
}

/* Closes a complete file, which may still fail, and renames it to its final name unless it was written directly. */
static bool finish_file(struct output *output)
{
	int fd = output->fd;

	if (fd <= STDERR_FILENO)
		return true;
	output->fd = -1;
	if (close(fd) < 0)
		return false;
	if (!output->is_atomic)
		return true;
	if (rename(output->temporary, output->path) < 0)
		return false;
	free(output->temporary);
	output->temporary = NULL;
	return true;
}

static enum status failure_status(const struct output *output, int number, struct error *err)
{
	const char *name = strcmp(output->path, "-") == 0 ? "standard output" : output->path;

	if (number < 0)
		return error_set(err, STATUS_IO, "cannot compress '%s'", name);
	error_errno(err, STATUS_IO, number, "cannot write '%s'", name);
	if (number == ENOSPC || number == EDQUOT || number == EFBIG)
		error_hint(err, "no partial file was left; free some space, choose another directory with -o, or "
		                "export fewer steps with --steps");
	return STATUS_IO;
}

enum status output_close(struct output *output, uint64_t *bytes_file, struct error *err)
{
	enum status status = STATUS_OK;

	compress_join(output);
	if (output->failure)
		status = failure_status(output, output->failure, err);
	else if ((output->is_atomic && !give_name(output)) || !finish_file(output))
		status = failure_status(output, errno, err);
	*bytes_file = output->bytes_file;
	compress_release(output);
	return status;
}

void output_abort(struct output *output)
{
	if (!output)
		return;
	set_failure(output, -1); /* from now on the thread only empties the ring */
	compress_join(output);
	compress_release(output);
}
