/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_canary.c: the comparison that rlhf-canary's notebook prints, in its widths. The notebook's diagnosis is a
 * fixed text; this one prints the result of the comparison.
 */
#include "output/compare/compare_outputs.h"
#include "output/text/cells.h"

#include <string.h>

#define MIB (1024.0 * 1024.0)

static void add_rule(struct buffer *out, char c, int width)
{
	for (int i = 0; i < width; i++)
		buffer_add_byte(out, (uint8_t)c);
	buffer_add_text(out, "\n");
}

static void add_banner(struct buffer *out, const char *title)
{
	buffer_add_text(out, "\n");
	add_rule(out, '=', 60);
	buffer_printf(out, "%s\n", title);
	add_rule(out, '=', 60);
	buffer_add_text(out, "\n");
}

/* Reads both sides of a metric, times a factor. Returns false if it was not measured on both sides. */
static bool both(const struct comparison *comparison, const char *name, double factor, double *base, double *new)
{
	int row = comparison_metric(comparison, name);

	if (row < 0 || !table_number(&comparison->metrics, row, METRIC_BASE, base) ||
	    !table_number(&comparison->metrics, row, METRIC_NEW, new))
		return false;
	*base *= factor;
	*new *= factor;
	return true;
}

static void compare_canary_add_missing(struct buffer *out, const char *title)
{
	buffer_printf(out, "%-25s %15s %15s %15s\n", title, "N/A", "N/A", "N/A");
}

static void compare_canary_add_change(struct buffer *out, const struct comparison *comparison, const char *title,
                                      const char *metric, double factor, int decimals)
{
	double base, new;

	if (!both(comparison, metric, factor, &base, &new))
		compare_canary_add_missing(out, title);
	else if (base != 0)
		buffer_printf(out, "%-25s %15.*f %15.*f %+14.1f%%\n", title, decimals, base, decimals, new,
		              (new - base) / base * 100);
	else
		buffer_printf(out, "%-25s %15.*f %15.*f %15s\n", title, decimals, base, decimals, new, "N/A");
}

static void compare_canary_add_memory(struct buffer *out, const struct comparison *comparison)
{
	double base, new;

	if (both(comparison, "device_memory", 1 / MIB, &base, &new) ||
	    both(comparison, "peak_memory", 1 / MIB, &base, &new))
		buffer_printf(out, "%-25s %15.0f %15.0f %+14.0f\n", "Memory (MB)", base, new, new - base);
	else
		compare_canary_add_missing(out, "Memory (MB)");
}

/* Sums the rows of a level: the time of a mean step, in ms. */
static bool sum_level(const struct comparison *comparison, const char *level, double *base, double *new)
{
	const struct table *parts = &comparison->contributions;
	bool is_found = false;
	double value;

	*base = *new = 0;
	for (int row = 0; row < parts->row_count; row++) {
		if (strcmp(compare_text(parts, row, CONTRIBUTION_LEVEL), level) != 0)
			continue;
		is_found = true;
		if (table_number(parts, row, CONTRIBUTION_BASE, &value))
			*base += value / 1e6;
		if (table_number(parts, row, CONTRIBUTION_NEW, &value))
			*new += value / 1e6;
	}
	return is_found;
}

/* Uses the profiler's totals if the files have them, otherwise the time in a mean step of traces and recordings. */
static void add_profiled(struct buffer *out, const struct comparison *comparison, const char *title, const char *metric,
                         const char *level)
{
	double base, new;

	if (both(comparison, metric, 1e-6, &base, &new) || sum_level(comparison, level, &base, &new))
		buffer_printf(out, "%-25s %15.2f %15.2f\n", title, base, new);
	else
		buffer_printf(out, "%-25s %15s %15s\n", title, "N/A", "N/A");
}

/* Escapes the text, because names of the program may contain terminal commands. */
static void compare_canary_add_line(struct buffer *out, const char *text)
{
	if (!text[0])
		return;
	text_for_people(out, text);
	buffer_add_text(out, "\n");
}

void compare_canary(struct buffer *out, const struct compare_output *of)
{
	const struct table *verdict = &of->comparison->verdict;

	add_banner(out, "COMPARISON: Baseline vs Current Run");
	buffer_printf(out, "%-25s %15s %15s %15s\n", "Metric", "Baseline", "Current", "Change");
	add_rule(out, '-', 70);
	compare_canary_add_change(out, of->comparison, "Step time (s)", "step_time_mean", 1e-9, 4);
	compare_canary_add_change(out, of->comparison, "Tokens/sec", "tokens_per_s", 1, 0);
	compare_canary_add_memory(out, of->comparison);
	add_banner(out, "PROFILER COMPARISON");
	buffer_printf(out, "%-25s %15s %15s\n", "Metric", "Baseline", "Current");
	add_rule(out, '-', 55);
	add_profiled(out, of->comparison, "CUDA time (ms)", "profiled_device_time", "kernel");
	add_profiled(out, of->comparison, "CPU time (ms)", "profiled_host_time", "operator");
	add_banner(out, "DIAGNOSIS");
	compare_canary_add_line(out, compare_text(verdict, 0, COMPARISON_SENTENCE));
	if (of->comparison->decided.answer != ANSWER_OTHER_WORK) /* that sentence contains the explanation */
		compare_canary_add_line(out, compare_text(verdict, 0, COMPARISON_EXPLANATION));
	compare_canary_add_line(out, compare_text(verdict, 0, COMPARISON_CAUSE));
}
