/* SPDX-License-Identifier: Apache-2.0
 *
 * file_limit.h: a write beyond RLIMIT_FSIZE kills the process with SIGXFSZ. Our writes must not: they block the signal,
 * and discard a signal that they caused. Any thread may call these functions.
 *
 *     struct file_limit limit;
 *     file_limit_enter(&limit);
 *     ... writes, which fail with EFBIG at worst ...
 *     file_limit_leave(&limit);
 */
#ifndef BASE_FILE_LIMIT_H
#define BASE_FILE_LIMIT_H

#include <signal.h>
#include <stdbool.h>

struct file_limit {
	sigset_t before;
	bool was_pending;
};

void file_limit_enter(struct file_limit *limit);
void file_limit_leave(struct file_limit *limit); /* keeps errno */

#endif
