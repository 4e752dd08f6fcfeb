/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_text.c: see the header. All numbers come from the tables of the comparison.
 */
#include "output/compare/comparison_text.h"

#include "base/units.h"
#include "output/compare/compare_outputs.h"
#include "output/text/cells.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LABEL_WIDTH 12
#define ROWS 8 /* most rows of a level */
#define FUNCTIONS 20
#define LEAST_SHARE 0.01 /* of the level's difference, or of its largest row: smaller rows are not shown */
#define MAXIMUM_TEXT (1 << 20)

/* ---- the verdict ---- */

static void comparison_text_add_line(struct buffer *out, const struct table *verdict, const char *label, int column,
                                     const struct text_style *style)
{
	struct buffer clean;

	if (!table_text(verdict, 0, column))
		return;
	buffer_init(&clean, MAXIMUM_TEXT);
	text_for_people(&clean, table_text(verdict, 0, column));
	buffer_printf(out, "%-*s", LABEL_WIDTH, label);
	text_wrapped(out, clean.data, LABEL_WIDTH, LABEL_WIDTH, style);
	buffer_release(&clean);
}

static void comparison_text_add_verdict(struct buffer *out, const struct comparison *comparison,
                                        const struct text_style *style)
{
	const struct table *verdict = &comparison->verdict;
	enum compare_result result = comparison->decided.result;
	struct buffer clean;

	buffer_init(&clean, MAXIMUM_TEXT);
	text_for_people(&clean, table_text(verdict, 0, COMPARISON_SENTENCE));
	text_heading(out, compare_result_name(result), style);
	buffer_add_text(out, ": ");
	text_wrapped(out, clean.data, 2, (int)strlen(compare_result_name(result)) + 2, style);
	buffer_release(&clean);
	if (result != RESULT_NOT_COMPARABLE) /* the sentence contains it */
		comparison_text_add_line(out, verdict, "because", COMPARISON_EXPLANATION, style);
	comparison_text_add_line(out, verdict, "by cut", COMPARISON_BY_CUT, style);
	comparison_text_add_line(out, verdict, "promised", COMPARISON_PROMISED, style);
	comparison_text_add_line(out, verdict, "mostly", COMPARISON_CAUSE, style);
	comparison_text_add_line(out, verdict, "to settle", COMPARISON_NEEDED, style);
	comparison_text_add_line(out, verdict, "damaged", COMPARISON_DAMAGE, style);
	comparison_text_add_line(out, verdict, "work", COMPARISON_WORK, style);
	comparison_text_add_line(out, verdict, "unchecked", COMPARISON_UNCHECKED, style);
	comparison_text_add_line(out, verdict, "noise", COMPARISON_NOISE, style);
	comparison_text_add_line(out, verdict, "method", COMPARISON_METHOD, style);
}

/* ---- metrics ---- */

void comparison_value(struct buffer *out, const struct table *metrics, int row, int column)
{
	const char *unit = table_text(metrics, row, METRIC_UNIT);
	char text[UNITS_BYTES];
	double value;

	if (!table_number(metrics, row, column, &value))
		buffer_add_text(out, "-");
	else if (!strcmp(unit, "ns"))
		buffer_add_text(out, units_time(text, value));
	else if (!strcmp(unit, "bytes"))
		buffer_add_text(out, units_bytes(text, value));
	else if (!strcmp(unit, "ratio"))
		buffer_add_text(out, units_ratio(text, value));
	else if (!strcmp(unit, "none"))
		buffer_printf(out, "%.4g", value);
	else
		buffer_add_text(out, units_count(text, value));
}

static void set_value(struct table *view, int row, int column, const struct table *metrics, int metric, int source)
{
	struct buffer text;

	buffer_init(&text, MAXIMUM_TEXT);
	comparison_value(&text, metrics, metric, source);
	table_set_text(view, row, column, text.data);
	buffer_release(&text);
}

static void comparison_text_set_change(struct table *view, int row, const struct table *metrics, int metric)
{
	char text[UNITS_BYTES], from[UNITS_BYTES], to[UNITS_BYTES];
	double change, low, high;

	if (!table_number(metrics, metric, METRIC_RATIO, &change) || !table_number(metrics, metric, METRIC_LOW, &low) ||
	    !table_number(metrics, metric, METRIC_HIGH, &high))
		return;
	table_set_text(view, row, 3, units_change(text, change));
	table_set_text(view, row, 4,
	               arena_printf(&view->arena, "%s to %s", units_change(from, low), units_change(to, high)));
}

/* Copies the metrics into a table of texts, because each row has its own unit. Metrics without a value are listed below
 * the table. */
static void comparison_text_add_metrics(struct buffer *out, const struct comparison *comparison,
                                        const struct text_style *style)
{
	const struct table *metrics = &comparison->metrics;
	static const char *const names[] = {"metric", "base", "new", "change", "95 %", "result"};
	const char *missing = NULL;
	struct table view;

	table_init(&view, "metrics", "", "");
	for (int i = 0; i < 6; i++)
		table_column(&view, &(struct table_column){.name = names[i], .type = TABLE_TEXT});
	for (int metric = 0; metric < metrics->row_count; metric++) {
		int row;

		if (comparison->metric_results[metric].result == RESULT_NOT_MEASURED && metric) {
			missing = arena_printf(&view.arena, "%s%s%s", missing ? missing : "", missing ? ", " : "",
			                       table_text(metrics, metric, METRIC_TITLE));
			continue;
		}
		row = table_row(&view);
		table_set_text(&view, row, 0, table_text(metrics, metric, METRIC_TITLE));
		set_value(&view, row, 1, metrics, metric, METRIC_BASE);
		set_value(&view, row, 2, metrics, metric, METRIC_NEW);
		comparison_text_set_change(&view, row, metrics, metric);
		table_set_text(&view, row, 5, table_text(metrics, metric, METRIC_RESULT));
	}
	view.note = metrics->note;
	buffer_add_text(out, "\n");
	text_table(out, &view,
	           &(struct text_view){
			   .columns = "metric,base,new,change,95 %,result", .has_heading = true, .is_brief = true},
	           style);
	if (missing) {
		buffer_add_text(out, "  ");
		text_wrapped(out, arena_printf(&view.arena, "not measured: %s", missing), 2, 2, style);
	}
	table_release(&view);
}

/* ---- origin of the difference ---- */

static void copy_row(struct table *view, const struct table *from, int row)
{
	int copy = table_row(view);

	for (int column = 0; column < from->column_count; column++) {
		const struct table_cell *cell = table_get(from, row, column);

		if (!cell->has_value)
			table_set_missing(view, copy, column, cell->reason);
		else if (from->columns[column].type == TABLE_TEXT)
			table_set_text(view, copy, column, cell->text);
		else if (from->columns[column].type == TABLE_BOOL)
			table_set_bool(view, copy, column, cell->b);
		else if (from->columns[column].type == TABLE_INT)
			table_set_int(view, copy, column, cell->i);
		else
			table_set_double(view, copy, column, cell->d);
	}
}

/* Returns true if the row is large enough; `first` is the level's first and largest row. */
static bool is_shown(const struct table *contributions, int row, int first)
{
	double delta = fabs(table_get(contributions, row, CONTRIBUTION_DELTA)->d);
	const struct table_cell *share = table_get(contributions, row, CONTRIBUTION_RATIO);

	if (!share->has_value) /* the rows of the level cancel out */
		return delta > 0 && delta >= LEAST_SHARE * fabs(table_get(contributions, first, CONTRIBUTION_DELTA)->d);
	return fabs(share->d) >= LEAST_SHARE;
}

/* Returns the columns of the table `contributions` or `memory`. */
static const char *columns_of(const struct table *table)
{
	return table->columns[CONTRIBUTION_DELTA].unit == UNIT_BYTES
	               ? "delta_bytes,share_ratio,base_bytes,new_bytes,base_allocations,new_allocations,is_certain,name,note"
	               : "delta_ns,share_ratio,base_ns,new_ns,base_calls,new_calls,is_certain,name,note";
}

static void comparison_text_add_level(struct buffer *out, const struct table *contributions, int first, int end,
                                      bool is_long, const struct text_style *style)
{
	bool is_bytes = contributions->columns[CONTRIBUTION_DELTA].unit == UNIT_BYTES;
	struct table view;
	int hidden = 0;
	char text[UNITS_BYTES];
	double hidden_amount = 0;

	table_init(&view, "contributions", "", "");
	table_columns(&view, contributions->columns, contributions->column_count);
	for (int row = first; row < end; row++) {
		if (is_long || (view.row_count < ROWS && is_shown(contributions, row, first))) {
			copy_row(&view, contributions, row);
			continue;
		}
		hidden++;
		hidden_amount += table_get(contributions, row, CONTRIBUTION_DELTA)->d;
	}
	if (!strcmp(table_text(contributions, first, CONTRIBUTION_LEVEL), COMPARED_KERNEL))
		view.note = contributions->note;
	if (view.row_count) {
		buffer_add_text(out, "\n");
		text_heading(out, "Difference by ", style);
		text_heading(out, table_text(contributions, first, CONTRIBUTION_LEVEL), style);
		buffer_add_text(out, "\n");
		text_table(out, &view,
		           &(struct text_view){
				   .columns = columns_of(contributions), .has_heading = true, .is_brief = true},
		           style);
	}
	if (view.row_count && hidden && fabs(hidden_amount) >= 1) {
		is_bytes ? units_bytes(text, fabs(hidden_amount)) : units_time(text, fabs(hidden_amount));
		buffer_printf(out, "  %d more: %c%s together\n", hidden, hidden_amount < 0 ? '-' : '+', text);
	}
	table_release(&view);
}

static void add_levels(struct buffer *out, const struct table *contributions, bool is_long,
                       const struct text_style *style)
{
	for (int first = 0, end; first < contributions->row_count; first = end) {
		const char *level = table_text(contributions, first, CONTRIBUTION_LEVEL);

		for (end = first + 1; end < contributions->row_count &&
		                      !strcmp(table_text(contributions, end, CONTRIBUTION_LEVEL), level);)
			end++;
		comparison_text_add_level(out, contributions, first, end, is_long, style);
	}
}

/* Returns true if the row is a hundredth of the difference and of a step. */
static bool is_large(const struct comparison *comparison, int row)
{
	double least_ns = fmax(fabs(comparison->cuts.new_ns - comparison->cuts.base_ns), comparison->cuts.base_ns);
	double change_ns = fabs(table_get(&comparison->explained_by, row, EXPLAINED_CHANGE)->d), part_ns = 0;

	table_number(&comparison->explained_by, row, EXPLAINED_PART, &part_ns);
	return fmax(change_ns, fabs(part_ns)) >= LEAST_SHARE * least_ns;
}

static void add_cuts(struct buffer *out, const struct comparison *comparison, bool is_long,
                     const struct text_style *style)
{
	const struct table *cuts = &comparison->explained_by;
	struct table view;

	if (!cuts->row_count)
		return;
	table_init(&view, "explained_by", "", "");
	table_columns(&view, cuts->columns, cuts->column_count);
	for (int row = 0; row < cuts->row_count; row++)
		if (is_long || (view.row_count < ROWS && is_large(comparison, row)))
			copy_row(&view, cuts, row);
	if (view.row_count) {
		buffer_add_text(out, "\n");
		text_heading(out, cuts->title, style);
		buffer_add_text(out, "\n");
		text_table(
			out, &view,
			&(struct text_view){
				.columns =
					"part_ns,change_ns,change_low_ns,change_high_ns,base_saving_ns,new_saving_ns,cut,place",
				.has_heading = true,
				.is_brief = true},
			style);
	}
	table_release(&view);
}

/* ---- functions ---- */

static void comparison_text_add_functions(struct buffer *out, const struct table *functions, bool is_long,
                                          const struct text_style *style)
{
	struct table view;
	int hidden;

	if (!functions->row_count)
		return;
	table_init(&view, "functions", "", "");
	table_columns(&view, functions->columns, functions->column_count);
	for (int row = 0; row < functions->row_count; row++)
		if (is_long || (view.row_count < FUNCTIONS && function_has_changed(functions, row)))
			copy_row(&view, functions, row);
	view.note = functions->note;
	view.empty = FUNCTIONS_ARE_THE_SAME;
	buffer_add_text(out, "\n");
	text_heading(out, functions->title, style);
	buffer_add_text(out, "\n");
	text_table(out, &view,
	           &(struct text_view){.columns = "self_change_ratio,base_self_ratio,new_self_ratio,base_self,new_self,"
	                                          "total_change_ratio,is_certain,function,file,note",
	                               .has_heading = true,
	                               .is_brief = true},
	           style);
	hidden = functions->row_count - view.row_count;
	if (hidden)
		buffer_printf(out, "  %d more: --long\n", hidden);
	table_release(&view);
}

/* ---- telemetry ---- */

static void add_telemetry(struct buffer *out, const struct comparison *comparison, bool is_long,
                          const struct text_style *style)
{
	const struct table *telemetry = &comparison->telemetry;
	struct table view;
	int hidden;

	if (!telemetry->row_count)
		return;
	table_init(&view, "telemetry", "", "");
	table_columns(&view, telemetry->columns, telemetry->column_count);
	for (int row = 0; row < telemetry->row_count; row++)
		if (is_long || comparison->telemetry_results[row] != RESULT_SAME)
			copy_row(&view, telemetry, row);
	view.note = telemetry->note;
	view.empty = "nothing changed";
	buffer_add_text(out, "\n");
	text_heading(out, telemetry->title, style);
	buffer_add_text(out, "\n");
	text_table(out, &view,
	           &(struct text_view){.columns = "of,quantity,unit,base,new,delta,ci95_low,ci95_high,result",
	                               .has_heading = true,
	                               .is_brief = true},
	           style);
	hidden = telemetry->row_count - view.row_count;
	if (hidden)
		buffer_printf(out, "  %d more without a difference: --long\n", hidden);
	table_release(&view);
}

/* ---- the whole text ---- */

static void comparison_text_add_note(struct buffer *out, const struct table *table, const struct text_style *style)
{
	if (!table->note)
		return;
	buffer_add_text(out, "  ");
	text_wrapped(out, table->note, 2, 2, style);
}

static void comparison_text_add_table(struct buffer *out, const struct table *table, const char *columns,
                                      const struct text_style *style)
{
	if (!table->row_count)
		return;
	buffer_add_text(out, "\n");
	text_heading(out, table->title, style);
	buffer_add_text(out, "\n");
	text_table(out, table, &(struct text_view){.columns = columns, .has_heading = true, .is_brief = true}, style);
}

void comparison_text(struct buffer *out, const struct comparison *comparison, const struct table *limits, bool is_long,
                     const struct text_style *style)
{
	comparison_text_add_verdict(out, comparison, style);
	comparison_text_add_metrics(out, comparison, style);
	comparison_text_add_table(out, limits, "limit,result,message", style);
	comparison_text_add_table(out, &comparison->differences, "kind,fact,base,new,meaning", style);
	add_cuts(out, comparison, is_long, style);
	add_levels(out, &comparison->contributions, is_long, style);
	add_levels(out, &comparison->memory, is_long, style);
	comparison_text_add_note(out, &comparison->memory, style);
	comparison_text_add_functions(out, &comparison->functions, is_long, style);
	add_telemetry(out, comparison, is_long, style);
	comparison_text_add_table(out, &comparison->runs,
	                          "side,run,created,steps,warm_up_steps,step_ns,error_ratio,trend_ratio", style);
}
