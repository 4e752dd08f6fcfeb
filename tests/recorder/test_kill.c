/* SPDX-License-Identifier: Apache-2.0
 *
 * test_kill.c: processes that die in every way (row P01). What was issued is recorded or declared as dropped, to within the one
 * event per thread that the death interrupted. `KILLS=n` in the environment: that many random kills instead of 20.
 */
#include "format/fold.h"
#include "work.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* writers THREADS PAUSE */
static void victim_writers(int argc, char **argv)
{
	static struct work works[8];
	long count = work_number(argc, argv, 1);

	stepscope_step_begin(7);
	for (long i = 0; i < count; i++) {
		works[i] = (struct work){.number = (unsigned)i, .pause = (unsigned)work_number(argc, argv, 2)};
		work_start(&works[i]);
	}
	for (;;)
		pause();
}

static void kill_once(int round)
{
	unsigned threads = 1 + harness_random(8);
	unsigned pause = harness_random(3) ? 20 + harness_random(3000) : 0;
	char words[2][16];
	struct recording *recording;
	pid_t pid;

	snprintf(words[0], sizeof(words[0]), "%u", threads);
	snprintf(words[1], sizeof(words[1]), "%u", pause);
	memset(harness.counters, 0, 64 * sizeof(uint64_t));
	snprintf(harness.directory, sizeof(harness.directory), "%s/run%d", harness.root, round);
	pid = harness_start("writers", words[0], words[1], NULL);
	for (unsigned i = 0; i < threads; i++)
		harness_await(pid, 8 * i, 1);
	usleep(harness_random(200000)); /* the moment is what varies; nothing depends on it */
	kill(pid, SIGKILL);
	harness_wait(pid);
	recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	work_check(recording, 0, threads, true);
	CHECK(!recording_process(recording, (uint32_t)pid)->is_closed);
	printf("# kill %d: %u threads, pause %u: %llu events (%llu rescued), %llu dropped\n", round, threads, pause,
	       (unsigned long long)(recording_sum(recording, STEPSCOPE_EVENT_BEGIN) * 3),
	       (unsigned long long)recording->rescued,
	       (unsigned long long)recording_drops(recording, STEPSCOPE_EVENT_BEGIN) * 3);
	recording_free(recording);
}

static void random_kills_lose_nothing_undeclared(void)
{
	const char *kills = getenv("KILLS");
	int count = kills ? (int)strtol(kills, NULL, 10) : IS_SANITIZED ? 5 : 20;

	for (int i = 0; i < count; i++)
		kill_once(i);
}

/* dies HOW: 1000 rounds in the main thread, then the end. */
static void victim_dies(int argc, char **argv)
{
	struct work work = {.number = 0, .rounds = 1000};

	signal(SIGSEGV, SIG_DFL); /* not the sanitizers' */
	signal(SIGABRT, SIG_DFL);
	work_run(&work);
	if (strcmp(argv[1], "_exit") == 0)
		_exit(3);
	raise((int)work_number(argc, argv, 1));
}

static void check_death(const char *how, int status)
{
	struct recording *recording;
	int got;

	memset(harness.counters, 0, 64);
	snprintf(harness.directory, sizeof(harness.directory), "%s/run-%s", harness.root, how);
	got = harness_run("dies", how, NULL);
	CHECK_EQUAL(WIFSIGNALED(got) ? WTERMSIG(got) : 100 + WEXITSTATUS(got), status);
	recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	CHECK_EQUAL(harness.counters[0], 3000);
	work_check(recording, 0, 1, false);
	recording_free(recording);
}

static void other_deaths_lose_nothing(void)
{
	check_death("15", SIGTERM);
	check_death("6", SIGABRT);
	check_death("11", SIGSEGV);
	check_death("9", SIGKILL);
	check_death("_exit", 103);
}

/* The image before the exec left a pool, which is folded while the process lives on. */
static void victim_exec(int argc, char **argv)
{
	struct work work = {.number = 0, .rounds = 1000};
	char *again[] = {argv[0], (char *)"--victim", (char *)"after", NULL};

	work_run(&work);
	harness_exec(again);
}

static void victim_after(int argc, char **argv)
{
	struct work work = {.number = 1, .rounds = 1000};

	work_run(&work);
	__atomic_store_n(&harness.counters[100], 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&harness.counters[101], __ATOMIC_ACQUIRE) == 0)
		usleep(1000);
}

static void an_exec_leaves_its_recording_behind(void)
{
	pid_t pid = harness_start("exec", NULL);
	struct recording *recording;

	harness_await(pid, 100, 1);
	recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	work_check(recording, 0, 1, false);
	recording_free(recording);
	__atomic_store_n(&harness.counters[101], 1, __ATOMIC_RELEASE);
	CHECK_EQUAL(harness_wait(pid), 0);
	recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	work_check(recording, 0, 2, false);
	CHECK_EQUAL(recording->process_count, 2);
	recording_free(recording);
}

static void kills_in_a_rotation_lose_nothing_that_is_kept(void)
{
	harness.options = "keep_size=0,segment_size=64K";
	for (int i = 0; i < (IS_SANITIZED ? 3 : 10); i++) {
		struct recording *recording;
		pid_t pid;

		memset(harness.counters, 0, 64 * sizeof(uint64_t));
		snprintf(harness.directory, sizeof(harness.directory), "%s/run%d", harness.root, i);
		pid = harness_start("writers", "2", "300", NULL);
		harness_await(pid, 0, 30000 + harness_random(30000));
		kill(pid, SIGKILL);
		harness_wait(pid);
		recording = recording_read(harness.directory);
		recording_check_whole(recording, false);
		work_check(recording, 0, 2, true);
		recording_free(recording);
	}
}

/* A daemon closes what it does not know: our descriptors, and with them the lock that says we live. */
static void close_all(void)
{
	for (int fd = 3; fd < 4096; fd++)
		close(fd);
}

/* closes HOW: closes all descriptors while it records; then "stop"s at once, or goes on. */
static void victim_closes(int argc, char **argv)
{
	struct work work = {.number = 0, .rounds = 30000, .pause = 50};
	struct work more = {.number = 1, .rounds = 0, .pause = 300};

	work_run(&work);
	close_all();
	if (strcmp(argv[1], "stop") == 0)
		raise(SIGSTOP);
	work_start(&more);
	work_finish(&more);
}

/* The file cannot be opened again: it is not where it was. The end stays in the pool. */
static void victim_closes_and_moves(int argc, char **argv)
{
	struct work works[] = {{.number = 0, .rounds = 30000, .pause = 50},
	                       {.number = 1, .rounds = 10000, .pause = 500}};

	for (int i = 0; i < 2; i++) {
		work_start(&works[i]);
		work_finish(&works[i]);
		if (i == 0 && rename(harness.directory, argv[1]) != 0)
			abort();
		if (i == 0)
			close_all();
	}
}

static void what_cannot_be_opened_again_is_left_to_the_rescue(void)
{
	char moved[128];

	snprintf(moved, sizeof(moved), "%s/moved", harness.root);
	CHECK_EQUAL(harness_run("closes_and_moves", moved, NULL), 0);
	CHECK_EQUAL(harness_count_lines(harness_text(harness.errors), "closed the descriptor of"), 1);
	CHECK(rename(moved, harness.directory) == 0);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	work_check(recording, 0, 2, false);
	recording_free(recording);
}

/* For a while there are no descriptors at all to open it again with. */
static void victim_closes_and_limits(int argc, char **argv)
{
	struct work works[] = {{.number = 0, .rounds = 30000, .pause = 50},
	                       {.number = 1, .rounds = 30000, .pause = 500},
	                       {.number = 2, .rounds = 30000, .pause = 50}};
	struct rlimit limit, none;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		abort();
	none = limit;
	none.rlim_cur = 3;
	for (int i = 0; i < 3; i++) {
		setrlimit(RLIMIT_NOFILE, i == 1 ? &none : &limit);
		if (i == 1)
			close_all();
		work_start(&works[i]);
		work_finish(&works[i]);
		stepscope_flush(); /* a pass is made in each of the three */
	}
}

static void want_of_descriptors_passes(void)
{
	CHECK_EQUAL(harness_run("closes_and_limits", NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	work_check(recording, 0, 3, false);
	CHECK(recording->processes[0].is_closed);
	CHECK_EQUAL(harness_count_lines(harness_text(harness.errors), "Too many open files; training continues"), 1);
	recording_free(recording);
}

static void closed_descriptors_are_opened_again(void)
{
	pid_t pid = harness_start("closes", "on", NULL);
	struct recording *recording;

	harness_await(pid, 8, 300000);
	usleep(200000); /* a pass or two */
	CHECK_EQUAL(fold_stale_pools(harness.directory, NULL, NULL), 0);
	kill(pid, SIGKILL);
	harness_wait(pid);
	CHECK_EQUAL(fold_stale_pools(harness.directory, NULL, NULL), 1);
	recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	work_check(recording, 0, 2, true);
	CHECK(recording->bytes > 10000);
	CHECK_EQUAL(harness_count_lines(harness_text(harness.errors), "stepscope"), 0);
	recording_free(recording);
}

/* No lock, since it could not be taken again yet, and nothing may be folded. */
static void a_stopped_process_keeps_its_pool(void)
{
	pid_t pid = harness_start("closes", "stop", NULL);
	int status;

	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	CHECK_EQUAL(fold_stale_pools(harness.directory, NULL, NULL), 0);
	kill(pid, SIGCONT);
	harness_await(pid, 8, 100000);
	kill(pid, SIGKILL);
	harness_wait(pid);
	CHECK_EQUAL(fold_stale_pools(harness.directory, NULL, NULL), 1);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	work_check(recording, 0, 2, true);
	recording_free(recording);
}

/* ---- the rescue ---------------------------------------------------------------------------------------------------- */

struct bytes {
	char *data;
	size_t length;
};

static struct bytes load(const char *path)
{
	struct stat info;
	struct bytes result = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0 && fstat(fd, &info) == 0);
	result.length = (size_t)info.st_size;
	result.data = malloc(result.length + 1);
	CHECK(result.data && read(fd, result.data, result.length) == info.st_size);
	close(fd);
	return result;
}

static void store(const char *path, struct bytes bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write(fd, bytes.data, bytes.length) == (ssize_t)bytes.length);
	close(fd);
}

/* Starts writers, kills them; the pool's path and the segment's. */
static void make_victim_of(char *pool, size_t bytes)
{
	char pattern[128];
	pid_t pid = harness_start("writers", "4", "50", NULL);

	harness_await(pid, 0, 50000);
	kill(pid, SIGKILL);
	harness_wait(pid);
	snprintf(pattern, sizeof(pattern), "ls /dev/shm/stepscope.%u.%d.*", (unsigned)getuid(), (int)pid);
	FILE *list = popen(pattern, "r");
	CHECK(list && fgets(pool, (int)bytes, list));
	pclose(list);
	pool[strcspn(pool, "\n")] = 0;
}

static void a_repeated_rescue_changes_nothing(void)
{
	char path[160];
	struct fold_result result;
	struct error error = {0};
	struct bytes pool, once, twice;

	make_victim_of(path, sizeof(path));
	pool = load(path);
	CHECK(fold_pool(path, false, &result, &error) == STATUS_OK && result.was_folded);
	CHECK(access(path, F_OK) != 0);
	CHECK(result.has_step && result.last_step == 7 && result.events > 0);
	once = load(result.segment_path);
	store(path, pool); /* as if we had been killed before the unlink */
	CHECK(fold_pool(path, false, &result, &error) == STATUS_OK);
	twice = load(result.segment_path);
	CHECK_EQUAL(once.length, twice.length);
	CHECK(memcmp(once.data, twice.data, once.length) == 0);
	free(pool.data);
	free(once.data);
	free(twice.data);
}

/* A rescue that was killed after it had written this much is repeated whole. */
static void a_rescue_that_was_killed_is_repeated(void)
{
	char path[160];
	struct fold_result result;
	struct error error = {0};
	struct bytes pool, before, whole, again;
	uint64_t step;

	make_victim_of(path, sizeof(path));
	pool = load(path);
	memcpy(&result.segment_path, ((struct stepscope_pool_header *)pool.data)->segment_path,
	       sizeof(result.segment_path));
	before = load(result.segment_path);
	CHECK(fold_pool(path, false, &result, &error) == STATUS_OK);
	whole = load(result.segment_path);
	CHECK(whole.length > before.length);
	step = (whole.length - before.length) / 40 + 1;
	for (uint64_t cut = 0; before.length + cut < whole.length; cut += step) {
		store(result.segment_path, (struct bytes){whole.data, before.length + cut});
		store(path, pool);
		CHECK(fold_pool(path, false, &result, &error) == STATUS_OK);
		again = load(result.segment_path);
		CHECK_EQUAL(again.length, whole.length);
		CHECK(memcmp(again.data, whole.data, whole.length) == 0);
		free(again.data);
	}
	free(pool.data);
	free(before.data);
	free(whole.data);
}

static void a_living_process_is_left_alone(void)
{
	pid_t pid = harness_start("writers", "2", "1000", NULL);

	harness_await(pid, 0, 1000);
	for (int i = 0; i < 20; i++)
		CHECK_EQUAL(fold_stale_pools(harness.directory, NULL, NULL), 0);
	harness_await(pid, 0, harness.counters[0] + 1000);
	kill(pid, SIGKILL);
	harness_wait(pid);
	CHECK_EQUAL(fold_stale_pools(harness.directory, NULL, NULL), 1);
	CHECK_EQUAL(fold_stale_pools(harness.directory, NULL, NULL), 0);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	work_check(recording, 0, 2, true);
	recording_free(recording);
}

/* So many locks of directories are refused, as if another command just looked who watches over them. */
static int refused_locks;

int flock(int fd, int operation)
{
	if (refused_locks > 0) {
		refused_locks--;
		errno = EWOULDBLOCK;
		return -1;
	}
	return (int)syscall(SYS_flock, fd, operation);
}

static void who_looks_at_the_same_time_is_no_parent(void)
{
	char path[160];

	make_victim_of(path, sizeof(path));
	refused_locks = INT_MAX;
	CHECK_EQUAL(fold_stale_pools(harness.directory, NULL, NULL), 0);
	refused_locks = 3;
	CHECK_EQUAL(fold_stale_pools(harness.directory, NULL, NULL), 1);
	CHECK(access(path, F_OK) != 0);
}

/* What cannot be written now stays; what nobody wants any more goes. */
static void a_pool_outlives_what_can_be_mended(void)
{
	const int64_t long_ago_ns = 1000000000000000000;
	char path[160], moved[1500];
	struct fold_result result;
	struct error error = {0};
	struct bytes pool;

	make_victim_of(path, sizeof(path));
	pool = load(path);
	memcpy(&result.segment_path, ((struct stepscope_pool_header *)pool.data)->segment_path,
	       sizeof(result.segment_path));
	snprintf(moved, sizeof(moved), "%s.moved", result.segment_path);
	CHECK(rename(result.segment_path, moved) == 0);
	CHECK(symlink(moved, result.segment_path) == 0); /* we do not write through links */
	CHECK(fold_pool(path, false, &result, &error) != STATUS_OK);
	CHECK(access(path, F_OK) == 0);
	CHECK(unlink(result.segment_path) == 0);
	CHECK(fold_pool(path, false, &result, &error) != STATUS_OK);
	CHECK(access(path, F_OK) == 0); /* it may be another container's */
	int fd = open(path, O_WRONLY);
	CHECK(pwrite(fd, &long_ago_ns, sizeof(long_ago_ns),
	             offsetof(struct stepscope_pool_header, last_anchor.realtime_ns)) == sizeof(long_ago_ns));
	close(fd);
	CHECK(fold_pool(path, false, &result, &error) != STATUS_OK);
	CHECK(access(path, F_OK) != 0);
	free(pool.data);
}

/* names: three times what the pool has room for, and one more that the file has not got by the end. */
static void victim_names(int argc, char **argv)
{
	char text[160];

	for (int i = 0; i <= 30000; i++) {
		snprintf(text, sizeof(text), "name %0100d", i);
		stepscope_mark(text);
		if (i % 500 == 499)
			stepscope_flush();
	}
	raise(SIGKILL);
}

static void a_kill_behind_many_names_loses_none(void)
{
	CHECK_EQUAL(harness_run("names", NULL), SIGKILL);
	struct recording *recording = recording_read(harness.directory);
	recording_check_whole(recording, false);
	CHECK_EQUAL(recording->unnamed, 0);
	CHECK(recording->rescued > 0);
	recording_free(recording);
}

HARNESS_MAIN(LIST(VICTIM(writers), VICTIM(dies), VICTIM(exec), VICTIM(after), VICTIM(closes), VICTIM(closes_and_limits),
                  VICTIM(closes_and_moves), VICTIM(names)),
             LIST(TEST(random_kills_lose_nothing_undeclared), TEST(other_deaths_lose_nothing),
                  TEST(an_exec_leaves_its_recording_behind), TEST(kills_in_a_rotation_lose_nothing_that_is_kept),
                  TEST(closed_descriptors_are_opened_again), TEST(a_stopped_process_keeps_its_pool),
                  TEST(want_of_descriptors_passes), TEST(what_cannot_be_opened_again_is_left_to_the_rescue),
                  TEST(a_repeated_rescue_changes_nothing), TEST(a_rescue_that_was_killed_is_repeated),
                  TEST(a_living_process_is_left_alone), TEST(who_looks_at_the_same_time_is_no_parent),
                  TEST(a_pool_outlives_what_can_be_mended), TEST(a_kill_behind_many_names_loses_none)))
