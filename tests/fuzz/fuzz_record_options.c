/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_record_options.c: the first byte chooses how the rest is given: as a list, as "key=value" lines of a YAML file, or as an
 * environment. Whatever is accepted must read back the same from its own list, and a decision must be in bounds.
 */
#include "recorder/schedule.h"

#include <stdlib.h>
#include <string.h>

#define LINES 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_right)
{
	if (!is_right)
		abort();
}

static void check_problem(bool is_good, const char *problem)
{
	check(strlen(problem) < 256);
	check(!is_good || !problem[0]);
	for (; *problem; problem++)
		check((unsigned char)*problem >= ' ');
}

static void check_ranges(const struct step_range *ranges, int count)
{
	check(count >= 0 && count <= RECORDER_MAX_RANGES);
	for (int i = 0; i < count; i++) {
		check(ranges[i].first >= 0 && ranges[i].last >= ranges[i].first);
		check(i == 0 || ranges[i - 1].last + 1 < ranges[i].first);
	}
}

static void check_decision(const struct record_options *options)
{
	struct schedule_progress progress = {0};
	char out[300];

	check(options->wait >= 0 && options->warmup >= 0 && options->active > 0 && options->repeat >= 0);
	check(options->keep_bytes >= 0 && options->keep_ns >= 0 && options->pool_bytes >= 0);
	check_ranges(options->steps, options->step_range_count);
	check_ranges(options->rank_list, options->rank_range_count);
	schedule_describe(options, &progress, out, sizeof(out));
	for (int64_t step = 0; step < 40; step++)
		schedule_note(&progress, schedule_action(options, step, step), step);
	check(schedule_describe(options, &progress, out, sizeof(out)) == strlen(out));
	check(out[0] != '\0');
}

static void check_settings(const struct record_settings *settings)
{
	struct record_settings again = {0};
	struct record_options options;
	char list[16384], list_again[16384], problem[256];
	bool is_good;

	record_settings_format(settings, list, sizeof(list));
	check(record_settings_parse(&again, list, "list", problem, sizeof(problem)));
	record_settings_format(&again, list_again, sizeof(list_again));
	check(!strcmp(list, list_again));
	is_good = record_options_resolve(&options, settings, problem, sizeof(problem));
	check_problem(is_good, problem);
	if (is_good)
		check_decision(&options);
}

/* Cuts the text into lines in place. */
static int split_lines(char *text, char **lines)
{
	int count = 0;

	while (*text && count < LINES) {
		lines[count++] = text;
		text += strcspn(text, "\n");
		if (*text)
			*text++ = '\0';
	}
	lines[count] = NULL;
	return count;
}

static void set_lines(struct record_settings *settings, char **lines, int count, bool is_lenient)
{
	char problem[256];

	for (int i = 0; i < count; i++) {
		char *value = strchr(lines[i], '=');

		if (value)
			*value++ = '\0';
		check_problem(record_settings_set(settings, lines[i], value ? value : "", "file.yaml:1", is_lenient,
		                                  problem, sizeof(problem)),
		              problem);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record_settings settings = {0};
	char *lines[LINES + 1], *text, problem[256] = "";
	int count;

	if (size < 1)
		return 0;
	text = malloc(size);
	check(text != NULL);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (data[0] % 4 == 0) {
		check_problem(record_settings_parse(&settings, text, "--options", problem, sizeof(problem)), problem);
	} else {
		count = split_lines(text, lines);
		if (data[0] % 4 == 1)
			check_problem(record_settings_environment(&settings, lines, problem, sizeof(problem)), problem);
		else
			set_lines(&settings, lines, count, data[0] % 4 == 2);
	}
	check_settings(&settings);
	free(text);
	return 0;
}
