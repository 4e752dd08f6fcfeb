/* SPDX-License-Identifier: Apache-2.0
 *
 * run_signals.h: signals while the program runs. Signals from the terminal reach the program directly (same process
 * group). Signals sent to us alone are passed on. So Ctrl-C ends the program, not its recording.
 */
#ifndef RUN_RUN_SIGNALS_H
#define RUN_RUN_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct run_signals {
	int fd; /* readable when a signal has arrived; -1: signalfd failed */
	sigset_t original;
	struct sigaction original_child;
};

/* Blocks and collects signals from this call on; call it before the program is started. */
void run_signals_init(struct run_signals *signals);

/* Restores everything, in the child between fork and exec. */
void run_signals_restore(const struct run_signals *signals);

/* Takes the signals that have arrived and passes them on to the program (pid 0: it has ended). Returns true if one of
 * them asked for the end. */
bool run_signals_pass(struct run_signals *signals, pid_t pid);

/* Writes "SIGKILL", or "signal 35" if the signal has no name. Returns `out`. */
#define RUN_SIGNAL_BYTES 32
const char *run_signal_name(char *out, int number);

#endif
