/* SPDX-License-Identifier: Apache-2.0
 *
 * test_step_cpu.c: what the thread of a step used, and a kernel that does not tell it.
 */
#include "recorder/clock.h"
#include "recorder/step_cpu.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGES 500
#define LONG_TICKS (1000ull * 1000 * 1000 * 1000)

/* Each takes a page fault. */
static void touch_new_pages(size_t count)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *pages = mmap(NULL, count * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	                            0);

	assert_true(pages != MAP_FAILED);
	madvise((void *)pages, count * page_bytes, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < count; i++)
		pages[i * page_bytes] = 1;
	munmap((void *)pages, count * page_bytes);
}

static void a_long_step_is_known(void **state)
{
	struct step_cpu cpu;
	struct thread_use use;
	double ns;

	(void)state;
	step_cpu_start(&cpu);
	assert_true(step_cpu_cost_ns(&cpu, &ns));
	assert_true(ns > 0);
	step_cpu_begin(&cpu); /* nothing is known of the one before */
	assert_false(step_cpu_end(&cpu, &use));
	cpu.last_ticks = LONG_TICKS;
	step_cpu_begin(&cpu);
	usleep(1000);
	touch_new_pages(PAGES);
	assert_true(step_cpu_end(&cpu, &use));
	assert_true(use.waits >= 1);
	assert_in_range(use.page_faults, PAGES, 2 * PAGES);
}

static void *end_elsewhere(void *cpu)
{
	struct thread_use use;

	return step_cpu_end(cpu, &use) ? cpu : NULL;
}

static void a_step_of_two_threads_is_not_known(void **state)
{
	struct step_cpu cpu;
	pthread_t thread;
	void *result;

	(void)state;
	step_cpu_start(&cpu);
	cpu.last_ticks = LONG_TICKS;
	step_cpu_begin(&cpu);
	assert_int_equal(pthread_create(&thread, NULL, end_elsewhere, &cpu), 0);
	pthread_join(thread, &result);
	assert_null(result);
}

/* getrusage() fails from here on, as in a sandbox. */
static int forbid(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrusage, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

enum {
	RIGHT,
	FORBIDDEN,
	COST_WITHOUT_AN_ANSWER,
	END_WITHOUT_AN_ANSWER,
	ERRNO_CHANGED
};

static int in_a_sandbox(void)
{
	struct step_cpu open, cpu;
	struct thread_use use;
	double ns;

	step_cpu_start(&open);
	open.last_ticks = LONG_TICKS;
	step_cpu_begin(&open);
	if (forbid() != 0)
		return FORBIDDEN;
	errno = 77;
	step_cpu_start(&cpu);
	if (step_cpu_cost_ns(&cpu, &ns))
		return COST_WITHOUT_AN_ANSWER;
	cpu.last_ticks = LONG_TICKS;
	step_cpu_begin(&cpu);
	if (step_cpu_end(&cpu, &use) || step_cpu_end(&open, &use))
		return END_WITHOUT_AN_ANSWER;
	return errno == 77 ? RIGHT : ERRNO_CHANGED;
}

static void what_the_kernel_does_not_say_is_not_known(void **state)
{
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(in_a_sandbox());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == FORBIDDEN)
		skip();
	assert_int_equal(WEXITSTATUS(status), RIGHT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_step_is_known),
		cmocka_unit_test(a_step_of_two_threads_is_not_known),
		cmocka_unit_test(what_the_kernel_does_not_say_is_not_known),
	};

	clock_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
