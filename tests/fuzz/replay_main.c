/* SPDX-License-Identifier: Apache-2.0
 *
 * replay_main.c: runs a fuzz target over saved inputs, each a test of its own (TAP). Arguments are files and folders.
 * Every input is tried whole, then cut off and with single bytes changed, so that a gate without a fuzzer sees more than
 * the files. What is wrong ends the program: an assert or a sanitizer. TRIES=n in the environment: so often instead
 * of 64 times.
 */
#include "base/buffer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAXIMUM_INPUT ((size_t)64 * 1024 * 1024)
#define MAXIMUM_PATH 4096
#define TRIES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct replay {
	int tests;
	int failed;
};

static void report(struct replay *replay, const char *path, const char *problem)
{
	replay->tests++;
	replay->failed += problem != NULL;
	printf("%s %d - %s%s%s\n", problem ? "not ok" : "ok", replay->tests, path, problem ? ": " : "",
	       problem ? problem : "");
	fflush(stdout);
}

static const char *read_file(const char *path, struct buffer *input)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	const char *problem = NULL;
	ssize_t got = 0;

	if (file < 0)
		return strerror(errno);
	do {
		char *room = buffer_reserve(input, 65536);

		got = room ? read(file, room, 65536) : -1;
		if (got > 0)
			input->length += (size_t)got;
	} while (got > 0);
	if (got < 0)
		problem = input->is_overflown ? "larger than 64 MiB" : strerror(errno);
	close(file);
	return problem;
}

/* From memory of exactly that size, so that a sanitizer sees a byte read too far. */
static void try(const char *data, size_t size)
{
	uint8_t *copy = calloc(1, size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static uint64_t tries_wanted(void)
{
	const char *wish = getenv("TRIES");

	return wish ? strtoull(wish, NULL, 10) : TRIES;
}

static void try_changed(struct buffer *input)
{
	uint64_t seed = input->length; /* the same changes every time */
	uint64_t tries = tries_wanted();

	for (uint64_t i = 0; i < tries && input->length; i++) {
		size_t place;
		char before;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		place = (seed >> 33) % input->length;
		try(input->data, place);
		before = input->data[place];
		input->data[place] = (char)(i % 2 ? (uint64_t)before ^ 1u << (seed >> 30) % 8 : seed >> 20);
		try(input->data, input->length);
		input->data[place] = before;
	}
}

static void replay_file(struct replay *replay, const char *path)
{
	struct buffer input;
	const char *problem;

	buffer_init(&input, MAXIMUM_INPUT);
	problem = read_file(path, &input);
	if (!problem) {
		fprintf(stderr, "# %s\n", path); /* the last one named is the one that ended us */
		try(input.data, input.length);
		try_changed(&input);
	}
	report(replay, path, problem);
	buffer_release(&input);
}

static int is_no_dot_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void replay_folder(struct replay *replay, const char *folder)
{
	struct dirent **entries;
	int count = scandir(folder, &entries, is_no_dot_file, alphasort);
	char path[MAXIMUM_PATH];

	if (count < 0) {
		report(replay, folder, strerror(errno));
		return;
	}
	for (int i = 0; i < count; i++) {
		if (snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name) < (int)sizeof(path))
			replay_file(replay, path);
		else
			report(replay, folder, "a path too long");
		free(entries[i]);
	}
	free(entries);
	if (count == 0)
		report(replay, folder, "holds no inputs");
}

int main(int argc, char **argv)
{
	struct replay replay = {0, 0};

	try("", 0);
	for (int i = 1; i < argc; i++) {
		struct stat status;

		if (stat(argv[i], &status) != 0)
			report(&replay, argv[i], strerror(errno));
		else if (S_ISDIR(status.st_mode))
			replay_folder(&replay, argv[i]);
		else
			replay_file(&replay, argv[i]);
	}
	printf("1..%d\n", replay.tests);
	return replay.failed || !replay.tests;
}
