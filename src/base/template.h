/* SPDX-License-Identifier: Apache-2.0
 *
 * template.h: sentences with gaps. A sentence is in the source as people read it, apart from the code that fills it.
 * Templates are part of the program, never user input: an unknown gap is an assert.
 *
 *     {name}            the value
 *     {name:thing}      a count and its word: "1 step", "2 steps", "2 processes"
 *     {name|instead}    `instead` if the value is missing
 *     [... {name} ...]  left out if a value inside is missing
 *     [... {?name} ...] left out also if the value is 0
 *
 *     const struct template_text texts[] = {{"who", "a step"}, {"new", "12 ms"}, {"base", "10 ms"}, {"but", NULL}};
 *     template_write(arena, "{who} takes {new} instead of {base}[; but {but}]", texts, 4);
 *
 * Brackets may be nested. A missing value outside brackets becomes "not measured".
 */
#ifndef BASE_TEMPLATE_H
#define BASE_TEMPLATE_H

#include "base/arena.h"
#include "base/buffer.h"

struct template_values {
	/* Appends the value of `name` and returns true, or returns false if it is missing. *number is NAN before the
	 * call; sets it if the value is a number. */
	bool (*add)(struct buffer *out, const void *context, const char *name, double *number);
	const void *context;
	bool is_ascii; /* "±" in a template becomes "+-" */
};

/* Appends the template with its gaps filled. */
void template_add(struct buffer *out, const char *template, const struct template_values *values);

struct template_text {
	const char *name, *text; /* text NULL: missing */
};

/* Returns the template with its gaps filled from an array of texts, in the arena. */
const char *template_write(struct arena *arena, const char *template, const struct template_text *texts, size_t count);

#endif
