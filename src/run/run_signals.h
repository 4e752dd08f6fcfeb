/* SPDX-License-Identifier: Apache-2.0
 *
 * run_signals.h: signals while the program runs. What a terminal sends reaches the program by itself (same process group);
 * what somebody sends to us alone is passed on. So Ctrl-C ends the program, not its recording.
 */
#ifndef RUN_RUN_SIGNALS_H
#define RUN_RUN_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct run_signals {
	int fd; /* readable when one has arrived; -1: none could be made */
	sigset_t original;
	struct sigaction original_child;
};

/* Blocks and collects signals from here on; before the program is started. */
void run_signals_init(struct run_signals *signals);

/* In the child between fork and exec: everything as it was. */
void run_signals_restore(const struct run_signals *signals);

/* Takes what has arrived and passes it on to the program (pid 0: it has ended). True when one of them asked for the end. */
bool run_signals_pass(struct run_signals *signals, pid_t pid);

/* "SIGKILL"; "signal 35" when it has no name. Returns `out`. */
#define RUN_SIGNAL_BYTES 32
const char *run_signal_name(char *out, int number);

#endif
