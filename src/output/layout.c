/* SPDX-License-Identifier: Apache-2.0
 *
 * layout.c: walks a layout and asks the report for its tables. The layouts themselves are in layout_*.c.
 */
#include "output/layout.h"

#include "output/cells.h"

#include <assert.h>
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

static void write_heading(struct buffer *out, const struct layout_section *section, const struct table *table,
                          const struct report *report, const struct text_style *style)
{
	buffer_add_text(out, "\n");
	text_heading(out, section->label ? section->label : table->title, style);
	if (section->limit && table->row_count > section->limit) {
		buffer_printf(out, "  (%d of %d shown: ", section->limit, table->row_count);
		if (section->is_all_in_report)
			write_text(out, "stepscope report {run} ", report);
		buffer_printf(out, "--table %s)", table->name);
	}
	buffer_add_text(out, "\n");
}

static void write_sentences(struct buffer *out, const struct layout_section *section, const struct table *table,
                            const struct report *report, const struct text_style *style)
{
	struct buffer line;

	if (!table->row_count && !section->is_kept_empty)
		return;
	if (!section->label || section->label[0])
		write_heading(out, section, table, report, style);
	if (!table->row_count) {
		buffer_add_text(out, "  ");
		text_wrapped(out, table->empty ? table->empty : "nothing was recorded", 2, 2, style);
		return;
	}
	buffer_init(&line, 1 << 20);
	for (int row = 0; row < table->row_count && (!section->limit || row < section->limit); row++) {
		buffer_clear(&line);
		text_template(&line, table, row, section->template, style);
		if (!line.length)
			continue;
		buffer_add_text(out, "  ");
		text_wrapped(out, line.data, 4, 2, style);
	}
	buffer_release(&line);
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
	write_heading(out, section, table, report, style);
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
