/* SPDX-License-Identifier: Apache-2.0
 *
 * archive_reader_libarchive.c: see archive_reader.h. libarchive is loaded for the first archive. With all the libraries
 * it needs for other formats, loading it takes longer than the program needs to start.
 */
#include "base/archive_reader.h"
#include "base/input_stream.h"

#include <archive.h>
#include <archive_entry.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define IN_BYTES ((size_t)256 * 1024)
#define NAME_BYTES ((size_t)4096)

/* Functions used from the library. */
#define LIBRARY(X)                                                                                                     \
	X(archive_read_new)                                                                                            \
	X(archive_read_free)                                                                                           \
	X(archive_read_support_format_zip)                                                                             \
	X(archive_read_support_format_tar)                                                                             \
	X(archive_read_support_filter_gzip)                                                                            \
	X(archive_read_support_filter_zstd)                                                                            \
	X(archive_read_support_filter_xz)                                                                              \
	X(archive_read_open)                                                                                           \
	X(archive_read_open_filename)                                                                                  \
	X(archive_read_next_header)                                                                                    \
	X(archive_read_data_block)                                                                                     \
	X(archive_error_string)                                                                                        \
	X(archive_filter_bytes)                                                                                        \
	X(archive_entry_pathname)                                                                                      \
	X(archive_entry_filetype)

struct libarchive_library {
#define X(name) __typeof__(&name) name;
	LIBRARY(X)
#undef X
};

struct archive_reader {
	struct libarchive_library lib;
	struct archive *archive;
	char *path;
	struct input_stream *input; /* NULL: read from path */
	struct input_stream *own;   /* the same input, opened here because the whole archive is compressed */
	char *piece;                /* buffer for bytes of the input */
	struct error problem;       /* failure of the input; data read before it is good */
	const void *block;          /* contents already read */
	size_t block_bytes, block_at;
	char name[NAME_BYTES];
	uint64_t bytes; /* bytes of contents so far */
};

static enum status failed(const struct archive_reader *archive, struct error *err)
{
	const char *text = archive->lib.archive_error_string(archive->archive);
	if (archive->problem.status != STATUS_OK) {
		*err = archive->problem;
		return err->status;
	}
	error_set(err, STATUS_INPUT, "cannot read '%s': %s", archive->path, text ? text : "damaged archive");
	if (text && strstr(text, "Unrecognized"))
		error_hint(err, "supported archives are zip and tar; decompress single files in xz format first");
	return STATUS_INPUT;
}

static enum status load_library(struct libarchive_library *lib, const char *path, struct error *err)
{
	void *handle = dlopen("libarchive.so.13", RTLD_NOW | RTLD_LOCAL);
	bool is_whole = handle;

#define X(name) is_whole = is_whole && (*(void **)&lib->name = dlsym(handle, #name));
	LIBRARY(X)
#undef X
	if (is_whole)
		return STATUS_OK;
	error_set(err, STATUS_ENVIRONMENT, "cannot read '%s': it is an archive, and libarchive.so.13 cannot be loaded",
	          path);
	error_hint(err, "unpack it and give the directory, or install libarchive13");
	return STATUS_ENVIRONMENT;
}

static void support(const struct archive_reader *archive)
{
	archive->lib.archive_read_support_format_zip(archive->archive);
	archive->lib.archive_read_support_format_tar(archive->archive);
	archive->lib.archive_read_support_filter_gzip(archive->archive);
	archive->lib.archive_read_support_filter_zstd(archive->archive);
	archive->lib.archive_read_support_filter_xz(archive->archive);
}

static la_ssize_t libarchive_read_input(struct archive *library, void *context, const void **bytes)
{
	struct archive_reader *archive = context;
	size_t length;

	*bytes = archive->piece;
	if (archive->problem.status == STATUS_OK &&
	    input_read(archive->input, archive->piece, IN_BYTES, &length, &archive->problem) == STATUS_OK)
		return (la_ssize_t)length;
	return 0; /* at an end the library returns the data it has; at a failure it would drop the data */
}

static int open_input(struct archive_reader *archive)
{
	archive->piece = malloc(IN_BYTES);
	return archive->piece
	               ? archive->lib.archive_read_open(archive->archive, archive, NULL, libarchive_read_input, NULL)
	               : ARCHIVE_FATAL;
}

/* The library's own decompression drops the good part of truncated data. */
static void open_compressed(struct archive_reader *archive)
{
	struct error ignored;
	if (archive->input || input_open(archive->path, &archive->own, &ignored) != STATUS_OK)
		return;
	if (strcmp(input_compression(archive->own), "none") != 0) {
		archive->input = archive->own;
		return;
	}
	input_close(archive->own);
	archive->own = NULL;
}

static enum status open_archive(struct archive_reader *archive, struct error *err)
{
	archive->archive = archive->lib.archive_read_new();
	if (!archive->archive)
		return error_set(err, STATUS_NO_MEMORY, "out of memory");
	support(archive);
	open_compressed(archive);
	int result = archive->input
	                     ? open_input(archive)
	                     : archive->lib.archive_read_open_filename(archive->archive, archive->path, IN_BYTES);
	return result == ARCHIVE_OK ? STATUS_OK : failed(archive, err);
}

enum status archive_open(const char *path, struct input_stream *input, struct archive_reader **result,
                         struct error *err)
{
	struct archive_reader *archive = calloc(1, sizeof(*archive));
	enum status status;

	*result = NULL;
	if (archive) {
		archive->path = strdup(path);
		archive->input = input;
	}
	if (!archive || !archive->path) {
		archive_close(archive);
		return error_set(err, STATUS_NO_MEMORY, "out of memory");
	}
	status = load_library(&archive->lib, path, err);
	if (status == STATUS_OK)
		status = open_archive(archive, err);
	if (status != STATUS_OK)
		archive_close(archive);
	else
		*result = archive;
	return status;
}

enum status archive_next(struct archive_reader *archive, const char **name, struct error *err)
{
	struct archive_entry *entry;

	*name = NULL;
	for (;;) {
		int result = archive->lib.archive_read_next_header(archive->archive, &entry);

		if (result == ARCHIVE_EOF)
			return archive->problem.status == STATUS_OK ? STATUS_OK : failed(archive, err);
		if (result == ARCHIVE_RETRY)
			continue;
		if (result != ARCHIVE_OK && result != ARCHIVE_WARN)
			return failed(archive, err);
		const char *given = archive->lib.archive_entry_pathname(entry);
		if (archive->lib.archive_entry_filetype(entry) != AE_IFREG || !given)
			continue;
		snprintf(archive->name, sizeof(archive->name), "%s", given);
		archive->block_bytes = archive->block_at = 0;
		*name = archive->name;
		return STATUS_OK;
	}
}

/* Reads the next piece of contents, or nothing at the end. If it asked for several blocks at once and one failed, the
 * library would return none. */
static enum status next_block(struct archive_reader *archive, struct error *err)
{
	la_int64_t offset;
	int result;

	archive->block_bytes = archive->block_at = 0;
	do
		result = archive->lib.archive_read_data_block(archive->archive, &archive->block, &archive->block_bytes,
		                                              &offset);
	while (result == ARCHIVE_RETRY || ((result == ARCHIVE_OK || result == ARCHIVE_WARN) && !archive->block_bytes));
	if (result == ARCHIVE_OK || result == ARCHIVE_WARN)
		return STATUS_OK;
	archive->block_bytes = 0;
	return result == ARCHIVE_EOF ? STATUS_OK : failed(archive, err);
}

enum status archive_read(struct archive_reader *archive, char *bytes, size_t capacity, size_t *length,
                         struct error *err)
{
	*length = 0;
	if (archive->block_at == archive->block_bytes && next_block(archive, err) != STATUS_OK)
		return err->status;
	size_t left = archive->block_bytes - archive->block_at;
	*length = left < capacity ? left : capacity;
	if (*length)
		memcpy(bytes, (const char *)archive->block + archive->block_at, *length);
	archive->block_at += *length;
	archive->bytes += *length;
	if (archive->bytes > ARCHIVE_FREE_BYTES + ARCHIVE_RATIO_MAX * archive_file_bytes(archive)) {
		*length = 0;
		return error_set(err, STATUS_INPUT,
		                 "cannot read '%s': its contents are more than %u times its size; if that is correct, "
		                 "unpack it first",
		                 archive->path, ARCHIVE_RATIO_MAX);
	}
	return STATUS_OK;
}

uint64_t archive_file_bytes(const struct archive_reader *archive)
{
	la_int64_t bytes;

	if (archive->input) /* counts bytes before decompression */
		return input_file_bytes(archive->input);
	bytes = archive->lib.archive_filter_bytes(archive->archive, -1);
	return bytes > 0 ? (uint64_t)bytes : 0;
}

void archive_close(struct archive_reader *archive)
{
	if (!archive)
		return;
	if (archive->archive)
		archive->lib.archive_read_free(archive->archive);
	input_close(archive->own);
	free(archive->path);
	free(archive->piece);
	free(archive);
}
