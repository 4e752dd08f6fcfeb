/* SPDX-License-Identifier: Apache-2.0
 *
 * options_resolve.c: turns settings into options, or into one line with the reason why they contradict each other.
 */
#include "recorder/option_rows.h"
#include "recorder/option_values.h"
#include "recorder/options.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ALWAYS_KEEP_BYTES (INT64_C(256) << 20)
#define DEFAULT_BUDGET 0.03

struct resolver {
	struct record_options *options;
	const struct record_settings *settings;
	char *problem;
	size_t problem_bytes;
};

/* Three ways to select steps; each excludes the others. */
static const enum row schedule_rows[] = {ROW_WAIT,       ROW_WARMUP,          ROW_ACTIVE,   ROW_REPEAT,
                                         ROW_SKIP_FIRST, ROW_SKIP_FIRST_WAIT, ROW_FREQUENCY};
/* Options that define the cycles that --repeat counts. */
static const enum row cycle_rows[] = {ROW_WAIT, ROW_WARMUP, ROW_ACTIVE};
static const enum row window_rows[] = {ROW_START_STEP, ROW_NUM_STEPS};
static const enum row list_rows[] = {ROW_STEPS};
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Returns the first of the rows that is set, or ROW_COUNT. */
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
		report_name_origin(names[i], sizeof(names[i]), record_options_table[rows[i]].name,
		                   resolver->settings->origin[rows[i]]);
	snprintf(resolver->problem, resolver->problem_bytes, "%s and %s contradict each other: %s", names[0], names[1],
	         why);
	if (resolver->problem_bytes)
		report_clean(resolver->problem);
	return false;
}

static struct option_report report_on(const struct resolver *resolver, enum row row)
{
	return (struct option_report){record_options_table[row].name, resolver->settings->origin[row],
	                              resolver->problem, resolver->problem_bytes};
}

static int64_t options_resolve_count_of(const struct record_settings *settings, enum row row, int64_t fallback)
{
	const char *value = settings->value[row];

	return settings->is_set[row] ? value_parse_count(value, strlen(value)) : fallback;
}

static bool is_true(const struct record_settings *settings, enum row row)
{
	return settings->is_set[row] && !strcmp(settings->value[row], "true");
}

static int options_resolve_type_of(const struct record_settings *settings)
{
	const char *value = settings->value[ROW_TYPE];

	return settings->is_set[ROW_TYPE] ? value_find_word(value, strlen(value), record_type_words) : TYPE_ADVANCED;
}

static bool check_modes(const struct resolver *resolver)
{
	const struct record_settings *settings = resolver->settings;
	enum row list = first_set(settings, list_rows, LENGTH(list_rows));
	enum row window = first_set(settings, window_rows, LENGTH(window_rows));
	enum row schedule = first_set(settings, schedule_rows, LENGTH(schedule_rows));
	enum row simple = options_resolve_type_of(settings) == TYPE_SIMPLE ? ROW_TYPE : ROW_COUNT;
	const char *no_steps = "type=simple records steps and phases only";

	if (list != ROW_COUNT && !strcmp(settings->value[list], "none"))
		simple = ROW_COUNT;
	return contradict(resolver, list, schedule, "the first is a list of steps, the second a schedule") &&
	       contradict(resolver, list, window, "both select the steps to record") &&
	       contradict(resolver, window, schedule, "the first is a window of steps, the second a schedule") &&
	       contradict(resolver, simple, list, no_steps) && contradict(resolver, simple, window, no_steps) &&
	       contradict(resolver, simple, schedule, no_steps);
}

/* If repeat=0 and profiling_frequency=N, N is the length of a cycle and wait is the rest of it. */
static bool resolve_frequency(const struct resolver *resolver)
{
	struct record_options *options = resolver->options;
	const struct record_settings *settings = resolver->settings;
	int64_t frequency = options_resolve_count_of(settings, ROW_FREQUENCY, 0);
	struct option_report report = report_on(resolver, ROW_FREQUENCY);

	if (!frequency || options->repeat > 0)
		return true;
	/* the guide's default cycle is 7 + 2 + 1 */
	if (!settings->is_set[ROW_WARMUP])
		options->warmup = frequency - options->active >= 2 ? 2 : frequency > options->active;
	options->profiling_frequency = frequency;
	options->wait = frequency - (options->warmup + options->active);
	if (options->wait < 0)
		return report_refuse(&report,
		                     "must be at least warmup + active (%" PRId64 " + %" PRId64 "), got %" PRId64,
		                     options->warmup, options->active, frequency);
	return true;
}

/* Refuses options that would have no effect or a surprising one: "--repeat 2" alone would record two steps. */
static bool check_cycle(const struct resolver *resolver)
{
	const struct record_settings *settings = resolver->settings;
	bool has_cycle = first_set(settings, cycle_rows, LENGTH(cycle_rows)) != ROW_COUNT;
	bool has_wait = settings->is_set[ROW_WAIT] || settings->is_set[ROW_FREQUENCY];
	struct option_report repeat = report_on(resolver, ROW_REPEAT);
	struct option_report skip = report_on(resolver, ROW_SKIP_FIRST_WAIT);

	if (!has_cycle && options_resolve_count_of(settings, ROW_REPEAT, 0) > 0)
		return report_refuse(&repeat,
		                     "counts cycles, but no option defines a cycle: add active, wait or warmup");
	if (!has_wait && options_resolve_count_of(settings, ROW_SKIP_FIRST_WAIT, 0) > 0)
		return report_refuse(&skip, "leaves out the first wait, but the cycle has no wait: add wait");
	return true;
}

static bool resolve_schedule(const struct resolver *resolver)
{
	struct record_options *options = resolver->options;
	const struct record_settings *settings = resolver->settings;

	if (!check_cycle(resolver))
		return false;
	options->mode = RECORD_SCHEDULE;
	options->wait = options_resolve_count_of(settings, ROW_WAIT, 0);
	options->warmup = options_resolve_count_of(settings, ROW_WARMUP, 0);
	options->active = options_resolve_count_of(settings, ROW_ACTIVE, 1);
	options->repeat = options_resolve_count_of(settings, ROW_REPEAT, 0);
	options->skip_first = options_resolve_count_of(settings, ROW_SKIP_FIRST, 0);
	options->skip_first_wait = options_resolve_count_of(settings, ROW_SKIP_FIRST_WAIT, 0);
	return resolve_frequency(resolver);
}

static void resolve_window(const struct resolver *resolver)
{
	struct step_range *range = &resolver->options->steps[0];

	resolver->options->mode = RECORD_STEPS;
	resolver->options->step_range_count = 1;
	range->first = options_resolve_count_of(resolver->settings, ROW_START_STEP, 0);
	range->last = INT64_MAX;
	if (resolver->settings->is_set[ROW_NUM_STEPS])
		range->last = range->first + options_resolve_count_of(resolver->settings, ROW_NUM_STEPS, 1) - 1;
}

static bool resolve_list(const struct resolver *resolver)
{
	struct record_options *options = resolver->options;
	const char *value = resolver->settings->value[ROW_STEPS];
	struct option_report report = report_on(resolver, ROW_STEPS);

	if (!strcmp(value, "all"))
		return true;
	options->mode = RECORD_STEPS;
	return !strcmp(value, "none") || value_parse_ranges(&report, value, options->steps, &options->step_range_count);
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
	else if (options_resolve_type_of(settings) == TYPE_SIMPLE)
		resolver->options->mode = RECORD_STEPS;
	return true;
}

/* Resolves one addition to operators. Its word, its own option, or an option for several additions may ask for it. */
static bool resolve_addition(const struct resolver *resolver, int word, enum row row, bool *is_with)
{
	const struct record_settings *settings = resolver->settings;
	const char *text = settings->value[ROW_WITH], *item;
	size_t length;
	bool is_listed = false;

	while (value_next_item(&text, &item, &length))
		is_listed |= value_find_word(item, length, record_with_words) == word;
	if (is_listed && settings->is_set[row] && !is_true(settings, row))
		return contradict(resolver, ROW_WITH, row, "one records it, the other does not");
	*is_with = is_listed || is_true(settings, row) || is_true(settings, ROW_MEMORY_TIMELINE);
	/* type=pytorch is a default for the first two; a "false" overrides it */
	if (options_resolve_type_of(settings) == TYPE_PYTORCH && row != ROW_STACK && !settings->is_set[row])
		*is_with = true;
	return true;
}

static bool resolve_additions(const struct resolver *resolver)
{
	struct record_options *options = resolver->options;

	return resolve_addition(resolver, WITH_SHAPES, ROW_SHAPES, &options->with_shapes) &&
	       resolve_addition(resolver, WITH_MEMORY, ROW_MEMORY, &options->with_memory) &&
	       resolve_addition(resolver, WITH_LINES, ROW_STACK, &options->with_lines);
}

static bool resolve_ranks(const struct resolver *resolver)
{
	struct record_options *options = resolver->options;
	const char *value = resolver->settings->value[ROW_RANKS];
	struct option_report report = report_on(resolver, ROW_RANKS);

	if (!resolver->settings->is_set[ROW_RANKS] || !strcmp(value, "all"))
		return true;
	options->ranks = strcmp(value, "local0") ? RANKS_LIST : RANKS_LOCAL0;
	return options->ranks == RANKS_LOCAL0 ||
	       value_parse_ranges(&report, value, options->rank_list, &options->rank_range_count);
}

static void resolve_scaled(const struct resolver *resolver, enum row row, int64_t *value)
{
	bool is_bytes = record_options_table[row].type == RECORD_BYTES;

	if (resolver->settings->is_set[row])
		*value = value_parse_scaled(resolver->settings->value[row],
		                            is_bytes ? value_byte_units : value_time_units);
}

/* Returns the option that selects steps, or ROW_COUNT. Selected steps have all operators, whatever they cost. */
static enum row asked_by(const struct record_settings *settings)
{
	enum row schedule = first_set(settings, schedule_rows, LENGTH(schedule_rows));
	enum row window = first_set(settings, window_rows, LENGTH(window_rows));

	if (schedule != ROW_COUNT || window != ROW_COUNT)
		return schedule != ROW_COUNT ? schedule : window;
	if (settings->is_set[ROW_STEPS])
		return ROW_STEPS;
	if (is_true(settings, ROW_MEMORY_TIMELINE))
		return ROW_MEMORY_TIMELINE;
	return options_resolve_type_of(settings) == TYPE_ADVANCED ? ROW_COUNT : ROW_TYPE;
}

static bool resolve_budget(const struct resolver *resolver)
{
	struct record_options *options = resolver->options;
	const struct record_settings *settings = resolver->settings;
	const char *value = settings->value[ROW_BUDGET];
	int64_t every = options_resolve_count_of(settings, ROW_COST_EVERY, 0);
	enum row asked = asked_by(settings);

	if (options->mode != RECORD_OFF && every && settings->is_set[ROW_BUDGET])
		return contradict(resolver, ROW_BUDGET, ROW_COST_EVERY,
		                  "the first limits the cost of recording, the second sets in how many steps operators "
		                  "are recorded");
	options->asked = asked == ROW_COUNT ? NULL : record_options_table[asked].flag;
	options->budget = DEFAULT_BUDGET;
	if (settings->is_set[ROW_BUDGET])
		options->budget = strcmp(value, "none") ? (double)value_parse_scaled(value, value_share_units) / 100000
		                                        : 0;
	if (options->asked)
		options->budget = 0;
	options->cost_every = options->budget > 0 ? every : 0;
	return true;
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
	options->is_self_sampled = !settings->is_set[ROW_SAMPLE_PROCESS] || is_true(settings, ROW_SAMPLE_PROCESS);
	memcpy(options->run_directory, settings->run_directory, sizeof(options->run_directory));
	if (settings->is_set[ROW_KEEP_SIZE] && options->keep_bytes && options->segment_bytes > options->keep_bytes)
		return contradict(resolver, ROW_SEGMENT_SIZE, ROW_KEEP_SIZE,
		                  "one file would be larger than the kept data");
	return true;
}

void record_options_init(struct record_options *options)
{
	*options = (struct record_options){.mode = RECORD_ALWAYS,
	                                   .active = 1,
	                                   .is_self_sampled = true,
	                                   .keep_bytes = ALWAYS_KEEP_BYTES,
	                                   .budget = DEFAULT_BUDGET};
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
	       resolve_budget(&resolver) && resolve_storage(&resolver);
}

/* Unsets options that select steps in another way. */
static void unset_rows(struct record_settings *settings, const enum row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		record_settings_unset(settings, rows[i]);
}

static void unset_other_ways(struct record_settings *settings, const struct record_settings *over)
{
	bool is_list = first_set(over, list_rows, LENGTH(list_rows)) != ROW_COUNT;
	bool is_window = first_set(over, window_rows, LENGTH(window_rows)) != ROW_COUNT;
	bool is_schedule = first_set(over, schedule_rows, LENGTH(schedule_rows)) != ROW_COUNT;
	bool is_simple = options_resolve_type_of(over) == TYPE_SIMPLE;

	if (is_window || is_schedule || is_simple)
		unset_rows(settings, list_rows, LENGTH(list_rows));
	if (is_list || is_schedule || is_simple)
		unset_rows(settings, window_rows, LENGTH(window_rows));
	if (is_list || is_window || is_simple)
		unset_rows(settings, schedule_rows, LENGTH(schedule_rows));
	if ((is_list || is_window || is_schedule) && options_resolve_type_of(settings) == TYPE_SIMPLE)
		record_settings_unset(settings, ROW_TYPE);
	if (over->is_set[ROW_BUDGET])
		record_settings_unset(settings, ROW_COST_EVERY);
	if (over->is_set[ROW_COST_EVERY])
		record_settings_unset(settings, ROW_BUDGET);
	/* a frequency would override the given wait */
	if (over->is_set[ROW_WAIT])
		record_settings_unset(settings, ROW_FREQUENCY);
}

void record_settings_overlay(struct record_settings *settings, const struct record_settings *over)
{
	unset_other_ways(settings, over);
	for (int row = 0; row < ROW_COUNT; row++) {
		size_t bytes;
		char *room = record_settings_room(settings, row, &bytes);

		if (!over->is_set[row])
			continue;
		memcpy(room, record_settings_value(over, row), bytes);
		settings->is_set[row] = true;
		settings->origin[row] = over->origin[row];
	}
}
