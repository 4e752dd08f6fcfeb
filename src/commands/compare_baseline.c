/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_baseline.c: see the header.
 */
#include "commands/compare_baseline.h"

#include "store/history.h"

enum status compare_baseline_load(const struct compare_baseline *baseline, const char *series, const char *identity,
                                  struct compared_run *base, struct error *err)
{
	struct history history;
	struct history_run found;
	struct arena arena;
	const char *path = baseline->history;
	enum status status;

	arena_init(&arena, 0);
	if (!path)
		path = history_default_path(&arena, err);
	status = path ? history_open(&history, path, HISTORY_READ, err) : err->status;
	arena_release(&arena);
	if (status)
		return status;
	status = history_find(&history, baseline->series ? baseline->series : series, baseline->word, identity, &found,
	                      err);
	if (!status)
		status = history_load(&history, &found, base, err);
	history_close(&history);
	return status;
}
