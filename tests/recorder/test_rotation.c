/* SPDX-License-Identifier: Apache-2.0
 *
 * test_rotation.c: always-on recordings: bounded on disk, whole in what is kept, and steps, phases and values of all the time in the
 * coarse segment.
 */
#include "work.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEPS 400

static uint64_t detail_bytes(void)
{
	DIR *dir = opendir(harness.directory);
	uint64_t newest_number = 0, newest = 0, sum = 0;

	for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
		char path[512];
		struct stat info;
		snprintf(path, sizeof(path), "%.90s/%.255s", harness.directory, entry->d_name);
		const char *dot = strstr(entry->d_name, ".ssr");
		while (dot && dot > entry->d_name && dot[-1] != '.')
			dot--;
		if (!dot || stat(path, &info) != 0)
			continue;
		uint64_t number = strtoull(dot, NULL, 10);
		sum += (uint64_t)info.st_size;
		if (number >= newest_number) {
			newest_number = number;
			newest = (uint64_t)info.st_size;
		}
	}
	if (dir)
		closedir(dir);
	return sum - newest;
}

/* Between the next file's first byte and the oldest one's end there is one more than stays: so of three looks. */
static uint64_t settled_detail_bytes(void)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 3; i++) {
		stepscope_flush();
		uint64_t bytes = detail_bytes();
		if (bytes < least)
			least = bytes;
	}
	return least;
}

static void put_ranges(const stepscope_name_t names[16])
{
	for (unsigned i = 0; i < 2000; i++) {
		stepscope_range_push_name(names[i * 7 % 16]);
		for (volatile unsigned k = 0; k < i * 31 % 97; k++)
			;
		stepscope_range_pop();
	}
}

static void name_layers(stepscope_name_t names[16])
{
	for (int i = 0; i < 16; i++) {
		char text[16];
		snprintf(text, sizeof(text), "layer %d", i);
		names[i] = stepscope_name(STEPSCOPE_KIND_RANGE, text);
	}
}

/* steps COUNT: each with a phase, a metric, a mark and 2,000 ranges of irregular length, and the disk looked at now and then. */
static void victim_steps(int argc, char **argv)
{
	long count = work_number(argc, argv, 1);
	stepscope_name_t names[16];

	name_layers(names);
	for (long n = 0; n < count; n++) {
		stepscope_step_begin(n);
		stepscope_phase_begin(STEPSCOPE_PHASE_FORWARD);
		put_ranges(names);
		stepscope_phase_end();
		stepscope_metric("loss", (double)n);
		stepscope_mark("mark");
		stepscope_step_end();
		if (n % 20 == 0) {
			uint64_t bytes = settled_detail_bytes();
			if (bytes > harness.counters[10])
				harness.counters[10] = bytes;
		}
	}
	if (argc > 2)
		kill(getpid(), SIGKILL);
}

static void check_run(const char *kill_word, uint64_t keep_bytes)
{
	/* after a kill the newest of it is in the last segment only */
	unsigned missing = kill_word ? 20 : 0;
	char count[16];
	struct recording *recording;

	snprintf(count, sizeof(count), "%d", STEPS);
	CHECK_EQUAL(harness_run("steps", count, kill_word, NULL), kill_word ? SIGKILL : 0);
	recording = recording_read(harness.directory);
	recording_check_whole(recording, true);
	CHECK_EQUAL(recording->coarse_files, 1);
	CHECK(recording->files > 2);
	/* begin and end of the step and its phase, tokens and facts apart */
	CHECK(recording->coarse[STEPSCOPE_EVENT_STEP] >= 2 * (STEPS - missing));
	CHECK(recording->coarse[STEPSCOPE_EVENT_VALUE] >= STEPS - missing);
	CHECK(recording->coarse[STEPSCOPE_EVENT_MARK] >= STEPS - missing);
	CHECK(recording->coarse[STEPSCOPE_EVENT_BEGIN] >= STEPS - missing);
	CHECK(recording->coarse[STEPSCOPE_EVENT_BEGIN] <= STEPS); /* phases, no ranges */
	/* the newest detail is there, the oldest is not */
	uint64_t ranges = recording_sum(recording, STEPSCOPE_EVENT_BEGIN);
	uint64_t dropped = recording_drops(recording, STEPSCOPE_EVENT_BEGIN);
	CHECK(ranges > 2001 && ranges + dropped <= 2001 * STEPS);
	CHECK(dropped || ranges < 2001 * STEPS);
	CHECK_EQUAL(recording->processes[0].last_step, STEPS - 1);
	printf("# %u files, %llu bytes of detail, at most %llu beside the newest file, %llu coarse bytes\n",
	       recording->files, (unsigned long long)recording->bytes, (unsigned long long)harness.counters[10],
	       (unsigned long long)recording->coarse_bytes);
	CHECK(harness.counters[10] <= keep_bytes + recording->coarse_bytes);
	recording_free(recording);
}

static void detail_is_bounded_and_the_coarse_is_whole(void)
{
	harness.options = "keep_size=256K,segment_size=64K,sample_process=false";
	check_run(NULL, 256 << 10);
}

static void a_kill_under_rotation_keeps_both(void)
{
	harness.options = "keep_size=256K,segment_size=64K,sample_process=false";
	check_run("kill", 256 << 10);
}

/* inputs COUNT: steps with other inputs of operators each time, as of sentences of many lengths: 10 kB of names per step. */
static void victim_inputs(int argc, char **argv)
{
	stepscope_name_t names[16];
	char text[1024];

	name_layers(names);
	memset(text, ' ', sizeof(text));
	for (long n = 0; n < work_number(argc, argv, 1); n++) {
		stepscope_step_begin(n);
		for (long i = 0; i < 10; i++) {
			text[snprintf(text, sizeof(text), "[%ld, %ld]", n, i)] = ' ';
			text[sizeof(text) - 1] = 0;
			/* what the observer of PyTorch has names of */
			CHECK(stepscope_name((enum stepscope_kind)STEPSCOPE_SYMBOL_INPUTS, text));
		}
		put_ranges(names);
		stepscope_step_end();
		if (n % 10 == 0)
			stepscope_flush(); /* so that all of it does not come to the disk at once */
	}
}

/* Names that events no longer need must not fill the disk with each file, nor leave no room in it for events. */
static void inputs_are_written_once(void)
{
	char count[16];

	snprintf(count, sizeof(count), "%d", STEPS);
	harness.options = "keep_size=1M,segment_size=64K,sample_process=false";
	CHECK_EQUAL(harness_run("inputs", count, NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, true);
	CHECK(recording->files > 2);
	CHECK_EQUAL(recording->coarse_inputs, 10 * STEPS);
	CHECK_EQUAL(recording->inputs, 0);
	CHECK(recording->coarse[STEPSCOPE_EVENT_STEP] >= 2 * STEPS);
	/* half of what may be kept is theirs, although the names are more than all of it */
	printf("# %u files, %llu bytes of detail, %llu coarse bytes\n", recording->files,
	       (unsigned long long)recording->bytes, (unsigned long long)recording->coarse_bytes);
	CHECK(recording->coarse_bytes > 1 << 20);
	CHECK(recording->bytes > 256 << 10 && recording->bytes < 1 << 20);
	recording_free(recording);
}

/* Everything coarse: the copy takes as much room as the original, and nothing of it may vanish. */
static void victim_values(int argc, char **argv)
{
	stepscope_name_t name = stepscope_name(STEPSCOPE_KIND_METRIC, "value");

	for (long n = 0; n < work_number(argc, argv, 1); n++) {
		stepscope_value_name(name, 1.0 / (double)(n + 1));
		stepscope_value_name(name, (double)(n * 2654435761));
		for (volatile int i = 0; i < 60; i++)
			;
	}
}

static void a_flood_of_values_is_coarse_too(void)
{
	harness.options = "keep_size=1G,segment_size=1G,sample_process=false";
	CHECK_EQUAL(harness_run("values", "400000", NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_VALUE) + recording_drops(recording, STEPSCOPE_EVENT_VALUE),
	            800000);
	CHECK_EQUAL(recording->coarse[STEPSCOPE_EVENT_VALUE], recording_sum(recording, STEPSCOPE_EVENT_VALUE));
	recording_free(recording);
}

HARNESS_MAIN(LIST(VICTIM(steps), VICTIM(inputs), VICTIM(values)),
             LIST(TEST(detail_is_bounded_and_the_coarse_is_whole), TEST(a_kill_under_rotation_keeps_both),
                  TEST(inputs_are_written_once), TEST(a_flood_of_values_is_coarse_too)))
