/* SPDX-License-Identifier: Apache-2.0
 *
 * steps.c: see steps.h.
 */
#include "steps.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#define LINE_BYTES 64
#define LINES_MAX 256

struct code { /* of the library */
	uint64_t start, end;
	struct {
		uint64_t number;
		unsigned steps; /* in it */
	} lines[LINES_MAX];
	unsigned count;
};

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

static void find_code(pid_t pid, struct code *code)
{
	char path[40], text[600], rights[8];
	uint64_t start, end;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	FILE *file = fopen(path, "r");
	CHECK(file);
	while (fgets(text, sizeof(text), file))
		if (strstr(text, "/libstepscope.so") && sscanf(text, "%lx-%lx %7s", &start, &end, rights) == 3 &&
		    rights[2] == 'x')
			*code = (struct code){.start = start, .end = end};
	fclose(file);
	CHECK(code->end);
}

static void note_line(pid_t pid, struct code *code)
{
	struct user_regs_struct registers;
	struct iovec all = {&registers, sizeof(registers)};
	unsigned i = 0;
	CHECK(ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &all) == 0);
#ifdef __x86_64__
	uint64_t at = registers.rip;
#else
	uint64_t at = registers.pc;
#endif
	if (at < code->start || at >= code->end)
		return;
	while (i < code->count && code->lines[i].number != at / LINE_BYTES)
		i++;
	CHECK(i < LINES_MAX);
	code->lines[i].number = at / LINE_BYTES;
	code->lines[i].steps = i < code->count ? code->lines[i].steps + 1 : 1;
	code->count = i < code->count ? code->count : i + 1;
}

/* Not those of what is done now and then. */
static unsigned count_lines(const struct code *code)
{
	unsigned count = 0;
	for (unsigned i = 0; i < code->count; i++)
		count += code->lines[i].steps >= STEPS_CALLS;
	return count;
}

/* Runs it to the next STEPS_STOP(), counting unless `code` is NULL. A step ends with TRAP_TRACE, behind a system call with SI_USER; other signals
 * are the victim's own. */
static uint64_t run_to_stop(pid_t pid, struct code *code)
{
	uint64_t steps = 0;
	long signal = 0;
	int status;

	for (;;) {
		siginfo_t info;
		CHECK(ptrace(code ? PTRACE_SINGLESTEP : PTRACE_CONT, pid, NULL, signal) == 0);
		CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
		CHECK(ptrace(PTRACE_GETSIGINFO, pid, NULL, &info) == 0);
		if (info.si_signo == SIGTRAP && (info.si_code == SI_KERNEL || info.si_code == SI_TKILL))
			return steps;
		signal = info.si_signo == SIGTRAP ? 0 : info.si_signo;
		steps += !signal;
		if (code && !signal)
			note_line(pid, code);
	}
}

struct steps steps_count(pid_t pid)
{
	struct steps fewest = {.count = UINT64_MAX};
	struct code code = {0};
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)); /* at the first one */
	find_code(pid, &code);
	for (int window = 0; window < STEPS_WINDOWS; window++) {
		code.count = 0;
		uint64_t steps = run_to_stop(pid, &code);
		if (steps < fewest.count)
			fewest = (struct steps){steps, count_lines(&code)};
		if (window + 1 < STEPS_WINDOWS)
			run_to_stop(pid, NULL);
	}
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	kill(pid, SIGKILL);
	harness_wait(pid);
	return fewest;
}
