/* SPDX-License-Identifier: Apache-2.0
 *
 * text.c: a table as aligned columns. Texts are cut if the line is wider than the terminal; numbers never are.
 */
#include "output/text/text.h"

#include "base/demangle.h"
#include "base/text.h"
#include "output/text/cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAXIMUM_COLUMNS 64
#define NARROWEST_TEXT 26
#define BAR_WIDTH 24
#define GAP 2

struct grid {
	const struct table *table;
	const struct text_style *style;
	int columns[MAXIMUM_COLUMNS];
	size_t widths[MAXIMUM_COLUMNS];
	int column_count, row_count;
	int bar; /* column, -1: no bar */
	bool is_raw;
	struct buffer cell;
	struct demangler demangler;
};

void text_heading(struct buffer *out, const char *title, const struct text_style *style)
{
	buffer_printf(out, style->is_color ? "\x1b[1m%s\x1b[0m" : "%s", title);
}

static void pad(struct buffer *out, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buffer_add(out, " ", 1);
}

/* Lines break at blanks. If the text has runs of several blanks, lines break only there, so that "p50 409 ms   p95 441
 * ms" keeps its numbers whole. */
void text_wrapped(struct buffer *out, const char *text, int indent, int at, const struct text_style *style)
{
	const char *breaks = strstr(text, "  ") ? "  " : " ";
	size_t gap = 0;

	while (*text) {
		const char *end = strstr(text, breaks);
		size_t bytes = end ? (size_t)(end - text) : strlen(text);
		char *piece = strndup(text, bytes);
		int width = piece ? (int)text_width(piece) : (int)bytes;

		free(piece);
		if (gap && at + (int)gap + width > style->width) {
			buffer_add_text(out, "\n");
			pad(out, (size_t)indent);
			at = indent;
		} else {
			pad(out, gap);
			at += (int)gap;
		}
		buffer_add(out, text, bytes);
		at += width;
		text += bytes;
		gap = strspn(text, " ");
		text += gap;
	}
	buffer_add_text(out, "\n");
}

/* ---- choice of columns ---- */

static void choose_named(struct grid *grid, const char *names, bool is_brief)
{
	while (*names && grid->column_count < MAXIMUM_COLUMNS) {
		bool is_shy = *names == '?';
		size_t length = strcspn(names += is_shy, ",|");
		int before = grid->column_count;

		for (int i = 0; i < grid->table->column_count; i++) {
			const char *name = grid->table->columns[i].name;

			if (strlen(name) == length && !strncmp(name, names, length) &&
			    !(is_brief && column_is_missing(grid->table, i)) &&
			    !(is_shy && grid->table->columns[i].is_hidden))
				grid->columns[grid->column_count++] = i;
		}
		if (grid->column_count > before) /* the others replace it only if it is left out */
			length = strcspn(names, ",");
		names += length + (names[length] != '\0');
	}
}

static void choose_columns(struct grid *grid, const struct text_view *view)
{
	if (view->columns) {
		choose_named(grid, view->columns, view->is_brief);
		return;
	}
	for (int i = 0; i < grid->table->column_count; i++) {
		if (!grid->table->columns[i].is_hidden && !column_is_missing(grid->table, i))
			grid->columns[grid->column_count++] = i;
	}
}

static const char *title_of(const struct table_column *column)
{
	return column->title ? column->title : column->name;
}

static bool text_is_text(const struct grid *grid, int i)
{
	return grid->table->columns[grid->columns[i]].type == TABLE_TEXT;
}

/* Writes the cell into grid->cell. */
static void write_cell(struct grid *grid, int row, int column)
{
	bool is_text = grid->table->columns[column].type == TABLE_TEXT;
	const char *text = is_text && !grid->is_raw ? table_text(grid->table, row, column) : NULL;

	buffer_clear(&grid->cell);
	if (text)
		names_for_people(&grid->cell, &grid->demangler, text);
	else
		cell_for_people(&grid->cell, grid->table, row, column);
}

static void text_measure(struct grid *grid, const struct text_view *view)
{
	for (int i = 0; i < grid->column_count; i++) {
		int column = grid->columns[i];

		grid->widths[i] = view->has_heading ? text_width(title_of(&grid->table->columns[column])) : 0;
		for (int row = 0; row < grid->row_count; row++) {
			size_t width;

			write_cell(grid, row, column);
			width = text_width(grid->cell.data);
			grid->widths[i] = width > grid->widths[i] ? width : grid->widths[i];
		}
	}
}

/* Narrows the widest text until the line fits or no text is wide. */
static void fit(struct grid *grid)
{
	for (;;) {
		size_t total = grid->bar >= 0 ? BAR_WIDTH + GAP : 0;
		int widest = -1;

		for (int i = 0; i < grid->column_count; i++) {
			total += grid->widths[i] + GAP;
			if (text_is_text(grid, i) && (widest < 0 || grid->widths[i] > grid->widths[widest]))
				widest = i;
		}
		if (widest < 0 || total <= (size_t)grid->style->width || grid->widths[widest] <= NARROWEST_TEXT)
			return;
		grid->widths[widest]--;
	}
}

/* ---- rows ---- */

/* Returns the bytes of the first characters of text that take at most `width` columns. */
static size_t prefix_bytes(const char *text, size_t width)
{
	size_t bytes = 0;
	char character[8] = "";

	while (text[bytes]) {
		size_t length = 1, columns;

		while (length < 4 && ((unsigned char)text[bytes + length] & 0xc0) == 0x80)
			length++;
		memcpy(character, text + bytes, length);
		character[length] = '\0';
		columns = text_width(character);
		if (columns > width)
			break;
		width -= columns;
		bytes += length;
	}
	return bytes;
}

/* Returns the last characters of text that take at most `width` columns. */
static const char *last_columns(const char *text, size_t width)
{
	while (text_width(text) > width)
		text += prefix_bytes(text, 1) ? prefix_bytes(text, 1) : prefix_bytes(text, 2);
	return text;
}

static void add_cut(struct buffer *out, const struct grid *grid, int i, const char *text)
{
	const char *dots = grid->style->is_utf8 ? "…" : "~";
	size_t room = grid->widths[i] - 1;

	if (grid->table->columns[grid->columns[i]].keeps_end) {
		buffer_add_text(out, dots);
		buffer_add_text(out, last_columns(text, room));
	} else {
		buffer_add(out, text, prefix_bytes(text, room));
		buffer_add_text(out, dots);
	}
}

static void add_aligned(struct buffer *out, const struct grid *grid, int i, const char *text)
{
	size_t width = text_width(text), room = grid->widths[i];

	if (!text_is_text(grid, i) && width < room)
		pad(out, room - width);
	if (width <= room) {
		buffer_add_text(out, text);
		if (text_is_text(grid, i) && (i + 1 < grid->column_count || grid->bar >= 0))
			pad(out, room - width);
		return;
	}
	add_cut(out, grid, i, text);
}

/* Uses eighths of a block, so that 24 columns resolve half a per cent; '#' in plain ASCII. */
static void add_bar(struct buffer *out, double ratio, const struct text_style *style)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	double columns = fmin(fmax(ratio, 0), 1) * BAR_WIDTH;
	int whole = (int)columns, part;

	if (!style->is_utf8) {
		for (int i = 0; i < (int)round(columns); i++)
			buffer_add_text(out, "#");
		return;
	}
	part = (int)((columns - whole) * 8);
	for (int i = 0; i < whole; i++)
		buffer_add_text(out, "█");
	buffer_add_text(out, eighths[part]);
}

/* Removes blanks at the end of the line. */
static void end_line(struct buffer *out)
{
	while (out->length && out->data[out->length - 1] == ' ')
		out->length--;
	buffer_add_text(out, "\n");
}

static void text_add_row(struct buffer *out, struct grid *grid, int row)
{
	double ratio;

	for (int i = 0; i < grid->column_count; i++) {
		write_cell(grid, row, grid->columns[i]);
		pad(out, GAP);
		add_aligned(out, grid, i, grid->cell.data);
	}
	if (grid->bar >= 0 && table_number(grid->table, row, grid->bar, &ratio)) {
		pad(out, GAP);
		add_bar(out, ratio, grid->style);
	}
	end_line(out);
	buffer_flow(out);
}

static void add_titles(struct buffer *out, const struct grid *grid)
{
	for (int i = 0; i < grid->column_count; i++) {
		pad(out, GAP);
		add_aligned(out, grid, i, title_of(&grid->table->columns[grid->columns[i]]));
	}
	end_line(out);
}

/* Writes a single row, one line per column. */
static void add_record(struct buffer *out, struct grid *grid)
{
	size_t widest = 0;

	for (int i = 0; i < grid->column_count; i++) {
		size_t width = text_width(title_of(&grid->table->columns[grid->columns[i]]));

		widest = width > widest ? width : widest;
	}
	for (int i = 0; i < grid->column_count; i++) {
		const char *title = title_of(&grid->table->columns[grid->columns[i]]);

		write_cell(grid, 0, grid->columns[i]);
		pad(out, GAP);
		buffer_add_text(out, title);
		pad(out, widest - text_width(title) + GAP);
		text_wrapped(out, grid->cell.data, (int)widest + 2 * GAP, (int)widest + 2 * GAP, grid->style);
	}
}

/* ---- after the rows ---- */

static const char *missing_reason(const struct grid *grid, int column)
{
	if (grid->table->columns[column].is_hidden || !column_is_missing(grid->table, column))
		return NULL;
	return column_reason(grid->table, column);
}

/* Writes one line per reason, with all columns it applies to. */
static void text_add_missing(struct buffer *out, const struct grid *grid)
{
	for (int i = 0; i < grid->table->column_count; i++) {
		const char *reason = missing_reason(grid, i);
		bool is_told = !reason;
		struct buffer line;

		for (int before = 0; before < i && !is_told; before++) {
			const char *other = missing_reason(grid, before);

			is_told = other && !strcmp(other, reason);
		}
		if (is_told)
			continue;
		buffer_init(&line, 1 << 16);
		buffer_printf(&line, "not measured: %s", title_of(&grid->table->columns[i]));
		for (int after = i + 1; after < grid->table->column_count; after++) {
			const char *other = missing_reason(grid, after);

			if (other && !strcmp(other, reason))
				buffer_printf(&line, ", %s", title_of(&grid->table->columns[after]));
		}
		buffer_printf(&line, ": %s", reason);
		pad(out, GAP);
		text_wrapped(out, line.data, 2 * GAP, GAP, grid->style);
		buffer_release(&line);
	}
}

void text_definitions(struct buffer *out, const struct table *table, const struct text_style *style)
{
	text_heading(out, table->name, style);
	buffer_add_text(out, ": ");
	text_wrapped(out, table->definition ? table->definition : "", 2, (int)strlen(table->name) + 2, style);
	for (int i = 0; i < table->column_count; i++) {
		const struct table_column *column = &table->columns[i];
		size_t start = out->length;

		buffer_printf(out, "  %s", column->name);
		if (column->title && strcmp(column->title, column->name) != 0)
			buffer_printf(out, " (%s)", column->title);
		buffer_add_text(out, ": ");
		text_wrapped(out, column->definition ? column->definition : "", 4, (int)(out->length - start), style);
		if (!column->denominator)
			continue;
		buffer_add_text(out, "    100 % is ");
		text_wrapped(out, column->denominator, 4, 13, style);
	}
}

static void add_notes(struct buffer *out, const struct grid *grid)
{
	if (!grid->table->note)
		return;
	pad(out, GAP);
	text_wrapped(out, grid->table->note, GAP, GAP, grid->style);
}

void text_table(struct buffer *out, const struct table *table, const struct text_view *view,
                const struct text_style *style)
{
	struct grid grid = {
		.table = table, .style = style, .row_count = table->row_count, .bar = -1, .is_raw = view->is_raw};

	if (view->limit > 0 && view->limit < grid.row_count)
		grid.row_count = view->limit;
	if (view->bar)
		grid.bar = table_find_column(table, view->bar);
	buffer_init(&grid.cell, 1 << 20);
	buffer_add_text(&grid.cell, "");
	choose_columns(&grid, view);
	if (!table->row_count) {
		pad(out, GAP);
		text_wrapped(out, table->empty ? table->empty : "nothing was recorded", GAP, GAP, style);
	} else if (table->row_count == 1 && !view->columns) {
		add_record(out, &grid);
	} else {
		text_measure(&grid, view);
		fit(&grid);
		if (view->has_heading)
			add_titles(out, &grid);
		for (int row = 0; row < grid.row_count; row++)
			text_add_row(out, &grid, row);
	}
	if (table->row_count)
		add_notes(out, &grid);
	if (!view->is_brief && table->row_count)
		text_add_missing(out, &grid);
	if (view->is_explained) {
		buffer_add_text(out, "\n");
		text_definitions(out, table, style);
	}
	buffer_release(&grid.cell);
	demangler_release(&grid.demangler);
}
