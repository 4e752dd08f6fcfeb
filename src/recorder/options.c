/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c: the table of options, how a value is checked when it is set, and how what was set becomes one decision. Values are
 * kept as text in one normal form, so that a list of them reads back the same.
 */
#include "recorder/options.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LONGEST_NAME 40
#define LARGEST_COUNT INT64_C(1000000000000000) /* sums of a few never overflow */
#define SMALLEST_BYTES (64 * 1024)
#define ALWAYS_KEEP_BYTES (INT64_C(256) << 20)

enum row {
	ROW_ENABLED,
	ROW_STEPS,
	ROW_START_STEP,
	ROW_NUM_STEPS,
	ROW_WAIT,
	ROW_WARMUP,
	ROW_ACTIVE,
	ROW_REPEAT,
	ROW_SKIP_FIRST,
	ROW_SKIP_FIRST_WAIT,
	ROW_FREQUENCY,
	ROW_TYPE,
	ROW_WITH,
	ROW_SHAPES,
	ROW_MEMORY,
	ROW_STACK,
	ROW_MEMORY_TIMELINE,
	ROW_RANKS,
	ROW_OUT,
	ROW_POOL,
	ROW_KEEP_SIZE,
	ROW_KEEP_TIME,
	ROW_SEGMENT_SIZE,
	ROW_SYNC_EVERY,
	ROW_COST_EVERY,
	ROW_SAMPLE_PROCESS,
	ROW_COUNT,
};
static_assert(ROW_COUNT <= RECORDER_MAX_OPTIONS, "record_settings is too small");

/* clang-format off */
const struct record_option record_options_table[] = {
	[ROW_ENABLED] = {"enabled", "--enabled", "STEPSCOPE_ENABLED", "profile profiling enable_profiling", RECORD_BOOL,
		"BOOL", "true", "record at all; false: the program runs as without stepscope"},
	[ROW_STEPS] = {"steps", "--steps", "STEPSCOPE_STEPS", "", RECORD_TEXT,
		"LIST", "all", "steps to record with operators, by the program's own numbers: 50-60,100 or 50- or all or none"},
	[ROW_START_STEP] = {"start_step", "--start-step", "STEPSCOPE_START_STEP", "", RECORD_COUNT,
		"N", "0", "first step to record with operators"},
	[ROW_NUM_STEPS] = {"num_steps", "--num-steps", "STEPSCOPE_NUM_STEPS", "", RECORD_COUNT,
		"N", "", "so many steps from --start-step on; default: to the end"},
	[ROW_WAIT] = {"wait", "--wait", "STEPSCOPE_WAIT", "wait_steps", RECORD_COUNT,
		"N", "0", "schedule: steps without operators at the start of each cycle"},
	[ROW_WARMUP] = {"warmup", "--warmup", "STEPSCOPE_WARMUP", "warmup_steps", RECORD_COUNT,
		"N", "0", "schedule: steps after them in which recording warms up"},
	[ROW_ACTIVE] = {"active", "--active", "STEPSCOPE_ACTIVE", "active_steps", RECORD_COUNT,
		"N", "1", "schedule: steps recorded with operators at the end of each cycle"},
	[ROW_REPEAT] = {"repeat", "--repeat", "STEPSCOPE_REPEAT", "repeat_times", RECORD_COUNT,
		"N", "0", "schedule: number of cycles; 0: until the program ends"},
	[ROW_SKIP_FIRST] = {"skip_first", "--skip-first", "STEPSCOPE_SKIP_FIRST", "", RECORD_COUNT,
		"N", "0", "schedule: steps before the first cycle"},
	[ROW_SKIP_FIRST_WAIT] = {"skip_first_wait", "--skip-first-wait", "STEPSCOPE_SKIP_FIRST_WAIT", "", RECORD_COUNT,
		"N", "0", "schedule: not 0: the first cycle has no wait steps"},
	[ROW_FREQUENCY] = {"profiling_frequency", "--profiling-frequency", "STEPSCOPE_PROFILING_FREQUENCY", "", RECORD_COUNT,
		"N", "", "schedule: length of a cycle; sets --wait to what --warmup and --active leave of it (with --repeat 0)"},
	[ROW_TYPE] = {"type", "--type", "STEPSCOPE_TYPE", "", RECORD_TEXT,
		"WORD", "advanced", "simple: steps and phases only; advanced: operators; pytorch: operators, shapes and memory"},
	[ROW_WITH] = {"with", "--with", "STEPSCOPE_WITH", "", RECORD_TEXT,
		"LIST", "", "what to add to operators and their times: shapes, memory, lines"},
	[ROW_SHAPES] = {"record_shapes", "--record-shapes", "STEPSCOPE_RECORD_SHAPES", "with_shapes", RECORD_BOOL,
		"BOOL", "false", "the same as --with shapes"},
	[ROW_MEMORY] = {"profile_memory", "--profile-memory", "STEPSCOPE_PROFILE_MEMORY", "with_memory", RECORD_BOOL,
		"BOOL", "false", "the same as --with memory"},
	[ROW_STACK] = {"with_stack", "--with-stack", "STEPSCOPE_WITH_STACK", "", RECORD_BOOL,
		"BOOL", "false", "the same as --with lines"},
	[ROW_MEMORY_TIMELINE] = {"export_memory_timeline", "--export-memory-timeline", "STEPSCOPE_EXPORT_MEMORY_TIMELINE", "",
		RECORD_BOOL, "BOOL", "false", "the same as --with shapes,memory,lines"},
	[ROW_RANKS] = {"ranks", "--ranks", "STEPSCOPE_RANKS", "", RECORD_TEXT,
		"LIST", "all", "ranks to record with operators: all, local0 (first of each machine) or a list such as 0,8-15"},
	[ROW_OUT] = {"out", "--out", "STEPSCOPE_RUN_DIR", "output_dir dirpath profiling_output profiling_outputs prof_dir run_dir",
		RECORD_TEXT, "DIR", "", "directory of this run; default: a new one in stepscope-runs"},
	[ROW_POOL] = {"pool", "--pool", "STEPSCOPE_POOL", "", RECORD_BYTES,
		"SIZE", "16M", "memory of a process for events on their way to the disk"},
	[ROW_KEEP_SIZE] = {"keep_size", "--keep-size", "STEPSCOPE_KEEP_SIZE", "", RECORD_BYTES,
		"SIZE", "", "newest operators kept on disk per process; 0: all; default: 256M when every step is recorded"},
	[ROW_KEEP_TIME] = {"keep_time", "--keep-time", "STEPSCOPE_KEEP_TIME", "", RECORD_DURATION,
		"TIME", "0", "newest operators kept on disk, by age: 10m; 0: all"},
	[ROW_SEGMENT_SIZE] = {"segment_size", "--segment-size", "STEPSCOPE_SEGMENT_SIZE", "", RECORD_BYTES,
		"SIZE", "", "size at which a new file is begun; default: 64M, or an eighth of --keep-size"},
	[ROW_SYNC_EVERY] = {"sync_every", "--sync-every", "STEPSCOPE_SYNC_EVERY", "", RECORD_DURATION,
		"TIME", "0", "have the disk itself confirm what was written that often; 0: leave it to the system"},
	[ROW_COST_EVERY] = {"cost_every", "--cost-every", "STEPSCOPE_COST_EVERY", "", RECORD_COUNT,
		"N", "0", "record operators for N steps and not for the next N, to measure what recording costs; 0: do not"},
	[ROW_SAMPLE_PROCESS] = {"sample_process", "--sample-process", "STEPSCOPE_SAMPLE_PROCESS", "", RECORD_BOOL,
		"BOOL", "true", "note the process's CPU time, memory and I/O once a second"},
	[ROW_COUNT] = {NULL, NULL, NULL, NULL, RECORD_BOOL, NULL, NULL, NULL},
};
/* clang-format on */

/* Keys of the guides' blocks that say how files are exported, which is not the recorder's business. */
static const char *const keys_without_effect[] = {"filename", "export_trace", NULL};

static const char *const blocks[] = {"profiler", "profiling", "stepscope", NULL};
static const char *const with_words[] = {"shapes", "memory", "lines", NULL};
static const char *const type_words[] = {"simple", "advanced", "pytorch", NULL};
static const char *const true_words[] = {"true", "yes", "on", "1", NULL};
static const char *const false_words[] = {"false", "no", "off", "0", NULL};
static const char options_variable[] = "STEPSCOPE_OPTIONS";

/* ---- small texts ---- */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Equal but for case, and for '-' in one where the other has '_'. */
static bool is_same(const char *a, const char *b, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		char x = a[i] == '-' ? '_' : lower(a[i]);
		char y = b[i] == '-' ? '_' : lower(b[i]);

		if (x != y || !x)
			return false;
	}
	return true;
}

static bool is_word(const char *text, size_t length, const char *word)
{
	return strlen(word) == length && is_same(text, word, length);
}

static int find_word(const char *text, size_t length, const char *const *words)
{
	for (int i = 0; words[i]; i++) {
		if (is_word(text, length, words[i]))
			return i;
	}
	return -1;
}

static bool copy_text(char *out, size_t bytes, const char *text, size_t length)
{
	if (length >= bytes)
		return false;
	memcpy(out, text, length);
	out[length] = '\0';
	return true;
}

/* Cuts blanks off both ends. */
static const char *trim(const char *text, size_t *length)
{
	while (*length && is_blank(text[0])) {
		text++;
		(*length)--;
	}
	while (*length && is_blank(text[*length - 1]))
		(*length)--;
	return text;
}

/* ---- the nearest name ---- */

/* Edit distance where two swapped neighbours count as one mistake; more than `LONGEST_NAME` for what is too long. */
static int distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	int rows[3][LONGEST_NAME + 1];

	if (a_length > LONGEST_NAME || b_length > LONGEST_NAME)
		return LONGEST_NAME + 1;
	for (size_t j = 0; j <= b_length; j++)
		rows[0][j] = (int)j;
	for (size_t i = 1; i <= a_length; i++) {
		int *now = rows[i % 3];
		const int *before = rows[(i + 2) % 3];
		const int *earlier = rows[(i + 1) % 3];

		now[0] = (int)i;
		for (size_t j = 1; j <= b_length; j++) {
			int least = before[j - 1] + !is_same(&a[i - 1], &b[j - 1], 1);

			least = before[j] + 1 < least ? before[j] + 1 : least;
			least = now[j - 1] + 1 < least ? now[j - 1] + 1 : least;
			if (i > 1 && j > 1 && is_same(&a[i - 1], &b[j - 2], 1) && is_same(&a[i - 2], &b[j - 1], 1) &&
			    earlier[j - 2] + 1 < least)
				least = earlier[j - 2] + 1;
			now[j] = least;
		}
	}
	return rows[a_length % 3][b_length];
}

/* The best of the candidates offered so far. */
struct nearest {
	const char *word;
	size_t length;
	int mistakes; /* those of the best, at first one more than allowed */
	const char *name; /* NULL: none is near */
	size_t name_length;
};

static struct nearest nearest_to(const char *word, size_t length)
{
	return (struct nearest){word, length, length < 4 ? 2 : length < 7 ? 3 : 4, NULL, 0};
}

static void offer(struct nearest *nearest, const char *name, size_t length)
{
	int mistakes = distance(nearest->word, nearest->length, name, length);

	/* all letters wrong is no likeness */
	if (mistakes < nearest->mistakes && mistakes < (int)nearest->length && mistakes < (int)length) {
		nearest->mistakes = mistakes;
		nearest->name = name;
		nearest->name_length = length;
	}
}

static void offer_names(struct nearest *nearest)
{
	for (int row = 0; row < ROW_COUNT; row++) {
		const char *name = record_options_table[row].yaml;

		offer(nearest, record_options_table[row].name, strlen(record_options_table[row].name));
		while (*name) {
			size_t length = strcspn(name, " ");

			offer(nearest, name, length);
			name += length + (name[length] == ' ');
		}
	}
}

static void offer_words(struct nearest *nearest, const char *const *words)
{
	for (; *words; words++)
		offer(nearest, *words, strlen(*words));
}

/* ---- refusals ---- */

/* What is being set, and where the one line about it goes. */
struct report {
	const char *key, *origin;
	char *problem;
	size_t problem_bytes;
};

/* Does the origin say the key by itself, as "--wait", "STEPSCOPE_WAIT" and "profiler.wait=3" do? */
static bool is_telling(const char *origin, const char *key)
{
	size_t length = strcspn(origin, "=");
	size_t key_length = strlen(key);

	return length >= key_length && is_same(origin + length - key_length, key, key_length);
}

/* "--wait" or "wait (train.yaml:3)" */
static void name_origin(char *out, size_t bytes, const char *key, const char *origin)
{
	if (!origin || !origin[0])
		snprintf(out, bytes, "%.80s", key);
	else if (is_telling(origin, key))
		snprintf(out, bytes, "%.*s", (int)strcspn(origin, "="), origin);
	else
		snprintf(out, bytes, "%.80s (%.120s)", key, origin);
}

/* Control characters must not reach a terminal. */
static void clean(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
	}
}

/* Writes "<key> <text>" and returns false. */
__attribute__((format(printf, 2, 3))) static bool refuse(const struct report *report, const char *format, ...)
{
	char name[256];
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	name_origin(name, sizeof(name), report->key, report->origin);
	snprintf(report->problem, report->problem_bytes, "%s %s", name, text);
	if (report->problem_bytes)
		clean(report->problem);
	return false;
}

static bool refuse_word(const struct report *report, const char *word, size_t length, const char *const *words)
{
	struct nearest nearest = nearest_to(word, length);

	offer_words(&nearest, words);
	if (nearest.name)
		return refuse(report, "does not know '%.*s', did you mean '%s'?", (int)(length > 60 ? 60 : length), word,
			      nearest.name);
	return refuse(report, "does not know '%.*s'; it takes %s, %s and %s", (int)(length > 60 ? 60 : length), word,
		      words[0], words[1], words[2]);
}

/* ---- values: parsers ---- */

/* All of the text as a number of at most LARGEST_COUNT; -1 when it is larger, -2 when it is no number. */
static int64_t parse_count(const char *text, size_t length)
{
	int64_t value = 0;

	if (!length)
		return -2;
	for (size_t i = 0; i < length; i++) {
		if (!is_digit(text[i]))
			return -2;
		if (value <= LARGEST_COUNT)
			value = value * 10 + (text[i] - '0');
	}
	return value <= LARGEST_COUNT ? value : -1;
}

struct unit {
	const char *name;
	int64_t factor;
};

static const struct unit byte_units[] = {
	{"", 1}, {"b", 1}, {"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", INT64_C(1) << 40}, {NULL, 0},
};

static const struct unit time_units[] = {
	{"", 1000000000}, {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {"sec", 1000000000},
	{"m", INT64_C(60000000000)}, {"min", INT64_C(60000000000)}, {"h", INT64_C(3600000000000)},
	{"d", INT64_C(86400000000000)}, {NULL, 0},
};

static int64_t unit_factor(const char *text, size_t length, const struct unit *units)
{
	/* KiB and KB are K: all sizes go by 1024 */
	if (units == byte_units && length == 3 && is_same(text + 1, "ib", 2))
		length = 1;
	if (units == byte_units && length == 2 && lower(text[1]) == 'b')
		length = 1;
	for (; units->name; units++) {
		if (is_word(text, length, units->name))
			return units->factor;
	}
	return 0;
}

/* 64M, 1.5G, 10m, 250ms: digits, at most three of them after a point, and a unit. -1 too large, -2 malformed. */
static int64_t parse_scaled(const char *text, const struct unit *units)
{
	size_t digits = 0;
	int64_t whole, factor, thousandths = 0, value;

	while (is_digit(text[digits]))
		digits++;
	whole = parse_count(text, digits);
	text += digits;
	if (*text == '.') {
		int64_t weight = 100;

		for (text++; is_digit(*text); text++, weight /= 10) {
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
	if (__builtin_mul_overflow(whole, factor, &value) || __builtin_add_overflow(value, thousandths * factor / 1000, &value))
		return -1;
	return value;
}

/* Takes the next item of a list off `text`; false at its end. Items stand between colons, commas or blanks. */
static bool next_item(const char **text, const char **item, size_t *length)
{
	*text += strspn(*text, ":, \t");
	*item = *text;
	*length = strcspn(*text, ":, \t");
	*text += *length;
	return *length > 0;
}

/* "50", "50-60", "50-" */
static bool parse_range(const char *text, size_t length, struct step_range *range)
{
	const char *dash = memchr(text, '-', length);
	size_t first_length = dash ? (size_t)(dash - text) : length;

	range->first = parse_count(text, first_length);
	range->last = range->first;
	if (dash && first_length + 1 == length)
		range->last = INT64_MAX;
	else if (dash)
		range->last = parse_count(dash + 1, length - first_length - 1);
	return range->first >= 0 && range->last >= range->first;
}

/* Puts a range where it belongs and swallows what it touches, so that the list is ascending and apart. */
static bool add_range(struct step_range *ranges, int *count, struct step_range range)
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

static bool parse_ranges(const struct report *report, const char *text, struct step_range *ranges, int *count)
{
	const char *item;
	size_t length;

	*count = 0;
	while (next_item(&text, &item, &length)) {
		struct step_range range;

		if (!parse_range(item, length, &range))
			return refuse(report, "wants numbers and ranges such as 50-60,100, got '%.*s'",
				      (int)(length > 60 ? 60 : length), item);
		if (!add_range(ranges, count, range))
			return refuse(report, "takes at most %d ranges", RECORDER_MAX_RANGES);
	}
	return *count > 0 || refuse(report, "wants numbers and ranges such as 50-60,100");
}

/* ---- values: checks, and the form in which they are kept ---- */

static bool keep_bool(const struct report *report, char *value, size_t bytes)
{
	size_t length = strlen(value);

	if (find_word(value, length, true_words) >= 0)
		return copy_text(value, bytes, "true", 4);
	if (find_word(value, length, false_words) >= 0)
		return copy_text(value, bytes, "false", 5);
	return refuse(report, "must be true or false, got '%.60s'", value);
}

static bool keep_count(const struct report *report, enum row row, char *value, size_t bytes)
{
	bool is_negative = value[0] == '-' && parse_count(value + 1, strlen(value + 1)) != -2;
	int64_t least = row == ROW_ACTIVE || row == ROW_NUM_STEPS || row == ROW_FREQUENCY;
	int64_t count = parse_count(value, strlen(value));

	if (is_negative || (count >= 0 && count < least))
		return refuse(report, "must be %" PRId64 " or more, got %.60s", least, value);
	if (count == -1)
		return refuse(report, "must be at most %" PRId64 ", got %.60s", LARGEST_COUNT, value);
	if (count < 0)
		return refuse(report, "must be a whole number, got '%.60s'", value);
	snprintf(value, bytes, "%" PRId64, count);
	return true;
}

static bool keep_bytes(const struct report *report, const char *value)
{
	int64_t size = parse_scaled(value, byte_units);

	if (size == -1)
		return refuse(report, "is too large: '%.60s'", value);
	if (size < 0)
		return refuse(report, "wants a size such as 64M or 1.5G, got '%.60s'", value);
	return size == 0 || size >= SMALLEST_BYTES || refuse(report, "must be 64K or more, or 0, got '%.60s'", value);
}

static bool keep_duration(const struct report *report, const char *value)
{
	int64_t duration = parse_scaled(value, time_units);

	if (duration == -1)
		return refuse(report, "is too long: '%.60s'", value);
	return duration >= 0 || refuse(report, "wants a time such as 30s, 10m or 250ms, got '%.60s'", value);
}

/* A list with colons, as it must be inside a list of options. */
static void join_by_colons(char *value)
{
	char *to = value;
	const char *from = value, *item;
	size_t length;

	while (next_item(&from, &item, &length)) {
		if (to > value)
			*to++ = ':';
		memmove(to, item, length);
		to += length;
	}
	*to = '\0';
}

static bool check_words(const struct report *report, const char *text, const char *const *words)
{
	const char *item;
	size_t length;

	while (next_item(&text, &item, &length)) {
		if (find_word(item, length, words) < 0)
			return refuse_word(report, item, length, words);
	}
	return true;
}

static bool keep_text(const struct report *report, enum row row, char *value)
{
	struct step_range ranges[RECORDER_MAX_RANGES];
	int count;

	if (row == ROW_OUT)
		return true;
	if (row == ROW_TYPE) {
		if (find_word(value, strlen(value), type_words) < 0)
			return refuse_word(report, value, strlen(value), type_words);
	} else if (row == ROW_WITH) {
		if (!check_words(report, value, with_words))
			return false;
	} else if (!(row == ROW_STEPS && (!strcmp(value, "all") || !strcmp(value, "none"))) &&
		   !(row == ROW_RANKS && (!strcmp(value, "all") || !strcmp(value, "local0")))) {
		if (!parse_ranges(report, value, ranges, &count))
			return false;
	}
	join_by_colons(value);
	return true;
}

static bool keep_value(const struct report *report, enum row row, char *value, size_t bytes)
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
	case RECORD_TEXT:
		break;
	}
	return keep_text(report, row, value);
}

/* ---- settings: one value ---- */

static char *room_of(struct record_settings *settings, int row, size_t *bytes)
{
	*bytes = row == ROW_OUT ? sizeof(settings->run_directory) : sizeof(settings->value[row]);
	return row == ROW_OUT ? settings->run_directory : settings->value[row];
}

static const char *value_of(const struct record_settings *settings, int row)
{
	return row == ROW_OUT ? settings->run_directory : settings->value[row];
}

static void unset(struct record_settings *settings, int row)
{
	size_t bytes;
	char *room = room_of(settings, row, &bytes);

	room[0] = '\0';
	settings->is_set[row] = false;
	settings->origin[row] = NULL;
}

/* YAML has several words for nothing; a directory may have their names. */
static bool is_nothing(int row, const char *text, size_t length)
{
	if (!length)
		return true;
	return row != ROW_OUT && (is_word(text, length, "null") || is_word(text, length, "~"));
}

/* `is_more`: the value is a further item of a list that was begun. On failure the settings stay as they were. */
static bool store(struct record_settings *settings, const struct report *report, int row, const char *text, size_t length,
		  bool is_more)
{
	char value[sizeof(settings->run_directory)];
	size_t bytes, before = 0;
	char *room = room_of(settings, row, &bytes);

	text = trim(text, &length);
	if (is_nothing(row, text, length)) {
		if (!is_more)
			unset(settings, row);
		return true;
	}
	if (is_more && settings->is_set[row]) {
		before = strlen(room) + 1;
		memcpy(value, room, before);
		value[before - 1] = ':';
	}
	if (before + length >= bytes)
		return refuse(report, "is too long: at most %zu bytes", bytes - 1);
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

/* By the name and by the further ones. */
static int find_row(const char *key, size_t length)
{
	for (int row = 0; row < ROW_COUNT; row++) {
		const char *name = record_options_table[row].yaml;

		if (is_word(key, length, record_options_table[row].name))
			return row;
		while (*name) {
			size_t name_length = strcspn(name, " ");

			if (name_length == length && is_same(name, key, length))
				return row;
			name += name_length + (name[name_length] == ' ');
		}
	}
	return -1;
}

/* "training.profiler.schedule.steps.1": the part behind the block, and which item of a list it is. */
struct key {
	const char *leaf;
	size_t length;
	int64_t item; /* -1: not one of a list */
	bool is_in_block;
};

static struct key split_key(const char *text)
{
	struct key key = {text, 0, -1, false};
	size_t tail;

	for (const char *part = text; *part; part += strcspn(part, ".") + (part[strcspn(part, ".")] == '.')) {
		size_t length = strcspn(part, ".");

		if (part[length] == '.' && find_word(part, length, blocks) >= 0) {
			key.leaf = part + length + 1;
			key.is_in_block = true;
		}
	}
	if (key.is_in_block && (!strncmp(key.leaf, "schedule.", 9)))
		key.leaf += 9;
	key.length = strlen(key.leaf);
	tail = key.length;
	while (tail && is_digit(key.leaf[tail - 1]))
		tail--;
	if (tail && tail < key.length && key.leaf[tail - 1] == '.') {
		key.item = parse_count(key.leaf + tail, key.length - tail);
		key.length = tail - 1;
	}
	/* flags of a command line: --profiler-wait-steps */
	if (!key.is_in_block && key.length > 9 && is_same(key.leaf, "profiler_", 9)) {
		key.leaf += 9;
		key.length -= 9;
		key.is_in_block = true;
	}
	return key;
}

/* "profilr.enabled": a known name in a block whose name is nearly one of ours. */
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
	offer_words(&nearest, blocks);
	return nearest.name;
}

static bool unknown_key(const struct report *report, const char *text, const struct key *key, bool is_lenient)
{
	size_t start = 0, length = 0;
	const char *block = key->is_in_block ? NULL : misspelt_block(text, &start, &length);
	struct nearest nearest = nearest_to(key->leaf, key->length);
	char origin[160] = "";

	if (!key->is_in_block && is_lenient && !block)
		return false;
	/* an origin that is the key itself says nothing more */
	if (report->origin && report->origin[0] && !is_telling(report->origin, text))
		snprintf(origin, sizeof(origin), " (%.120s)", report->origin);
	offer_names(&nearest);
	if (block)
		snprintf(report->problem, report->problem_bytes, "unknown option '%.80s'%s, did you mean '%.*s%s%.60s'?",
			 text, origin, (int)(start > 60 ? 0 : start), text, block, text + start + length);
	else if (nearest.name)
		snprintf(report->problem, report->problem_bytes, "unknown option '%.80s'%s, did you mean '%.*s%.*s'?", text,
			 origin, (int)(key->leaf - text > 60 ? 0 : key->leaf - text), text, (int)nearest.name_length,
			 nearest.name);
	else
		snprintf(report->problem, report->problem_bytes, "unknown option '%.80s'%s", text, origin);
	if (report->problem_bytes)
		clean(report->problem);
	return false;
}

static bool is_list(int row)
{
	return row == ROW_STEPS || row == ROW_RANKS || row == ROW_WITH;
}

static bool set_n(struct record_settings *settings, const struct report *report, const char *value, size_t length,
		  bool is_lenient)
{
	const char *text = report->key + strspn(report->key, "+"); /* Hydra's "add" and "force" */
	struct key key = split_key(text);
	int row = find_row(key.leaf, key.length);

	if (report->problem_bytes)
		report->problem[0] = '\0';
	if (is_lenient && !key.is_in_block)
		row = -1;
	else if (row < 0 && key.item < 0 && find_word(key.leaf, key.length, keys_without_effect) >= 0)
		return true;
	if (row < 0 || (key.item >= 0 && !is_list(row)))
		return unknown_key(report, text, &key, is_lenient);
	return store(settings, report, row, value, length, key.item > 0);
}

bool record_settings_set(struct record_settings *settings, const char *key, const char *value, const char *origin,
			 bool is_lenient, char *problem, size_t problem_bytes)
{
	struct report report = {key, origin, problem, problem_bytes};

	return set_n(settings, &report, value, strlen(value), is_lenient);
}

/* ---- settings: lists and the environment ---- */

/* Copies an entry "name=value" up to a comma, without the backslashes; returns what follows. NULL: too long. */
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
	char entry[sizeof(settings->run_directory) + 2 * LONGEST_NAME];

	if (problem_bytes)
		problem[0] = '\0';
	while (*list) {
		struct report report = {entry, origin, problem, problem_bytes};
		size_t length;
		char *equals, *name;

		list = take_entry(list, entry, sizeof(entry));
		if (!list) {
			report.key = "list of options";
			return refuse(&report, "has an entry that is too long");
		}
		length = strlen(entry);
		name = entry + (trim(entry, &length) - entry);
		name[length] = '\0';
		if (!length)
			continue;
		report.key = name;
		equals = strchr(name, '=');
		if (!equals)
			return refuse(&report, "has no value, write %.60s=...", name);
		*equals = '\0';
		if (!set_n(settings, &report, equals + 1, strlen(equals + 1), false))
			return false;
	}
	return true;
}

/* "STEPSCOPE_WIAT=3". Other parts of the program have variables, too; a new one that is refused here wants another name. */
static bool check_variable(const char *entry, size_t length, char *problem, size_t problem_bytes)
{
	struct nearest nearest = nearest_to(entry + 10, length - 10);

	nearest.mistakes = length - 10 < 5 ? 2 : 3;
	for (int row = 0; row < ROW_COUNT; row++)
		offer(&nearest, record_options_table[row].environment + 10, strlen(record_options_table[row].environment + 10));
	if (!nearest.name || nearest.mistakes == 0)
		return true;
	snprintf(problem, problem_bytes, "unknown variable '%.*s', did you mean 'STEPSCOPE_%s'?",
		 (int)(length > 80 ? 80 : length), entry, nearest.name);
	if (problem_bytes)
		clean(problem);
	return false;
}

static bool set_variable(struct record_settings *settings, const char *entry, char *problem, size_t problem_bytes)
{
	size_t length = strcspn(entry, "=");

	for (int row = 0; row < ROW_COUNT; row++) {
		const struct record_option *option = &record_options_table[row];
		struct report report = {option->name, option->environment, problem, problem_bytes};

		if (strncmp(entry, option->environment, length) != 0 || option->environment[length])
			continue;
		if (settings->origin[row] == options_variable)
			return true;
		return store(settings, &report, row, entry + length + 1, strlen(entry + length + 1), false);
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
		char entry[2 * sizeof(settings->run_directory) + LONGEST_NAME];
		size_t entry_length;

		if (!settings->is_set[row])
			continue;
		entry_length = (size_t)snprintf(entry, sizeof(entry), "%s%s=", length ? "," : "",
						record_options_table[row].name);
		for (const char *from = value_of(settings, row); *from; from++) {
			if (*from == ',' || *from == '\\')
				entry[entry_length++] = '\\';
			entry[entry_length++] = *from;
		}
		if (!copy_text(out + length, bytes - length, entry, entry_length))
			return 0;
		length += entry_length;
	}
	return length;
}

/* ---- the decision ---- */

struct resolver {
	struct record_options *options;
	const struct record_settings *settings;
	char *problem;
	size_t problem_bytes;
};

/* Three ways to say which steps; each excludes the others. */
static const enum row schedule_rows[] = {ROW_WAIT, ROW_WARMUP, ROW_ACTIVE, ROW_REPEAT, ROW_SKIP_FIRST, ROW_SKIP_FIRST_WAIT,
					 ROW_FREQUENCY};
static const enum row window_rows[] = {ROW_START_STEP, ROW_NUM_STEPS};
static const enum row list_rows[] = {ROW_STEPS};
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* The first of the rows that is set, ROW_COUNT when none is. */
static enum row first_set(const struct record_settings *settings, const enum row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (settings->is_set[rows[i]])
			return rows[i];
	}
	return ROW_COUNT;
}

static bool contradict(const struct resolver *resolver, enum row a, enum row b, const char *why)
{
	char names[2][256];
	enum row rows[2] = {a, b};

	if (a == ROW_COUNT || b == ROW_COUNT)
		return true;
	for (int i = 0; i < 2; i++)
		name_origin(names[i], sizeof(names[i]), record_options_table[rows[i]].name, resolver->settings->origin[rows[i]]);
	snprintf(resolver->problem, resolver->problem_bytes, "%s and %s contradict each other: %s", names[0], names[1], why);
	if (resolver->problem_bytes)
		clean(resolver->problem);
	return false;
}

static int64_t count_of(const struct record_settings *settings, enum row row, int64_t fallback)
{
	const char *value = settings->value[row];

	return settings->is_set[row] ? parse_count(value, strlen(value)) : fallback;
}

static bool is_true(const struct record_settings *settings, enum row row)
{
	return settings->is_set[row] && !strcmp(settings->value[row], "true");
}

static int type_of(const struct record_settings *settings)
{
	const char *value = settings->value[ROW_TYPE];

	return settings->is_set[ROW_TYPE] ? find_word(value, strlen(value), type_words) : 1;
}

static bool check_modes(const struct resolver *resolver)
{
	const struct record_settings *settings = resolver->settings;
	enum row list = first_set(settings, list_rows, LENGTH(list_rows));
	enum row window = first_set(settings, window_rows, LENGTH(window_rows));
	enum row schedule = first_set(settings, schedule_rows, LENGTH(schedule_rows));
	enum row simple = type_of(settings) == 0 ? ROW_TYPE : ROW_COUNT;
	const char *no_steps = "type=simple records steps and phases only";

	if (list != ROW_COUNT && !strcmp(settings->value[list], "none"))
		simple = ROW_COUNT;
	return contradict(resolver, list, schedule, "one is a list of steps, the other a schedule") &&
	       contradict(resolver, list, window, "both say which steps to record") &&
	       contradict(resolver, window, schedule, "one is a window of steps, the other a schedule") &&
	       contradict(resolver, simple, list, no_steps) && contradict(resolver, simple, window, no_steps) &&
	       contradict(resolver, simple, schedule, no_steps);
}

/* repeat=0 with profiling_frequency=N: N is the length of a cycle, wait is what remains of it. */
static bool resolve_frequency(const struct resolver *resolver)
{
	struct record_options *options = resolver->options;
	const struct record_settings *settings = resolver->settings;
	int64_t frequency = count_of(settings, ROW_FREQUENCY, 0);
	struct report report = {record_options_table[ROW_FREQUENCY].name, settings->origin[ROW_FREQUENCY], resolver->problem,
				resolver->problem_bytes};

	if (!frequency || options->repeat > 0)
		return true;
	/* the guide's default cycle is 7 + 2 + 1 */
	if (!settings->is_set[ROW_WARMUP])
		options->warmup = frequency - options->active >= 2 ? 2 : frequency > options->active;
	options->profiling_frequency = frequency;
	options->wait = frequency - (options->warmup + options->active);
	if (options->wait < 0)
		return refuse(&report, "must be at least warmup + active (%" PRId64 " + %" PRId64 "), got %" PRId64,
			      options->warmup, options->active, frequency);
	return true;
}

static bool resolve_schedule(const struct resolver *resolver)
{
	struct record_options *options = resolver->options;
	const struct record_settings *settings = resolver->settings;

	options->mode = RECORD_SCHEDULE;
	options->wait = count_of(settings, ROW_WAIT, 0);
	options->warmup = count_of(settings, ROW_WARMUP, 0);
	options->active = count_of(settings, ROW_ACTIVE, 1);
	options->repeat = count_of(settings, ROW_REPEAT, 0);
	options->skip_first = count_of(settings, ROW_SKIP_FIRST, 0);
	options->skip_first_wait = count_of(settings, ROW_SKIP_FIRST_WAIT, 0);
	return resolve_frequency(resolver);
}

static void resolve_window(const struct resolver *resolver)
{
	struct step_range *range = &resolver->options->steps[0];

	resolver->options->mode = RECORD_STEPS;
	resolver->options->step_range_count = 1;
	range->first = count_of(resolver->settings, ROW_START_STEP, 0);
	range->last = INT64_MAX;
	if (resolver->settings->is_set[ROW_NUM_STEPS])
		range->last = range->first + count_of(resolver->settings, ROW_NUM_STEPS, 1) - 1;
}

static bool resolve_list(const struct resolver *resolver)
{
	struct record_options *options = resolver->options;
	const char *value = resolver->settings->value[ROW_STEPS];
	struct report report = {record_options_table[ROW_STEPS].name, resolver->settings->origin[ROW_STEPS],
				resolver->problem, resolver->problem_bytes};

	if (!strcmp(value, "all"))
		return true;
	options->mode = RECORD_STEPS;
	return !strcmp(value, "none") || parse_ranges(&report, value, options->steps, &options->step_range_count);
}

static bool resolve_mode(const struct resolver *resolver)
{
	const struct record_settings *settings = resolver->settings;

	if (settings->is_set[ROW_ENABLED] && !is_true(settings, ROW_ENABLED)) {
		resolver->options->mode = RECORD_OFF;
		return true;
	}
	if (!check_modes(resolver))
		return false;
	if (first_set(settings, schedule_rows, LENGTH(schedule_rows)) != ROW_COUNT)
		return resolve_schedule(resolver);
	if (first_set(settings, window_rows, LENGTH(window_rows)) != ROW_COUNT)
		resolve_window(resolver);
	else if (settings->is_set[ROW_STEPS])
		return resolve_list(resolver);
	else if (type_of(settings) == 0)
		resolver->options->mode = RECORD_STEPS;
	return true;
}

/* One thing that can be recorded besides: by its word, by its own option, by what brings several. */
static bool resolve_addition(const struct resolver *resolver, int word, enum row row, bool *is_with)
{
	const struct record_settings *settings = resolver->settings;
	const char *text = settings->value[ROW_WITH], *item;
	size_t length;
	bool is_listed = false;

	while (next_item(&text, &item, &length))
		is_listed |= find_word(item, length, with_words) == word;
	if (is_listed && settings->is_set[row] && !is_true(settings, row))
		return contradict(resolver, ROW_WITH, row, "one records it, the other does not");
	*is_with = is_listed || is_true(settings, row) || is_true(settings, ROW_MEMORY_TIMELINE);
	/* type=pytorch is a default for the first two, which a "false" may take back */
	if (type_of(settings) == 2 && row != ROW_STACK && !settings->is_set[row])
		*is_with = true;
	return true;
}

static bool resolve_additions(const struct resolver *resolver)
{
	struct record_options *options = resolver->options;

	return resolve_addition(resolver, 0, ROW_SHAPES, &options->with_shapes) &&
	       resolve_addition(resolver, 1, ROW_MEMORY, &options->with_memory) &&
	       resolve_addition(resolver, 2, ROW_STACK, &options->with_lines);
}

static bool resolve_ranks(const struct resolver *resolver)
{
	struct record_options *options = resolver->options;
	const char *value = resolver->settings->value[ROW_RANKS];
	struct report report = {record_options_table[ROW_RANKS].name, resolver->settings->origin[ROW_RANKS],
				resolver->problem, resolver->problem_bytes};

	if (!resolver->settings->is_set[ROW_RANKS] || !strcmp(value, "all"))
		return true;
	options->ranks = strcmp(value, "local0") ? RANKS_LIST : RANKS_LOCAL0;
	return options->ranks == RANKS_LOCAL0 ||
	       parse_ranges(&report, value, options->rank_list, &options->rank_range_count);
}

static void resolve_scaled(const struct resolver *resolver, enum row row, int64_t *value)
{
	bool is_bytes = record_options_table[row].type == RECORD_BYTES;

	if (resolver->settings->is_set[row])
		*value = parse_scaled(resolver->settings->value[row], is_bytes ? byte_units : time_units);
}

static bool resolve_storage(const struct resolver *resolver)
{
	struct record_options *options = resolver->options;
	const struct record_settings *settings = resolver->settings;

	if (options->mode != RECORD_ALWAYS)
		options->keep_bytes = 0;
	resolve_scaled(resolver, ROW_POOL, &options->pool_bytes);
	resolve_scaled(resolver, ROW_KEEP_SIZE, &options->keep_bytes);
	resolve_scaled(resolver, ROW_KEEP_TIME, &options->keep_ns);
	resolve_scaled(resolver, ROW_SEGMENT_SIZE, &options->segment_bytes);
	resolve_scaled(resolver, ROW_SYNC_EVERY, &options->fdatasync_ns);
	options->cost_every = count_of(settings, ROW_COST_EVERY, 0);
	options->is_self_sampled = !settings->is_set[ROW_SAMPLE_PROCESS] || is_true(settings, ROW_SAMPLE_PROCESS);
	memcpy(options->run_directory, settings->run_directory, sizeof(options->run_directory));
	if (settings->is_set[ROW_KEEP_SIZE] && options->keep_bytes && options->segment_bytes > options->keep_bytes)
		return contradict(resolver, ROW_SEGMENT_SIZE, ROW_KEEP_SIZE, "one file would be more than is kept");
	return true;
}

void record_options_init(struct record_options *options)
{
	*options = (struct record_options){
		.mode = RECORD_ALWAYS, .active = 1, .is_self_sampled = true, .keep_bytes = ALWAYS_KEEP_BYTES};
}

bool record_options_resolve(struct record_options *options, const struct record_settings *settings, char *problem,
			    size_t problem_bytes)
{
	struct resolver resolver = {options, settings, problem, problem_bytes};

	static_assert(sizeof(options->run_directory) == sizeof(settings->run_directory), "same text");
	if (problem_bytes)
		problem[0] = '\0';
	record_options_init(options);
	return resolve_mode(&resolver) && resolve_additions(&resolver) && resolve_ranks(&resolver) &&
	       resolve_storage(&resolver);
}

static bool says_steps(const struct record_settings *settings)
{
	return first_set(settings, schedule_rows, LENGTH(schedule_rows)) != ROW_COUNT ||
	       first_set(settings, window_rows, LENGTH(window_rows)) != ROW_COUNT || settings->is_set[ROW_STEPS] ||
	       settings->is_set[ROW_TYPE];
}

void record_settings_overlay(struct record_settings *settings, const struct record_settings *over)
{
	if (says_steps(over)) {
		for (int row = ROW_STEPS; row <= ROW_TYPE; row++)
			unset(settings, row);
	}
	for (int row = 0; row < ROW_COUNT; row++) {
		size_t bytes;
		char *room = room_of(settings, row, &bytes);

		if (!over->is_set[row])
			continue;
		memcpy(room, value_of(over, row), bytes);
		settings->is_set[row] = true;
		settings->origin[row] = over->origin[row];
	}
}
