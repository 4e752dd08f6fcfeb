/* SPDX-License-Identifier: Apache-2.0
 *
 * test_startstop.c: starts and stops, nested, from any thread, thousands of times, beside threads that record (row P04); two copies
 * of the library in one process (row P13).
 */
#include "work.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static long resident_kb(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long total = 0, resident = 0;

	if (!file || fscanf(file, "%ld %ld", &total, &resident) != 2)
		abort();
	fclose(file);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static long count_entries(const char *path)
{
	DIR *dir = opendir(path);
	long count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

static long count_maps(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	long count = 0;

	for (int c = fgetc(file); c != EOF; c = fgetc(file))
		count += c == '\n';
	fclose(file);
	return count;
}

/* cycles COUNT: counters 10.. get what the process holds after 10 cycles, 20.. after all. */
static void measure(unsigned at)
{
	harness.counters[at] = (uint64_t)resident_kb();
	harness.counters[at + 1] = (uint64_t)count_entries("/proc/self/fd");
	harness.counters[at + 2] = (uint64_t)count_maps();
	harness.counters[at + 3] = (uint64_t)count_entries("/dev/shm");
}

static void victim_cycles(int argc, char **argv)
{
	long count = work_number(argc, argv, 1);

	for (long i = 0; i < count; i++) {
		if (i == 20)
			measure(10);
		if (stepscope_init(NULL) != 0) {
			fprintf(stderr, "%s\n", stepscope_error());
			abort();
		}
		stepscope_range_push("cycle");
		stepscope_range_pop();
		stepscope_shutdown();
	}
	measure(20);
}

static void ten_thousand_cycles_hold_nothing(void)
{
	const unsigned count = IS_SANITIZED ? 300 : 10000;
	char text[16];

	snprintf(text, sizeof(text), "%u", count);
	harness.options = "keep_size=0,pool=256K";
	CHECK_EQUAL(harness_run("cycles", text, NULL), 0);
	if (!IS_SANITIZED) { /* their allocators keep what was freed, and map more for themselves */
		CHECK(harness.counters[20] < harness.counters[10] + 1024);
		CHECK(harness.counters[22] <= harness.counters[12] + 2);
	}
	CHECK_EQUAL(harness.counters[11], harness.counters[21]);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_BEGIN), count);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_END), count);
	CHECK_EQUAL(recording->files, 1);
	recording_free(recording);
}

/* Nested, twice, from other threads, with nothing open. */
static void *stop_it(void *argument)
{
	stepscope_shutdown();
	return argument;
}

static void *start_it(void *argument)
{
	if (stepscope_init(NULL) != 0)
		abort();
	return argument;
}

static void in_thread(void *(*run)(void *))
{
	pthread_t thread;

	pthread_create(&thread, NULL, run, NULL);
	pthread_join(thread, NULL);
}

static void victim_nested(int argc, char **argv)
{
	stepscope_shutdown();
	stepscope_flush();
	in_thread(start_it);
	start_it(NULL);
	stepscope_step_begin(1);
	stepscope_mark("one");
	in_thread(stop_it);
	stepscope_shutdown();
	stepscope_mark("lost: nothing records");
	stepscope_step_end();
	start_it(NULL);
	stepscope_mark("two");
	stepscope_flush();
	stepscope_flush();
	in_thread(start_it);
	stepscope_range_push("open at the end");
}

static void starts_and_stops_may_nest(void)
{
	CHECK_EQUAL(harness_run("nested", NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_MARK), 2);
	CHECK(recording->processes[0].is_closed);
	CHECK_EQUAL(harness_count_lines(harness_text(harness.output), ""), 0);
	recording_free(recording);
}

/* beside CYCLES: three writers record while two threads start, stop and flush. What a stopped recorder swallows is not issued, so
 * only order is checked: nothing twice, nothing torn, and nothing lost while it runs. */
static bool is_over;

static void *record_marks(void *argument)
{
	stepscope_name_t seq = stepscope_name(STEPSCOPE_KIND_COUNTER, "order");
	struct {
		char text[32];
	} name;

	for (uint64_t n = 1; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); n++) {
		__atomic_store_n(&harness.counters[1], n, __ATOMIC_RELEASE);
		snprintf(name.text, sizeof(name.text), "name %llu", (unsigned long long)n % 500);
		stepscope_range_push(name.text);
		stepscope_value_name(seq, (double)n);
		stepscope_range_pop();
		if (n % 64 == 0)
			stepscope_thread_name(name.text);
	}
	return argument;
}

static void *live_shortly(void *argument)
{
	stepscope_mark("short");
	return argument;
}

static void *make_threads(void *argument)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
		in_thread(live_shortly);
	return argument;
}

static void *flush_often(void *argument)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
		stepscope_flush();
	return argument;
}

static void victim_beside(int argc, char **argv)
{
	void *(*const runs[])(void *) = {record_marks, record_marks, make_threads, flush_often};
	pthread_t threads[4];

	start_it(NULL);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, runs[i], NULL);
	for (long i = 0; i < work_number(argc, argv, 1); i++) {
		stepscope_shutdown();
		start_it(NULL);
		for (volatile int n = 0; n < 200000; n++)
			;
	}
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void stops_beside_writers_break_nothing(void)
{
	CHECK_EQUAL(harness_run("beside", IS_SANITIZED ? "40" : "150", NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	CHECK_EQUAL(recording->damaged + recording->torn + recording->unnamed, 0);
	for (unsigned i = 0; i < recording->stream_count; i++) {
		CHECK_EQUAL(recording->streams[i].disorder, 0);
		CHECK_EQUAL(recording->streams[i].holes, 0);
		CHECK_EQUAL(recording->streams[i].is_late, 0);
	}
	CHECK(recording->processes[0].is_closed);
	recording_free(recording);
}

/* Ends while others record, by exit() in another thread. */
static void *end_process(void *argument)
{
	exit(5);
	return argument;
}

/* ends_beside MARKS: when a thread has come to its mark of that number. */
static void victim_ends_beside(int argc, char **argv)
{
	const uint64_t number = (uint64_t)work_number(argc, argv, 1);
	pthread_t thread;

	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, record_marks, NULL);
	while (__atomic_load_n(&harness.counters[1], __ATOMIC_ACQUIRE) < number)
		sched_yield();
	pthread_create(&thread, NULL, end_process, NULL);
	pthread_join(thread, NULL);
}

static void an_exit_beside_writers_is_clean(void)
{
	for (int i = 0; i < 6; i++) {
		/* at its first mark no thread may have begun to start the recorder yet, and then nothing is recorded */
		bool is_started = i % 2;
		snprintf(harness.directory, sizeof(harness.directory), "%s/run%d", harness.root, i);
		harness.counters[1] = 0;
		CHECK_EQUAL(WEXITSTATUS(harness_run("ends_beside", is_started ? "2" : "1", NULL)), 5);
		struct recording *recording = recording_read(harness.directory);
		recording_check_whole(recording, false);
		if (is_started || recording->process_count) {
			CHECK_EQUAL(recording->process_count, 1);
			CHECK(recording->processes[0].is_closed);
		}
		recording_free(recording);
	}
}

/* late [EVENTS]: an event behind the library's end; after so many in time a start, too. stdio writes what it holds when all destructors
 * have run. Counter 0 gets whether the start succeeded, counter 1 the length of the reason, counter 2 counts the late ones. */
static ssize_t record_late(void *events, const char *text, size_t bytes)
{
	if (*(long *)events) {
		harness.counters[0] = (uint64_t)(stepscope_init(NULL) == 0);
		harness.counters[1] = strlen(stepscope_error());
	}
	stepscope_range_push("late");
	stepscope_range_pop();
	harness.counters[2]++;
	return (ssize_t)bytes;
}

static void victim_late(int argc, char **argv)
{
	static long events;
	FILE *file = fopencookie(&events, "w", (cookie_io_functions_t){.write = record_late});

	events = work_number(argc, argv, 1);
	harness.counters[0] = 1;
	if (!file || fputs("held", file) < 0)
		abort();
	for (long i = 0; i < events; i++) {
		stepscope_range_push("in time");
		stepscope_range_pop();
	}
}

static void nothing_begins_after_the_end(void)
{
	CHECK_EQUAL(harness_run("late", NULL), 0);
	CHECK_EQUAL(harness.counters[2], 1);
	struct recording *recording = recording_read(harness.directory);
	CHECK_EQUAL(recording->process_count, 0);
	recording_free(recording);

	CHECK_EQUAL(harness_run("late", "3", NULL), 0);
	CHECK_EQUAL(harness.counters[2], 2);
	CHECK_EQUAL(harness.counters[0], 0);
	CHECK(harness.counters[1] > 0);
	recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	CHECK(recording->process_count == 1 && recording->processes[0].is_closed);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_BEGIN), 3);
	recording_free(recording);
	CHECK_EQUAL(strlen(harness_text(harness.errors)), 0);
}

/* ends_in_stop: by exit() while another thread is in the middle of a stop, which goes on when somebody reads what it says: when the
 * exit waits for it. */
static int stderr_ends[2];

static void fill_stderr(void)
{
	static const char nothing[4096];

	if (pipe2(stderr_ends, O_CLOEXEC | O_NONBLOCK) != 0)
		abort();
	while (write(stderr_ends[1], nothing, sizeof(nothing)) > 0)
		;
	fcntl(stderr_ends[0], F_SETFL, 0);
	fcntl(stderr_ends[1], F_SETFL, 0);
	dup2(stderr_ends[1], STDERR_FILENO);
}

static bool main_is_asleep(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
	const char *name_end = strrchr(harness_text(path), ')');
	return name_end && name_end[2] == 'S';
}

static void *read_when_main_waits(void *argument)
{
	char text[4096];

	while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE) || !main_is_asleep())
		sched_yield();
	while (read(stderr_ends[0], text, sizeof(text)) > 0)
		;
	return argument;
}

static void victim_ends_in_stop(int argc, char **argv)
{
	pthread_t thread;
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("STEPSCOPE_STARTED_BY", pid, 1); /* it says how its recording went */
	fill_stderr();
	stepscope_step_begin(0);
	stepscope_step_end();
	pthread_create(&thread, NULL, stop_it, NULL);
	while (__atomic_load_n(&stepscope_active, __ATOMIC_ACQUIRE))
		sched_yield();
	pthread_create(&thread, NULL, read_when_main_waits, NULL);
	__atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
	exit(5);
}

static void an_exit_waits_for_a_stop(void)
{
	CHECK_EQUAL(WEXITSTATUS(harness_run("ends_in_stop", NULL)), 5);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	CHECK(recording->process_count == 1 && recording->processes[0].is_closed);
	recording_free(recording);
}

/* A handler that jumps out of an emission leaves its thread marked as busy: later events go where handlers write. */
static sigjmp_buf back;

static void jump_out(int number)
{
	siglongjmp(back, number);
}

static void victim_jumps(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = jump_out, .sa_flags = SA_NODEFER};
	volatile uint64_t jumps = 0;

	sigaction(SIGALRM, &action, NULL);
	stepscope_mark("start");
	if (sigsetjmp(back, 1) != 0)
		jumps++;
	if (jumps < 200) {
		ualarm(1000, 0);
		for (;;) {
			stepscope_range_push("x");
			stepscope_range_pop();
		}
	}
	signal(SIGALRM, SIG_IGN);
	stepscope_mark("end");
}

static void jumps_out_of_an_emission_are_survived(void)
{
	CHECK_EQUAL(harness_run("jumps", NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	CHECK_EQUAL(recording->damaged + recording->torn, 0);
	CHECK(recording->processes[0].is_closed);
	/* the facts of the recording are marks too, and may be among what was dropped */
	CHECK(recording_sum(recording, STEPSCOPE_EVENT_MARK) + recording_drops(recording, STEPSCOPE_EVENT_MARK) >= 2);
	recording_free(recording);
}

/* ---- copies ------------------------------------------------------------------------------------------------------------ */

static const char *beside_us(const char *name)
{
	static char path[1200];
	ssize_t length = readlink("/proc/self/exe", path, 1000);

	path[length > 0 ? length : 0] = 0;
	char *slash = strrchr(path, '/');
	snprintf(slash, sizeof(path) - (size_t)(slash - path), "/%s", name);
	return path;
}

/* Runs static_host with two libraries that have a copy each. */
static void run_host(const char *mode)
{
	char a[1200], b[1200], command[8000];
	int status;

	snprintf(a, sizeof(a), "%s", beside_us("libtest_static_a.so"));
	snprintf(b, sizeof(b), "%s", beside_us("libtest_static_b.so"));
	snprintf(command, sizeof(command), "STEPSCOPE=1 STEPSCOPE_RUN_DIR=%s $HARNESS_WRAPPER %s %s %s %s 2>%s",
	         harness.directory, beside_us("test_static_host"), a, b, mode, harness.errors);
	status = system(command);
	CHECK_EQUAL(status, 0);
}

static void of_two_copies_one_records(void)
{
	run_host("together");
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	CHECK_EQUAL(recording->process_count, 1);
	CHECK(recording->processes[0].is_closed);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_BEGIN), 20);
	CHECK_EQUAL(harness_count_lines(harness_text(harness.errors), "stepscope"), 0);
	recording_free(recording);
}

static void a_copy_may_be_unloaded_and_another_goes_on(void)
{
	run_host("apart");
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	for (unsigned i = 0; i < recording->process_count; i++)
		CHECK(recording->processes[i].is_closed);
	CHECK_EQUAL(recording->process_count, 3);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_BEGIN), 12);
	recording_free(recording);
}

/* The program has its own copy, and the shared library is preloaded: the program's own records, nothing twice. */
static void a_preloaded_copy_records_nothing_twice(void)
{
	char path[1200], command[3000];
	int status;

	snprintf(path, sizeof(path), "%s", beside_us("test_static_program"));
	snprintf(command, sizeof(command), "STEPSCOPE=1 STEPSCOPE_RUN_DIR=%s LD_PRELOAD=%s $HARNESS_WRAPPER %s",
	         harness.directory, beside_us("../../src/recorder/libstepscope.so.0"), path);
	status = system(command);
	if (IS_SANITIZED && status != 0)
		harness_skip("a sanitizer must be loaded first");
	CHECK_EQUAL(status, 0);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	CHECK_EQUAL(recording->process_count, 1);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_BEGIN), 2);
	recording_free(recording);
}

/* init LIST: counter 0 gets what stepscope_init() returned, counter 1 whether anything is active, counter 2 whether a reason. */
static void victim_init(int argc, char **argv)
{
	harness.counters[0] = (uint64_t)stepscope_init(argc > 1 ? argv[1] : NULL);
	harness.counters[1] = stepscope_active;
	harness.counters[2] = strlen(stepscope_error());
	stepscope_range_push("unwanted");
	stepscope_range_pop();
	stepscope_shutdown();
}

static void check_off(const char *list)
{
	CHECK_EQUAL(harness_run("init", list, NULL), 0);
	CHECK_EQUAL(harness.counters[0], 0);
	CHECK_EQUAL(harness.counters[1], 0);
	CHECK_EQUAL(harness.counters[2], 0);
	CHECK_EQUAL(strlen(harness_text(harness.errors)), 0);
	struct recording *recording = recording_read(harness.directory);
	CHECK_EQUAL(recording->process_count, 0);
	recording_free(recording);
}

static void switched_off_is_no_failure(void)
{
	check_off("enabled=false");
	harness.options = "enabled=false";
	check_off("wait=1,active=2");
}

HARNESS_MAIN(LIST(VICTIM(cycles), VICTIM(nested), VICTIM(beside), VICTIM(ends_beside), VICTIM(late),
                  VICTIM(ends_in_stop), VICTIM(jumps), VICTIM(init)),
             LIST(TEST(ten_thousand_cycles_hold_nothing), TEST(starts_and_stops_may_nest),
                  TEST(stops_beside_writers_break_nothing), TEST(an_exit_beside_writers_is_clean),
                  TEST(nothing_begins_after_the_end), TEST(an_exit_waits_for_a_stop),
                  TEST(jumps_out_of_an_emission_are_survived), TEST(switched_off_is_no_failure),
                  TEST(of_two_copies_one_records), TEST(a_copy_may_be_unloaded_and_another_goes_on),
                  TEST(a_preloaded_copy_records_nothing_twice)))
