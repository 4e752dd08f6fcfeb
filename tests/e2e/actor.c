/* SPDX-License-Identifier: Apache-2.0
 *
 * actor.c: a program for end-to-end tests that does what its arguments say, one after the other:
 *
 *     steps N US      N steps of US microseconds, each with the op "matmul" inside a forward phase
 *     open NAME       begin an op and leave it open
 *     push NAME       begin a range
 *     pop             end one
 *     ranks N         fork N ranks (RANK is set before they record); the parent waits for them and exits with the worst status
 *     together N US A B C ... N steps of US microseconds that all ranks begin at once; in each rank 0 has A ranges, rank 1 has B, ...
 *     only R          the words up to the next "all" are for rank R
 *     worker          fork a worker that goes on with the next words; the parent skips to "all" and does not wait
 *     init LIST       stepscope_init(), whose result is written to stdout
 *     stop            stepscope_shutdown()
 *     brief N         N workers of bare forks, one after the other, that record one mark and end at once without exit handlers
 *     names N         N ranges and N counters, each with a name of its own
 *     marks N         N marks, of two names in turn
 *     threads N       N threads, one after the other, with one range each
 *     values N M      M values of each of N counters
 *     memory N M L D  N steps with M allocations of 8 MiB each on device D (-1: the host); each is freed at once, but the first L of a step
 *     await PATH      sleep until there is such a file
 *     sleep MS | spin MS | write FD TEXT | exit N | kill SIGNAL | abort | quit (no exit handlers) | detach (double fork)
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char **word;
static long rank = -1, ranks;
static pthread_barrier_t *meeting; /* of the ranks */

static long number(void)
{
	return *word ? strtol(*word++, NULL, 10) : 0;
}

static void sleep_us(long us)
{
	struct timespec time = {us / 1000000, us % 1000000 * 1000};

	while (nanosleep(&time, &time) != 0)
		;
}

static void spin_us(long us)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 < us);
}

/* The recorder is to lose nothing, however slow the machine is. */
static void let_it_write(long n)
{
	if (n % 10000 == 0)
		stepscope_flush();
}

static void do_steps(void)
{
	long count = number(), us = number();

	for (long n = 0; n < count; n++) {
		stepscope_step_begin(n);
		stepscope_phase_begin(STEPSCOPE_PHASE_FORWARD);
		stepscope_op_begin("matmul");
		if (us)
			sleep_us(us);
		stepscope_op_end();
		stepscope_phase_end();
		stepscope_step_end();
		if (!us)
			let_it_write(n);
	}
}

static void skip_to_all(void)
{
	while (*word && strcmp(*word, "all") != 0)
		word++;
}

static int wait_for_all(void)
{
	int status, worst = 0;

	while (wait(&status) > 0) {
		int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);

		worst = code > worst ? code : worst;
	}
	return worst;
}

static void make_meeting(void)
{
	pthread_barrierattr_t shared;

	meeting = mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (meeting == MAP_FAILED || pthread_barrierattr_init(&shared) != 0 ||
	    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED) != 0 ||
	    pthread_barrier_init(meeting, &shared, (unsigned)ranks) != 0)
		_exit(95);
}

static void do_together(void)
{
	long count = number(), us = number(), ranges = 0;

	for (long i = 0; i < ranks; i++) {
		long one = number();

		ranges = i == rank ? one : ranges;
	}
	for (long n = 0; n < count; n++) {
		pthread_barrier_wait(meeting);
		stepscope_step_begin(n);
		for (long i = 0; i < ranges; i++) {
			stepscope_op_begin("add");
			stepscope_op_end();
		}
		sleep_us(us);
		stepscope_step_end();
	}
}

static void do_ranks(void)
{
	long count = ranks = number();
	char text[24];

	make_meeting();

	snprintf(text, sizeof(text), "%ld", count);
	setenv("WORLD_SIZE", text, 1);
	for (rank = 0; rank < count; rank++) {
		snprintf(text, sizeof(text), "%ld", rank);
		setenv("RANK", text, 1);
		setenv("LOCAL_RANK", text, 1);
		if (fork() == 0)
			return;
	}
	_exit(wait_for_all());
}

/* As fast as it can: a small pool does not hold a step, a large one does. There is always room for the steps themselves. */
static void do_memory(void)
{
	static uint64_t address = UINT64_C(1) << 40;
	static int64_t step;
	long steps = number(), count = number(), kept = number();
	int device = (int)number();

	while (steps-- > 0) {
		stepscope_step_begin(step++);
		stepscope_op_begin("make");
		for (long n = 0; n < count; n++) {
			const void *at = (const void *)(uintptr_t)(address += 8 << 20); /* nobody looks there */

			stepscope_memory_alloc(at, 8 << 20, STEPSCOPE_MEMORY_ACTIVATION, device);
			if (n >= kept)
				stepscope_memory_free(at, device);
		}
		stepscope_flush();
		stepscope_op_end();
		stepscope_step_end();
	}
}

static void do_worker(void)
{
	if (fork() == 0)
		return;
	skip_to_all();
}

static void do_detach(void)
{
	if (fork() != 0)
		_exit(0);
	setsid();
	if (fork() != 0)
		_exit(0);
}

static void do_write(void)
{
	int fd = (int)number();

	if (write(fd, *word, strlen(*word)) < 0)
		_exit(99);
	word++;
}

static void do_await(void)
{
	/* a test that fails makes none, and nobody ends us then */
	for (int i = 0; access(*word, F_OK) != 0; i++) {
		if (i > 60000)
			_exit(97);
		sleep_us(2000);
	}
	word++;
}

static void do_init(void)
{
	char answer[8];
	int length = snprintf(answer, sizeof(answer), "%d\n", stepscope_init(*word++));

	if (write(1, answer, (size_t)length) < 0)
		_exit(99);
}

static void do_brief(void)
{
	for (long n = number(); n > 0; n--) {
		pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

		if (pid == 0) {
			stepscope_mark("brief");
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

static void do_names(void)
{
	char name[32];

	for (long n = number(); n > 0; n--) {
		snprintf(name, sizeof(name), "name %ld", n);
		stepscope_range_push(name);
		stepscope_counter(name, 1);
		stepscope_range_pop();
		if (n % 100 == 0)
			usleep(100);
	}
}

static void do_marks(void)
{
	for (long n = number(); n > 0; n--) {
		stepscope_mark(n % 2 ? "odd" : "even");
		let_it_write(n);
	}
}

static void *one_range(void *nothing)
{
	stepscope_range_push("brief");
	stepscope_range_pop();
	return nothing;
}

static void do_threads(void)
{
	for (long n = number(); n > 0; n--) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, one_range, NULL) != 0 || pthread_join(thread, NULL) != 0)
			_exit(96);
		let_it_write(10 * n);
	}
}

static void do_values(void)
{
	long count = number(), values = number();
	stepscope_name_t *names = calloc((size_t)count + 1, sizeof(*names));
	char name[32];

	for (long i = 0; names && i < count; i++) {
		snprintf(name, sizeof(name), "value %ld", i);
		names[i] = stepscope_name(STEPSCOPE_KIND_COUNTER, name);
	}
	for (long n = 0; names && n < values * count; n++) {
		stepscope_value_name(names[n % count], (double)n);
		let_it_write(n);
	}
	free(names);
}

/* What takes no time and no number. */
static void do_simple(const char *verb)
{
	if (!strcmp(verb, "open"))
		stepscope_op_begin(*word++);
	else if (!strcmp(verb, "push"))
		stepscope_range_push(*word++);
	else if (!strcmp(verb, "pop"))
		stepscope_range_pop();
	else if (!strcmp(verb, "await"))
		do_await();
	else if (!strcmp(verb, "init"))
		do_init();
	else if (!strcmp(verb, "stop"))
		stepscope_shutdown();
	else if (!strcmp(verb, "brief"))
		do_brief();
	else if (!strcmp(verb, "names"))
		do_names();
	else if (!strcmp(verb, "marks"))
		do_marks();
	else if (!strcmp(verb, "threads"))
		do_threads();
	else if (!strcmp(verb, "values"))
		do_values();
	else if (!strcmp(verb, "memory"))
		do_memory();
	else if (!strcmp(verb, "worker"))
		do_worker();
	else if (!strcmp(verb, "detach"))
		do_detach();
	else if (!strcmp(verb, "ranks"))
		do_ranks();
	else if (!strcmp(verb, "together"))
		do_together();
	else if (!strcmp(verb, "write"))
		do_write();
	else if (!strcmp(verb, "abort"))
		abort();
	else if (!strcmp(verb, "quit"))
		_exit(0);
	else if (strcmp(verb, "all") != 0)
		fprintf(stderr, "actor: unknown word '%s'\n", verb), exit(98);
}

int main(int argc, char **argv)
{
	(void)argc;
	for (word = argv + 1; *word;) {
		const char *verb = *word++;

		if (!strcmp(verb, "steps"))
			do_steps();
		else if (!strcmp(verb, "only")) {
			if (number() != rank)
				skip_to_all();
		} else if (!strcmp(verb, "sleep"))
			sleep_us(number() * 1000);
		else if (!strcmp(verb, "spin"))
			spin_us(number() * 1000);
		else if (!strcmp(verb, "exit"))
			exit((int)number());
		else if (!strcmp(verb, "kill"))
			kill(getpid(), (int)number());
		else
			do_simple(verb);
	}
	return 0;
}
