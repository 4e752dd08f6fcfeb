/* SPDX-License-Identifier: Apache-2.0
 *
 * yaml_flat.h: a YAML file as a list of (dotted key, value, line): `a: {b: [x, y]}` gives a.b.0 = x, a.b.1 = y. Scalars
 * stay text as written. An empty list or block is an empty value. An alias (*name) has a position but no value; code
 * that needs the value refuses it. Keys that are not scalars are refused. The limits are 10,000 entries and 32 levels.
 * libyaml does the parsing.
 */
#ifndef BASE_YAML_FLAT_H
#define BASE_YAML_FLAT_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>

struct yaml_entry {
	const char *key;
	const char *value;
	int line;      /* from 1 */
	int document;  /* from 1 */
	bool is_alias; /* an alias: the value is in another place, "" here */
};

struct yaml_flat {
	struct arena arena;
	struct yaml_entry *entries;
	int count;
};

/* STATUS_USAGE: the text is wrong (it is a file of settings written for stepscope); STATUS_INPUT: the file cannot be
 * read. */
enum status yaml_flat_read(struct yaml_flat *yaml, const char *path, struct error *err) MUST_CHECK;
enum status yaml_flat_parse(struct yaml_flat *yaml, const char *text, size_t length, const char *what,
                            struct error *err) MUST_CHECK;
void yaml_flat_release(struct yaml_flat *yaml);

#endif
