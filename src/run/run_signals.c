/* SPDX-License-Identifier: Apache-2.0
 *
 * run_signals.c: signals are blocked and read from a signalfd, so no code here runs in a handler.
 */
#include "run/run_signals.h"

#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int collected[] = {SIGCHLD, SIGINT,  SIGQUIT, SIGTERM,  SIGHUP, SIGUSR1,
                                SIGUSR2, SIGCONT, SIGTSTP, SIGWINCH, SIGPWR, SIGALRM};
#define COLLECTED_COUNT (sizeof(collected) / sizeof(collected[0]))

void run_signals_init(struct run_signals *signals)
{
	/* if SIGCHLD were ignored, there would be no status to wait for */
	const struct sigaction standard = {.sa_handler = SIG_DFL};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < COLLECTED_COUNT; i++)
		sigaddset(&set, collected[i]);
	/* STOPSIGNAL of an image may be a real-time signal */
	for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
		sigaddset(&set, number);
	sigprocmask(SIG_BLOCK, &set, &signals->original);
	sigaction(SIGCHLD, &standard, &signals->original_child);
	signals->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void run_signals_restore(const struct run_signals *signals)
{
	sigaction(SIGCHLD, &signals->original_child, NULL);
	sigprocmask(SIG_SETMASK, &signals->original, NULL);
}

/* Stops this process as the shell expects; the program got the same signal. In an orphaned group the kernel drops the
 * signal, as it should. */
static void stop_self(void)
{
	sigset_t stop, before;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Returns true if the signal was ignored before our start (nohup): the program inherits that. */
static bool is_ignored(int number)
{
	struct sigaction action;

	return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static bool asks_to_end(int number)
{
	return (number == SIGINT || number == SIGQUIT || number == SIGTERM || number == SIGHUP) && !is_ignored(number);
}

bool run_signals_pass(struct run_signals *signals, pid_t pid)
{
	struct signalfd_siginfo info;
	bool is_end = false;

	while (signals->fd >= 0 && read(signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int number = (int)info.ssi_signo;
		/* only we get an alarm set before our start, and the hang-up of a terminal whose session we lead */
		bool is_ours_alone = info.ssi_code <= 0 || number == SIGALRM || number == SIGHUP;

		if (number == SIGCHLD)
			continue;
		if (is_ours_alone && pid > 0 && info.ssi_pid != (uint32_t)pid)
			kill(pid, number);
		if (number == SIGTSTP)
			stop_self();
		is_end = is_end || asks_to_end(number);
	}
	return is_end;
}

const char *run_signal_name(char *out, int number)
{
	const char *known = sigabbrev_np(number);

	if (known)
		snprintf(out, RUN_SIGNAL_BYTES, "SIG%s", known);
	else
		snprintf(out, RUN_SIGNAL_BYTES, "signal %d", number);
	return out;
}
