/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_table.c: see the header. It writes the lines: torch_columns.c finds the columns, torch_table_sort.c the order
 * of the rows.
 */
#include "output/text/torch_table.h"

#include "base/storage.h"
#include "output/text/torch_columns.h"
#include "output/text/torch_table_sort.h"

#include <inttypes.h>
#include <string.h>

#define CELL_BYTES 64

/* ---- cells ---- */

static void torch_format_time(char *out, double us, const char *unit)
{
	if (unit ? unit[0] == 's' : us >= 1e6)
		snprintf(out, CELL_BYTES, "%.3fs", us / 1e6);
	else if (unit ? unit[0] == 'm' : us >= 1e3)
		snprintf(out, CELL_BYTES, "%.3fms", us / 1e3);
	else
		snprintf(out, CELL_BYTES, "%.3fus", us);
}

static void torch_format_share(char *out, double us, double total_us)
{
	if (total_us == 0)
		snprintf(out, CELL_BYTES, "NaN");
	else
		snprintf(out, CELL_BYTES, "%.2f%%", us * 100.0 / total_us);
}

static void torch_format_bytes(char *out, int64_t bytes, bool is_old)
{
	static const char *const units[2][4] = {{"B", "KB", "MB", "GB"}, {"b", "Kb", "Mb", "Gb"}};
	int64_t size = bytes < 0 ? -bytes : bytes;
	int power = size >= 1 << 30 ? 3 : size >= 1 << 20 ? 2 : size >= 1 << 10 ? 1 : 0;

	if (power)
		snprintf(out, CELL_BYTES, "%.2f %s", (double)bytes / (double)(1 << 10 * power), units[is_old][power]);
	else
		snprintf(out, CELL_BYTES, "%" PRId64 " %s", bytes, units[is_old][0]);
}

/* Returns the bytes of the first `count` characters. A negative number counts from the end, as in Python. */
static size_t torch_slice(const char *text, int64_t count)
{
	size_t bytes = 0;

	if (count < 0)
		count += (int64_t)torch_characters(text);
	for (; text[bytes]; bytes++) {
		bool is_start = ((uint8_t)text[bytes] & 0xc0) != 0x80;

		if (is_start && count-- <= 0)
			break;
	}
	return bytes;
}

/* ---- lines ---- */

struct torch_lines {
	struct buffer *out;
	const struct torch_table *table;
	struct torch_columns columns;
	double sum_us, device_sum_us;
};

static void torch_put_right(struct buffer *out, const char *text, size_t bytes, int64_t width)
{
	char cell[4096];
	int64_t length;

	snprintf(cell, sizeof(cell), "%.*s", (int)(bytes < sizeof(cell) ? bytes : sizeof(cell) - 1), text);
	for (length = (int64_t)torch_characters(cell); length < width; length++)
		buffer_add_byte(out, ' ');
	buffer_add(out, text, bytes);
	buffer_add(out, "  ", 2);
}

static void torch_put_cell(struct torch_lines *lines, int *column, const char *text)
{
	torch_put_right(lines->out, text, strlen(text), lines->columns.widths[(*column)++]);
}

static void torch_put_separator(struct torch_lines *lines)
{
	for (int i = 0; i < lines->columns.count; i++) {
		for (int64_t k = 0; k < lines->columns.widths[i]; k++)
			buffer_add_byte(lines->out, '-');
		buffer_add(lines->out, "  ", 2);
	}
	buffer_add_byte(lines->out, '\n');
}

static void torch_put_banner(struct torch_lines *lines, const char *text)
{
	for (int i = 0; i < lines->columns.count; i++)
		for (int64_t k = 0; k < lines->columns.widths[i] + (i ? 2 : 0); k++)
			buffer_add_byte(lines->out, '=');
	buffer_printf(lines->out, "\n%s\n", text);
}

static void torch_put_headers(struct torch_lines *lines)
{
	const struct torch_columns *columns = &lines->columns;

	torch_put_separator(lines);
	for (int i = 0; i < columns->count; i++) {
		const char *header = columns->headers[i];

		if (columns->has_source && i == columns->source_column)
			buffer_printf(lines->out, "%-*s  ", (int)columns->widths[i], header);
		else
			torch_put_right(lines->out, header, strlen(header), columns->widths[i]);
	}
	buffer_add_byte(lines->out, '\n');
	torch_put_separator(lines);
}

static void torch_put_name(struct torch_lines *lines, const char *name)
{
	int64_t room = lines->table->name_width;
	struct buffer cut;

	if (room == TORCH_TABLE_NO_LIMIT || (int64_t)torch_characters(name) < room - 3) {
		torch_put_right(lines->out, name, strlen(name), lines->columns.widths[0]);
		return;
	}
	buffer_init(&cut, SIZE_MAX);
	buffer_add(&cut, name, torch_slice(name, room - 3));
	buffer_add(&cut, "...", 3);
	torch_put_right(lines->out, cut.data, cut.length, lines->columns.widths[0]);
	buffer_release(&cut);
}

/* Writes the next line of `source`, without its start if it is too long. Returns the text after the line. */
static const char *torch_put_frame(struct torch_lines *lines, const char *source)
{
	int64_t width = lines->columns.widths[lines->columns.source_column], length;
	size_t bytes = strcspn(source, "\n");
	char line[4096];

	snprintf(line, sizeof(line), "%.*s", (int)bytes, source);
	length = (int64_t)torch_characters(line);
	if (length > width) {
		size_t cut = torch_slice(line, length - width + (width > 3 ? 3 : 0));

		buffer_add_text(lines->out, width > 3 ? "..." : "");
		buffer_add_text(lines->out, line + cut);
	} else {
		buffer_add_text(lines->out, line);
		for (; length < width; length++)
			buffer_add_byte(lines->out, ' ');
	}
	buffer_add(lines->out, "  ", 2);
	return source + bytes + (source[bytes] == '\n');
}

/* Writes the frames around the first one, and an empty line. */
static void torch_put_more_frames(struct torch_lines *lines, const char *source)
{
	int frames = 1;

	do {
		bool is_frame = *source && !(lines->table->is_old && frames++ >= 5);

		for (int i = 0; i < lines->columns.count; i++) {
			if (i == lines->columns.source_column && is_frame)
				source = torch_put_frame(lines, source);
			else
				torch_put_right(lines->out, "", 0, lines->columns.widths[i]);
		}
		buffer_add_byte(lines->out, '\n');
		if (!is_frame)
			return;
	} while (true);
}

static void torch_put_device_times(struct torch_lines *lines, const struct torch_row *row, int *column)
{
	const char *unit = lines->table->time_unit;
	char cell[CELL_BYTES];

	if (!lines->columns.has_device_time)
		return;
	torch_format_time(cell, row->self_device_us, unit);
	torch_put_cell(lines, column, cell);
	torch_format_share(cell, row->self_device_us, lines->device_sum_us);
	torch_put_cell(lines, column, cell);
	torch_format_time(cell, row->device_us, unit);
	torch_put_cell(lines, column, cell);
	torch_format_time(cell, row->device_us / (double)row->count, unit);
	torch_put_cell(lines, column, cell);
}

static void torch_put_row(struct torch_lines *lines, const struct torch_row *row)
{
	const char *source = row->first->source;
	const char *unit = lines->table->time_unit;
	char cell[CELL_BYTES];
	int column = 1;

	torch_put_name(lines, row->first->name);
	torch_format_share(cell, row->self_us, lines->sum_us);
	torch_put_cell(lines, &column, cell);
	torch_format_time(cell, row->self_us, unit);
	torch_put_cell(lines, &column, cell);
	if (row->first->is_async)
		snprintf(cell, sizeof(cell), "0");
	else
		torch_format_share(cell, row->total_us, lines->sum_us);
	torch_put_cell(lines, &column, cell);
	torch_format_time(cell, row->total_us, unit);
	torch_put_cell(lines, &column, cell);
	torch_format_time(cell, row->total_us / (double)row->count, unit);
	torch_put_cell(lines, &column, cell);
	torch_put_device_times(lines, row, &column);
	for (int i = 0; lines->table->has_memory && i < (lines->columns.has_device_bytes ? 2 : 1); i++) {
		torch_format_bytes(cell, row->bytes[i], lines->table->is_old);
		torch_put_cell(lines, &column, cell);
		torch_format_bytes(cell, row->self_bytes[i], lines->table->is_old);
		torch_put_cell(lines, &column, cell);
	}
	snprintf(cell, sizeof(cell), "%" PRId64, row->count);
	torch_put_cell(lines, &column, cell);
	if (lines->columns.has_shapes) {
		int64_t width = lines->columns.widths[column++];

		torch_put_right(lines->out, row->first->shapes, torch_slice(row->first->shapes, width), width);
	}
	if (lines->columns.has_source) {
		source = torch_put_frame(lines, source);
		column++;
	}
	if (lines->columns.has_flops && row->flops > 0)
		snprintf(cell, sizeof(cell), "%8.3f", row->flops * lines->columns.flops_scale);
	else
		snprintf(cell, sizeof(cell), "--");
	if (lines->columns.has_flops)
		torch_put_cell(lines, &column, cell);
	buffer_add_byte(lines->out, '\n');
	if (lines->columns.has_source)
		torch_put_more_frames(lines, source);
}

static void torch_put_rows(struct torch_lines *lines, const struct torch_sorted_row *rows, uint32_t count)
{
	int64_t left = lines->table->row_limit;

	for (uint32_t i = 0; i < count && left != 0; i++) {
		if (lines->table->is_top_level && rows[i].row->first->parent != TORCH_NONE)
			continue;
		left -= left > 0;
		torch_put_row(lines, rows[i].row);
		buffer_flow(lines->out);
	}
}

enum status torch_table_write(struct buffer *out, const struct torch_ops *ops, const struct torch_table *table,
                              struct error *err)
{
	struct torch_lines lines = {.out = out, .table = table};
	struct torch_sorted_row *rows;
	char cell[CELL_BYTES];

	rows = storage_resize(ops->model->storage, NULL, (size_t)ops->row_count + 1, sizeof(*rows));
	if (torch_table_sort(ops, table->sort, rows, err) || !ops->row_count) {
		storage_release(ops->model->storage, rows);
		return table->sort && ops->row_count ? err->status : STATUS_OK;
	}
	for (uint32_t i = 0; i < ops->row_count; i++)
		lines.sum_us += rows[i].row->self_us;
	for (uint32_t i = 0; i < ops->row_count; i++) {
		if (ops->rows[i].first->is_device && !ops->rows[i].first->is_annotation)
			lines.device_sum_us += ops->rows[i].self_device_us;
	}
	torch_columns_find(&lines.columns, ops, table);
	if (table->header)
		torch_put_banner(&lines, table->header);
	if (table->is_top_level)
		torch_put_banner(&lines, "This report only display top-level ops statistics");
	torch_put_headers(&lines);
	torch_put_rows(&lines, rows, ops->row_count);
	torch_put_separator(&lines);
	torch_format_time(cell, lines.sum_us, table->time_unit);
	buffer_printf(out, "Self CPU time total: %s\n", cell);
	torch_format_time(cell, lines.device_sum_us, table->time_unit);
	if (lines.columns.has_device_time)
		buffer_printf(out, "Self %s time total: %s\n", lines.columns.device, cell);
	storage_release(ops->model->storage, rows);
	return STATUS_OK;
}
