/* SPDX-License-Identifier: Apache-2.0
 *
 * test_threads.c: many threads, short and live; signal handlers that emit; threads and scopes that end in odd ways (row P12); names
 * whose memory goes away (row P06).
 */
#include "work.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void start_small(pthread_t *thread, void *(*run)(void *), void *argument)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, IS_SANITIZED ? 256 << 10 : 64 << 10);
	if (pthread_create(thread, &attributes, run, argument) != 0)
		abort();
	pthread_attr_destroy(&attributes);
}

/* ---- short and live threads -------------------------------------------------------------------------------------------- */

static void *emit_twice(void *argument)
{
	stepscope_range_push("short");
	stepscope_range_pop();
	return argument;
}

static void victim_short(int argc, char **argv)
{
	for (long i = 0; i < work_number(argc, argv, 1); i++) {
		pthread_t thread;
		start_small(&thread, emit_twice, NULL);
		pthread_join(thread, NULL);
		if (i % 256 == 255)
			stepscope_flush(); /* places of threads that ended are free after a pass, whenever a busy machine makes it */
	}
}

static void ten_thousand_short_threads_are_all_there(void)
{
	const unsigned count = IS_SANITIZED ? 1000 : 10000;
	char text[16];

	snprintf(text, sizeof(text), "%u", count);
	CHECK_EQUAL(harness_run("short", text, NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	CHECK_EQUAL(recording_drops(recording, STEPSCOPE_EVENT_BEGIN) + recording_drops(recording, STEPSCOPE_EVENT_END),
	            0);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_BEGIN), count);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_END), count);
	unsigned ended = 0;
	for (unsigned i = 0; i < recording->stream_count; i++)
		ended += recording->streams[i].kind == STEPSCOPE_STREAM_THREAD && recording->streams[i].flags & 2;
	CHECK_EQUAL(ended, count);
	recording_free(recording);
}

static pthread_barrier_t barrier;

static void *emit_live(void *argument)
{
	struct work *work = argument;

	pthread_barrier_wait(&barrier);
	work_run(work);
	pthread_barrier_wait(&barrier); /* nobody ends before all have recorded */
	return NULL;
}

static void victim_live(int argc, char **argv)
{
	unsigned count = (unsigned)work_number(argc, argv, 1);
	struct work *works = calloc(count, sizeof(*works));
	pthread_t *threads = calloc(count, sizeof(*threads));

	pthread_barrier_init(&barrier, NULL, count);
	for (unsigned i = 0; i < count; i++) {
		works[i] = (struct work){.number = i, .rounds = argc > 2 ? (uint64_t)work_number(argc, argv, 2) : 20};
		start_small(&threads[i], emit_live, &works[i]);
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	free(works);
}

static void a_thousand_live_threads_are_all_there(void)
{
	const unsigned count = IS_SANITIZED ? 200 : 1000;
	char text[16];

	snprintf(text, sizeof(text), "%u", count);
	CHECK_EQUAL(harness_run("live", text, NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	work_check(recording, 0, count, false);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_BEGIN), 20 * count);
	recording_free(recording);
}

/* More threads than a small pool has slots: what has no place is declared. */
static void threads_without_a_slot_are_declared(void)
{
	harness.options = "keep_size=0,pool=256K,sample_process=false";
	CHECK_EQUAL(harness_run("live", "100", NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_BEGIN) + recording_drops(recording, STEPSCOPE_EVENT_BEGIN),
	            2000);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_VALUE) + recording_drops(recording, STEPSCOPE_EVENT_VALUE),
	            2000);
	CHECK(recording_drops(recording, STEPSCOPE_EVENT_BEGIN) > 0);
	recording_free(recording);
}

/* Row S09: 64 threads emit as fast as they can into a pool with 32 places. What has none is counted, each thread's own to the last one; and that
 * none waits for another is what test_budget.c shows. */
static void sixty_four_threads_that_never_pause_are_counted(void)
{
	const char *rounds = IS_SANITIZED ? "500" : "20000";

	harness.options = "keep_size=0,pool=256K,sample_process=false";
	CHECK_EQUAL(harness_run("live", "64", rounds, NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	const uint64_t issued = 64 * strtoul(rounds, NULL, 10);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_BEGIN) + recording_drops(recording, STEPSCOPE_EVENT_BEGIN),
	            issued);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_VALUE) + recording_drops(recording, STEPSCOPE_EVENT_VALUE),
	            issued);
	CHECK(recording_drops(recording, STEPSCOPE_EVENT_BEGIN) > 0);
	recording_free(recording);
}

/* All threads at once make the first event of the process: what comes before the recorder stands is declared too. */
static void victim_rush(int argc, char **argv)
{
	victim_live(argc, argv);
}

static void a_rush_at_the_start_is_declared(void)
{
	for (int i = 0; i < 20; i++) {
		snprintf(harness.directory, sizeof(harness.directory), "%s/run%d", harness.root, i);
		memset(harness.counters, 0, 64 * 64);
		CHECK_EQUAL(harness_run("rush", "8", NULL), 0);
		struct recording *recording = recording_read(harness.directory);
		recording_check_whole(recording, false);
		CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_BEGIN) +
		                    recording_drops(recording, STEPSCOPE_EVENT_BEGIN),
		            160);
		CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_END) +
		                    recording_drops(recording, STEPSCOPE_EVENT_END),
		            160);
		recording_free(recording);
	}
}

/* ---- signal handlers --------------------------------------------------------------------------------------------------- */

static stepscope_name_t tick_name;

static void on_tick(int number)
{
	uint64_t *issued = &harness.counters[64];

	__atomic_store_n(issued, *issued + 1, __ATOMIC_RELAXED);
	stepscope_emit_mark(tick_name);
	(void)number;
}

static void start_ticks(long interval_ns)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
	struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
	struct itimerspec interval = {{0, interval_ns}, {0, interval_ns}};
	timer_t timer;

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	tick_name = stepscope_name(STEPSCOPE_KIND_MARK, "tick");
	sigaction(SIGRTMIN, &action, NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &interval, NULL) != 0)
		abort();
}

/* signals PAUSE: writes until 5,000 handlers have run in it, 50 us apart (20 kHz). */
static void victim_signals(int argc, char **argv)
{
	struct work work = {.number = 0, .rounds = 1000, .pause = (unsigned)work_number(argc, argv, 1)};
	stepscope_name_t seq = stepscope_name(STEPSCOPE_KIND_COUNTER, "seq");

	stepscope_thread_name("w0");
	start_ticks(50000);
	for (uint64_t n = 1; __atomic_load_n(&harness.counters[64], __ATOMIC_RELAXED) < (IS_SANITIZED ? 1000 : 5000);
	     n++) {
		harness.counters[0]++;
		stepscope_value_name(seq, (double)n);
		for (volatile unsigned i = 0; i < work.pause; i++)
			;
	}
	signal(SIGRTMIN, SIG_IGN);
	if (argc > 2)
		kill(getpid(), SIGKILL);
}

static void check_signals(const char *pause, const char *kill_word)
{
	struct recording *recording;
	uint64_t values = 0, dropped = 0;

	harness.options = "keep_size=0,sample_process=false"; /* no values but ours */
	memset(harness.counters, 0, 1024);
	snprintf(harness.directory, sizeof(harness.directory), "%s/run-%s-%s", harness.root, pause,
	         kill_word ? kill_word : "");
	CHECK_EQUAL(harness_run("signals", pause, kill_word, NULL), kill_word ? 9 : 0);
	recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	for (unsigned i = 0; i < recording->stream_count; i++) {
		if (recording->streams[i].kind == STEPSCOPE_STREAM_THREAD) {
			values += recording->streams[i].seq_values;
			dropped += recording->streams[i].dropped[STEPSCOPE_EVENT_VALUE];
		}
	}
	CHECK_EQUAL(values + dropped, harness.counters[0]);
	/* the facts of the recording are marks too: not among the events, but perhaps among the drops */
	uint64_t marks = recording_sum(recording, STEPSCOPE_EVENT_MARK);
	dropped = recording_drops(recording, STEPSCOPE_EVENT_MARK);
	CHECK(marks <= harness.counters[64] && marks + dropped >= harness.counters[64]);
	CHECK(marks + dropped <= harness.counters[64] + (dropped ? 30 : 0));
	recording_free(recording);
}

static void handlers_that_emit_break_nothing(void)
{
	check_signals("0", NULL);
	check_signals("200", NULL);
	check_signals("200", "kill");
}

/* ---- odd ends ---------------------------------------------------------------------------------------------------------- */

static void *exit_open(void *argument)
{
	stepscope_thread_name("leaver");
	stepscope_range_push("open");
	stepscope_range_push("inner");
	pthread_exit(argument);
}

static void *get_cancelled(void *argument)
{
	stepscope_thread_name("cancelled");
	stepscope_range_push("open");
	__atomic_store_n(&harness.counters[300], 1, __ATOMIC_RELEASE);
	for (;;)
		usleep(1000);
	return argument;
}

/* ThreadSanitizer forgets a thread in the last round of its destructors */
#define LATE_TIMES (IS_THREAD_SANITIZED ? 1 : PTHREAD_DESTRUCTOR_ITERATIONS)
static pthread_key_t late_key;

static void record_late(void *value)
{
	stepscope_mark("late");
	if ((uintptr_t)value > 1)
		pthread_setspecific(late_key, (void *)((uintptr_t)value - 1));
}

static void *leave_late(void *argument)
{
	stepscope_thread_name("late");
	stepscope_mark("early");
	pthread_setspecific(late_key, (void *)(uintptr_t)LATE_TIMES);
	return argument;
}

static jmp_buf back;

static noreturn void jump(void)
{
	stepscope_range_push("jumped over");
	longjmp(back, 1);
}

static void victim_ends(int argc, char **argv)
{
	pthread_t thread;

	stepscope_mark("start");
	start_small(&thread, exit_open, NULL);
	pthread_join(thread, NULL);
	start_small(&thread, get_cancelled, NULL);
	while (!__atomic_load_n(&harness.counters[300], __ATOMIC_ACQUIRE))
		sched_yield();
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	pthread_key_create(&late_key, record_late);
	for (int i = 0; i < 100; i++) {
		start_small(&thread, leave_late, NULL);
		pthread_join(thread, NULL);
	}
	stepscope_step_begin(1);
	stepscope_phase_begin(STEPSCOPE_PHASE_FORWARD);
	if (setjmp(back) == 0)
		jump();
	stepscope_phase_end(); /* closes what was jumped over */
	stepscope_step_end();
	stepscope_range_push("open at exit");
}

static void threads_may_end_anyhow(void)
{
	CHECK_EQUAL(harness_run("ends", NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	const struct recorded_stream *leaver = recording_stream(recording, 0, "leaver");
	CHECK(leaver && leaver->flags & 2 && leaver->depth == 2);
	const struct recorded_stream *cancelled = recording_stream(recording, 0, "cancelled");
	CHECK(cancelled && cancelled->flags & 2 && cancelled->depth == 1);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_MARK) + recording_drops(recording, STEPSCOPE_EVENT_MARK),
	            1 + 100 + 100 * LATE_TIMES);
	unsigned left = 0; /* streams whose thread is gone and that nobody closed: only the main thread's and our own */
	for (unsigned i = 0; i < recording->stream_count; i++)
		left += !(recording->streams[i].flags & 2);
	CHECK(left <= 2);
	recording_free(recording);
}

/* The first event of a process in a thread with the smallest stack there is. */
static void *emit_first(void *argument)
{
	stepscope_step_begin(1);
	stepscope_metadata("key", "value");
	stepscope_metric("loss", 1);
	stepscope_step_end();
	return argument;
}

static void victim_small_stack(int argc, char **argv)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN > 16384 ? (size_t)PTHREAD_STACK_MIN : 16384);
	if (pthread_create(&thread, &attributes, emit_first, NULL) != 0)
		abort();
	pthread_join(thread, NULL);
}

static void a_small_stack_is_enough(void)
{
	if (IS_SANITIZED)
		harness_skip("sanitizers need more stack");
	CHECK_EQUAL(harness_run("small_stack", NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	CHECK_EQUAL(recording_process(recording, recording->processes[0].pid)->last_step, 1);
	recording_free(recording);
}

/* ---- names ------------------------------------------------------------------------------------------------------------- */

static void victim_names(int argc, char **argv)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (int i = 0; i < 2000; i++) {
		char *name = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		snprintf(name, page, "name %d", i);
		stepscope_range_push(name);
		munmap(name, page);
		stepscope_range_pop();
	}
	char *longest = malloc(70000);
	memset(longest, 'x', 70000);
	longest[69999] = 0;
	stepscope_range_push(longest); /* cut at 65,000 bytes */
	free(longest);
	stepscope_range_pop();
	stepscope_range_push("");
	stepscope_range_pop();
	stepscope_range_push(NULL); /* recorded as "(no name)": its end must not close another one */
	stepscope_range_pop();
}

static void names_may_go_away_after_the_call(void)
{
	CHECK_EQUAL(harness_run("names", NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	CHECK_EQUAL(recording->unnamed, 0);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_BEGIN), 2003);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_END), 2003);
	recording_free(recording);
}

static void victim_named(int argc, char **argv)
{
	stepscope_thread_name(argv[1]);
	stepscope_mark("there");
}

static void check_thread_name(const char *given, const char *kept)
{
	CHECK_EQUAL(harness_run("named", given, NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	CHECK(recording_stream(recording, 0, kept));
	recording_free(recording);
}

/* Of 31 bytes. */
static void names_of_threads_are_cut_between_characters(void)
{
	check_thread_name("a name of exactly 31 bytes, see", "a name of exactly 31 bytes, see");
	check_thread_name("a name of more than 31 bytes, see", "a name of more than 31 bytes, s");
	check_thread_name("zażółć gęślą jaźń zażółć gęślą", "zażółć gęślą jaźń zaż");
	check_thread_name("€€€€€€€€€€é", "€€€€€€€€€€");
	check_thread_name("123456789012345678901234567😀", "123456789012345678901234567😀");
	check_thread_name("1234567890123456789012345678😀", "1234567890123456789012345678");
}

static void victim_plugin(int argc, char **argv)
{
	char path[1024];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 40);

	path[length > 0 ? length : 0] = 0;
	char *slash = strrchr(path, '/');
	snprintf(slash, sizeof(path) - (size_t)(slash - path), "/libtest_plugin.so");
	for (int i = 0; i < 20; i++) {
		void *library = dlopen(path, RTLD_NOW);
		if (!library) {
			fprintf(stderr, "%s\n", dlerror());
			abort();
		}
		void (*work)(void) = (void (*)(void))(uintptr_t)dlsym(library, "plugin_work");
		work();
		dlclose(library);
	}
}

static void a_library_may_be_unloaded_after_use(void)
{
	CHECK_EQUAL(harness_run("plugin", NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_BEGIN), 40);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_END), 40);
	recording_free(recording);
}

/* many_names COUNT: as many ranges and counters, each with a name of its own; then facts and a step. */
static void victim_many_names(int argc, char **argv)
{
	long count = work_number(argc, argv, 1);
	char name[32];

	stepscope_range_push_name(0);
	stepscope_range_pop();
	stepscope_value_name(0, 1);
	for (long i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "range %ld", i);
		stepscope_range_push(name);
		stepscope_range_pop();
		if (i % 100 == 0)
			usleep(100); /* leaves the drainer room */
	}
	for (long i = 0; i < 1000; i++) {
		struct stepscope_op_info info = {.input_count = 1, .rank = {1}, .shape = {{1000000 + i}}};

		snprintf(name, sizeof(name), "counter %ld", i);
		stepscope_counter(name, 1);
		stepscope_op_begin_info(0, &info);
		stepscope_op_end();
	}
	for (long i = 0; i < 6000; i++) {
		snprintf(name, sizeof(name), "fact %ld", i);
		stepscope_metadata(name, "true");
		if (i % 100 == 0)
			usleep(100);
	}
	stepscope_range_push_name(stepscope_name(STEPSCOPE_KIND_OP, "late"));
	stepscope_range_pop();
	stepscope_metric("late metric", 1);
}

static void more_names_than_fit_keep_begins_and_ends(void)
{
	const long count = 300000;

	harness.options = "keep_size=0,with=shapes";
	CHECK_EQUAL(harness_run("many_names", "300000", NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_BEGIN) + recording_drops(recording, STEPSCOPE_EVENT_BEGIN),
	            count + 1002);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_END) + recording_drops(recording, STEPSCOPE_EVENT_END),
	            count + 1002);
	CHECK(recording_drops(recording, STEPSCOPE_EVENT_BEGIN) == recording_drops(recording, STEPSCOPE_EVENT_END));
	CHECK(recording_drops(recording, STEPSCOPE_EVENT_VALUE) >= 1001);
	CHECK_EQUAL(recording_drops(recording, STEPSCOPE_EVENT_ARG), 1000);
	CHECK(recording_drops(recording, STEPSCOPE_EVENT_MARK) > 1000);
	CHECK_EQUAL(recording->unnamed, 0);
	CHECK_EQUAL(harness_count_lines(harness_text(harness.errors), "more names than the recorder can hold"), 1);
	recording_free(recording);
}

HARNESS_MAIN(LIST(VICTIM(short), VICTIM(live), VICTIM(rush), VICTIM(signals), VICTIM(ends), VICTIM(small_stack),
                  VICTIM(names), VICTIM(plugin), VICTIM(many_names), VICTIM(named)),
             LIST(TEST(ten_thousand_short_threads_are_all_there), TEST(a_thousand_live_threads_are_all_there),
                  TEST(threads_without_a_slot_are_declared), TEST(sixty_four_threads_that_never_pause_are_counted),
                  TEST(a_rush_at_the_start_is_declared), TEST(handlers_that_emit_break_nothing),
                  TEST(threads_may_end_anyhow), TEST(a_small_stack_is_enough), TEST(names_may_go_away_after_the_call),
                  TEST(more_names_than_fit_keep_begins_and_ends), TEST(names_of_threads_are_cut_between_characters),
                  TEST(a_library_may_be_unloaded_after_use)))
