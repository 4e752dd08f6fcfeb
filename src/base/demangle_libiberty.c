/* SPDX-License-Identifier: Apache-2.0
 *
 * demangle_libiberty.c: see demangle.h. libiberty's limit on recursion refuses every name of more than 1024 bytes.
 * Names of template kernels are longer, so the limit is off. Instead, a name is limited by its length, the child's
 * stack and CPU time, and the bytes of its text. A few substitutions in a row can each double the text.
 */
#include "base/demangle.h"

#include <errno.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME_MICROSECONDS 200000       /* of CPU time for one name; real names take about 20 */
#define STACK_BYTES ((rlim_t)64 << 20) /* the deepest name of DEMANGLE_NAME_MAX takes about 15 MB */

/* ---- in the child ---- */

struct answer {
	jmp_buf too_long;
	size_t length;
	char text[1 + DEMANGLE_TEXT_MAX]; /* text, after a byte that says whether there is one */
};

static void libiberty_add_piece(const char *piece, size_t length, void *context)
{
	struct answer *answer = context;
	if (length >= sizeof answer->text - answer->length)
		longjmp(answer->too_long, 1); /* libiberty holds no memory that would leak */
	memcpy(answer->text + answer->length, piece, length);
	answer->length += length;
}

static void turn(struct answer *answer, const char *name)
{
	const struct itimerval some = {.it_value = {.tv_usec = NAME_MICROSECONDS}}, none = {0};
	answer->length = 1;
	answer->text[0] = false;
	setitimer(ITIMER_PROF, &some, NULL);
	if (setjmp(answer->too_long) == 0)
		answer->text[0] = (char)cplus_demangle_v3_callback(
			name, DMGL_PARAMS | DMGL_ANSI | DMGL_NO_RECURSE_LIMIT, libiberty_add_piece, answer);
	setitimer(ITIMER_PROF, &none, NULL);
}

/* The child may come from a process with several threads, so nothing here takes a lock. */
static void limit_child(void)
{
	const struct rlimit no_core = {0, 0};
	struct rlimit stack;
	sigset_t none;
	sigemptyset(&none);
	signal(SIGPROF, SIG_DFL);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setrlimit(RLIMIT_CORE, &no_core);
	if (getrlimit(RLIMIT_STACK, &stack) == 0) {
		stack.rlim_cur = stack.rlim_max < STACK_BYTES ? stack.rlim_max : STACK_BYTES;
		setrlimit(RLIMIT_STACK, &stack);
	}
}

static _Noreturn void serve(int socket)
{
	struct answer answer;
	char name[DEMANGLE_NAME_MAX + 1];
	ssize_t length;
	limit_child();
	while ((length = recv(socket, name, DEMANGLE_NAME_MAX, 0)) > 0) {
		name[length] = '\0';
		turn(&answer, name);
		if (send(socket, answer.text, answer.text[0] ? answer.length : 1, MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}

/* ---- in the parent ---- */

static bool is_mangled(const char *name, size_t length)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$@";
	return strncmp(name, "_Z", 2) == 0 && length > 2 && length <= DEMANGLE_NAME_MAX &&
	       strspn(name, letters) == length;
}

static bool start(struct demangler *demangler)
{
	int pair[2];
	if (demangler->child)
		return true;
	if (demangler->deaths >= DEMANGLE_DEATHS_MAX ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return false;
	pid_t child = fork();
	if (child == 0) {
		close(pair[0]);
		serve(pair[1]);
	}
	close(pair[1]);
	if (child < 0) {
		close(pair[0]);
		demangler->deaths = DEMANGLE_DEATHS_MAX;
		return false;
	}
	demangler->child = child;
	demangler->socket = pair[0];
	return true;
}

/* The child ends when its socket closes. */
static void stop(struct demangler *demangler)
{
	if (!demangler->child)
		return;
	close(demangler->socket);
	while (waitpid(demangler->child, NULL, 0) < 0 && errno == EINTR)
		;
	demangler->child = 0;
}

static ssize_t libiberty_ask(const struct demangler *demangler, const char *name, size_t length)
{
	ssize_t n;
	do
		n = send(demangler->socket, name, length, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	while (n >= 0) {
		n = recv(demangler->socket, demangler->text, 1 + DEMANGLE_TEXT_MAX, 0);
		if (n >= 0 || errno != EINTR)
			break;
		n = 0;
	}
	return n;
}

static bool is_killer(const struct demangler *demangler, const char *name)
{
	bool is_found = false;
	for (uint32_t i = 0; i < DEMANGLE_DEATHS_MAX && demangler->killers[i] && !is_found; i++)
		is_found = strcmp(demangler->killers[i], name) == 0;
	return is_found;
}

const char *demangler_text(struct demangler *demangler, const char *name)
{
	size_t length = strlen(name);
	if (!is_mangled(name, length) || is_killer(demangler, name) || !start(demangler))
		return NULL;
	if (!demangler->text && !(demangler->text = malloc(2 + DEMANGLE_TEXT_MAX)))
		return NULL;
	ssize_t n = libiberty_ask(demangler, name, length);
	if (n <= 0) {
		stop(demangler);
		demangler->killers[demangler->deaths++] = strdup(name);
		return NULL;
	}
	demangler->text[n] = '\0';
	return demangler->text[0] && n > 1 ? demangler->text + 1 : NULL;
}

void demangler_release(struct demangler *demangler)
{
	stop(demangler);
	free(demangler->text);
	for (uint32_t i = 0; i < DEMANGLE_DEATHS_MAX; i++)
		free(demangler->killers[i]);
	*demangler = DEMANGLER_NONE;
}
