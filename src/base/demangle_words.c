/* SPDX-License-Identifier: Apache-2.0
 *
 * demangle_words.c: demangles names of C++ within other text: sentences, stacks, cells of tables. See demangle.h.
 */
#include "base/buffer.h"
#include "base/demangle.h"

#include <string.h>

/* Characters of a mangled name. */
static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$@";

static void add_word(struct demangler *demangler, struct buffer *out, const char *word, size_t length)
{
	char name[DEMANGLE_NAME_MAX + 1];
	const char *text = NULL;
	size_t named = length;
	while (named && word[named - 1] == '.') /* a full stop belongs to the sentence */
		named--;
	if (named <= DEMANGLE_NAME_MAX && strncmp(word, "_Z", 2) == 0) {
		memcpy(name, word, named);
		name[named] = '\0';
		text = demangler_text(demangler, name);
	}
	if (text)
		buffer_add_text(out, text);
	else
		buffer_add(out, word, named);
	buffer_add(out, word + named, length - named);
}

void demangler_words(struct demangler *demangler, struct buffer *out, const char *text)
{
	buffer_add_text(out, "");
	while (*text) {
		size_t length = strspn(text, letters), rest;
		if (length)
			add_word(demangler, out, text, length);
		rest = strcspn(text + length, letters);
		buffer_add(out, text + length, rest);
		text += length + rest;
	}
}
