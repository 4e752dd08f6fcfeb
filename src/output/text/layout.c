/* SPDX-License-Identifier: Apache-2.0
 *
 * layout.c: walks a layout and asks the report for its tables. The layouts themselves are in layout_*.c.
 */
#include "output/text/layout.h"

#include "base/intern.h"
#include "base/memory.h"
#include "output/text/cells.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_WIDTH 11

static void write_label(struct buffer *out, const char *label, const struct text_style *style)
{
	text_heading(out, label, style);
	for (size_t width = strlen(label); width < LABEL_WIDTH; width++)
		buffer_add(out, " ", 1);
}

/* Copies the template with {run} replaced by the path of the run. */
static void write_text(struct buffer *out, const char *template, const struct report *report)
{
	while (*template) {
		if (!strncmp(template, "{run}", 5)) {
			text_for_people(out, report->path);
			template += 5;
		} else {
			buffer_add(out, template ++, 1);
		}
	}
}

static void write_line(struct buffer *out, const struct layout_section *section, const struct table *table,
                       const struct text_style *style)
{
	struct buffer line;

	if (!table->row_count && !section->is_kept_empty)
		return;
	buffer_init(&line, 1 << 20);
	if (table->row_count)
		text_template(&line, table, 0, section->template, style);
	else
		buffer_add_text(&line, table->empty ? table->empty : "nothing was recorded");
	if (line.length) {
		write_label(out, section->label, style);
		text_wrapped(out, line.data, LABEL_WIDTH, LABEL_WIDTH, style);
	}
	if (line.length && table->note) {
		buffer_printf(out, "%*s", LABEL_WIDTH, "");
		text_wrapped(out, table->note, LABEL_WIDTH, LABEL_WIDTH, style);
	}
	buffer_release(&line);
}

/* count: number of lines or rows that could be shown. */
static void write_heading(struct buffer *out, const struct layout_section *section, const struct table *table,
                          int count, const struct report *report, const struct text_style *style)
{
	buffer_add_text(out, "\n");
	text_heading(out, section->label ? section->label : table->title, style);
	if (section->limit && count > section->limit) {
		buffer_printf(out, "  (%d of %d shown: ", section->limit, count);
		if (section->is_all_in_report)
			write_text(out, "stepscope report {run} ", report);
		buffer_printf(out, "--table %s)", table->name);
	}
	buffer_add_text(out, "\n");
}

/* Writes the line of every row into `lines`; numbers[row] is 0 if the line is empty. */
static void make_lines(struct intern *lines, uint32_t *numbers, const struct layout_section *section,
                       const struct table *table, const struct text_style *style)
{
	struct buffer line;

	buffer_init(&line, 1 << 20);
	for (int row = 0; row < table->row_count; row++) {
		buffer_clear(&line);
		text_template(&line, table, row, section->template, style);
		numbers[row] = line.length ? intern_add_n(lines, line.data, line.length) : 0;
	}
	buffer_release(&line);
}

/* Writes equal lines, such as those about several ranks, only once, with their number. */
static void write_lines(struct buffer *out, const struct layout_section *section, const struct intern *lines,
                        const uint32_t *times, const struct text_style *style)
{
	struct buffer line;

	buffer_init(&line, 1 << 20);
	for (uint32_t i = 1; i < lines->count && (!section->limit || i <= (uint32_t)section->limit); i++) {
		buffer_clear(&line);
		buffer_add(&line, intern_text(lines, i), intern_length(lines, i));
		if (times[i] > 1)
			buffer_printf(&line, ", %" PRIu32 " times", times[i]);
		buffer_add_text(out, "  ");
		text_wrapped(out, line.data, 4, 2, style);
	}
	buffer_release(&line);
}

static void write_sentences(struct buffer *out, const struct layout_section *section, const struct table *table,
                            const struct report *report, const struct text_style *style)
{
	bool has_heading = !section->label || section->label[0];

	if (!table->row_count && !section->is_kept_empty)
		return;
	if (!table->row_count) {
		if (has_heading)
			write_heading(out, section, table, 0, report, style);
		buffer_add_text(out, "  ");
		text_wrapped(out, table->empty ? table->empty : "nothing was recorded", 2, 2, style);
		return;
	}
	struct intern lines;
	uint32_t *numbers = memory_resize(NULL, (size_t)table->row_count, sizeof(*numbers));
	intern_init(&lines);
	make_lines(&lines, numbers, section, table, style);
	uint32_t *times = memory_resize(NULL, (size_t)lines.count + 1, sizeof(*times));
	memset(times, 0, ((size_t)lines.count + 1) * sizeof(*times));
	for (int row = 0; row < table->row_count; row++)
		times[numbers[row]]++;
	if (has_heading)
		write_heading(out, section, table, lines.count ? (int)lines.count - 1 : 0, report, style);
	write_lines(out, section, &lines, times, style);
	free(times);
	free(numbers);
	intern_release(&lines);
}

static void write_table(struct buffer *out, const struct layout_section *section, const struct table *table,
                        const struct report *report, const struct text_style *style)
{
	struct text_view view = {.columns = section->columns,
	                         .bar = section->bar,
	                         .limit = section->limit,
	                         .has_heading = section->has_heading,
	                         .is_brief = true};

	if (table->row_count < section->least_rows || (!table->row_count && !section->is_kept_empty))
		return;
	write_heading(out, section, table, table->row_count, report, style);
	text_table(out, table, &view, style);
}

void layout_write(struct buffer *out, const struct layout_section *layout, struct report *report,
                  const struct text_style *style)
{
	for (const struct layout_section *section = layout; section->form != LAYOUT_END; section++) {
		const struct table *table = section->table ? report_table(report, section->table) : NULL;

		assert(table || section->form == LAYOUT_SPACE || section->form == LAYOUT_TEXT);
		switch (section->form) {
		case LAYOUT_LINE:
			write_line(out, section, table, style);
			break;
		case LAYOUT_TABLE:
			write_table(out, section, table, report, style);
			break;
		case LAYOUT_SENTENCES:
			write_sentences(out, section, table, report, style);
			break;
		case LAYOUT_SPACE:
			buffer_add_text(out, "\n");
			break;
		case LAYOUT_TEXT:
			if (section->label)
				write_label(out, section->label, style);
			write_text(out, section->template, report);
			buffer_add_text(out, "\n");
			break;
		case LAYOUT_END:
			break;
		}
	}
}
