/* SPDX-License-Identifier: Apache-2.0 */
/* Forks the ranks, passes signals on, and tells the living when one of them is gone. Computes nothing. */
#include "rank_group_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long the others may take to end after one has failed. */
#define GRACE_S 10

static void launcher_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
}

static int environment_set(const struct ranks *ranks)
{
	const struct {
		const char *name;
		int value;
	} variables[] = {
		{"RANK", ranks->rank},
		{"LOCAL_RANK", ranks->rank},
		{"WORLD_SIZE", ranks->size},
		{"LOCAL_WORLD_SIZE", ranks->size},
	};
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		char value[16];
		snprintf(value, sizeof(value), "%d", variables[i].value);
		if (setenv(variables[i].name, value, 1) != 0)
			return -1;
	}
	return 0;
}

/* In the child. The launcher may have died before prctl() took effect, so its id is looked at afterwards. */
static int child_prepare(struct ranks *ranks, int rank, pid_t launcher, struct failure *failure)
{
	sigset_t set;
	launcher_signals(&set);
	free(ranks->children);
	ranks->children = NULL;
	ranks->rank = rank;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != launcher)
		return failure_set(failure, "the launcher is gone");
	if (sigprocmask(SIG_UNBLOCK, &set, NULL) != 0 || environment_set(ranks) != 0)
		return failure_set(failure, "cannot prepare rank %d: %s", rank, strerror(errno));
	return RANKS_RANK;
}

static void children_kill(const struct ranks *ranks, int signal)
{
	for (int rank = 0; rank < ranks->size; rank++)
		if (ranks->children[rank] > 0)
			kill(ranks->children[rank], signal);
}

static int shared_init(struct ranks *ranks, struct failure *failure)
{
	ranks->descriptor = memfd_create("gpt ranks", MFD_CLOEXEC);
	if (ranks->descriptor < 0 || ftruncate(ranks->descriptor, RANKS_HEADER_BYTES) != 0)
		return failure_set(failure, "cannot make shared memory: %s", strerror(errno));
	void *address = mmap(NULL, RANKS_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ranks->descriptor, 0);
	if (address == MAP_FAILED)
		return failure_set(failure, "cannot map shared memory: %s", strerror(errno));
	ranks->shared = address;
	ranks->mapped_bytes = RANKS_HEADER_BYTES;
	return 0;
}

int ranks_start(struct ranks *ranks, int size, struct failure *failure)
{
	*ranks = (struct ranks){.size = size, .descriptor = -1};
	if (size == 1)
		return RANKS_RANK;
	if (shared_init(ranks, failure) != 0)
		return -1;
	ranks->children = calloc((size_t)size, sizeof(*ranks->children));
	if (ranks->children == NULL)
		return failure_memory(failure, (size_t)size * sizeof(*ranks->children));
	sigset_t set;
	launcher_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pid_t launcher = getpid();
	for (int rank = 0; rank < size; rank++) {
		pid_t child = fork();
		if (child == 0)
			return child_prepare(ranks, rank, launcher, failure);
		if (child < 0) {
			failure_set(failure, "cannot fork rank %d: %s", rank, strerror(errno));
			children_kill(ranks, SIGKILL);
			return -1;
		}
		ranks->children[rank] = child;
	}
	return RANKS_LAUNCHER;
}

static bool any_alive(const struct ranks *ranks)
{
	for (int rank = 0; rank < ranks->size; rank++)
		if (ranks->children[rank] > 0)
			return true;
	return false;
}

/* Notes how a rank ended; the first that did not succeed is what we report. */
static void rank_ended(struct ranks *ranks, int rank, int status, struct failure *failure)
{
	ranks->children[rank] = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	if (WIFSIGNALED(status))
		failure_set(failure, "rank %d was killed by signal %d (%s)", rank, WTERMSIG(status),
		            strsignal(WTERMSIG(status)));
	else
		failure_set(failure, "rank %d ended with exit code %d", rank, WEXITSTATUS(status));
	uint32_t none = 0;
	atomic_compare_exchange_strong(&ranks->shared->failed, &none, (uint32_t)rank + 1);
	ranks_wake(ranks->shared);
}

static void reap(struct ranks *ranks, struct failure *failure)
{
	for (int rank = 0; rank < ranks->size; rank++) {
		int status;
		if (ranks->children[rank] > 0 && waitpid(ranks->children[rank], &status, WNOHANG) > 0)
			rank_ended(ranks, rank, status, failure);
	}
}

int ranks_wait(struct ranks *ranks, struct failure *failure)
{
	sigset_t set;
	time_t deadline = 0;
	launcher_signals(&set);
	for (;;) {
		reap(ranks, failure);
		if (!any_alive(ranks))
			break;
		if (atomic_load(&ranks->shared->failed) != 0 && deadline == 0)
			deadline = time(NULL) + GRACE_S;
		if (deadline != 0 && time(NULL) >= deadline)
			children_kill(ranks, SIGKILL);
		const struct timespec second = {.tv_sec = 1};
		int signal = sigtimedwait(&set, NULL, &second);
		if (signal == SIGINT || signal == SIGTERM)
			children_kill(ranks, signal);
	}
	return failure->text[0] == '\0' ? 0 : -1;
}

void ranks_release(struct ranks *ranks)
{
	if (ranks->shared != NULL)
		munmap(ranks->shared, ranks->mapped_bytes);
	if (ranks->descriptor >= 0)
		close(ranks->descriptor);
	free(ranks->children);
	*ranks = (struct ranks){.size = 1, .descriptor = -1};
}
