/* SPDX-License-Identifier: Apache-2.0
 *
 * run_child.c: calls only functions that are safe between fork and exec. We have one thread then: the recorder starts
 * later.
 */
#include "run/run_child.h"

#include "base/memory.h"
#include "base/time_now.h"
#include "run/run_directory.h"
#include "run/run_python.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OWN_VARIABLES 7

extern char **environ;

/* ---- environment ---- */

/* Returns true for variables that the program gets from us. */
static bool is_replaced(const char *entry, bool has_python)
{
	static const char *const names[] = {"STEPSCOPE=",
	                                    "STEPSCOPE_RUN_DIR=",
	                                    "STEPSCOPE_IDENTITY=",
	                                    "STEPSCOPE_OPTIONS=",
	                                    "STEPSCOPE_LIBRARY=",
	                                    "STEPSCOPE_PROGRAM=",
	                                    NULL};

	for (int i = 0; names[i]; i++) {
		if (!strncmp(entry, names[i], strlen(names[i])))
			return true;
	}
	return run_options_is_variable(entry) || (has_python && !strncmp(entry, "PYTHONPATH=", 11));
}

static char *make_variable(const char *name, const char *value)
{
	size_t bytes = strlen(name) + strlen(value) + 2;
	char *entry = memory_resize(NULL, bytes, 1);

	snprintf(entry, bytes, "%s=%s", name, value);
	return entry;
}

/* Puts our folder first, so that Python finds our sitecustomize.py. That file then loads the one that it hides. */
static char *make_python_path(const char *startup)
{
	const char *old = getenv("PYTHONPATH");
	size_t bytes = strlen(startup) + (old ? strlen(old) : 0) + 16;
	char *entry = memory_resize(NULL, bytes, 1);

	snprintf(entry, bytes, "PYTHONPATH=%s%s%s", startup, old && old[0] ? ":" : "", old ? old : "");
	return entry;
}

char **run_environment_new(const struct run_directory *directory, const struct run_settings *settings)
{
	struct run_python python;
	bool has_python = directory && run_python_find(&python);
	size_t count = 0, n = 0;
	char **environment;

	while (environ[count])
		count++;
	environment = memory_resize(NULL, count + OWN_VARIABLES + 1, sizeof(*environment));
	if (directory) {
		environment[n++] = make_variable("STEPSCOPE", "1");
		environment[n++] = make_variable("STEPSCOPE_RUN_DIR", directory->path);
		environment[n++] = make_variable("STEPSCOPE_IDENTITY", directory->run_id);
		if (settings->list[0])
			environment[n++] = make_variable("STEPSCOPE_OPTIONS", settings->list);
	}
	if (!directory) /* a program that calls stepscope itself is not recorded either */
		environment[n++] = make_variable("STEPSCOPE", "0");
	if (has_python) {
		environment[n++] = make_variable("STEPSCOPE_LIBRARY", python.library);
		environment[n++] = make_variable("STEPSCOPE_PROGRAM", python.program);
		environment[n++] = make_python_path(python.startup);
	}
	for (size_t i = 0; i < count; i++) {
		if (!is_replaced(environ[i], has_python)) {
			size_t bytes = strlen(environ[i]) + 1;

			environment[n++] = memcpy(memory_resize(NULL, bytes, 1), environ[i], bytes);
		}
	}
	environment[n] = NULL;
	return environment;
}

void run_environment_free(char **environment)
{
	for (size_t i = 0; environment && environment[i]; i++)
		free(environment[i]);
	free(environment);
}

/* ---- start ---- */

static _Noreturn void become(char *const *argv, char *const *environment, const struct run_signals *signals, int report)
{
	int problem;

	run_signals_restore(signals);
	execvpe(argv[0], argv, environment);
	problem = errno;
	while (write(report, &problem, sizeof(problem)) < 0 && errno == EINTR)
		;
	_exit(127);
}

void run_child_start(struct run_child *child, char *const *argv, char *const *environment,
                     const struct run_signals *signals)
{
	int report[2];
	ssize_t got;

	*child = (struct run_child){.start_ns = time_now_ns(CLOCK_MONOTONIC)};
	if (pipe2(report, O_CLOEXEC) != 0) {
		child->exec_errno = errno;
		return;
	}
	child->pid = fork();
	if (child->pid == 0)
		become(argv, environment, signals, report[1]);
	if (child->pid < 0)
		child->exec_errno = errno;
	close(report[1]);
	/* at exec the pipe closes; if exec fails, the pipe brings the reason */
	do {
		got = child->pid > 0 ? read(report[0], &child->exec_errno, sizeof(child->exec_errno)) : 0;
	} while (got < 0 && errno == EINTR);
	close(report[0]);
	child->is_running = child->pid > 0 && !child->exec_errno;
	if (child->pid > 0 && child->exec_errno)
		waitpid(child->pid, NULL, 0);
	if (!child->is_running)
		child->pid = 0;
}

/* ---- end ---- */

static int64_t time_ns(const struct timeval *time)
{
	return (int64_t)time->tv_sec * 1000000000 + (int64_t)time->tv_usec * 1000;
}

static void complete(struct run_child *child, int wait_status, const struct rusage *usage, const struct process_io *io)
{
	child->is_running = false;
	child->end_ns = time_now_ns(CLOCK_MONOTONIC);
	child->wait_status = wait_status;
	child->user_ns = time_ns(&usage->ru_utime);
	child->system_ns = time_ns(&usage->ru_stime);
	child->max_rss_bytes = (int64_t)usage->ru_maxrss * 1024;
	child->page_faults = usage->ru_majflt;
	child->switches = usage->ru_nvcsw;
	child->preemptions = usage->ru_nivcsw;
	if (io->is_known)
		child->io = *io;
}

bool run_child_reap(struct run_child *child, const struct process_view *view, struct run_reaped *reaped)
{
	siginfo_t info = {.si_pid = 0};
	struct process_facts facts;
	struct process_io io;
	struct rusage usage;
	pid_t in_proc;

	/* look first, then wait: /proc/PID exists until the process was waited for */
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || !info.si_pid)
		return false;
	in_proc = process_in_proc(view, info.si_pid);
	process_read_io(&io, in_proc);
	*reaped = (struct run_reaped){.pid = info.si_pid};
	if (process_read(&facts, in_proc))
		reaped->start_time = facts.start_time;
	if (wait4(info.si_pid, &reaped->wait_status, WNOHANG, &usage) != info.si_pid)
		return false;
	if (reaped->pid == child->pid && child->is_running)
		complete(child, reaped->wait_status, &usage, &io);
	return true;
}

int run_exit_status(const struct run_child *child)
{
	if (child->exec_errno)
		return child->exec_errno == ENOENT || child->exec_errno == ENOTDIR ? 127 : 126;
	return WIFSIGNALED(child->wait_status) ? 128 + WTERMSIG(child->wait_status) : WEXITSTATUS(child->wait_status);
}
