/* SPDX-License-Identifier: Apache-2.0
 *
 * harness.c: see harness.h.
 */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COUNTER_BYTES (HARNESS_COUNTERS * sizeof(uint64_t))
#define EXIT_FAILED 1
#define EXIT_SKIPPED 77

struct harness harness;
static uint64_t random_state;

/* ---- a test runs in a process of its own, so that a failure can end it anywhere ------------------------------------ */

noreturn void harness_fail(const char *file, int line, const char *format, ...)
{
	va_list arguments;

	printf("# %s:%d: ", file, line);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n# in %s, victims said: %s\n", harness.name, harness_text(harness.errors));
	fflush(stdout);
	_exit(EXIT_FAILED);
}

noreturn void harness_skip(const char *reason)
{
	printf("# skipped: %s\n", reason);
	fflush(stdout);
	_exit(EXIT_SKIPPED);
}

void harness_check_equal(const char *file, int line, const char *what, uint64_t a, uint64_t b)
{
	if (a != b)
		harness_fail(file, line, "%s: %llu is not %llu", what, (unsigned long long)a, (unsigned long long)b);
}

uint32_t harness_random(uint32_t below)
{
	while (random_state == 0)
		if (getrandom(&random_state, sizeof(random_state), 0) != sizeof(random_state))
			random_state = (uint64_t)time(NULL);
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 32) % below;
}

const char *harness_text(const char *path)
{
	static char text[65536];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = 0;
	return text;
}

unsigned harness_count_lines(const char *text, const char *part)
{
	unsigned count = 0;

	while (*text) {
		size_t length = strcspn(text, "\n");
		count += memmem(text, length, part, strlen(part)) != NULL;
		text += length + (text[length] == '\n');
	}
	return count;
}

/* ---- victims --------------------------------------------------------------------------------------------------------- */

static void map_counters(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, COUNTER_BYTES) != 0) {
		perror(path);
		_exit(EXIT_FAILED);
	}
	harness.counters = mmap(NULL, COUNTER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (harness.counters == MAP_FAILED)
		_exit(EXIT_FAILED);
	madvise(harness.counters, COUNTER_BYTES, 23 /* MADV_POPULATE_WRITE: victims count page faults */);
}

void harness_exec(char **argv)
{
	char *wrapped[24], wrapper[256], self[1024], *rest;
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int count = 0;

	if (!getenv("HARNESS_WRAPPER") || length < 0) {
		execv("/proc/self/exe", argv);
		return;
	}
	self[length] = 0;
	snprintf(wrapper, sizeof(wrapper), "%s", getenv("HARNESS_WRAPPER"));
	for (char *word = strtok_r(wrapper, " ", &rest); word && count < 8; word = strtok_r(NULL, " ", &rest))
		wrapped[count++] = word;
	wrapped[count++] = self;
	for (int i = 1; argv[i] && count < 23; i++)
		wrapped[count++] = argv[i];
	wrapped[count] = NULL;
	execvp(wrapped[0], wrapped);
}

static void become_victim(char **argv)
{
	int out = open(harness.output, O_WRONLY | O_CREAT | O_APPEND, 0600);
	int errors = open(harness.errors, O_WRONLY | O_CREAT | O_APPEND, 0600);

	dup2(out, STDOUT_FILENO);
	dup2(errors, STDERR_FILENO);
	close(out);
	close(errors);
	setenv("STEPSCOPE", "1", 1);
	setenv("STEPSCOPE_RUN_DIR", harness.directory, 1);
	setenv("HARNESS_ROOT", harness.root, 1);
	/* all is kept unless a test says otherwise */
	setenv("STEPSCOPE_OPTIONS", harness.options ? harness.options : "keep_size=0", 1);
	if (!harness.options || (!strstr(harness.options, "budget=") && !strstr(harness.options, "cost_every=")))
		setenv("STEPSCOPE_BUDGET", "none", 1); /* everything is counted */
	if (harness.preload)
		setenv("LD_PRELOAD", harness.preload, 1);
	harness_exec(argv);
	_exit(127);
}

static pid_t start(const char *victim, va_list arguments)
{
	char *argv[10] = {(char *)"victim", (char *)"--victim", (char *)(uintptr_t)victim};
	pid_t pid;

	for (int i = 3; i < 9; i++) {
		argv[i] = va_arg(arguments, char *);
		if (!argv[i])
			break;
	}
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		become_victim(argv);
	CHECK(pid > 0);
	return pid;
}

pid_t harness_start(const char *victim, ...)
{
	va_list arguments;
	pid_t pid;

	va_start(arguments, victim);
	pid = start(victim, arguments);
	va_end(arguments);
	return pid;
}

int harness_wait(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

int harness_run(const char *victim, ...)
{
	va_list arguments;
	pid_t pid;

	va_start(arguments, victim);
	pid = start(victim, arguments);
	va_end(arguments);
	return harness_wait(pid);
}

void harness_await(pid_t pid, unsigned index, uint64_t value)
{
	for (int i = 0; __atomic_load_n(&harness.counters[index], __ATOMIC_ACQUIRE) < value; i++) {
		siginfo_t info = {0};

		if (pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid)
			harness_fail(__FILE__, __LINE__, "the victim ended before counter %u was %llu", index,
			             (unsigned long long)value);
		if (i > 60000)
			harness_fail(__FILE__, __LINE__, "counter %u stays below %llu", index,
			             (unsigned long long)value);
		usleep(1000);
	}
}

/* ---- running the tests --------------------------------------------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at)
{
	return remove(path);
}

static void enter_root(const char *root)
{
	char counters[96];

	snprintf(harness.root, sizeof(harness.root), "%s", root);
	snprintf(harness.directory, sizeof(harness.directory), "%s/run", root);
	snprintf(harness.errors, sizeof(harness.errors), "%s/stderr", root);
	snprintf(harness.output, sizeof(harness.output), "%s/stdout", root);
	snprintf(counters, sizeof(counters), "%s/counters", root);
	map_counters(counters);
}

/* A /dev/shm of our own, where we may: other programs rescue the dead of this machine too. */
static void enter_own_memory(void)
{
	if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
		(void)mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=16g");
}

static noreturn void run_test(const struct harness_test *test, const char *root)
{
	harness.name = test->name;
	enter_own_memory();
	enter_root(root);
	test->run();
	fflush(stdout);
	_exit(0);
}

static int run_in_child(const struct harness_test *test)
{
	char root[] = "/tmp/stepscope-test-XXXXXX";
	int status;
	pid_t pid;

	if (!mkdtemp(root)) {
		perror(root);
		return EXIT_FAILED;
	}
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		run_test(test, root);
	status = harness_wait(pid);
	if (getenv("HARNESS_KEEP"))
		printf("# kept: %s\n", root);
	else
		nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	if (WIFSIGNALED(status))
		printf("# ended by signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}

static bool is_wanted(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc < 2;
}

static int run_victim(int argc, char **argv, const struct harness_victim *victim)
{
	for (; victim->name; victim++) {
		if (strcmp(victim->name, argv[2]) != 0)
			continue;
		enter_root(getenv("HARNESS_ROOT"));
		harness.name = victim->name;
		victim->run(argc - 2, argv + 2);
		return 0;
	}
	fprintf(stderr, "no victim '%s'\n", argv[2]);
	return EXIT_FAILED;
}

int harness_main(int argc, char **argv, const struct harness_test *tests, const struct harness_victim *victims)
{
	int count = 0, failed = 0;

	if (argc > 2 && strcmp(argv[1], "--victim") == 0)
		return run_victim(argc, argv, victims);
	unsetenv("STEPSCOPE");
	for (const struct harness_test *test = tests; test->name; test++) {
		int status;

		if (!is_wanted(argc, argv, test->name))
			continue;
		status = run_in_child(test);
		failed += status != 0 && status != EXIT_SKIPPED;
		printf("%s %d - %s%s\n", status == 0 || status == EXIT_SKIPPED ? "ok" : "not ok", ++count, test->name,
		       status == EXIT_SKIPPED ? " # SKIP see above" : "");
		fflush(stdout);
	}
	printf("1..%d\n", count);
	return failed > 0 || count == 0;
}
