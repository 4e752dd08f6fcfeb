/* SPDX-License-Identifier: Apache-2.0
 *
 * input_stream.c: one reading function per compression.
 */
#include "base/input_stream.h"

#include "base/archive_reader.h"
#include "base/crc32c.h"
#include "base/inflate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#define IN_BYTES ((size_t)256 * 1024)
#define AGAIN_BYTES ((size_t)64 << 20)
#define MEMBER_HEAD_BYTES 10u /* of gzip; a zstd frame is longer */

enum compression {
	PLAIN,
	GZIP,
	ZSTD
};

struct input_stream {
	int fd;
	struct archive_reader *archive; /* owned by the caller; NULL: fd */
	char *path;
	enum compression compression;
	struct inflater *inflater;
	ZSTD_DStream *zstd;
	const char *damage; /* of the compressed data; NULL: no damage so far */
	bool is_in_member;  /* the compressed data is incomplete if the file ends now */
	bool is_at_end;
	uint64_t file_bytes;
	bool is_summed;
	struct input_text text;           /* is_summed: bytes returned so far */
	size_t head_begin, head_end;      /* unread part of head */
	size_t begin, end;                /* unread part of buffer */
	size_t member_search;             /* where in buffer to search for the next member if this one is damaged */
	size_t again_bytes;               /* bytes searched twice for that */
	char head[INPUT_LONG_HEAD_BYTES]; /* decompressed, by input_stream_peek() */
	char buffer[MEMBER_HEAD_BYTES + IN_BYTES];
};

static const char zstd_magic[4] = {0x28, (char)0xb5, 0x2f, (char)0xfd};

static enum status input_stream_read_file(struct input_stream *input, char *bytes, size_t *length, struct error *err)
{
	ssize_t n;

	do
		n = read(input->fd, bytes, IN_BYTES);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return error_errno(err, STATUS_INPUT, errno, "cannot read '%s'", input->path);
	*length = (size_t)n;
	return STATUS_OK;
}

/* Reads the next IN_BYTES of the file, or fewer. */
static enum status read_next(struct input_stream *input, char *bytes, size_t *length, struct error *err)
{
	enum status status = input->archive ? archive_read(input->archive, bytes, IN_BYTES, length, err)
	                                    : input_stream_read_file(input, bytes, length, err);

	if (status != STATUS_OK)
		return status;
	input->is_at_end = *length == 0;
	input->file_bytes += *length;
	return STATUS_OK;
}

static enum status input_stream_fill(struct input_stream *input, struct error *err)
{
	enum status status;
	size_t n = 0;

	if (input->begin < input->end || input->is_at_end)
		return STATUS_OK;
	status = read_next(input, input->buffer, &n, err);
	if (status != STATUS_OK || n == 0)
		return status;
	input->begin = input->member_search = 0;
	input->end = n;
	return STATUS_OK;
}

static enum status fail_damaged(const struct input_stream *input, struct error *err)
{
	return error_set(err, STATUS_INPUT, "cannot read '%s': %s near byte %llu of the file", input->path,
	                 input->damage, (unsigned long long)(input->file_bytes - (input->end - input->begin)));
}

static enum status input_stream_read_plain(struct input_stream *input, char *bytes, size_t capacity, size_t *length,
                                           struct error *err)
{
	enum status status;
	size_t n;

	if (input->begin == input->end && !input->is_at_end && capacity >= IN_BYTES)
		return read_next(input, bytes, length, err);
	status = input_stream_fill(input, err);
	if (status != STATUS_OK)
		return status;
	n = input->end - input->begin;
	n = n < capacity ? n : capacity;
	memcpy(bytes, input->buffer + input->begin, n);
	input->begin += n;
	*length = n;
	return STATUS_OK;
}

/* Skips zeros after a member: padding of a tape or a store. gzip skips them, too. */
static void skip_padding(struct input_stream *input)
{
	while (input->begin < input->end && input->buffer[input->begin] == 0)
		input->begin++;
}

static enum status read_gzip(struct input_stream *input, char *bytes, size_t capacity, size_t *length,
                             struct error *err)
{
	while (*length == 0) {
		enum inflate_result result;
		enum status status;
		size_t in;

		if (input->damage)
			return fail_damaged(input, err);
		status = input_stream_fill(input, err);
		if (status != STATUS_OK)
			return status;
		if (!input->is_in_member)
			skip_padding(input);
		in = input->end - input->begin;
		if (in == 0 && !input->is_in_member) {
			if (input->is_at_end)
				break;
			continue;
		}
		bool is_at_end = in == 0; /* the library may still hold data */
		if (!input->is_in_member)
			input->member_search = input->begin + 1;
		input->is_in_member = true;
		*length = capacity;
		result = inflater_run(input->inflater, input->buffer + input->begin, &in, bytes, length);
		input->begin += in;
		if (result == INFLATE_MEMBER_END) { /* another member may follow */
			input->is_in_member = false;
			inflater_reset(input->inflater);
		}
		if (result == INFLATE_IS_DAMAGED) /* good data comes first */
			input->damage = "damaged gzip data";
		else if (is_at_end && *length == 0 &&
		         input->is_in_member) /* the data ends in a member, or in a header that took the rest */
			input->damage = "the gzip data is cut off";
	}
	return STATUS_OK;
}

static enum status read_zstd(struct input_stream *input, char *bytes, size_t capacity, size_t *length,
                             struct error *err)
{
	ZSTD_outBuffer out = {bytes, capacity, 0};

	while (out.pos == 0) {
		ZSTD_inBuffer in;
		enum status status;
		size_t result;

		if (input->damage)
			return fail_damaged(input, err);
		status = input_stream_fill(input, err);
		if (status != STATUS_OK)
			return status;
		in = (ZSTD_inBuffer){input->buffer, input->end, input->begin};
		if (input->begin == input->end && !input->is_in_member)
			break;
		if (!input->is_in_member)
			input->member_search = input->begin + 1;
		result = ZSTD_decompressStream(input->zstd, &out, &in);
		if (ZSTD_isError(result)) {
			input->damage = "damaged zstd data";
			continue;
		}
		if (input->begin == input->end && out.pos == 0) {
			input->damage = "the zstd data is cut off";
			continue;
		}
		input->begin = in.pos;
		input->is_in_member = result != 0;
	}
	*length = out.pos;
	return STATUS_OK;
}

static enum status read_some(struct input_stream *input, char *bytes, size_t capacity, size_t *length,
                             struct error *err)
{
	*length = 0;
	switch (input->compression) {
	case GZIP:
		return read_gzip(input, bytes, capacity, length, err);
	case ZSTD:
		return read_zstd(input, bytes, capacity, length, err);
	default:
		return input_stream_read_plain(input, bytes, capacity, length, err);
	}
}

/* ---- after damage ---- */

/* A gzip header names deflate, five flags, three levels and fourteen systems or "unknown". Random data rarely
 * matches. */
static bool begins_member(const struct input_stream *input, const char *at)
{
	const unsigned char *head = (const unsigned char *)at;

	if (input->compression == ZSTD)
		return memcmp(at, zstd_magic, sizeof(zstd_magic)) == 0;
	return memcmp(at, "\x1f\x8b\x08", 3) == 0 && head[3] < 32 && (head[8] == 0 || head[8] == 2 || head[8] == 4) &&
	       (head[9] < 14 || head[9] == 255);
}

/* Works like input_stream_fill() if less than a header is left; the rest stays in the buffer. Returns false at the end
 * of the file. */
static bool fill_behind(struct input_stream *input)
{
	size_t left = input->end - input->begin, n = 0;
	struct error ignored;

	memmove(input->buffer, input->buffer + input->begin, left);
	input->begin = input->member_search = 0;
	input->end = left;
	if (input->is_at_end || read_next(input, input->buffer + left, &n, &ignored) != STATUS_OK)
		return false;
	input->end += n;
	return n > 0;
}

/* Moves input->begin to the next member. Returns false if there is none. */
static bool find_member(struct input_stream *input)
{
	const char magic = input->compression == ZSTD ? zstd_magic[0] : '\x1f';

	do {
		while (input->end - input->begin >= MEMBER_HEAD_BYTES) {
			const char *from = input->buffer + input->begin;
			const char *at = memchr(from, magic, input->end - input->begin - MEMBER_HEAD_BYTES + 1);

			input->begin = at ? (size_t)(at - input->buffer) : input->end - MEMBER_HEAD_BYTES + 1;
			if (at && begins_member(input, at))
				return true;
			input->begin += at != NULL;
		}
	} while (fill_behind(input));
	return false;
}

bool input_go_on(struct input_stream *input)
{
	if (!input->damage)
		return false;
	/* Damaged data may extend beyond its member, so search again from the start of the member. But not without
	 * limit: each byte might start a member that takes all data after it. */
	if (input->again_bytes < AGAIN_BYTES) {
		input->again_bytes += input->begin - input->member_search;
		input->begin = input->member_search;
	}
	if (!find_member(input))
		return false;
	input->damage = NULL;
	input->is_in_member = false;
	if (input->compression == ZSTD)
		ZSTD_initDStream(input->zstd);
	else
		inflater_reset(input->inflater);
	return true;
}

/* ---- opening ---- */

static enum status input_stream_peek(struct input_stream *input, size_t wanted, const char **bytes, size_t *length,
                                     struct error *err)
{
	size_t n = 1;

	while (n > 0 && input->head_end < wanted) {
		enum status status = read_some(input, input->head + input->head_end, wanted - input->head_end, &n, err);

		if (status != STATUS_OK && input->head_end == 0)
			return status;
		input->head_end += n;
	}
	*bytes = input->head;
	*length = input->head_end < wanted ? input->head_end : wanted;
	return STATUS_OK;
}

enum status input_peek(struct input_stream *input, const char **bytes, size_t *length, struct error *err)
{
	return input_stream_peek(input, INPUT_HEAD_BYTES, bytes, length, err);
}

enum status input_peek_long(struct input_stream *input, const char **bytes, size_t *length, struct error *err)
{
	return input_stream_peek(input, INPUT_LONG_HEAD_BYTES, bytes, length, err);
}

static enum status give(struct input_stream *input, char *bytes, size_t capacity, size_t *length, struct error *err)
{
	size_t n = input->head_end - input->head_begin;

	if (n == 0)
		return read_some(input, bytes, capacity, length, err);
	*length = n < capacity ? n : capacity;
	memcpy(bytes, input->head + input->head_begin, *length);
	input->head_begin += *length;
	return STATUS_OK;
}

enum status input_read(struct input_stream *input, char *bytes, size_t capacity, size_t *length, struct error *err)
{
	enum status status = give(input, bytes, capacity, length, err);

	if (input->is_summed && status == STATUS_OK) {
		input->text.bytes += *length;
		input->text.sum = crc32c(input->text.sum, bytes, *length);
	}
	return status;
}

void input_sum(struct input_stream *input)
{
	input->is_summed = true;
}

struct input_text input_summed(const struct input_stream *input)
{
	return input->text;
}

static enum status recognise(struct input_stream *input, struct error *err)
{
	enum status status = input_stream_fill(input, err);

	if (status != STATUS_OK)
		return status;
	if (input->end >= 2 && memcmp(input->buffer, "\x1f\x8b", 2) == 0) {
		input->compression = GZIP;
		input->inflater = inflater_new();
		if (!input->inflater)
			return error_set(err, STATUS_NO_MEMORY, "out of memory");
	} else if (input->end >= 4 && memcmp(input->buffer, zstd_magic, 4) == 0) {
		input->compression = ZSTD;
		input->zstd = ZSTD_createDStream();
		if (!input->zstd)
			return error_set(err, STATUS_NO_MEMORY, "out of memory");
	}
	return STATUS_OK;
}

static enum status open_stream(const char *path, struct archive_reader *archive, struct input_stream **result,
                               struct error *err)
{
	struct input_stream *input = calloc(1, sizeof(*input));
	enum status status;

	if (!input)
		return error_set(err, STATUS_NO_MEMORY, "out of memory");
	input->path = strdup(path);
	input->archive = archive;
	input->fd = archive || strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (!input->path)
		status = error_set(err, STATUS_NO_MEMORY, "out of memory");
	else if (input->fd < 0)
		status = error_errno(err, STATUS_INPUT, errno, "cannot read '%s'", path);
	else
		status = recognise(input, err);
	if (status != STATUS_OK) {
		input_close(input);
		return status;
	}
	*result = input;
	return STATUS_OK;
}

enum status input_open(const char *path, struct input_stream **result, struct error *err)
{
	return open_stream(path, NULL, result, err);
}

enum status input_open_member(struct archive_reader *archive, const char *name, struct input_stream **result,
                              struct error *err)
{
	return open_stream(name, archive, result, err);
}

bool archive_is_here(const char *head, size_t length)
{
	static const char xz_magic[6] = {(char)0xfd, '7', 'z', 'X', 'Z', 0}; /* xz, of which only archives are read */

	return (length >= 4 && memcmp(head, "PK\3\4", 4) == 0) ||
	       (length >= sizeof(xz_magic) && memcmp(head, xz_magic, sizeof(xz_magic)) == 0) ||
	       (length >= 262 && memcmp(head + 257, "ustar", 5) == 0);
}

const char *input_compression(const struct input_stream *input)
{
	static const char *const names[] = {"none", "gzip", "zstd"};

	return names[input->compression];
}

uint64_t input_file_bytes(const struct input_stream *input)
{
	return input->archive ? archive_file_bytes(input->archive) : input->file_bytes;
}

void input_close(struct input_stream *input)
{
	if (!input)
		return;
	inflater_free(input->inflater);
	ZSTD_freeDStream(input->zstd);
	if (input->fd > STDERR_FILENO)
		close(input->fd);
	free(input->path);
	free(input);
}
