/* SPDX-License-Identifier: Apache-2.0
 *
 * test_fork.c: children of every kind (row P02). Each has a recording of its own, nothing is in two of them, the parent goes on
 * as if nothing had happened, and nobody waits for a lock that no longer has an owner.
 */
#include "work.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static pid_t raw_fork(void)
{
#ifdef SYS_fork
	return (pid_t)syscall(SYS_fork);
#else
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#endif
}

static pid_t raw_clone(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static pid_t libc_fork(void)
{
	return fork();
}

static pid_t (*fork_kind(const char *name))(void)
{
	return strcmp(name, "fork") == 0 ? libc_fork : strcmp(name, "raw") == 0 ? raw_fork : raw_clone;
}

static void child_end(bool is_orderly)
{
	if (IS_SANITIZED) /* whose search for leaks in a child may wait for the parent's threads */
		stepscope_shutdown();
	else if (is_orderly)
		exit(0);
	_exit(0);
}

static uint64_t count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	uint64_t count = 0;

	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

/* forks KIND ORDERLY: 100 rounds in the parent, 100 in the child, 100 more in the parent, in the same thread. */
static void victim_forks(int argc, char **argv)
{
	struct work work = {.number = 0, .rounds = 100};
	struct work childs = {.number = 1, .rounds = 100};

	work_run(&work);
	pid_t pid = fork_kind(argv[1])();
	if (pid == 0) {
		work_run(&childs);
		harness.counters[102] = count_threads();
		child_end(work_number(argc, argv, 2));
	}
	harness_wait(pid);
	stepscope_name_t seq = stepscope_name(STEPSCOPE_KIND_COUNTER, "seq");
	for (int n = 101; n <= 200; n++)
		stepscope_value_name(seq, n);
	harness.counters[0] += 100;
	harness.counters[100] = (uint64_t)getpid();
	harness.counters[101] = (uint64_t)pid;
}

static void check_fork(const char *kind, const char *is_orderly)
{
	struct recording *recording;
	uint32_t parent, child;

	memset(harness.counters, 0, 2000);
	snprintf(harness.directory, sizeof(harness.directory), "%s/run-%s%s", harness.root, kind, is_orderly);
	CHECK_EQUAL(harness_run("forks", kind, is_orderly, NULL), 0);
	recording = recording_read(harness.directory);
	parent = (uint32_t)harness.counters[100];
	child = (uint32_t)harness.counters[101];
	recording_check_whole(recording, false);
	work_check(recording, 0, 2, false);
	CHECK_EQUAL(recording->process_count, 2);
	CHECK(recording_stream(recording, parent, "w0") && recording_stream(recording, child, "w1"));
	CHECK(!recording_stream(recording, parent, "w1") && !recording_stream(recording, child, "w0"));
	CHECK_EQUAL(recording_process(recording, child)->role, STEPSCOPE_ROLE_WORKER);
	CHECK_EQUAL(recording_process(recording, child)->parent, parent);
	CHECK_EQUAL(recording_process(recording, parent)->is_closed, true);
	/* after a bare system call to make a thread is to wait, now and then, for a lock that nobody holds any more */
	CHECK_EQUAL(harness.counters[102], strcmp(kind, "fork") == 0 ? 2 : 1);
	recording_free(recording);
}

static void children_record_into_files_of_their_own(void)
{
	check_fork("fork", "1");
	check_fork("fork", "0");
	check_fork("raw", "1");
	check_fork("raw", "0");
	check_fork("clone", "0");
}

/* vfork: the child shares our memory until it execs; what it emits is its parent's. */
static void victim_vforks(int argc, char **argv)
{
	struct work work = {.number = 0, .rounds = 100};
	char *true_argv[] = {(char *)"true", NULL};

	work_run(&work);
	for (int i = 0; i < 20; i++) {
		pid_t pid = vfork();
		if (pid == 0) {
			stepscope_step_begin(1);
			stepscope_flush();
			stepscope_shutdown();
			execv("/bin/true", true_argv);
			_exit(9);
		}
		if (harness_wait(pid) != 0)
			abort();
		if (posix_spawn(&pid, "/bin/true", NULL, NULL, true_argv, environ) != 0 || harness_wait(pid) != 0)
			abort();
	}
	stepscope_name_t seq = stepscope_name(STEPSCOPE_KIND_COUNTER, "seq");
	for (int n = 101; n <= 200; n++)
		stepscope_value_name(seq, n);
	harness.counters[0] += 100;
}

static void vfork_and_spawn_leave_the_parent_whole(void)
{
	CHECK_EQUAL(harness_run("vforks", NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	work_check(recording, 0, 1, false);
	CHECK_EQUAL(recording->process_count, 1);
	CHECK(recording->processes[0].is_closed);
	recording_free(recording);
}

/* busy KIND COUNT: forks COUNT times while four threads record, allocate and make threads; every child records. */
static void *allocate(void *argument)
{
	for (size_t i = 0; i < 50; i++)
		free(malloc(1 + 997 * i));
	return argument;
}

/* Threads with stacks too small for anybody else: whoever makes one in a child must allocate. */
static void *churn(void *argument)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 128 << 10);
	for (;;) {
		pthread_t thread;
		for (int i = 0; i < 20; i++)
			allocate(NULL);
		if (pthread_create(&thread, &attributes, allocate, NULL) == 0)
			pthread_join(thread, NULL);
		stepscope_mark("churn");
	}
	return argument;
}

static void victim_busy(int argc, char **argv)
{
	static struct work works[2] = {{.number = 0, .pause = 10}, {.number = 1, .pause = 10}};
	long count = work_number(argc, argv, 2);
	pthread_t thread;

	mallopt(M_ARENA_MAX, 1); /* as many programs run, to save memory: all threads share one lock */
	for (int i = 0; i < 2; i++)
		work_start(&works[i]);
	for (int i = 0; i < 2; i++)
		pthread_create(&thread, NULL, churn, NULL);
	for (long i = 0; i < count; i++) {
		struct work childs = {.number = 8 + (unsigned)i, .rounds = 10};
		pid_t pid = fork_kind(argv[1])();
		if (pid == 0) {
			work_run(&childs);
			child_end(strcmp(argv[1], "fork") == 0 && i % 2);
		}
		if (harness_wait(pid) != 0)
			abort();
		harness.counters[4]++;
	}
	kill(getpid(), SIGKILL);
}

static void check_busy(const char *kind, const char *count)
{
	unsigned children = (unsigned)strtoul(count, NULL, 10);
	struct recording *recording;

	memset(harness.counters, 0, 16384);
	snprintf(harness.directory, sizeof(harness.directory), "%s/run-%s", harness.root, kind);
	pid_t pid = harness_start("busy", kind, count, NULL);
	harness_await(pid, 4, children); /* fails when nothing moves: a child that hangs */
	harness_wait(pid);
	recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	work_check(recording, (uint32_t)pid, 2, true);
	for (unsigned i = 0; i < children; i++) {
		char name[16];
		snprintf(name, sizeof(name), "w%u", 8 + i);
		const struct recorded_stream *here = recording_stream(recording, 0, name);
		if (!here || here->pid == (uint32_t)pid)
			harness_fail(__FILE__, __LINE__, "child %u has no stream of its own", i);
		CHECK_EQUAL(here->seq, 10);
		CHECK_EQUAL(here->by_type[STEPSCOPE_EVENT_END], 10);
	}
	recording_free(recording);
}

static void forks_of_a_busy_process_never_hang(void)
{
	if (IS_SANITIZED) /* a child made while another thread is inside it never gets its lock */
		harness_skip("a sanitizer's own allocator does not survive a fork of a busy process");
	check_busy("fork", "100");
}

static void raw_forks_of_a_busy_process_never_hang(void)
{
	if (IS_SANITIZED)
		harness_skip("a sanitizer's own allocator does not survive a fork of a busy process");
	check_busy("raw", "100");
}

/* Forks of forks, and a daemon: parents end before their children. */
static void generation(int depth)
{
	struct work work = {.number = (unsigned)depth, .rounds = 50};

	work_run(&work);
	if (depth == 5) {
		__atomic_store_n(&harness.counters[200], 1, __ATOMIC_RELEASE);
		return;
	}
	pid_t pid = fork();
	if (pid == 0) {
		if (depth == 2)
			setsid();
		generation(depth + 1);
		exit(0);
	}
	if (depth % 2) /* the others leave their children behind */
		harness_wait(pid);
}

static void victim_generations(int argc, char **argv)
{
	generation(0);
}

static void grandchildren_and_daemons_record(void)
{
	CHECK_EQUAL(harness_run("generations", NULL), 0);
	harness_await(0, 200, 1);
	struct recording *recording = recording_read(harness.directory);
	for (int tries = 0; tries < 2000; tries++) { /* until the last of them has ended */
		bool is_done = recording->process_count == 6;
		for (unsigned i = 0; i < recording->process_count; i++)
			is_done &= recording->processes[i].is_closed;
		if (is_done)
			break;
		recording_free(recording);
		usleep(5000);
		recording = recording_read(harness.directory);
	}
	recording_check_whole(recording, false);
	work_check(recording, 0, 6, false);
	CHECK_EQUAL(recording->process_count, 6);
	recording_free(recording);
}

/* A child that never records must not touch its parent's recording when it ends. */
static void victim_silent(int argc, char **argv)
{
	struct work work = {.number = 0, .rounds = 100};

	work_run(&work);
	for (int i = 0; i < 10; i++) {
		pid_t pid = fork();
		if (pid == 0)
			exit(0);
		harness_wait(pid);
	}
	stepscope_flush();
}

static void silent_children_leave_no_trace(void)
{
	CHECK_EQUAL(harness_run("silent", NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	work_check(recording, 0, 1, false);
	CHECK_EQUAL(recording->process_count, 1);
	CHECK(recording->processes[0].is_closed);
	recording_free(recording);
}

/* names KIND: a parent with more names than a child's pool has room for; a child that uses an old one and, behind its drainer's first
 * pass, a new one, and is gone. */
static void victim_names(int argc, char **argv)
{
	char text[160];

	for (int i = 0; i < 4000; i++) {
		snprintf(text, sizeof(text), "of the parent %0100d", i);
		stepscope_name(STEPSCOPE_KIND_MARK, text);
	}
	stepscope_mark("before the fork");
	pid_t pid = fork_kind(argv[1])();
	if (pid == 0) {
		stepscope_mark(text);
		stepscope_flush();
		stepscope_mark("of the child");
		_exit(0);
	}
	harness_wait(pid);
}

static void check_names_of_children(const char *kind)
{
	CHECK_EQUAL(harness_run("names", kind, NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	CHECK_EQUAL(recording->process_count, 2);
	CHECK_EQUAL(recording->unnamed, 0);
	CHECK(recording->rescued > 0);
	recording_free(recording);
}

static void children_of_many_names_lose_none(void)
{
	check_names_of_children("fork");
}

static void raw_children_of_many_names_lose_none(void)
{
	check_names_of_children("raw");
}

HARNESS_MAIN(LIST(VICTIM(forks), VICTIM(vforks), VICTIM(busy), VICTIM(generations), VICTIM(silent), VICTIM(names)),
             LIST(TEST(children_record_into_files_of_their_own), TEST(vfork_and_spawn_leave_the_parent_whole),
                  TEST(forks_of_a_busy_process_never_hang), TEST(raw_forks_of_a_busy_process_never_hang),
                  TEST(grandchildren_and_daemons_record), TEST(silent_children_leave_no_trace),
                  TEST(children_of_many_names_lose_none), TEST(raw_children_of_many_names_lose_none)))
