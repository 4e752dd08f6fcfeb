/* SPDX-License-Identifier: Apache-2.0
 *
 * demangle.h: demangles names of C++: "_ZN2at3addEi" is "at::add(int)". Names are untrusted and the library has no
 * limits, so a child process demangles them in bounded time and memory. If the child ends or is killed, names stay as
 * they are.
 *
 *     struct demangler demangler = DEMANGLER_NONE;
 *     const char *text = demangler_text(&demangler, name); // NULL: show the name
 *     demangler_release(&demangler);
 *
 * The child starts at the first mangled name. It ends with demangler_release() or with our process.
 */
#ifndef BASE_DEMANGLE_H
#define BASE_DEMANGLE_H

#include <stdint.h>
#include <sys/types.h>

#define DEMANGLE_NAME_MAX 16384u /* bytes of a name; longer ones stay as they are */
#define DEMANGLE_TEXT_MAX 65536u /* bytes of a demangled name */
#define DEMANGLE_DEATHS_MAX 4u   /* after that number of dead children, all other names stay as they are */

struct demangler {
	pid_t child; /* 0: not running */
	int socket;
	char *killers[DEMANGLE_DEATHS_MAX]; /* names on which a child died; they are not tried again */
	uint32_t deaths;
	char *text;
};

#define DEMANGLER_NONE ((struct demangler){0})

struct buffer;

/* Appends the text, with each mangled name in it demangled. */
void demangler_words(struct demangler *demangler, struct buffer *out, const char *text);
/* Valid until the next call. NULL: the name is not mangled, or cannot be demangled. */
const char *demangler_text(struct demangler *demangler, const char *name);
void demangler_release(struct demangler *demangler);

#endif
