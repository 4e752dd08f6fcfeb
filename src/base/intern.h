/* SPDX-License-Identifier: Apache-2.0
 *
 * intern.h: maps strings to numbers. Equal strings get equal numbers, counted from 1; 0 is "no string" and reads as "".
 * It owns copies of the strings. Strings may contain NUL (length counts); returned texts are NUL-terminated.
 */
#ifndef BASE_INTERN_H
#define BASE_INTERN_H

#include "base/arena.h"

#include <stddef.h>
#include <stdint.h>

struct intern_entry {
	const char *text;
	uint32_t length;
	uint32_t hash;
};

struct intern {
	struct arena arena;
	struct intern_entry *entries; /* [0] is "" */
	uint32_t count;               /* entries in use, the empty one included */
	uint32_t capacity;
	uint32_t *slots; /* open addressing, a power of two, at most half full */
	uint32_t slot_count;
};

void intern_init(struct intern *intern);
void intern_release(struct intern *intern);
uint32_t intern_add(struct intern *intern, const char *text);
uint32_t intern_add_n(struct intern *intern, const char *text, size_t length);
/* Returns 0 if the text was never added. */
uint32_t intern_find(const struct intern *intern, const char *text);
/* Never returns NULL: "" for 0 and for unknown numbers. */
const char *intern_text(const struct intern *intern, uint32_t number);
uint32_t intern_length(const struct intern *intern, uint32_t number);

#endif
