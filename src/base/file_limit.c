/* SPDX-License-Identifier: Apache-2.0
 *
 * file_limit.c: see file_limit.h.
 */
#include "base/file_limit.h"

#include <errno.h>
#include <time.h>

static bool is_pending(void)
{
	sigset_t pending;
	return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

void file_limit_enter(struct file_limit *limit)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	limit->was_pending = is_pending();
	pthread_sigmask(SIG_BLOCK, &set, &limit->before);
}

void file_limit_leave(struct file_limit *limit)
{
	const struct timespec none = {0};
	int error = errno;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	if (!limit->was_pending && is_pending())
		sigtimedwait(&set, NULL, &none);
	pthread_sigmask(SIG_SETMASK, &limit->before, NULL);
	errno = error;
}
