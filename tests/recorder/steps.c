/* SPDX-License-Identifier: Apache-2.0
 *
 * steps.c: see steps.h.
 */
#include "steps.h"

#include <sys/ptrace.h>
#include <sys/wait.h>

void steps_begin(void)
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

void steps_end(void)
{
	ptrace(PTRACE_DETACH, 0, NULL, NULL);
}

void steps_need_optimized(void)
{
	if (IS_SANITIZED)
		harness_skip("a sanitizer's instructions would be counted");
#ifndef __OPTIMIZE__
	harness_skip("not an optimized build");
#endif
}

/* Runs it to the next STEPS_STOP(), counting or not. */
/* A step ends with TRAP_TRACE, behind a system call with SI_USER; other signals are the victim's own. */
static uint64_t run_to_stop(pid_t pid, bool is_counting)
{
	uint64_t steps = 0;
	long signal = 0;
	int status;

	for (;;) {
		siginfo_t info;
		CHECK(ptrace(is_counting ? PTRACE_SINGLESTEP : PTRACE_CONT, pid, NULL, signal) == 0);
		CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
		CHECK(ptrace(PTRACE_GETSIGINFO, pid, NULL, &info) == 0);
		if (info.si_signo == SIGTRAP && (info.si_code == SI_KERNEL || info.si_code == SI_TKILL))
			return steps;
		signal = info.si_signo == SIGTRAP ? 0 : info.si_signo;
		steps += !signal;
	}
}

uint64_t steps_count(pid_t pid)
{
	uint64_t fewest = UINT64_MAX;
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)); /* at the first one */
	for (int window = 0; window < STEPS_WINDOWS; window++) {
		uint64_t steps = run_to_stop(pid, true);
		if (steps < fewest)
			fewest = steps;
		if (window + 1 < STEPS_WINDOWS)
			run_to_stop(pid, false);
	}
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	kill(pid, SIGKILL);
	harness_wait(pid);
	return fewest;
}
