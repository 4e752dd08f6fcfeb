/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c: maps keys to options, and checks values when they are set. Values are stored as text in one normal form,
 * so that a formatted list reads back the same.
 */
#include "recorder/options.h"

#include "recorder/option_rows.h"
#include "recorder/option_values.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SMALLEST_BYTES ((int64_t)64 * 1024)

/* Keys of the guides' blocks that control the export of files, which the recorder does not do. */
static const char *const keys_without_effect[] = {"filename", "export_trace", NULL};

static const char *const blocks[] = {"profiler", "profiling", "stepscope", NULL};
static const char *const true_words[] = {"true", "yes", "on", "1", NULL};
static const char *const false_words[] = {"false", "no", "off", "0", NULL};
static const char options_variable[] = "STEPSCOPE_OPTIONS";

static bool options_copy_text(char *out, size_t bytes, const char *text, size_t length)
{
	if (length >= bytes)
		return false;
	memcpy(out, text, length);
	out[length] = '\0';
	return true;
}

/* ---- values: checks and normal form ------------------------- */

static bool keep_bool(const struct option_report *report, char *value, size_t bytes)
{
	size_t length = strlen(value);

	if (value_find_word(value, length, true_words) >= 0)
		return options_copy_text(value, bytes, "true", 4);
	if (value_find_word(value, length, false_words) >= 0)
		return options_copy_text(value, bytes, "false", 5);
	return report_refuse(report, "must be true or false, got '%.60s'", value);
}

static bool keep_count(const struct option_report *report, enum row row, char *value, size_t bytes)
{
	bool is_negative = value[0] == '-' && value_parse_count(value + 1, strlen(value + 1)) != -2;
	int64_t least = row == ROW_ACTIVE || row == ROW_NUM_STEPS || row == ROW_FREQUENCY;
	int64_t count = value_parse_count(value, strlen(value));

	if (is_negative || (count >= 0 && count < least))
		return report_refuse(report, "must be %" PRId64 " or more, got %.60s", least, value);
	if (count == -1)
		return report_refuse(report, "must be at most %" PRId64 ", got %.60s", VALUE_LARGEST_COUNT, value);
	if (count < 0)
		return report_refuse(report, "must be a whole number, got '%.60s'", value);
	snprintf(value, bytes, "%" PRId64, count);
	return true;
}

static bool keep_bytes(const struct option_report *report, const char *value)
{
	int64_t size = value_parse_scaled(value, value_byte_units);

	if (size == -1)
		return report_refuse(report, "is too large: '%.60s'", value);
	if (size < 0)
		return report_refuse(report, "wants a size such as 64M or 1.5G, got '%.60s'", value);
	return size == 0 || size >= SMALLEST_BYTES ||
	       report_refuse(report, "must be 64K or more, or 0, got '%.60s'", value);
}

static bool keep_duration(const struct option_report *report, const char *value)
{
	int64_t duration = value_parse_scaled(value, value_time_units);

	if (duration == -1)
		return report_refuse(report, "is too long: '%.60s'", value);
	return duration >= 0 || report_refuse(report, "wants a time such as 30s, 10m or 250ms, got '%.60s'", value);
}

static bool keep_share(const struct option_report *report, char *value, size_t bytes)
{
	int64_t share = value_parse_scaled(value, value_share_units);
	size_t length = strlen(value);

	if (value_is_word(value, length, "none"))
		return options_copy_text(value, bytes, "none", 4);
	if (share == 0 || share == -1 || share > 100000)
		return report_refuse(report, "must be more than 0 and at most 100 percent, or none, got '%.60s'",
		                     value);
	if (share < 0)
		return report_refuse(report, "wants a share such as 3%% or 0.5%%, or none, got '%.60s'", value);
	return value[length - 1] == '%' || options_copy_text(value + length, bytes - length, "%", 1);
}

/* Joins the items with colons, as required inside a list of options. */
static void join_by_colons(char *value)
{
	char *to = value;
	const char *from = value, *item;
	size_t length;

	while (value_next_item(&from, &item, &length)) {
		if (to > value)
			*to++ = ':';
		memmove(to, item, length);
		to += length;
	}
	*to = '\0';
}

static bool check_words(const struct option_report *report, const char *text, const char *const *words)
{
	const char *item;
	size_t length;

	if (value_has_empty_item(text))
		return report_refuse(report, "has an empty name in '%.60s'; it accepts %s, %s and %s", text, words[0],
		                     words[1], words[2]);
	while (value_next_item(&text, &item, &length)) {
		if (value_find_word(item, length, words) < 0)
			return report_refuse_word(report, item, length, words);
	}
	return true;
}

static bool keep_text(const struct option_report *report, enum row row, char *value)
{
	struct step_range ranges[RECORDER_MAX_RANGES];
	int count;

	if (row == ROW_OUT)
		return true;
	if (row == ROW_TYPE) {
		if (value_find_word(value, strlen(value), record_type_words) < 0)
			return report_refuse_word(report, value, strlen(value), record_type_words);
	} else if (row == ROW_WITH) {
		if (!check_words(report, value, record_with_words))
			return false;
	} else if (!(row == ROW_STEPS && (!strcmp(value, "all") || !strcmp(value, "none"))) &&
	           !(row == ROW_RANKS && (!strcmp(value, "all") || !strcmp(value, "local0")))) {
		if (!value_parse_ranges(report, value, ranges, &count))
			return false;
	}
	join_by_colons(value);
	return true;
}

static bool keep_value(const struct option_report *report, enum row row, char *value, size_t bytes)
{
	switch (record_options_table[row].type) {
	case RECORD_BOOL:
		return keep_bool(report, value, bytes);
	case RECORD_COUNT:
		return keep_count(report, row, value, bytes);
	case RECORD_BYTES:
		return keep_bytes(report, value);
	case RECORD_DURATION:
		return keep_duration(report, value);
	case RECORD_SHARE:
		return keep_share(report, value, bytes);
	case RECORD_TEXT:
		break;
	}
	return keep_text(report, row, value);
}

/* ---- settings: one value ---- */

char *record_settings_room(struct record_settings *settings, int row, size_t *bytes)
{
	*bytes = row == ROW_OUT ? sizeof(settings->run_directory) : sizeof(settings->value[row]);
	return row == ROW_OUT ? settings->run_directory : settings->value[row];
}

const char *record_settings_value(const struct record_settings *settings, int row)
{
	return row == ROW_OUT ? settings->run_directory : settings->value[row];
}

void record_settings_unset(struct record_settings *settings, int row)
{
	size_t bytes;
	char *room = record_settings_room(settings, row, &bytes);

	room[0] = '\0';
	settings->is_set[row] = false;
	settings->origin[row] = NULL;
}

/* Returns true if the value is empty. YAML has several words for nothing, but a directory may have such a name. */
static bool is_nothing(int row, const char *text, size_t length)
{
	if (!length)
		return true;
	return row != ROW_OUT && (value_is_word(text, length, "null") || value_is_word(text, length, "~"));
}

/* `item`: index of the value in a list; -1: not in a list. On failure the settings stay unchanged. */
static bool options_store(struct record_settings *settings, const struct option_report *report, int row,
                          const char *text, size_t length, int64_t item)
{
	char value[sizeof(settings->run_directory)];
	size_t bytes, before = 0;
	char *room = record_settings_room(settings, row, &bytes);

	text = value_trim(text, &length);
	if (is_nothing(row, text, length)) {
		if (item >= 0)
			return report_refuse(report, "is an empty item of a list");
		record_settings_unset(settings, row);
		return true;
	}
	if (item > 0 && settings->is_set[row]) {
		before = strlen(room) + 1;
		memcpy(value, room, before);
		value[before - 1] = ':';
	}
	if (before + length >= bytes)
		return report_refuse(report, "is too long: at most %zu bytes", bytes - 1);
	memcpy(value + before, text, length);
	value[before + length] = '\0';
	if (!keep_value(report, (enum row)row, value, bytes))
		return false;
	memcpy(room, value, strlen(value) + 1);
	settings->is_set[row] = true;
	settings->origin[row] = report->origin;
	return true;
}

/* ---- settings: keys ---- */

int record_option_row(const char *name)
{
	for (int row = 0; row < ROW_COUNT; row++) {
		if (!strcmp(name, record_options_table[row].name))
			return row;
	}
	return -1;
}

/* Returns the row with this name or further name, or -1. */
static int find_row(const char *key, size_t length)
{
	for (int row = 0; row < ROW_COUNT; row++) {
		const char *name = record_options_table[row].yaml;

		if (value_is_word(key, length, record_options_table[row].name))
			return row;
		while (*name) {
			size_t name_length = strcspn(name, " ");

			if (name_length == length && value_is_same(name, key, length))
				return row;
			name += name_length + (name[name_length] == ' ');
		}
	}
	return -1;
}

/* Parts of a key such as "training.profiler.schedule.steps.1": the name after the block, and the index in a list. */
struct options_key {
	const char *leaf;
	size_t length;
	int64_t item; /* -1: not an item of a list */
	bool is_in_block;
	bool is_flat; /* "profiler_wait_steps", which another program may use for its own purpose */
};

static struct options_key split_key(const char *text)
{
	struct options_key key = {.leaf = text, .item = -1};
	size_t tail;

	for (const char *part = text; *part; part += strcspn(part, ".") + (part[strcspn(part, ".")] == '.')) {
		size_t length = strcspn(part, ".");

		if (part[length] == '.' && value_find_word(part, length, blocks) >= 0) {
			key.leaf = part + length + 1;
			key.is_in_block = true;
		}
	}
	if (key.is_in_block && (!strncmp(key.leaf, "schedule.", 9)))
		key.leaf += 9;
	key.length = strlen(key.leaf);
	tail = key.length;
	while (tail && value_is_digit(key.leaf[tail - 1]))
		tail--;
	if (tail && tail < key.length && key.leaf[tail - 1] == '.') {
		key.item = value_parse_count(key.leaf + tail, key.length - tail);
		key.length = tail - 1;
	}
	/* flags of a command line: --profiler-wait-steps */
	if (!key.is_in_block && key.length > 9 && value_is_same(key.leaf, "profiler_", 9)) {
		key.leaf += 9;
		key.length -= 9;
		key.is_in_block = true;
		key.is_flat = true;
	}
	return key;
}

enum record_key record_key_of(const char *key)
{
	struct options_key parts = split_key(key);

	for (const char *part = key; *part; part += strcspn(part, ".") + (part[strcspn(part, ".")] == '.')) {
		if (value_find_word(part, strcspn(part, "."), blocks) >= 0)
			return RECORD_KEY_BLOCK;
	}
	return find_row(parts.leaf, parts.length) >= 0 ? RECORD_KEY_OPTION : RECORD_KEY_OTHER;
}

int record_key_row(const char *key, size_t *block)
{
	struct options_key parts = split_key(key);

	*block = 0;
	for (const char *part = key; *part && !*block; part += strcspn(part, ".") + (part[strcspn(part, ".")] == '.')) {
		size_t length = strcspn(part, ".");

		if (part[length] == '.' && value_find_word(part, length, blocks) >= 0)
			*block = (size_t)(part - key) + length;
	}
	return find_row(parts.leaf, parts.length);
}

static void offer_names(struct nearest *nearest)
{
	for (int row = 0; row < ROW_COUNT; row++) {
		const char *name = record_options_table[row].yaml;

		nearest_offer(nearest, record_options_table[row].name, strlen(record_options_table[row].name));
		while (*name) {
			size_t length = strcspn(name, " ");

			nearest_offer(nearest, name, length);
			name += length + (name[length] == ' ');
		}
	}
}

/* Returns the block that was probably meant if a known name is in a block whose name is nearly known
 * ("profilr.enabled"). Returns NULL otherwise. */
static const char *misspelt_block(const char *text, size_t *start, size_t *length)
{
	const char *dot = strrchr(text, '.');
	struct nearest nearest;

	if (!dot || find_row(dot + 1, strlen(dot + 1)) < 0)
		return NULL;
	*start = (size_t)(dot - text);
	while (*start && text[*start - 1] != '.')
		--*start;
	*length = (size_t)(dot - text) - *start;
	nearest = nearest_to(text + *start, *length);
	nearest.mistakes = 3;
	nearest_offer_words(&nearest, blocks);
	return nearest.name;
}

__attribute__((format(printf, 2, 3))) static void append(const struct option_report *report, const char *format, ...)
{
	size_t length = report->problem_bytes ? strlen(report->problem) : 0;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(report->problem + length, report->problem_bytes - length, format, arguments);
	va_end(arguments);
}

/* Writes the name that was probably meant, as the user has to write it. Returns false if no name is near. */
static bool suggest(char *out, size_t bytes, const char *text, const struct options_key *key)
{
	size_t start = 0, length = 0;
	const char *block = key->is_in_block ? NULL : misspelt_block(text, &start, &length);
	struct nearest nearest = nearest_to(key->leaf, key->length);
	int before = (int)(key->leaf - text);

	if (block) {
		snprintf(out, bytes, "%.*s%s%s", (int)start, text, block, text + start + length);
		return true;
	}
	offer_names(&nearest);
	if (nearest.name)
		snprintf(out, bytes, "%.*s%.*s", before, text, (int)nearest.name_length, nearest.name);
	return nearest.name != NULL;
}

static bool options_unknown_key(const struct option_report *report, const char *text, const struct options_key *key,
                                bool is_lenient)
{
	char name[100];
	size_t start, length;
	bool is_near = suggest(name, sizeof(name), text, key);
	bool is_ours = key->is_in_block && !key->is_flat;

	/* a key that may belong to another program is refused only if it is ours except for the block's name or a
	 * letter or two */
	if (is_lenient && !is_ours && !(is_near && (key->is_flat || misspelt_block(text, &start, &length))))
		return false;
	snprintf(report->problem, report->problem_bytes, "unknown option '%.80s'", text);
	/* an origin that equals the key adds no information */
	if (report->origin && report->origin[0] && !report_is_telling(report->origin, text))
		append(report, " (%.120s)", report->origin);
	if (is_near)
		append(report, "; did you mean '%s'?", name);
	if (report->problem_bytes)
		report_clean(report->problem);
	return false;
}

static bool is_list(int row)
{
	return row == ROW_STEPS || row == ROW_RANKS || row == ROW_WITH;
}

static bool set_n(struct record_settings *settings, const struct option_report *report, const char *value,
                  size_t length, bool is_lenient)
{
	const char *text = report->key + strspn(report->key, "+"); /* Hydra's "add" and "force" */
	struct options_key key = split_key(text);
	int row = find_row(key.leaf, key.length);

	if (report->problem_bytes)
		report->problem[0] = '\0';
	if (is_lenient && !key.is_in_block)
		row = -1;
	else if (row < 0 && key.item < 0 && value_find_word(key.leaf, key.length, keys_without_effect) >= 0)
		return true;
	if (row < 0 || (key.item >= 0 && !is_list(row)))
		return options_unknown_key(report, text, &key, is_lenient);
	return options_store(settings, report, row, value, length, key.item);
}

bool record_settings_set(struct record_settings *settings, const char *key, const char *value, const char *origin,
                         bool is_lenient, char *problem, size_t problem_bytes)
{
	struct option_report report = {key, origin, problem, problem_bytes};

	return set_n(settings, &report, value, strlen(value), is_lenient);
}

/* ---- settings: lists and the environment ---- */

/* Copies an entry "name=value" up to a comma, without the backslashes. Returns the rest of the list, or NULL if the
 * entry is too long. */
static const char *take_entry(const char *list, char *out, size_t bytes)
{
	size_t length = 0;

	for (; *list && *list != ','; list++) {
		if (*list == '\\' && list[1])
			list++;
		if (length + 1 >= bytes)
			return NULL;
		out[length++] = *list;
	}
	out[length] = '\0';
	return list + (*list == ',');
}

bool record_settings_parse(struct record_settings *settings, const char *list, const char *origin, char *problem,
                           size_t problem_bytes)
{
	char entry[sizeof(settings->run_directory) + 2 * VALUE_LONGEST_NAME];

	if (problem_bytes)
		problem[0] = '\0';
	while (*list) {
		struct option_report report = {entry, origin, problem, problem_bytes};
		size_t length;
		char *equals, *name;

		list = take_entry(list, entry, sizeof(entry));
		if (!list) {
			report.key = "list of options";
			return report_refuse(&report, "has an entry that is too long");
		}
		length = strlen(entry);
		name = entry + (value_trim(entry, &length) - entry);
		name[length] = '\0';
		if (!length)
			continue;
		report.key = name;
		equals = strchr(name, '=');
		if (!equals)
			return report_refuse(&report, "has no value, write %.60s=...", name);
		*equals = '\0';
		if (!set_n(settings, &report, equals + 1, strlen(equals + 1), false))
			return false;
	}
	return true;
}

/* Refuses a variable whose name is nearly that of an option ("STEPSCOPE_WIAT=3"). Other parts of stepscope have
 * variables too; a new variable must have a name that is not refused here. */
static bool check_variable(const char *entry, size_t length, char *problem, size_t problem_bytes)
{
	struct nearest nearest = nearest_to(entry + 10, length - 10);

	nearest.mistakes = length - 10 < 5 ? 2 : 3;
	for (int row = 0; row < ROW_COUNT; row++)
		nearest_offer(&nearest, record_options_table[row].environment + 10,
		              strlen(record_options_table[row].environment + 10));
	if (!nearest.name || nearest.mistakes == 0)
		return true;
	snprintf(problem, problem_bytes, "unknown variable '%.*s'; did you mean 'STEPSCOPE_%s'?",
	         (int)(length > 80 ? 80 : length), entry, nearest.name);
	if (problem_bytes)
		report_clean(problem);
	return false;
}

static bool set_variable(struct record_settings *settings, const char *entry, char *problem, size_t problem_bytes)
{
	size_t length = strcspn(entry, "=");

	for (int row = 0; row < ROW_COUNT; row++) {
		const struct record_option *option = &record_options_table[row];
		struct option_report report = {option->name, option->environment, problem, problem_bytes};

		if (strncmp(entry, option->environment, length) != 0 || option->environment[length])
			continue;
		if (settings->origin[row] == options_variable)
			return true;
		return options_store(settings, &report, row, entry + length + 1, strlen(entry + length + 1), -1);
	}
	return check_variable(entry, length, problem, problem_bytes);
}

bool record_settings_environment(struct record_settings *settings, char *const *environment, char *problem,
                                 size_t problem_bytes)
{
	size_t length = sizeof(options_variable) - 1;

	if (problem_bytes)
		problem[0] = '\0';
	for (char *const *entry = environment; entry && *entry; entry++) {
		if (!strncmp(*entry, options_variable, length) && (*entry)[length] == '=' &&
		    !record_settings_parse(settings, *entry + length + 1, options_variable, problem, problem_bytes))
			return false;
	}
	for (char *const *entry = environment; entry && *entry; entry++) {
		if (strncmp(*entry, "STEPSCOPE_", 10) != 0 || !strchr(*entry, '='))
			continue;
		if (!set_variable(settings, *entry, problem, problem_bytes))
			return false;
	}
	return true;
}

size_t record_settings_format(const struct record_settings *settings, char *out, size_t bytes)
{
	size_t length = 0;

	if (bytes)
		out[0] = '\0';
	for (int row = 0; row < ROW_COUNT; row++) {
		char entry[2 * sizeof(settings->run_directory) + VALUE_LONGEST_NAME];
		size_t entry_length;

		if (!settings->is_set[row])
			continue;
		entry_length = (size_t)snprintf(entry, sizeof(entry), "%s%s=", length ? "," : "",
		                                record_options_table[row].name);
		for (const char *from = record_settings_value(settings, row); *from; from++) {
			if (*from == ',' || *from == '\\')
				entry[entry_length++] = '\\';
			entry[entry_length++] = *from;
		}
		if (!options_copy_text(out + length, bytes - length, entry, entry_length))
			return 0;
		length += entry_length;
	}
	return length;
}
