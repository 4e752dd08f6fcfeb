/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h: parses command lines. A command has one array of struct option. Parsing, --help and the check of the
 * manual pages use it.
 *
 *     static bool is_json;
 *     static const struct option options[] = {
 *             OPTION_FLAG("json", 0, &is_json, "print one JSON document"),
 *             OPTION_TEXT("table", 0, &table, "NAME", "print one table"),
 *             OPTION_END,
 *     };
 *
 * Accepted: --name value, --name=value, -x value, -xvalue, --flag, --no-flag, --flag=true, --flag=false, "--" ends
 * options, "-" is an operand. No abbreviations: an unknown name is refused with the nearest known one. Values are
 * borrowed from argv.
 */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum option_type {
	OPTION_TYPE_END,
	OPTION_TYPE_FLAG,   /* bool * */
	OPTION_TYPE_TEXT,   /* const char ** */
	OPTION_TYPE_INT,    /* int64_t * */
	OPTION_TYPE_DOUBLE, /* double * */
	OPTION_TYPE_BYTES,  /* int64_t *; accepts 64, 64k, 64M, 64MiB, 1.5G (powers of 1024) */
	OPTION_TYPE_LIST,   /* struct option_list *; may be repeated */
	OPTION_TYPE_GROUP,  /* a heading in the help */
};

struct option_list {
	const char *items[64];
	int count;
};

struct option {
	enum option_type type;
	const char *name; /* without dashes */
	char letter;      /* 0: no letter */
	void *value;
	const char *argument; /* word for the value in the help; NULL for flags */
	const char *help;     /* one or two lines */
};

#define OPTION_FLAG(name, letter, pointer, help)                                                                       \
	{                                                                                                              \
		OPTION_TYPE_FLAG, name, letter, pointer, NULL, help                                                    \
	}
#define OPTION_TEXT(name, letter, pointer, argument, help)                                                             \
	{                                                                                                              \
		OPTION_TYPE_TEXT, name, letter, pointer, argument, help                                                \
	}
#define OPTION_INT(name, letter, pointer, argument, help)                                                              \
	{                                                                                                              \
		OPTION_TYPE_INT, name, letter, pointer, argument, help                                                 \
	}
#define OPTION_DOUBLE(name, letter, pointer, argument, help)                                                           \
	{                                                                                                              \
		OPTION_TYPE_DOUBLE, name, letter, pointer, argument, help                                              \
	}
#define OPTION_BYTES(name, letter, pointer, argument, help)                                                            \
	{                                                                                                              \
		OPTION_TYPE_BYTES, name, letter, pointer, argument, help                                               \
	}
#define OPTION_LIST(name, letter, pointer, argument, help)                                                             \
	{                                                                                                              \
		OPTION_TYPE_LIST, name, letter, pointer, argument, help                                                \
	}
#define OPTION_GROUP(title)                                                                                            \
	{                                                                                                              \
		OPTION_TYPE_GROUP, title, 0, NULL, NULL, NULL                                                          \
	}
#define OPTION_END                                                                                                     \
	{                                                                                                              \
		OPTION_TYPE_END, NULL, 0, NULL, NULL, NULL                                                             \
	}

struct options_result {
	const char **operands; /* points into argv, reordered; options_parse permutes argv */
	int operand_count;
	bool has_terminator;   /* "--" was seen; later operands are not parsed */
	int before_terminator; /* number of operands before "--" */
};

/* Parses argv[1..argc). Fails with STATUS_USAGE (unknown option and its nearest name, missing or malformed value). */
enum status options_parse(const struct option *options, int argc, const char **argv, struct options_result *result,
                          struct error *err) MUST_CHECK;

/* Prints the options as help text, wrapped at `width` columns. */
void options_help(const struct option *options, FILE *out, int width);

/* Returns the name (in a NULL-terminated list) nearest to `word` by edit distance, or NULL if none is near. */
const char *nearest_name(const char *word, const char *const *names);

/* Parses 64, 64k, 1.5G, 64MiB into bytes. Returns false if the text is malformed or negative. */
bool parse_bytes(const char *text, int64_t *bytes);

#endif
