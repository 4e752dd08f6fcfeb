/* SPDX-License-Identifier: Apache-2.0
 *
 * option_values.c: parses words, numbers, sizes, times and ranges as users write them. No locale, no strtol.
 */
#include "recorder/option_values.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- small texts ---- */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool value_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool option_values_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool value_is_same(const char *a, const char *b, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		char x = a[i] == '-' ? '_' : lower(a[i]);
		char y = b[i] == '-' ? '_' : lower(b[i]);

		if (x != y || !x)
			return false;
	}
	return true;
}

bool value_is_word(const char *text, size_t length, const char *word)
{
	return strlen(word) == length && value_is_same(text, word, length);
}

int value_find_word(const char *text, size_t length, const char *const *words)
{
	for (int i = 0; words[i]; i++) {
		if (value_is_word(text, length, words[i]))
			return i;
	}
	return -1;
}

const char *value_trim(const char *text, size_t *length)
{
	while (*length && option_values_is_blank(text[0])) {
		text++;
		(*length)--;
	}
	while (*length && option_values_is_blank(text[*length - 1]))
		(*length)--;
	return text;
}

/* ---- the nearest name ---- */

/* Returns the edit distance, in which two swapped neighbours count as one mistake. Returns more than
 * `VALUE_LONGEST_NAME` if a text is too long. */
static int distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	int rows[3][VALUE_LONGEST_NAME + 1];

	if (a_length > VALUE_LONGEST_NAME || b_length > VALUE_LONGEST_NAME)
		return VALUE_LONGEST_NAME + 1;
	for (size_t j = 0; j <= b_length; j++)
		rows[0][j] = (int)j;
	for (size_t i = 1; i <= a_length; i++) {
		int *now = rows[i % 3];
		const int *before = rows[(i + 2) % 3];
		const int *earlier = rows[(i + 1) % 3];

		now[0] = (int)i;
		for (size_t j = 1; j <= b_length; j++) {
			int least = before[j - 1] + !value_is_same(&a[i - 1], &b[j - 1], 1);

			least = before[j] + 1 < least ? before[j] + 1 : least;
			least = now[j - 1] + 1 < least ? now[j - 1] + 1 : least;
			if (i > 1 && j > 1 && value_is_same(&a[i - 1], &b[j - 2], 1) &&
			    value_is_same(&a[i - 2], &b[j - 1], 1) && earlier[j - 2] + 1 < least)
				least = earlier[j - 2] + 1;
			now[j] = least;
		}
	}
	return rows[a_length % 3][b_length];
}

struct nearest nearest_to(const char *word, size_t length)
{
	return (struct nearest){word, length, length < 4 ? 2 : length < 7 ? 3 : 4, NULL, 0};
}

void nearest_offer(struct nearest *nearest, const char *name, size_t length)
{
	int mistakes = distance(nearest->word, nearest->length, name, length);

	/* names without a common letter are not similar */
	if (mistakes < nearest->mistakes && mistakes < (int)nearest->length && mistakes < (int)length) {
		nearest->mistakes = mistakes;
		nearest->name = name;
		nearest->name_length = length;
	}
}

void nearest_offer_words(struct nearest *nearest, const char *const *words)
{
	for (; *words; words++)
		nearest_offer(nearest, *words, strlen(*words));
}

/* ---- refusals ---- */

bool report_is_telling(const char *origin, const char *key)
{
	size_t length = strcspn(origin, "=");
	size_t key_length = strlen(key);

	return length >= key_length && value_is_same(origin + length - key_length, key, key_length);
}

void report_name_origin(char *out, size_t bytes, const char *key, const char *origin)
{
	if (!origin || !origin[0])
		snprintf(out, bytes, "%.80s", key);
	else if (report_is_telling(origin, key))
		snprintf(out, bytes, "%.*s", (int)strcspn(origin, "="), origin);
	else
		snprintf(out, bytes, "%.80s (%.120s)", key, origin);
}

void report_clean(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
	}
}

bool report_refuse(const struct option_report *report, const char *format, ...)
{
	char name[256];
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	report_name_origin(name, sizeof(name), report->key, report->origin);
	snprintf(report->problem, report->problem_bytes, "%s %s", name, text);
	if (report->problem_bytes)
		report_clean(report->problem);
	return false;
}

bool report_refuse_word(const struct option_report *report, const char *word, size_t length, const char *const *words)
{
	struct nearest nearest = nearest_to(word, length);

	nearest_offer_words(&nearest, words);
	if (nearest.name)
		return report_refuse(report, "does not accept '%.*s'; did you mean '%s'?",
		                     (int)(length > 60 ? 60 : length), word, nearest.name);
	return report_refuse(report, "does not accept '%.*s'; it accepts %s, %s and %s",
	                     (int)(length > 60 ? 60 : length), word, words[0], words[1], words[2]);
}

/* ---- values: parsers ---- */

int64_t value_parse_count(const char *text, size_t length)
{
	int64_t value = 0;

	if (!length)
		return -2;
	for (size_t i = 0; i < length; i++) {
		if (!value_is_digit(text[i]))
			return -2;
		if (value <= VALUE_LARGEST_COUNT)
			value = value * 10 + (text[i] - '0');
	}
	return value <= VALUE_LARGEST_COUNT ? value : -1;
}

const struct unit value_byte_units[] = {
	{"", 1}, {"b", 1}, {"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", INT64_C(1) << 40}, {NULL, 0},
};

const struct unit value_time_units[] = {
	{"", 1000000000},
	{"ns", 1},
	{"us", 1000},
	{"ms", 1000000},
	{"s", 1000000000},
	{"sec", 1000000000},
	{"m", INT64_C(60000000000)},
	{"min", INT64_C(60000000000)},
	{"h", INT64_C(3600000000000)},
	{"d", INT64_C(86400000000000)},
	{NULL, 0},
};

const struct unit value_share_units[] = {{"", 1000}, {"%", 1000}, {NULL, 0}};

static int64_t unit_factor(const char *text, size_t length, const struct unit *units)
{
	/* KiB and KB mean K: all sizes use 1024 */
	if (units == value_byte_units && length == 3 && value_is_same(text + 1, "ib", 2))
		length = 1;
	if (units == value_byte_units && length == 2 && lower(text[1]) == 'b')
		length = 1;
	for (; units->name; units++) {
		if (value_is_word(text, length, units->name))
			return units->factor;
	}
	return 0;
}

int64_t value_parse_scaled(const char *text, const struct unit *units)
{
	size_t digits = 0;
	int64_t whole, factor, thousandths = 0, value;

	while (value_is_digit(text[digits]))
		digits++;
	whole = value_parse_count(text, digits);
	text += digits;
	if (*text == '.') {
		int64_t weight = 100;

		for (text++; value_is_digit(*text); text++, weight /= 10) {
			if (!weight)
				return -2;
			thousandths += weight * (*text - '0');
		}
		if (text[-1] == '.')
			return -2;
	}
	while (*text == ' ')
		text++;
	factor = unit_factor(text, strlen(text), units);
	if (whole < 0 || !factor)
		return whole < 0 ? whole : -2;
	if (__builtin_mul_overflow(whole, factor, &value) ||
	    __builtin_add_overflow(value, thousandths * factor / 1000, &value))
		return -1;
	return value;
}

bool value_next_item(const char **text, const char **item, size_t *length)
{
	*text += strspn(*text, ":, \t");
	*item = *text;
	*length = strcspn(*text, ":, \t");
	*text += *length;
	return *length > 0;
}

bool value_has_empty_item(const char *text)
{
	bool is_item_next = true;

	for (; *text; text++) {
		bool is_end = *text == ',' || *text == ':';

		if (is_end && is_item_next)
			return true;
		if (*text != ' ' && *text != '\t')
			is_item_next = is_end;
	}
	return is_item_next;
}

/* Parses "50", "50-60" or "50-". */
static bool parse_range(const char *text, size_t length, struct step_range *range)
{
	const char *dash = memchr(text, '-', length);
	size_t first_length = dash ? (size_t)(dash - text) : length;

	range->first = value_parse_count(text, first_length);
	range->last = range->first;
	if (dash && first_length + 1 == length)
		range->last = INT64_MAX;
	else if (dash)
		range->last = value_parse_count(dash + 1, length - first_length - 1);
	return range->first >= 0 && range->last >= range->first;
}

/* Inserts a range in order and merges it with the ranges that it touches. Returns false if the list is full. */
static bool option_values_add_range(struct step_range *ranges, int *count, struct step_range range)
{
	int to = 0;
	struct step_range kept[RECORDER_MAX_RANGES + 1];
	bool is_in = false;

	for (int i = 0; i < *count; i++) {
		bool is_before = ranges[i].last != INT64_MAX && ranges[i].last + 1 < range.first;
		bool is_behind = range.last != INT64_MAX && range.last + 1 < ranges[i].first;

		if (is_behind && !is_in) {
			kept[to++] = range;
			is_in = true;
		}
		if (is_before || is_behind) {
			kept[to++] = ranges[i];
			continue;
		}
		range.first = ranges[i].first < range.first ? ranges[i].first : range.first;
		range.last = ranges[i].last > range.last ? ranges[i].last : range.last;
	}
	if (!is_in)
		kept[to++] = range;
	if (to > RECORDER_MAX_RANGES)
		return false;
	memcpy(ranges, kept, (size_t)to * sizeof(kept[0]));
	*count = to;
	return true;
}

bool value_parse_ranges(const struct option_report *report, const char *text, struct step_range *ranges, int *count)
{
	const char *item;
	size_t length;

	*count = 0;
	if (value_has_empty_item(text))
		return report_refuse(report, "wants numbers and ranges such as 50-60,100, got '%.60s'", text);
	while (value_next_item(&text, &item, &length)) {
		struct step_range range;

		if (!parse_range(item, length, &range))
			return report_refuse(report, "wants numbers and ranges such as 50-60,100, got '%.*s'",
			                     (int)(length > 60 ? 60 : length), item);
		if (!option_values_add_range(ranges, count, range))
			return report_refuse(report, "takes at most %d ranges", RECORDER_MAX_RANGES);
	}
	return *count > 0 || report_refuse(report, "wants numbers and ranges such as 50-60,100");
}
