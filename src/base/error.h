/* SPDX-License-Identifier: Apache-2.0
 *
 * error.h: how a function reports a failure.
 *
 * A function that can fail returns enum status and takes a `struct error *err` as its last argument. On success err is
 * untouched. On failure, the lowest level fills it once ("cannot read 'a.ssr': Permission denied"). Every caller passes
 * it on, and commands/main.c prints it. Messages: lower case, no full stop, the subject in quotes, the next step in
 * `hint` if it is known. The struct owns its text; nothing to release.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdarg.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

/* code, exit status of the program, meaning */
#define STATUS_LIST(X)                                                                                                 \
	X(STATUS_OK, 0, "ok")                                                                                          \
	X(STATUS_LIMIT, 1, "a limit, --fail-on or --strict is broken")                                                 \
	X(STATUS_USAGE, 2, "the command line is wrong")                                                                \
	X(STATUS_INPUT, 3, "the input is missing or unusable")                                                         \
	X(STATUS_ENVIRONMENT, 4, "the machine lacks something that is needed")                                         \
	X(STATUS_INCONCLUSIVE, 5, "no verdict under a limit")                                                          \
	X(STATUS_NO_MEMORY, 4, "out of memory")                                                                        \
	X(STATUS_IO, 4, "reading or writing failed")

enum status {
#define X(code, exit_status, text) code,
	STATUS_LIST(X)
#undef X
};

struct error {
	enum status status;
	char text[1024];
	char hint[512]; /* "" if there is no advice */
};

/* Fills err (may be NULL) and returns `status`, so that a caller can write `return error_set(err, STATUS_IO, ...)`. */
enum status error_set(struct error *err, enum status status, const char *format, ...) PRINTF_LIKE(3, 4);

/* Does the same, and appends ": " and the text of errno value `number`. */
enum status error_errno(struct error *err, enum status status, int number, const char *format, ...) PRINTF_LIKE(4, 5);

/* Adds advice to an error that was set. */
void error_hint(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* Returns the exit status of the program for `status`. */
int status_exit(enum status status);

#endif
