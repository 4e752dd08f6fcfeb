/* SPDX-License-Identifier: Apache-2.0
 *
 * test_thread_use.c: readings of a thread's CPU time and of its waits for a processor: what they say, how often they come, and what
 * becomes of the files that they keep open.
 */
#include "harness.h"
#include "recording.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stepscope/stepscope.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000u

static uint64_t clock_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void compute(uint64_t ns)
{
	uint64_t end = clock_of(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_of(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static bool is_counted_here(void)
{
	char text[80] = "";
	FILE *file = fopen("/proc/thread-self/schedstat", "r");
	bool is_read = file && fgets(text, sizeof(text), file);

	if (file)
		fclose(file);
	return is_read && strcmp(text, "0 0 0\n") != 0;
}

static const struct recorded_stream *stream_of(const struct recording *recording, const char *name)
{
	const struct recorded_stream *stream = recording_stream(recording, 0, name);

	CHECK(stream);
	CHECK_EQUAL(stream->use.disorder, 0);
	return stream;
}

/* ---- steps ---- */

static void victim_steps(int argc, char **argv)
{
	stepscope_thread_name("steps");
	for (int64_t n = 0; n < 10; n++) {
		stepscope_step_begin(n);
		stepscope_phase_begin(STEPSCOPE_PHASE_DATA);
		usleep(5000);
		stepscope_phase_switch(STEPSCOPE_PHASE_FORWARD);
		compute(5 * MS);
		stepscope_phase_end();
		stepscope_step_end();
	}
	harness.counters[0] = clock_of(CLOCK_THREAD_CPUTIME_ID);
}

static void steps_and_phases_have_readings(void)
{
	CHECK_EQUAL(harness_run("steps", NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	const struct recorded_stream *stream = stream_of(recording, "steps");
	/* three bounds of a step are far apart; a step's begin comes right after the end of the one before */
	CHECK(stream->use.count >= 30 && stream->use.count <= 60);
	CHECK(stream->use.of_process >= 10 && stream->use.of_process <= 20);
	CHECK(stream->use.cpu_ns <= harness.counters[0] && stream->use.cpu_ns + 5 * MS > harness.counters[0]);
	CHECK_EQUAL(stream->use.without_wait, is_counted_here() ? 0 : stream->use.count);
	recording_free(recording);
}

/* ---- waits for a processor ---- */

static void *compute_beside(void *argument)
{
	while (!__atomic_load_n(&harness.counters[1], __ATOMIC_ACQUIRE))
		compute(MS);
	return argument;
}

static void victim_crowd(int argc, char **argv)
{
	pthread_t other;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) != 0)
		harness.counters[2] = 1;
	stepscope_thread_name("crowd");
	pthread_create(&other, NULL, compute_beside, NULL);
	for (int64_t n = 0; n < 10; n++) {
		stepscope_step_begin(n);
		compute(20 * MS);
		stepscope_step_end();
	}
	__atomic_store_n(&harness.counters[1], 1, __ATOMIC_RELEASE);
	pthread_join(other, NULL);
}

static void a_wait_for_a_processor_is_read(void)
{
	if (!is_counted_here())
		harness_skip("this kernel does not count waits for a processor");
	CHECK_EQUAL(harness_run("crowd", NULL), 0);
	if (harness.counters[2])
		harness_skip("the affinity cannot be changed here");
	struct recording *recording = recording_read(harness.directory);
	const struct recorded_stream *stream = stream_of(recording, "crowd");
	printf("# %llu ms of CPU time, waited %llu ms\n", (unsigned long long)(stream->use.cpu_ns / MS),
	       (unsigned long long)(stream->use.wait_ns / MS));
	CHECK(stream->use.wait_ns > stream->use.cpu_ns / 2);
	recording_free(recording);
}

/* ---- how often ---- */

static void victim_tight(int argc, char **argv)
{
	stepscope_thread_name("tight");
	stepscope_phase_begin(STEPSCOPE_PHASE_DATA);
	uint64_t start = clock_of(CLOCK_MONOTONIC);
	for (uint64_t n = 0; clock_of(CLOCK_MONOTONIC) < start + 300 * MS; n++)
		stepscope_phase_switch(n % 2 ? STEPSCOPE_PHASE_DATA : STEPSCOPE_PHASE_FORWARD);
	stepscope_phase_end();
}

/* No reading takes less than 0.1 us, so 200 times that lie between two. */
static void short_phases_have_few_readings(void)
{
	CHECK_EQUAL(harness_run("tight", NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	const struct recorded_stream *stream = stream_of(recording, "tight");
	CHECK(stream->by_type[STEPSCOPE_EVENT_SWITCH] + stream->dropped[STEPSCOPE_EVENT_SWITCH] > 100000);
	CHECK(stream->use.count > 10 && stream->use.count < 300 * MS / 20000);
	recording_free(recording);
}

/* ---- files ---- */

static unsigned count_files(void)
{
	char path[64], target[128];
	unsigned count = 0;

	for (int fd = 3; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ssize_t length = readlink(path, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = 0;
		count += strstr(target, "schedstat") != NULL;
	}
	return count;
}

static pthread_barrier_t barrier;

static void *read_once(void *argument)
{
	stepscope_phase_begin(STEPSCOPE_PHASE_DATA);
	stepscope_phase_end();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return argument;
}

#define THREADS 100

static void victim_files(int argc, char **argv)
{
	pthread_t threads[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, read_once, NULL);
	pthread_barrier_wait(&barrier);
	harness.counters[0] = count_files();
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	stepscope_flush();
	stepscope_flush();
	harness.counters[1] = count_files();
	stepscope_phase_begin(STEPSCOPE_PHASE_DATA);
	if (fork() == 0) {
		stepscope_phase_end();
		harness.counters[2] = count_files();
		_exit(0);
	}
	wait(NULL);
}

static void files_are_few_and_end_with_their_threads(void)
{
	if (!is_counted_here())
		harness_skip("this kernel does not count waits for a processor");
	CHECK_EQUAL(harness_run("files", NULL), 0);
	CHECK(harness.counters[0] > 32 && harness.counters[0] <= 64);
	CHECK(harness.counters[1] <= 1);
	CHECK_EQUAL(harness.counters[2], 1); /* its own, and none of its parent's */
}

static void victim_closes(int argc, char **argv)
{
	struct stat info;
	int mine[64];

	stepscope_thread_name("closes");
	for (int64_t n = 0; n < 20; n++) {
		stepscope_step_begin(n);
		compute(5 * MS);
		stepscope_step_end();
		if (n != 10)
			continue;
		for (int fd = 100; fd < 1024; fd++)
			close(fd);
		for (int i = 0; i < 64; i++) { /* the same numbers, for files of the program */
			int fd = open("/dev/zero", O_RDONLY);
			mine[i] = dup2(fd, 200 + i);
			close(fd);
		}
	}
	for (int i = 0; i < 64; i++)
		harness.counters[0] += fstat(mine[i], &info) == 0 && S_ISCHR(info.st_mode);
}

static void a_program_may_close_our_file(void)
{
	if (!is_counted_here())
		harness_skip("this kernel does not count waits for a processor");
	CHECK_EQUAL(harness_run("closes", NULL), 0);
	CHECK_EQUAL(harness.counters[0], 64);
	struct recording *recording = recording_read(harness.directory);
	const struct recorded_stream *stream = stream_of(recording, "closes");
	CHECK(stream->use.count >= 20);
	CHECK(stream->use.without_wait >= 1 && stream->use.without_wait <= 3);
	recording_free(recording);
}

HARNESS_MAIN(LIST(VICTIM(steps), VICTIM(crowd), VICTIM(tight), VICTIM(files), VICTIM(closes)),
             LIST(TEST(steps_and_phases_have_readings), TEST(a_wait_for_a_processor_is_read),
                  TEST(short_phases_have_few_readings), TEST(files_are_few_and_end_with_their_threads),
                  TEST(a_program_may_close_our_file)))
