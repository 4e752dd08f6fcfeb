/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_baseline.c: see the header.
 */
#include "store/compare_baseline.h"

#include <stdlib.h>
#include <string.h>

/* Parses --baseline: "last:5" is `last` with 5 runs, any other word stands for one run. */
static enum status parse_word(const char *word, char *plain, size_t bytes, int *wanted, struct error *err)
{
	long number;
	char *end;

	*wanted = 1;
	if (snprintf(plain, bytes, "%s", word) >= (int)bytes)
		return error_set(err, STATUS_USAGE, "the name of the baseline is too long");
	if (strncmp(word, "last:", 5) != 0)
		return STATUS_OK;
	number = strtol(word + 5, &end, 10);
	if (end == word + 5 || *end || number < 1 || number > BASELINE_RUNS)
		return error_set(err, STATUS_USAGE, "option '--baseline' wants last:1 to last:%d, got '%s'",
		                 BASELINE_RUNS, word);
	plain[4] = '\0';
	*wanted = (int)number;
	return STATUS_OK;
}

/* Loads the runs oldest first, in the order in which they were made. Fewer runs than wanted are accepted, but not
 * zero. */
static enum status load_runs(struct history *history, struct history_wanted wanted, struct compared_run *base,
                             int *count, struct buffer *note, struct error *err)
{
	struct history_run found[BASELINE_RUNS];
	char word[BASELINE_NAME + 1];
	int most, known = 0;
	enum status status = parse_word(wanted.word, word, sizeof(word), &most, err);

	wanted.word = word;
	while (!status && known < most) {
		struct error none;

		wanted.skip = known;
		status = history_find(history, &wanted, &found[known], known ? &none : err);
		known += !status;
		if (status && known && status != STATUS_INPUT)
			*err = none;
	}
	if (!known || (status && status != STATUS_INPUT))
		return status;
	if (found[0].has_no_speed)
		buffer_printf(note, "no other run of the series has a speed, so 'best' is the last run, '%s'",
		              found[0].name);
	for (*count = 0; *count < known; (*count)++) {
		if (history_load(history, &found[known - 1 - *count], &base[*count], err))
			break;
	}
	if (*count == known)
		return STATUS_OK;
	while (*count > 0)
		compared_run_release(&base[--*count]);
	return err->status;
}

enum status compare_baseline_load(const struct compare_baseline *baseline, const char *series,
                                  const struct history_except *except, struct compared_run *base, int *count,
                                  struct history_scatter *scatter, struct buffer *note, struct error *err)
{
	const struct history_wanted wanted = {
		.series = baseline->series ? baseline->series : series, .word = baseline->word, .except = except};
	struct history history;
	struct arena arena;
	const char *path = baseline->history;
	enum status status;

	*count = 0;
	*scatter = (struct history_scatter){0};
	arena_init(&arena, 0);
	if (!path)
		path = history_default_path(&arena, err);
	status = path ? history_open(&history, path, HISTORY_READ, err) : STATUS_ENVIRONMENT;
	arena_release(&arena);
	if (status)
		return status;
	if (!strcmp(wanted.word, "best"))
		status = history_scatter(&history, wanted.series, except, scatter, err);
	status = status ? status : load_runs(&history, wanted, base, count, note, err);
	history_close(&history);
	return status;
}
