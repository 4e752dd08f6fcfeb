/* SPDX-License-Identifier: Apache-2.0
 *
 * progress.c: see the header.
 */
#include "commands/progress.h"

#include "base/time_now.h"
#include "base/units.h"
#include "commands/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BAR_WIDTH 20

void progress_begin(struct progress *progress, const char *what, const char *unit, bool is_off)
{
	const char *variable = getenv("STEPSCOPE_NO_PROGRESS");

	*progress = (struct progress){.what = what, .unit = unit};
	progress->is_off = is_off || common.is_quiet || (variable && variable[0]);
	progress->is_terminal = isatty(STDERR_FILENO);
	progress->start_ns = time_now_ns(CLOCK_MONOTONIC);
	progress->next_ns = progress->start_ns + (progress->is_terminal ? 500000000 : INT64_C(10000000000));
}

static void print_bar(double ratio)
{
	int full = (int)(ratio * BAR_WIDTH);

	for (int i = 0; i < BAR_WIDTH; i++)
		fputs(!common.is_utf8 ? (i < full ? "#" : "-")
		      : i < full      ? "\u2501"
		      : i == full     ? "\u257a"
		                      : "\u2500",
		      stderr);
}

static void print_line(const struct progress *progress, uint64_t done, uint64_t total, int64_t elapsed_ns)
{
	double ratio = total ? (double)done / (double)total : 0;
	char first[UNITS_BYTES], second[UNITS_BYTES];

	fprintf(stderr, "%s ", progress->what);
	if (total) {
		if (progress->is_terminal)
			print_bar(ratio);
		fprintf(stderr, " %3.0f%%  %s/%s %s", ratio * 100, units_count(first, (double)done),
		        units_count(second, (double)total), progress->unit);
		if (ratio > 0.02)
			fprintf(stderr, "  ETA %s", units_time(first, (double)elapsed_ns * (1 - ratio) / ratio));
	} else {
		fprintf(stderr, " %s %s", units_count(first, (double)done), progress->unit);
	}
}

void progress_update(struct progress *progress, uint64_t done, uint64_t total)
{
	int64_t now;

	if (progress->is_off)
		return;
	now = time_now_ns(CLOCK_MONOTONIC);
	if (now < progress->next_ns)
		return;
	progress->next_ns = now + (progress->is_terminal ? 100000000 : INT64_C(10000000000));
	progress->is_shown = true;
	if (progress->is_terminal)
		fputs("\r\033[K", stderr);
	print_line(progress, done, total, now - progress->start_ns);
	if (!progress->is_terminal)
		fputs("\n", stderr);
	fflush(stderr);
}

void progress_end(struct progress *progress)
{
	if (progress->is_shown && progress->is_terminal)
		fputs("\r\033[K", stderr);
	progress->is_off = true;
}

double progress_seconds(const struct progress *progress)
{
	return (double)(time_now_ns(CLOCK_MONOTONIC) - progress->start_ns) * 1e-9;
}
