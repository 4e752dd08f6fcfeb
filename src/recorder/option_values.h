/* SPDX-License-Identifier: Apache-2.0
 *
 * option_values.h: reading values of options, and saying what is wrong with them. Used by options.c and
 * options_resolve.c only. Words compare without regard to case, and '-' equals '_'.
 */
#ifndef RECORDER_OPTION_VALUES_H
#define RECORDER_OPTION_VALUES_H

#include "recorder/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VALUE_LARGEST_COUNT INT64_C(1000000000000000) /* sums of a few never overflow */
#define VALUE_LONGEST_NAME 40

/* ---- texts ---- */

bool value_is_digit(char c);
/* The first `length` characters of both; false when either ends before. */
bool value_is_same(const char *a, const char *b, size_t length);
bool value_is_word(const char *text, size_t length, const char *word);
/* The index among words (NULL at the end), -1 when it is none of them. */
int value_find_word(const char *text, size_t length, const char *const *words);
/* Cuts blanks off both ends. */
const char *value_trim(const char *text, size_t *length);

/* ---- the nearest name: nearest_to(), then offer candidates, then read `name` ---- */

struct nearest {
	const char *word;
	size_t length;
	int mistakes;     /* those of the best so far, at first one more than allowed */
	const char *name; /* NULL: none is near; borrowed from the candidate */
	size_t name_length;
};

struct nearest nearest_to(const char *word, size_t length);
void nearest_offer(struct nearest *nearest, const char *name, size_t length);
void nearest_offer_words(struct nearest *nearest, const char *const *words);

/* ---- refusals: one line that begins with the option and where it was given ---- */

struct option_report {
	const char *key, *origin; /* origin may be NULL */
	char *problem;
	size_t problem_bytes;
};

/* Does the origin say the key by itself, as "--wait", "STEPSCOPE_WAIT" and "profiler.wait=3" do? */
bool report_is_telling(const char *origin, const char *key);
/* "--wait" or "wait (train.yaml:3)" */
void report_name_origin(char *out, size_t bytes, const char *key, const char *origin);
/* Control characters must not reach a terminal. */
void report_clean(char *text);
/* Writes "<key> <text>" and returns false. */
bool report_refuse(const struct option_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For a word that is none of three. */
bool report_refuse_word(const struct option_report *report, const char *word, size_t length, const char *const *words);

/* ---- numbers ---- */

/* All of the text as a number of at most VALUE_LARGEST_COUNT; -1 when it is larger, -2 when it is no number. */
int64_t value_parse_count(const char *text, size_t length);

struct unit {
	const char *name;
	int64_t factor;
};
extern const struct unit value_byte_units[], value_time_units[],
	value_share_units[]; /* of a share: thousandths of a percent */

/* 64M, 1.5G, 10m, 250ms: digits, at most three of them after a point, and a unit. -1 too large, -2 malformed. */
int64_t value_parse_scaled(const char *text, const struct unit *units);

/* Takes the next item of a list off `text`; false at its end. Items stand between colons, commas or blanks. */
bool value_next_item(const char **text, const char **item, size_t *length);

/* "a,,b", ",a", "a:": something was forgotten, or a variable was empty. Also a text without any item. */
bool value_has_empty_item(const char *text);

/* "50-60,100", "50-": ascending and apart afterwards. `ranges` has room for RECORDER_MAX_RANGES. */
bool value_parse_ranges(const struct option_report *report, const char *text, struct step_range *ranges, int *count);

#endif
