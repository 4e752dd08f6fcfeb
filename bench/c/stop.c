/* SPDX-License-Identifier: Apache-2.0
 *
 * stop.c: measures stepscope_shutdown() with a full pool. Each round starts a recording, waits until the drainer has
 * touched the pool and sleeps, fills the pool within one sleep, and stops.
 *
 *     stop ROUNDS DIRECTORY
 *
 * Prints, per round, the ms of the stop, the CPU ms of the process in that time, and the file's bytes before and after.
 */
#include "measure.h"

#include <dirent.h>
#include <stepscope/stepscope.h>
#include <sys/stat.h>

#define NAMES 100
#define PAIRS 920000 /* nearly fills the default pool of 16 MiB, which also holds names and threads */

static stepscope_name_t names[NAMES];

static int64_t file_bytes(const char *directory)
{
	int64_t sum = 0;
	DIR *folder = opendir(directory);
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		struct stat info;
		char path[1400];
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		if (strstr(entry->d_name, ".ssr") && stat(path, &info) == 0)
			sum += info.st_size;
	}
	if (folder)
		closedir(folder);
	return sum;
}

static void begin(const char *directory)
{
	char options[1100];
	snprintf(options, sizeof(options), "keep_size=0,out=%s", directory);
	if (stepscope_init(options) != 0) {
		fprintf(stderr, "stop: %s\n", stepscope_error());
		exit(1);
	}
	for (int i = 0; i < NAMES; i++) {
		char name[32];
		snprintf(name, sizeof(name), "operator %d", i);
		names[i] = stepscope_name(STEPSCOPE_KIND_OP, name);
	}
}

/* Fills the pool with names in random order, which are hard to compress. */
static void fill(void)
{
	uint64_t random = 88172645463325252u;
	for (int i = 0; i < PAIRS; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		stepscope_op_begin_name(names[random % NAMES]);
		stepscope_op_end();
	}
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	for (int round = 0; round < atoi(argv[1]); round++) {
		char directory[1024];
		snprintf(directory, sizeof(directory), "%s/%d", argv[2], round);
		begin(directory);
		usleep(600000);
		stepscope_flush();
		usleep(20000);
		fill();
		int64_t before = file_bytes(directory);
		int64_t cpu = measure_clock(CLOCK_PROCESS_CPUTIME_ID), start = measure_clock(CLOCK_MONOTONIC);
		stepscope_shutdown();
		double wall = (double)(measure_clock(CLOCK_MONOTONIC) - start) / 1e6;
		double used = (double)(measure_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1e6;
		printf("%.3f %.3f %lld %lld\n", wall, used, (long long)before, (long long)file_bytes(directory));
	}
	return 0;
}
