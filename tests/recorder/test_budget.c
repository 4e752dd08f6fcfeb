/* SPDX-License-Identifier: Apache-2.0
 *
 * test_budget.c: what an event may cost a training thread after its first 64: no malloc, no lock, no system call, no page fault, and
 * a bounded number of instructions. Everything is counted, nothing is timed.
 */
#include "steps.h"
#include "work.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 20000

/* ---- counted: malloc and pthread_mutex_lock of this thread, wherever they are called from ------------------------------ */

#if !IS_SANITIZED
static __thread uint64_t allocations, locks;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *malloc(size_t size) __attribute__((visibility("default")));
void *calloc(size_t count, size_t size) __attribute__((visibility("default")));
void *realloc(void *memory, size_t size) __attribute__((visibility("default")));
int pthread_mutex_lock(pthread_mutex_t *mutex) __attribute__((visibility("default")));

void *malloc(size_t size)
{
	allocations++;
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	allocations++;
	return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
	allocations++;
	return __libc_realloc(memory, size);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	static int (*next)(pthread_mutex_t *);

	if (!next)
		next = (int (*)(pthread_mutex_t *))(uintptr_t)dlsym(RTLD_NEXT, "pthread_mutex_lock");
	locks++;
	return next(mutex);
}
#else
static uint64_t allocations, locks;
#endif

/* ---- the work: every call that a training loop makes ------------------------------------------------------------------- */

static stepscope_name_t range_name, op_name, loss_name;
static int dummy;

static void step(int64_t number)
{
	const struct stepscope_op_info info = {
		.input_count = 2,
		.rank = {2, 2},
		.shape = {{64, 128}, {128, 256}},
		.dtype = STEPSCOPE_DTYPE_F32,
		.flops = 1e6,
		.bytes = 1e5,
	};

	stepscope_step_begin(number);
	stepscope_phase_begin(STEPSCOPE_PHASE_DATA);
	stepscope_counter("queue", (double)number);
	stepscope_phase_switch(STEPSCOPE_PHASE_FORWARD);
	stepscope_micro_batch_begin(number % 4);
	stepscope_range_push("layer");
	stepscope_op_begin_info(op_name, &info);
	stepscope_memory_alloc(&dummy, 4096, STEPSCOPE_MEMORY_ACTIVATION, STEPSCOPE_DEVICE_CPU);
	stepscope_op_end();
	stepscope_range_switch_name(range_name);
	STEPSCOPE_RANGE_PUSH("site");
	stepscope_range_pop();
	stepscope_memory_free(&dummy, STEPSCOPE_DEVICE_CPU);
	stepscope_range_pop();
	stepscope_micro_batch_end();
	stepscope_phase_end();
	stepscope_step_tokens(100);
	stepscope_step_samples(2);
	stepscope_value_name(loss_name, 1.0 / (double)(number + 1));
	stepscope_mark("mark");
	stepscope_step_end();
}

static void warm_up(void)
{
	range_name = stepscope_name(STEPSCOPE_KIND_RANGE, "range");
	op_name = stepscope_name(STEPSCOPE_KIND_OP, "op");
	loss_name = stepscope_name(STEPSCOPE_KIND_METRIC, "loss");
	step(0);
	step(1);                     /* 64 events are less than three steps */
	for (int i = 0; i < 40; i++) /* the drainer gives pages to the pool by and by */
		stepscope_flush();
}

static long minor_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

static void victim_trains(int argc, char **argv)
{
	struct rusage before, after;

	warm_up();
	(void)minor_faults();
	getrusage(RUSAGE_THREAD, &before);
	uint64_t allocations_before = allocations, locks_before = locks;
	long faults = minor_faults();
	for (int64_t n = 2; n < ROUNDS; n++) {
		step(n);
		for (volatile int i = 0; i < 2000; i++) /* at 2 M events/s, and the pool never runs dry */
			;
	}
	harness.counters[2] = (uint64_t)(minor_faults() - faults);
	harness.counters[0] = allocations - allocations_before;
	harness.counters[1] = locks - locks_before;
	getrusage(RUSAGE_THREAD, &after);
	harness.counters[3] = (uint64_t)(after.ru_nvcsw - before.ru_nvcsw); /* waited for something */
	harness.counters[4] = 1;
}

static void check_recorded(void)
{
	struct recording *recording = recording_read(harness.directory);

	recording_check_whole(recording, false);
	CHECK_EQUAL(recording_sum(recording, STEPSCOPE_EVENT_ALLOC) + recording_drops(recording, STEPSCOPE_EVENT_ALLOC),
	            ROUNDS);
	CHECK(recording_sum(recording, STEPSCOPE_EVENT_ALLOC) > ROUNDS / 2);
	recording_free(recording);
}

static void training_threads_do_not_allocate_lock_or_fault(void)
{
	if (IS_SANITIZED)
		harness_skip("a sanitizer's own allocations would be counted");
	harness.options = "keep_size=0,with=shapes:memory";
	CHECK_EQUAL(harness_run("trains", NULL), 0);
	CHECK_EQUAL(harness.counters[4], 1);
	CHECK_EQUAL(harness.counters[0], 0);
	CHECK_EQUAL(harness.counters[1], 0);
	CHECK_EQUAL(harness.counters[2], 0);
	CHECK_EQUAL(harness.counters[3], 0);
	check_recorded();
}

/* ---- system calls: each one of the thread becomes a signal and is counted instead of made ------------------------------ */

static void on_system_call(int number, siginfo_t *info, void *context)
{
	bool is_of_step = info->si_syscall == SYS_clock_gettime || info->si_syscall == SYS_getrusage ||
	                  info->si_syscall == SYS_pread64;

	harness.counters[is_of_step ? 14 : 10]++;
	harness.counters[11] = (uint64_t)info->si_syscall;
	(void)number;
	(void)context;
}

static void trap_system_calls(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
	struct sigaction action = {.sa_sigaction = on_system_call, .sa_flags = SA_SIGINFO};

	sigaction(SIGSYS, &action, NULL);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		harness.counters[13] = 1; /* not allowed here */
}

static void *train_without_calls(void *argument)
{
	warm_up();
	trap_system_calls();
	for (int64_t n = 2; n < ROUNDS; n++) {
		step(n);
		for (volatile int i = 0; i < 2000; i++)
			;
	}
	__atomic_store_n(&harness.counters[12], 1, __ATOMIC_RELEASE);
	for (;;) /* this thread cannot even end; the process does it */
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return argument;
}

static void victim_calls(int argc, char **argv)
{
	pthread_t thread;

	pthread_create(&thread, NULL, train_without_calls, NULL);
	while (!__atomic_load_n(&harness.counters[12], __ATOMIC_ACQUIRE))
		usleep(1000);
}

static void training_threads_make_no_system_calls(void)
{
	if (IS_SANITIZED)
		harness_skip("a sanitizer makes system calls of its own");
	harness.options = "keep_size=0,with=shapes:memory";
	CHECK_EQUAL(harness_run("calls", NULL), 0);
	if (harness.counters[13])
		harness_skip("seccomp is not allowed here");
	if (harness.counters[10])
		harness_fail(__FILE__, __LINE__, "%llu system calls, the last one number %llu",
		             (unsigned long long)harness.counters[10], (unsigned long long)harness.counters[11]);
	/* a step is asked for its CPU time when the one before was long, as one in which the thread had no processor;
	 * readings of what the thread has used lie 200 times their cost apart, and one has 5 of these calls at most */
	CHECK(harness.counters[14] < ROUNDS / 10);
	check_recorded();
}

/* ---- instructions: counted one by one ---------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define PAIR_INSTRUCTIONS                                                                                              \
	70 /* measured 67 with the loop: two calls through the PLT, two readings of the clock, two stores. A busy machine adds 1.4: a TIME event */
#else
#define PAIR_INSTRUCTIONS 100
#endif

static void victim_pairs(int argc, char **argv)
{
	warm_up();
	steps_begin();
	stepscope_range_push_name(range_name);
	stepscope_range_pop();
	for (int window = 0; window < STEPS_WINDOWS; window++) {
		STEPS_STOP();
		for (int i = 0; i < STEPS_CALLS; i++) {
			stepscope_range_push_name(range_name);
			stepscope_range_pop();
		}
		STEPS_STOP();
	}
	steps_end();
}

static void a_pair_takes_few_instructions(void)
{
	steps_need_optimized();
	struct steps steps = steps_count(harness_start("pairs", NULL));
	printf("# %.2f instructions for a begin and an end\n", (double)steps.count / STEPS_CALLS);
	CHECK(steps.count > 20 * STEPS_CALLS && steps.count <= STEPS_CALLS * PAIR_INSTRUCTIONS);
}

HARNESS_MAIN(LIST(VICTIM(trains), VICTIM(calls), VICTIM(pairs)),
             LIST(TEST(training_threads_do_not_allocate_lock_or_fault), TEST(training_threads_make_no_system_calls),
                  TEST(a_pair_takes_few_instructions)))
