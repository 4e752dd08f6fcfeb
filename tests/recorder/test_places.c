/* SPDX-License-Identifier: Apache-2.0
 *
 * test_places.c: full disks, read-only and removed directories, /dev/shm missing or tiny, limits on file size. Training goes on, what
 * is in the file is good, exactly one line on stderr says so, stdout is untouched. Needs root for a mount namespace.
 */
#include "work.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static void enter_namespace(void)
{
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		harness_skip("needs root: no mount namespace");
}

static void mount_small(const char *path, const char *options, unsigned long flags)
{
	if (mount("tmpfs", path, "tmpfs", flags, options) != 0)
		harness_fail(__FILE__, __LINE__, "cannot mount %s: %s", path, strerror(errno));
}

/* Exactly one line from the recorder, and it contains `part`; NULL: none at all. */
static void check_one_line(const char *part)
{
	const char *text = harness_text(harness.errors);

	if (harness_count_lines(text, "stepscope: ") != (part ? 1 : 0) || (part && !strstr(text, part)))
		harness_fail(__FILE__, __LINE__, "expected one line with '%s'", part ? part : "(none)");
	CHECK_EQUAL(strlen(harness_text(harness.output)), 0);
}

/* trains PAUSE: records until counters[200] is set. */
static void victim_trains(int argc, char **argv)
{
	struct work work = {.number = 0, .rounds = 200, .pause = (unsigned)work_number(argc, argv, 1)};
	stepscope_name_t seq;
	uint64_t n = work.rounds;

	work_run(&work);
	seq = stepscope_name(STEPSCOPE_KIND_COUNTER, "seq");
	while (!__atomic_load_n(&harness.counters[200], __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&harness.counters[0], harness.counters[0] + 1, __ATOMIC_RELAXED);
		stepscope_value_name(seq, (double)++n);
		for (volatile unsigned i = 0; i < work.pause; i++)
			;
		if (n % 1000 == 0)
			usleep(100); /* leaves the drainer a processor on a busy machine */
	}
}

static pid_t start_training(void)
{
	return harness_start("trains", "200", NULL);
}

static void end_training(pid_t pid)
{
	__atomic_store_n(&harness.counters[200], 1, __ATOMIC_RELEASE);
	CHECK_EQUAL(harness_wait(pid), 0);
}

static void await_line(const char *part)
{
	for (int i = 0; harness_count_lines(harness_text(harness.errors), part) == 0; i++) {
		if (i > 30000)
			harness_fail(__FILE__, __LINE__, "no line with '%s'", part);
		usleep(2000);
	}
}

static void make_directory(void)
{
	CHECK(mkdir(harness.directory, 0700) == 0);
}

static void check_all_declared(bool is_closed)
{
	struct recording *recording = recording_read(harness.directory);

	recording_check_whole(recording, false);
	work_check(recording, 0, 1, false);
	CHECK_EQUAL(recording->process_count, 1);
	CHECK_EQUAL(recording->processes[0].is_closed, is_closed);
	recording_free(recording);
}

static void grow_disk(void)
{
	mount_small(harness.directory, "size=512m", MS_REMOUNT);
}

static void fill_disk_and_go_on(const char *options)
{
	enter_namespace();
	make_directory();
	harness.options = options;
	mount_small(harness.directory, "size=300k", 0);
	pid_t pid = start_training();
	await_line("No space left");
	harness_await(pid, 0, harness.counters[0] + 3000000); /* training goes on, beyond what the pool holds */
	grow_disk();
	harness_await(pid, 0, harness.counters[0] + 1000000);
	end_training(pid);
	check_one_line("No space left on device; training continues");
	check_all_declared(true);
}

static void a_full_disk_stops_the_recording_until_there_is_room(void)
{
	fill_disk_and_go_on("keep_size=0,sample_process=false");
}

static void a_full_disk_in_a_rotation_too(void)
{
	fill_disk_and_go_on("keep_size=0,segment_size=64K,sample_process=false");
}

static void a_disk_that_stays_full_leaves_a_good_file(void)
{
	enter_namespace();
	make_directory();
	harness.options = "keep_size=0,sample_process=false";
	mount_small(harness.directory, "size=300k", 0);
	pid_t pid = start_training();
	await_line("No space left");
	harness_await(pid, 0, harness.counters[0] + 500000);
	end_training(pid);
	check_one_line("No space left on device; training continues");
	grow_disk();
	check_all_declared(false); /* the rescue brings the rest */
}

static void a_disk_that_is_full_before_the_start_is_said(void)
{
	enter_namespace();
	make_directory();
	mount_small(harness.directory, "size=4k,nr_inodes=1", 0);
	pid_t pid = start_training();
	harness_await(pid, 0, 100000);
	end_training(pid);
	check_one_line("No space left on device; the program continues unrecorded");
	CHECK(umount(harness.directory) == 0);
}

static void a_read_only_directory_is_said(void)
{
	enter_namespace();
	make_directory();
	mount_small(harness.directory, "size=1m", MS_RDONLY);
	pid_t pid = start_training();
	harness_await(pid, 0, 100000);
	end_training(pid);
	check_one_line("Read-only file system; the program continues unrecorded");
}

static void victim_step(int argc, char **argv)
{
	stepscope_step_begin(0);
}

/* Whatever the directory's name is: "already" once was in a message that is kept back. */
static void a_directory_that_cannot_be_made_is_said(void)
{
	snprintf(harness.directory, sizeof(harness.directory), "/proc/already");
	CHECK_EQUAL(harness_run("step", NULL), 0);
	check_one_line("cannot create the run directory '/proc/already': No such file or directory; the program "
	               "continues unrecorded");
}

static unsigned count_pools(pid_t pid)
{
	char command[128], text[32] = "";
	FILE *list;

	snprintf(command, sizeof(command), "ls /dev/shm | grep -c 'stepscope.%u.%d[.]'", (unsigned)getuid(), (int)pid);
	list = popen(command, "r");
	CHECK(list && fgets(text, sizeof(text), list));
	pclose(list);
	return (unsigned)strtoul(text, NULL, 10);
}

static void a_directory_may_be_removed(void)
{
	char command[160];

	make_directory();
	pid_t pid = start_training();
	harness_await(pid, 0, 50000);
	CHECK_EQUAL(count_pools(pid), 1);
	snprintf(command, sizeof(command), "rm -rf %s", harness.directory);
	CHECK_EQUAL(system(command), 0);
	await_line("removed");
	harness_await(pid, 0, harness.counters[0] + 2000000);
	end_training(pid);
	check_one_line("was removed during the recording; training continues");
	CHECK_EQUAL(count_pools(pid), 0);
}

/* ---- /dev/shm ---------------------------------------------------------------------------------------------------------- */

static void train_and_check(void)
{
	pid_t pid = start_training();

	harness_await(pid, 0, 200000);
	end_training(pid);
	check_one_line(NULL);
	check_all_declared(true);
}

static void no_shared_memory_is_no_problem(void)
{
	enter_namespace();
	mount_small("/dev", "size=64k", 0);
	mknod("/dev/null", S_IFCHR | 0666, makedev(1, 3));
	train_and_check();
}

static void little_shared_memory_is_no_problem(void)
{
	enter_namespace();
	mount_small("/dev/shm", "size=64k", 0);
	train_and_check();
}

static void shared_memory_that_is_full_is_no_problem(void)
{
	enter_namespace();
	mount_small("/dev/shm", "size=8m", 0);
	int fd = open("/dev/shm/full", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && posix_fallocate(fd, 0, 8 << 20) == 0);
	train_and_check();
}

/* 16 children, as data loaders are, and a program that needs 59 of the 64 MB itself, each worker a share. */
static void use_shared_memory(int number)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/shm/batch.%d", number);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || posix_fallocate(fd, 0, 59 << 16) != 0) {
		fprintf(stderr, "worker %d: no room in /dev/shm\n", number);
		_exit(4);
	}
}

static void victim_workers(int argc, char **argv)
{
	struct work work = {.number = 16, .rounds = 1000};
	pid_t pids[16];
	int failed = 0;

	work_run(&work);
	for (int i = 0; i < 16; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct work mine = {.number = (unsigned)i, .rounds = 1000, .pause = 100};
			work_run(&mine);
			__atomic_fetch_add(&harness.counters[300], 1, __ATOMIC_ACQ_REL);
			while (__atomic_load_n(&harness.counters[300], __ATOMIC_ACQUIRE) < 16)
				usleep(1000); /* all of them record now */
			use_shared_memory(i);
			exit(0);
		}
	}
	for (int i = 0; i < 16; i++)
		failed += harness_wait(pids[i]) != 0;
	exit(failed);
}

static void children_leave_shared_memory_to_the_program(void)
{
	enter_namespace();
	mount_small("/dev/shm", "size=64m", 0);
	CHECK_EQUAL(harness_run("workers", NULL), 0);
	check_one_line(NULL);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	work_check(recording, 0, 17, false);
	CHECK_EQUAL(recording->process_count, 17);
	recording_free(recording);
}

/* Children of bare forks that end at once: what they recorded is lost with their memory, but not when they were there. */
static void victim_brief(int argc, char **argv)
{
	stepscope_mark("before");
	for (int i = 0; i < 4; i++) {
		pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (pid == 0) {
			stepscope_mark("brief");
			_exit(0);
		}
		CHECK_EQUAL(harness_wait(pid), 0);
	}
}

static void every_segment_says_when_it_was(void)
{
	enter_namespace();
	mount_small("/dev/shm", "size=64k", 0);
	CHECK_EQUAL(harness_run("brief", NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	CHECK_EQUAL(recording->process_count, 5);
	for (unsigned i = 0; i < recording->process_count; i++)
		CHECK(recording->processes[i].anchors > 0);
	recording_free(recording);
}

/* ---- limits ------------------------------------------------------------------------------------------------------------ */

/* limited BYTES: trains under RLIMIT_FSIZE. */
static void victim_limited(int argc, char **argv)
{
	struct rlimit limit = {(rlim_t)work_number(argc, argv, 1), RLIM_INFINITY};
	struct work work = {.number = 0, .rounds = 100000};

	if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
		abort();
	work_run(&work);
	limit.rlim_cur = RLIM_INFINITY;
	stepscope_flush();
	setrlimit(RLIMIT_FSIZE, &limit);
}

static void a_limit_on_file_size_does_not_kill(void)
{
	const char *const sizes[] = {"0", "64", "300", "65536", "300000", "2000000"};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(harness.directory, sizeof(harness.directory), "%s/run%s", harness.root, sizes[i]);
		memset(harness.counters, 0, 64);
		CHECK_EQUAL(harness_run("limited", sizes[i], NULL), 0);
		CHECK_EQUAL(harness.counters[0], 300000);
		struct recording *recording = recording_read(harness.directory);
		recording_check_whole(recording, false);
		if (strtol(sizes[i], NULL, 10) > 64)
			work_check(recording, 0, 1, false);
		recording_free(recording);
	}
}

/* No more threads may be made: the recorder does without one of its own. */
static void victim_threadless(int argc, char **argv)
{
	struct rlimit limit = {0, 0};
	struct work work = {.number = 0, .rounds = 100000};

	/* the limit does not hold for root */
	if (setrlimit(RLIMIT_NPROC, &limit) != 0 || setgid(65534) != 0 || setuid(65534) != 0)
		abort();
	work_run(&work);
}

static void a_process_without_threads_records_too(void)
{
	if (getuid() != 0)
		harness_skip("needs root");
	if (IS_SANITIZED)
		harness_skip("a sanitizer needs a thread of its own at the end");
	make_directory();
	CHECK(chmod(harness.root, 0777) == 0 && chmod(harness.directory, 0777) == 0);
	CHECK_EQUAL(harness_run("threadless", NULL), 0);
	check_one_line(NULL);
	check_all_declared(true);
}

HARNESS_MAIN(LIST(VICTIM(trains), VICTIM(workers), VICTIM(limited), VICTIM(threadless), VICTIM(brief), VICTIM(step)),
             LIST(TEST(a_full_disk_stops_the_recording_until_there_is_room), TEST(a_full_disk_in_a_rotation_too),
                  TEST(a_disk_that_stays_full_leaves_a_good_file), TEST(a_disk_that_is_full_before_the_start_is_said),
                  TEST(a_read_only_directory_is_said), TEST(a_directory_that_cannot_be_made_is_said),
                  TEST(a_directory_may_be_removed), TEST(no_shared_memory_is_no_problem),
                  TEST(little_shared_memory_is_no_problem), TEST(shared_memory_that_is_full_is_no_problem),
                  TEST(children_leave_shared_memory_to_the_program), TEST(every_segment_says_when_it_was),
                  TEST(a_limit_on_file_size_does_not_kill), TEST(a_process_without_threads_records_too)))
