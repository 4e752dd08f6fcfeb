/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_benchmark.c: the new side's numbers for github-action-benchmark. A file of that action has one direction, so
 * there are two.
 */
#include "base/json_write.h"
#include "base/units.h"
#include "model/cell_words.h"
#include "output/compare/compare_outputs.h"

#include <math.h>
#include <string.h>

#define MIB (1024.0 * 1024.0)

/* Converts a value to the unit of the action's charts. */
static double scaled(const char *unit, double value, const char **shown)
{
	static const struct {
		const char *unit, *shown;
		double factor;
	} units[] = {{"ns", "ms", 1e-6}, {"bytes", "MiB", 1 / MIB}, {"ratio", "%", 100}, {"per_s", "1/s", 1}};

	*shown = "1";
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(units[i].unit, unit) != 0)
			continue;
		*shown = units[i].shown;
		return value * units[i].factor;
	}
	return value;
}

static int count_side(const struct table *runs, const char *side)
{
	int count = 0;

	for (int row = 0; row < runs->row_count; row++)
		count += !strcmp(compare_text(runs, row, RUNS_SIDE), side);
	return count;
}

/* Adds the origin of the value. The names of runs are data, so JSON quotes them. */
static void add_extra(struct json_writer *json, const struct compare_output *of)
{
	const struct table *runs = &of->comparison->runs;
	struct buffer text;

	buffer_init(&text, 1 << 20);
	buffer_printf(&text, "%d run%s, base %d", count_side(runs, CELL_SIDE_NEW),
	              count_side(runs, CELL_SIDE_NEW) == 1 ? "" : "s", count_side(runs, CELL_SIDE_BASE));
	for (int row = 0; row < runs->row_count; row++)
		buffer_printf(&text, "\n%s: %s", compare_text(runs, row, RUNS_SIDE), compare_text(runs, row, RUNS_RUN));
	json_key(json, "extra"), json_string_n(json, text.data, text.length);
	buffer_release(&text);
}

static void compare_benchmark_add_entry(struct json_writer *json, const struct compare_output *of, int row,
                                        double value)
{
	const struct table *metrics = &of->comparison->metrics;
	char from[UNITS_BYTES], to[UNITS_BYTES];
	struct buffer name, range;
	double low, high;
	const char *unit;

	value = scaled(compare_text(metrics, row, METRIC_UNIT), value, &unit);
	buffer_init(&name, 1 << 16);
	buffer_init(&range, 1 << 10);
	buffer_printf(&name, "%s/%s", of->name, compare_text(metrics, row, METRIC_NAME));
	json_object_begin(json);
	json_key(json, "name"), json_string(json, name.data);
	json_key(json, "unit"), json_string(json, unit);
	json_key(json, "value"), json_double(json, value);
	if (table_number(metrics, row, METRIC_LOW, &low) && table_number(metrics, row, METRIC_HIGH, &high)) {
		buffer_printf(&range, "change %s to %s", units_change(from, low), units_change(to, high));
		json_key(json, "range"), json_string(json, range.data);
	}
	add_extra(json, of);
	json_object_end(json);
	buffer_release(&name);
	buffer_release(&range);
}

void compare_benchmark(struct buffer *out, const struct compare_output *of, bool is_bigger_better)
{
	const struct table *metrics = &of->comparison->metrics;
	struct json_writer json;
	double value;

	json_writer_init(&json, out, JSON_PRETTY);
	json_array_begin(&json);
	for (int row = 0; row < metrics->row_count; row++) {
		bool is_higher = !strcmp(compare_text(metrics, row, METRIC_BETTER), "higher");

		if (is_higher == is_bigger_better && table_number(metrics, row, METRIC_NEW, &value) && isfinite(value))
			compare_benchmark_add_entry(&json, of, row, value);
	}
	json_array_end(&json);
	buffer_add_text(out, "\n");
}
