/* SPDX-License-Identifier: Apache-2.0
 *
 * demangle.h: names of C++ as people write them: "_ZN2at3addEi" is "at::add(int)". For names that nobody trusts: what turns them has no
 * limits of its own, so a child process does it, in bounded time and memory. Where that ends, or is killed, names stay as they are.
 *
 *     struct demangler demangler = DEMANGLER_NONE;
 *     const char *text = demangler_text(&demangler, name); // NULL: show the name
 *     demangler_release(&demangler);
 *
 * The child is made when the first such name comes, and ends with demangler_release() or with us.
 */
#ifndef BASE_DEMANGLE_H
#define BASE_DEMANGLE_H

#include <stdint.h>
#include <sys/types.h>

#define DEMANGLE_NAME_MAX 16384u /* bytes of a name: longer ones stay as they are */
#define DEMANGLE_TEXT_MAX 65536u /* bytes of what they become */
#define DEMANGLE_DEATHS_MAX 4u   /* children that die: then all other names stay as they are, too */

struct demangler {
	pid_t child; /* 0: none */
	int socket;
	char *killers[DEMANGLE_DEATHS_MAX]; /* names that children died of; they are not asked for again */
	uint32_t deaths;
	char *text;
};

#define DEMANGLER_NONE ((struct demangler){0})

struct buffer;

/* Appends the text, with each mangled name in it as people write it. */
void demangler_words(struct demangler *demangler, struct buffer *out, const char *text);
/* Valid until the next call. NULL: it is no mangled name, or nobody can say what it means. */
const char *demangler_text(struct demangler *demangler, const char *name);
void demangler_release(struct demangler *demangler);

#endif
