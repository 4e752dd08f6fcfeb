/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_markdown.c: a comparison as GitHub's Markdown. The mandatory parts come first; rows of the later tables are
 * added while there is room.
 */
#include "base/demangle.h"
#include "base/units.h"
#include "output/compare/compare_outputs.h"
#include "output/compare/comparison_text.h"
#include "output/text/escape.h"

#include <stepscope/stepscope.h>
#include <string.h>

#define NAME_CHARACTERS 80
#define ROWS_OF_LEVEL 20
#define SENTENCE_CHARACTERS 900 /* each of one to six bytes */
#define ROOM_BYTES 6400         /* for the end of a table and the last line */

struct page {
	struct buffer *out;
	const struct compare_output *of;
	size_t most_bytes;
	int left_out; /* rows */
	struct demangler demangler;
};

/* Adds a name of the program. */
static void add_name(struct page *page, struct buffer *line, const char *name)
{
	struct buffer plain;

	buffer_init(&plain, 1 << 20);
	demangler_words(&page->demangler, &plain, name);
	escape_markdown_code(line, plain.data, NAME_CHARACTERS);
	buffer_release(&plain);
}

static bool is_unchanged(const struct comparison *comparison, int row)
{
	enum compare_result result = comparison->metric_results[row].result;

	return row > 0 && (result == RESULT_SAME || result == RESULT_NOT_MEASURED);
}

/* Adds the row if there is room for it and for the end of the page. */
static void compare_markdown_add_row(struct page *page, const struct buffer *row)
{
	if (page->out->length + row->length + ROOM_BYTES <= page->most_bytes)
		buffer_add(page->out, row->data, row->length);
	else
		page->left_out++;
}

/* Adds the limits of the metric, "+10 %, +500 MiB". */
static void add_limits(struct buffer *out, const struct table *limits, const char *metric)
{
	bool is_first = true;

	for (int row = 0; row < limits->row_count; row++) {
		if (strcmp(compare_text(limits, row, CHECKED_METRIC), metric) != 0)
			continue;
		buffer_add_text(out, is_first ? "" : ", ");
		buffer_add_text(out, compare_text(limits, row, CHECKED_LIMIT));
		is_first = false;
	}
}

static void add_metric(struct page *page, int row)
{
	const struct table *metrics = &page->of->comparison->metrics, *limits = &page->of->gate->limits;
	struct buffer line;

	buffer_init(&line, 1 << 16);
	buffer_add_text(&line, "| ");
	escape_markdown(&line, compare_text(metrics, row, METRIC_TITLE), SENTENCE_CHARACTERS);
	buffer_add_text(&line, " | ");
	comparison_value(&line, metrics, row, METRIC_BASE);
	buffer_add_text(&line, " | ");
	comparison_value(&line, metrics, row, METRIC_NEW);
	buffer_add_text(&line, " | ");
	change_for_people(&line, metrics, row);
	if (limits->row_count) {
		buffer_add_text(&line, " | ");
		add_limits(&line, limits, compare_text(metrics, row, METRIC_NAME));
	}
	buffer_printf(&line, " | %s |\n", compare_text(metrics, row, METRIC_RESULT));
	compare_markdown_add_row(page, &line);
	buffer_release(&line);
}

static void add_sentence(struct page *page, const char *label, const char *text)
{
	if (!text[0])
		return;
	buffer_printf(page->out, "\n%s", label);
	escape_markdown(page->out, text, SENTENCE_CHARACTERS);
	buffer_add_text(page->out, "\n");
}

static void compare_markdown_add_metrics(struct page *page)
{
	const struct comparison *comparison = page->of->comparison;
	const struct table *metrics = &comparison->metrics;
	bool has_limits = page->of->gate->limits.row_count > 0;
	int same = 0, unmeasured = 0;

	buffer_add_text(page->out,
	                has_limits ? "| metric | base | new | change (95 %) | limit | |\n|:--|--:|--:|--:|--:|:--|\n"
	                           : "| metric | base | new | change (95 %) | |\n|:--|--:|--:|--:|:--|\n");
	for (int row = 0; row < metrics->row_count; row++) {
		if (!is_unchanged(comparison, row))
			add_metric(page, row);
		else if (comparison->metric_results[row].result == RESULT_SAME)
			same++;
		else
			unmeasured++;
	}
	add_sentence(page, "", metrics->note ? metrics->note : "");
	if (same)
		buffer_printf(page->out, "\n%d more without a difference.\n", same);
	if (unmeasured)
		buffer_printf(page->out, "\n%d not measured.\n", unmeasured);
}

/* Adds the limits that are not kept, in words. */
static void add_broken(struct page *page)
{
	const struct table *limits = &page->of->gate->limits;
	bool is_first = true;
	struct buffer line;

	buffer_init(&line, 1 << 16);
	for (int row = 0; row < limits->row_count; row++) {
		enum compare_result result = page->of->gate->checked[row].result;

		if (result == RESULT_KEPT || result == RESULT_NOT_MEASURED)
			continue;
		buffer_clear(&line);
		buffer_printf(&line, "- limit %s: ", compare_result_name(result));
		escape_markdown(&line, compare_text(limits, row, CHECKED_MESSAGE), SENTENCE_CHARACTERS);
		buffer_add_text(&line, "\n");
		buffer_add_text(page->out, is_first ? "\n" : "");
		is_first = false;
		compare_markdown_add_row(page, &line);
	}
	buffer_release(&line);
}

/* ---- details ---- */

static void add_difference(struct page *page, int row)
{
	const struct table *differences = &page->of->comparison->differences;
	struct buffer line;

	buffer_init(&line, 1 << 20);
	buffer_add_text(&line, "| ");
	escape_markdown_code(&line, compare_text(differences, row, DIFFERENCE_FACT), NAME_CHARACTERS);
	buffer_add_text(&line, " | ");
	escape_markdown_code(&line, compare_text(differences, row, DIFFERENCE_BASE), NAME_CHARACTERS);
	buffer_add_text(&line, " | ");
	escape_markdown_code(&line, compare_text(differences, row, DIFFERENCE_NEW), NAME_CHARACTERS);
	buffer_printf(&line, " | %s |\n", table_get(differences, row, DIFFERENCE_MATTERS)->b ? "yes" : "");
	compare_markdown_add_row(page, &line);
	buffer_release(&line);
}

static void add_differences(struct page *page)
{
	const struct table *differences = &page->of->comparison->differences;

	if (!differences->row_count)
		return;
	buffer_printf(page->out,
	              "\n<details><summary>Differences between the sides (%d)</summary>\n\n| | base | new | matters "
	              "|\n|:--|:--|:--|:--|\n",
	              differences->row_count);
	for (int row = 0; row < differences->row_count; row++)
		add_difference(page, row);
	buffer_add_text(page->out, "\n</details>\n");
}

static void add_contribution(struct page *page, const struct table *contributions, int row)
{
	char *(*const show)(char *, double) = contributions->columns[CONTRIBUTION_DELTA].unit == UNIT_BYTES
	                                              ? units_bytes
	                                              : units_time;
	char base[UNITS_BYTES], new[UNITS_BYTES], delta[UNITS_BYTES];
	double value = 0;
	struct buffer line;

	buffer_init(&line, 1 << 20);
	buffer_printf(&line, "| %s | ", compare_text(contributions, row, CONTRIBUTION_LEVEL));
	add_name(page, &line, compare_text(contributions, row, CONTRIBUTION_NAME));
	buffer_printf(&line, " | %s | %s | ",
	              table_number(contributions, row, CONTRIBUTION_BASE, &value) ? show(base, value) : "-",
	              table_number(contributions, row, CONTRIBUTION_NEW, &value) ? show(new, value) : "-");
	if (table_number(contributions, row, CONTRIBUTION_DELTA, &value))
		buffer_printf(&line, "%s%s |\n", value > 0 ? "+" : "", show(delta, value));
	else
		buffer_add_text(&line, "- |\n");
	compare_markdown_add_row(page, &line);
	buffer_release(&line);
}

/* Rows are grouped by level, the largest difference of a level first. */
static void add_levels(struct page *page, const struct table *contributions, const char *changed)
{
	int of_level = 0;

	if (!contributions->row_count)
		return;
	buffer_printf(page->out,
	              "\n<details><summary>Contributions to the change of %s</summary>\n\n| | | base | "
	              "new | difference |\n|:--|:--|--:|--:|--:|\n",
	              changed);
	for (int row = 0; row < contributions->row_count; row++) {
		const struct table_cell *delta = table_get(contributions, row, CONTRIBUTION_DELTA);
		bool is_same_level = row > 0 && !strcmp(compare_text(contributions, row, CONTRIBUTION_LEVEL),
		                                        compare_text(contributions, row - 1, CONTRIBUTION_LEVEL));

		of_level = is_same_level ? of_level + 1 : 1;
		if (delta->has_value && delta->d == 0)
			continue;
		if (of_level <= ROWS_OF_LEVEL)
			add_contribution(page, contributions, row);
		else
			page->left_out++;
	}
	buffer_add_text(page->out, "\n</details>\n");
}

static void add_share(struct buffer *line, const struct table *functions, int row, int column)
{
	double share;

	if (table_number(functions, row, column, &share))
		buffer_printf(line, " | %.1f %%", 100 * share);
	else
		buffer_add_text(line, " | -");
}

static void add_function(struct page *page, int row)
{
	const struct table *functions = &page->of->comparison->functions;
	struct buffer line;

	buffer_init(&line, 1 << 20);
	buffer_add_text(&line, "| ");
	add_name(page, &line, compare_text(functions, row, FUNCTIONS_NAME));
	add_share(&line, functions, row, FUNCTIONS_BASE_SELF_RATIO);
	add_share(&line, functions, row, FUNCTIONS_NEW_SELF_RATIO);
	buffer_printf(&line, " | %+.1f | %+.1f |\n", 100 * table_get(functions, row, FUNCTIONS_SELF_CHANGE)->d,
	              100 * table_get(functions, row, FUNCTIONS_TOTAL_CHANGE)->d);
	compare_markdown_add_row(page, &line);
	buffer_release(&line);
}

static void compare_markdown_add_functions(struct page *page)
{
	const struct table *functions = &page->of->comparison->functions;
	int changed = 0;

	for (int row = 0; row < functions->row_count; row++)
		changed += function_has_changed(functions, row);
	if (!functions->row_count)
		return;
	if (!changed) {
		buffer_add_text(page->out, "\nStack profiles: " FUNCTIONS_ARE_THE_SAME ".\n");
		return;
	}
	buffer_add_text(page->out, "\n<details><summary>Functions by the change of their share of samples "
	                           "(self)</summary>\n\n| | base | new | points | total points "
	                           "|\n|:--|--:|--:|--:|--:|\n");
	for (int row = 0, shown = 0; row < functions->row_count; row++) {
		if (!function_has_changed(functions, row))
			continue;
		if (shown++ < ROWS_OF_LEVEL)
			add_function(page, row);
		else
			page->left_out++;
	}
	if (changed < functions->row_count)
		buffer_printf(page->out, "\n%d more without a difference.\n", functions->row_count - changed);
	buffer_add_text(page->out, "\n</details>\n");
}

static void add_quantity(struct page *page, int row)
{
	const struct table *telemetry = &page->of->comparison->telemetry;
	double base, new;
	struct buffer line;

	buffer_init(&line, 1 << 20);
	buffer_add_text(&line, "| ");
	escape_markdown_code(&line, compare_text(telemetry, row, TELEMETRY_CHANGE_OF), NAME_CHARACTERS);
	buffer_add_text(&line, " | ");
	escape_markdown_code(&line, compare_text(telemetry, row, TELEMETRY_CHANGE_QUANTITY), NAME_CHARACTERS);
	if (table_number(telemetry, row, TELEMETRY_CHANGE_BASE, &base) &&
	    table_number(telemetry, row, TELEMETRY_CHANGE_NEW, &new))
		buffer_printf(&line, " | %.4g | %.4g | ", base, new);
	else
		buffer_add_text(&line, " | - | - | ");
	escape_markdown(&line, compare_text(telemetry, row, TELEMETRY_CHANGE_UNIT), NAME_CHARACTERS);
	buffer_printf(&line, " | %s |\n", compare_text(telemetry, row, TELEMETRY_CHANGE_RESULT));
	compare_markdown_add_row(page, &line);
	buffer_release(&line);
}

static void add_telemetry(struct page *page)
{
	const struct table *telemetry = &page->of->comparison->telemetry;
	int same = 0;

	if (!telemetry->row_count)
		return;
	buffer_add_text(page->out, "\n<details><summary>GPU telemetry</summary>\n\n| | | base | "
	                           "new | | |\n|:--|:--|--:|--:|:--|:--|\n");
	for (int row = 0; row < telemetry->row_count; row++) {
		if (page->of->comparison->telemetry_results[row] == RESULT_SAME)
			same++;
		else
			add_quantity(page, row);
	}
	if (same)
		buffer_printf(page->out, "\n%d more without a difference.\n", same);
	buffer_add_text(page->out, "\n</details>\n");
}

/* ---- the page ---- */

/* An HTML comment cannot hold "--". */
static void add_marker(struct page *page)
{
	buffer_add_text(page->out, "<!-- stepscope:compare:");
	for (const char *c = page->of->name; *c && c < page->of->name + NAME_CHARACTERS; c++) {
		bool is_plain = (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
		                *c == '_' || *c == '.';

		buffer_add_byte(page->out, is_plain ? (uint8_t)*c : '_');
	}
	buffer_add_text(page->out, " -->\n");
}

static void compare_markdown_add_verdict(struct page *page)
{
	const struct table *verdict = &page->of->comparison->verdict;

	buffer_printf(page->out, "**stepscope: %s** — ", compare_result_name(page->of->comparison->decided.result));
	escape_markdown(page->out, compare_text(verdict, 0, COMPARISON_SENTENCE), SENTENCE_CHARACTERS);
	buffer_printf(page->out, "\n\nGate: `");
	buffer_add_text(page->out, gate_result_name(page->of->gate->result));
	buffer_add_text(page->out, "`: ");
	escape_markdown(page->out, page->of->gate->sentence, SENTENCE_CHARACTERS);
	buffer_add_text(page->out, "\n\n");
}

static void add_end(struct page *page)
{
	const struct table *verdict = &page->of->comparison->verdict;

	if (page->left_out)
		buffer_printf(page->out, "\n%d rows were left out.\n", page->left_out);
	buffer_add_text(page->out, "\n<sub>");
	escape_markdown(page->out, compare_text(verdict, 0, COMPARISON_NOISE), SENTENCE_CHARACTERS);
	buffer_add_text(page->out, " · stepscope " STEPSCOPE_VERSION "</sub>\n");
}

void compare_markdown(struct buffer *out, const struct compare_output *of, size_t most_bytes)
{
	struct page page = {.out = out, .of = of, .most_bytes = most_bytes};
	const struct table *verdict = &of->comparison->verdict;

	add_marker(&page);
	compare_markdown_add_verdict(&page);
	compare_markdown_add_metrics(&page);
	add_broken(&page);
	add_sentence(&page, "Explained by: ", compare_text(verdict, 0, COMPARISON_EXPLANATION));
	add_sentence(&page, "By cut: ", compare_text(verdict, 0, COMPARISON_BY_CUT));
	add_sentence(&page, "Promised: ", compare_text(verdict, 0, COMPARISON_PROMISED));
	add_sentence(&page, "Largest contributions: ", compare_text(verdict, 0, COMPARISON_CAUSE));
	add_sentence(&page, "Work: ", compare_text(verdict, 0, COMPARISON_WORK));
	add_sentence(&page, "Unchecked: ", compare_text(verdict, 0, COMPARISON_UNCHECKED));
	add_sentence(&page, "To settle: ", compare_text(verdict, 0, COMPARISON_NEEDED));
	add_differences(&page);
	add_levels(&page, &of->comparison->contributions, of->comparison->is_whole ? "the whole recording" : "a step");
	add_levels(&page, &of->comparison->memory, "peak memory");
	compare_markdown_add_functions(&page);
	add_telemetry(&page);
	add_end(&page);
	demangler_release(&page.demangler);
}
