/* SPDX-License-Identifier: Apache-2.0
 *
 * option_values.h: parses values of options and reports errors in them. Used by options.c and options_resolve.c only.
 * Words compare without regard to case, and '-' equals '_'.
 */
#ifndef RECORDER_OPTION_VALUES_H
#define RECORDER_OPTION_VALUES_H

#include "recorder/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VALUE_LARGEST_COUNT INT64_C(1000000000000000) /* sums of a few such counts never overflow */
#define VALUE_LONGEST_NAME 40

/* ---- texts ---- */

bool value_is_digit(char c);
/* Compares the first `length` characters of both. Returns false if either text ends before. */
bool value_is_same(const char *a, const char *b, size_t length);
bool value_is_word(const char *text, size_t length, const char *word);
/* Returns the index in `words` (NULL at the end), or -1 if the text is not one of them. */
int value_find_word(const char *text, size_t length, const char *const *words);
/* Removes blanks at both ends. */
const char *value_trim(const char *text, size_t *length);

/* ---- the nearest name: nearest_to(), then offer candidates, then read `name` ---- */

struct nearest {
	const char *word;
	size_t length;
	int mistakes;     /* mistakes of the best name so far; at first one more than allowed */
	const char *name; /* NULL: no name is near; borrowed from the candidate */
	size_t name_length;
};

struct nearest nearest_to(const char *word, size_t length);
void nearest_offer(struct nearest *nearest, const char *name, size_t length);
void nearest_offer_words(struct nearest *nearest, const char *const *words);

/* ---- refusals: one line that starts with the option and where it was given ---- */

struct option_report {
	const char *key, *origin; /* origin may be NULL */
	char *problem;
	size_t problem_bytes;
};

/* Returns true if the origin already names the key, as "--wait", "STEPSCOPE_WAIT" and "profiler.wait=3" do. */
bool report_is_telling(const char *origin, const char *key);
/* Writes "--wait" or "wait (train.yaml:3)". */
void report_name_origin(char *out, size_t bytes, const char *key, const char *origin);
/* Replaces control characters, which must not reach a terminal. */
void report_clean(char *text);
/* Writes "<key> <text>" and returns false. */
bool report_refuse(const struct option_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Refuses a word that is not one of the three `words`. */
bool report_refuse_word(const struct option_report *report, const char *word, size_t length, const char *const *words);

/* ---- numbers ---- */

/* Parses all of the text as a number of at most VALUE_LARGEST_COUNT. Returns -1 if it is larger, -2 if it is not a
 * number. */
int64_t value_parse_count(const char *text, size_t length);

struct unit {
	const char *name;
	int64_t factor;
};
extern const struct unit value_byte_units[], value_time_units[],
	value_share_units[]; /* factors of a share: thousandths of a percent */

/* Parses 64M, 1.5G, 10m, 250ms: digits, at most three digits after a point, and a unit. Returns -1 if the value is too
 * large, -2 if it is malformed. */
int64_t value_parse_scaled(const char *text, const struct unit *units);

/* Takes the next item of a list off `text`. Returns false at its end. Colons, commas and blanks separate items. */
bool value_next_item(const char **text, const char **item, size_t *length);

/* Returns true for "a,,b", ",a", "a:" and a text without items: the user forgot an item, or a variable was empty. */
bool value_has_empty_item(const char *text);

/* Parses "50-60,100", "50-". The resulting ranges are ascending and do not touch. `ranges` has room for
 * RECORDER_MAX_RANGES. */
bool value_parse_ranges(const struct option_report *report, const char *text, struct step_range *ranges, int *count);

#endif
