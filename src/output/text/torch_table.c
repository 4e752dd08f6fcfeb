/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_table.c: see the header. Columns are collected as text first, because torch's lines are no wider than its rules say.
 */
#include "output/text/torch_table.h"

#include "base/json_write.h"
#include "base/merge_sort.h"
#include "base/options.h"
#include "base/storage.h"
#include "model/operator_inputs.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 12
#define COLUMNS 24
#define CELL_BYTES 64

/* ---- what rows are sorted by ---- */

enum sort_by {
	SORT_CPU_TIME,
	SORT_CPU_TOTAL,
	SORT_SELF_CPU,
	SORT_CPU_MEMORY,
	SORT_SELF_CPU_MEMORY,
	SORT_DEVICE_MEMORY,
	SORT_SELF_DEVICE_MEMORY,
	SORT_DEVICE_TIME,
	SORT_DEVICE_TOTAL,
	SORT_SELF_DEVICE,
	SORT_COUNT,
	SORT_FLOPS,
	SORT_KEY,
	SORT_NOTHING,
};

static const struct {
	const char *name;
	enum sort_by by;
} sort_names[] = {
	{"cpu_time", SORT_CPU_TIME},
	{"cpu_time_total", SORT_CPU_TOTAL},
	{"self_cpu_time_total", SORT_SELF_CPU},
	{"cpu_memory_usage", SORT_CPU_MEMORY},
	{"self_cpu_memory_usage", SORT_SELF_CPU_MEMORY},
	{"device_memory_usage", SORT_DEVICE_MEMORY},
	{"self_device_memory_usage", SORT_SELF_DEVICE_MEMORY},
	{"device_time", SORT_DEVICE_TIME},
	{"device_time_total", SORT_DEVICE_TOTAL},
	{"self_device_time_total", SORT_SELF_DEVICE},
	{"count", SORT_COUNT},
	{"flops", SORT_FLOPS},
	{"key", SORT_KEY},
	{"node_id", SORT_NOTHING},
};
#define SORT_NAMES (sizeof(sort_names) / sizeof(sort_names[0]))

struct sorted {
	const struct torch_row *row;
	double value;
};

static int compare_falling(const void *left, const void *right)
{
	const struct sorted *a = left, *b = right;

	return (a->value < b->value) - (a->value > b->value);
}

static int compare_names(const void *left, const void *right)
{
	const struct sorted *a = left, *b = right;

	return strcmp(b->row->first->name, a->row->first->name);
}

static double value_of(const struct torch_row *row, enum sort_by by)
{
	switch (by) {
	case SORT_CPU_TIME:
		return row->total_us / (double)row->count;
	case SORT_CPU_TOTAL:
		return row->total_us;
	case SORT_SELF_CPU:
		return row->self_us;
	case SORT_DEVICE_TIME:
		return row->device_us / (double)row->count;
	case SORT_DEVICE_TOTAL:
		return row->device_us;
	case SORT_SELF_DEVICE:
		return row->self_device_us;
	case SORT_CPU_MEMORY:
	case SORT_DEVICE_MEMORY:
		return (double)row->bytes[by == SORT_DEVICE_MEMORY];
	case SORT_SELF_CPU_MEMORY:
	case SORT_SELF_DEVICE_MEMORY:
		return (double)row->self_bytes[by == SORT_SELF_DEVICE_MEMORY];
	case SORT_COUNT:
		return (double)row->count;
	case SORT_FLOPS:
		return row->flops;
	default:
		return 0;
	}
}

/* "self_cuda_time_total" is "self_device_time_total", as in torch. */
static void generic_name(char *out, size_t bytes, const char *name)
{
	static const char *const devices[] = {"cuda", "xpu", "privateuse1"};

	snprintf(out, bytes, "%s", name);
	for (int i = 0; i < 3; i++) {
		const char *found = strstr(name, devices[i]);

		if (found)
			snprintf(out, bytes, "%.*sdevice%s", (int)(found - name), name, found + strlen(devices[i]));
	}
}

static enum status find_sort(const char *name, enum sort_by *by, struct error *err)
{
	const char *names[SORT_NAMES + 1];
	const char *nearest;
	char wanted[64];

	generic_name(wanted, sizeof(wanted), name);
	for (size_t i = 0; i < SORT_NAMES; i++) {
		names[i] = sort_names[i].name;
		*by = sort_names[i].by;
		if (!strcmp(names[i], wanted))
			return STATUS_OK;
	}
	names[SORT_NAMES] = NULL;
	nearest = nearest_name(wanted, names);
	error_set(err, STATUS_USAGE, "torch.profiler's table cannot be sorted by '%s'", name);
	error_hint(err, "did you mean '%s'?", nearest ? nearest : "self_cpu_time_total");
	return STATUS_USAGE;
}

static enum status sort_rows(const struct torch_ops *ops, const char *name, struct sorted *rows, struct error *err)
{
	enum sort_by by = SORT_NOTHING;

	if (name && find_sort(name, &by, err))
		return err->status;
	for (uint32_t i = 0; i < ops->row_count; i++)
		rows[i] = (struct sorted){&ops->rows[i], value_of(&ops->rows[i], by)};
	merge_sort(rows, ops->row_count, sizeof(*rows), by == SORT_KEY ? compare_names : compare_falling);
	return STATUS_OK;
}

/* ---- cells ---- */

static void format_time(char *out, double us, const char *unit)
{
	if (unit ? unit[0] == 's' : us >= 1e6)
		snprintf(out, CELL_BYTES, "%.3fs", us / 1e6);
	else if (unit ? unit[0] == 'm' : us >= 1e3)
		snprintf(out, CELL_BYTES, "%.3fms", us / 1e3);
	else
		snprintf(out, CELL_BYTES, "%.3fus", us);
}

static void format_share(char *out, double us, double total_us)
{
	if (total_us == 0)
		snprintf(out, CELL_BYTES, "NaN");
	else
		snprintf(out, CELL_BYTES, "%.2f%%", us * 100.0 / total_us);
}

static void format_bytes(char *out, int64_t bytes, bool is_old)
{
	static const char *const units[2][4] = {{"B", "KB", "MB", "GB"}, {"b", "Kb", "Mb", "Gb"}};
	int64_t size = bytes < 0 ? -bytes : bytes;
	int power = size >= 1 << 30 ? 3 : size >= 1 << 20 ? 2 : size >= 1 << 10 ? 1 : 0;

	if (power)
		snprintf(out, CELL_BYTES, "%.2f %s", (double)bytes / (double)(1 << 10 * power), units[is_old][power]);
	else
		snprintf(out, CELL_BYTES, "%" PRId64 " %s", bytes, units[is_old][0]);
}

static size_t characters(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += ((uint8_t)*text & 0xc0) != 0x80;
	return count;
}

/* Bytes of the first so many characters; a negative number counts from the end, as in Python. */
static size_t slice(const char *text, int64_t count)
{
	size_t bytes = 0;

	if (count < 0)
		count += (int64_t)characters(text);
	for (; text[bytes]; bytes++) {
		bool is_start = ((uint8_t)text[bytes] & 0xc0) != 0x80;

		if (is_start && count-- <= 0)
			break;
	}
	return bytes;
}

/* ---- lines ---- */

struct lines {
	struct buffer *out;
	const struct torch_table *table;
	int64_t widths[COLUMNS];
	const char *headers[COLUMNS];
	char titles[7][32]; /* of a device's and the operations' columns */
	char device[16];
	int count;
	double flops_scale;
	double sum_us, device_sum_us;
	bool has_flops, has_shapes, has_source, has_device_bytes, has_device_time;
	int source_column;
};

static void put_right(struct buffer *out, const char *text, size_t bytes, int64_t width)
{
	char cell[4096];
	int64_t length;

	snprintf(cell, sizeof(cell), "%.*s", (int)(bytes < sizeof(cell) ? bytes : sizeof(cell) - 1), text);
	for (length = (int64_t)characters(cell); length < width; length++)
		buffer_add_byte(out, ' ');
	buffer_add(out, text, bytes);
	buffer_add(out, "  ", 2);
}

static void put_cell(struct lines *lines, int *column, const char *text)
{
	put_right(lines->out, text, strlen(text), lines->widths[(*column)++]);
}

static void put_separator(struct lines *lines)
{
	for (int i = 0; i < lines->count; i++) {
		for (int64_t k = 0; k < lines->widths[i]; k++)
			buffer_add_byte(lines->out, '-');
		buffer_add(lines->out, "  ", 2);
	}
	buffer_add_byte(lines->out, '\n');
}

static void put_banner(struct lines *lines, const char *text)
{
	for (int i = 0; i < lines->count; i++)
		for (int64_t k = 0; k < lines->widths[i] + (i ? 2 : 0); k++)
			buffer_add_byte(lines->out, '=');
	buffer_printf(lines->out, "\n%s\n", text);
}

static void add_column(struct lines *lines, const char *header, int64_t width)
{
	lines->headers[lines->count] = header;
	lines->widths[lines->count++] = width;
}

static int64_t least(int64_t width, int64_t maximum)
{
	return maximum == TORCH_TABLE_NO_LIMIT || width < maximum ? width : maximum;
}

static void name_device(struct lines *lines)
{
	const char *device = lines->table->device ? lines->table->device : "None";
	size_t i;

	for (i = 0; device[i] && i + 1 < sizeof(lines->device); i++)
		lines->device[i] = lines->table->device ? (char)toupper((unsigned char)device[i]) : device[i];
	lines->device[i] = '\0';
}

static void add_device_time_columns(struct lines *lines, const struct torch_ops *ops)
{
	static const char *const titles[] = {"Self %s", "Self %s %%", "%s total", "%s time avg"};

	for (uint32_t row = 0; row < ops->row_count; row++) {
		const struct torch_row *what = &ops->rows[row];

		lines->has_device_time |= lines->table->device && what->self_device_us > 0;
		if (what->first->is_device && !what->first->is_annotation)
			lines->device_sum_us += what->self_device_us;
	}
	for (int i = 0; lines->has_device_time && i < 4; i++) {
		const char *place = strstr(titles[i], "%s");

		snprintf(lines->titles[3 + i], sizeof(lines->titles[0]), "%.*s%s%s", (int)(place - titles[i]),
		         titles[i], lines->device, i == 1 ? " %" : place + 2);
		add_column(lines, lines->titles[3 + i], WIDTH);
	}
}

static void add_device_columns(struct lines *lines, const struct torch_ops *ops)
{
	for (uint32_t row = 0; row < ops->row_count; row++)
		lines->has_device_bytes |= lines->table->device && ops->rows[row].self_bytes[1] > 0;
	if (!lines->has_device_bytes)
		return;
	snprintf(lines->titles[0], sizeof(lines->titles[0]), "%s Mem", lines->device);
	snprintf(lines->titles[1], sizeof(lines->titles[1]), "Self %s Mem", lines->device);
	add_column(lines, lines->titles[0], WIDTH);
	add_column(lines, lines->titles[1], WIDTH);
}

static void add_source_column(struct lines *lines, const struct torch_ops *ops)
{
	size_t longest = 0;

	for (uint32_t i = 0; i < ops->row_count; i++) {
		for (const char *at = ops->rows[i].first->source; *at; at += strcspn(at, "\n"), at += *at == '\n') {
			char line[4096];

			snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
			size_t length = characters(line);

			longest = length > longest ? length : longest;
		}
	}
	lines->has_source = longest > 0;
	lines->source_column = lines->count;
	if (lines->has_source)
		add_column(lines, "Source Location", least((int64_t)longest + 4, lines->table->source_width));
}

/* The unit is the one of the smallest. */
static void add_flops_column(struct lines *lines, const struct torch_ops *ops)
{
	static const char *const units[] = {"FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"};
	double smallest = 0;

	for (uint32_t i = 0; i < ops->row_count; i++) {
		double flops = ops->rows[i].flops;

		if (flops > 0 && (smallest <= 0 || flops < smallest))
			smallest = flops;
	}
	lines->has_flops = lines->table->has_flops && smallest > 0;
	if (!lines->has_flops)
		return;
	double power = floor(fmax(0, fmin(log10(smallest) / 3, 5)));

	lines->flops_scale = pow(10, -3 * power);
	snprintf(lines->titles[2], sizeof(lines->titles[2]), "Total %s", units[(int)power]);
	add_column(lines, lines->titles[2], WIDTH);
}

static void add_columns(struct lines *lines, const struct torch_ops *ops)
{
	static const char *const times[] = {"Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"};
	size_t longest_name = 0, longest_shapes = 0;

	for (uint32_t i = 0; i < ops->row_count; i++) {
		size_t name = characters(ops->rows[i].first->name), shapes = characters(ops->rows[i].first->shapes);

		longest_name = name > longest_name ? name : longest_name;
		longest_shapes = shapes > longest_shapes ? shapes : longest_shapes;
		lines->has_shapes |= lines->table->has_shapes && ops->rows[i].first->shapes[1] != ']';
	}
	add_column(lines, "Name", least((int64_t)longest_name + 4, lines->table->name_width));
	for (int i = 0; i < 5; i++)
		add_column(lines, times[i], WIDTH);
	name_device(lines);
	add_device_time_columns(lines, ops);
	if (lines->table->has_memory) {
		add_column(lines, "CPU Mem", WIDTH);
		add_column(lines, "Self CPU Mem", WIDTH);
		add_device_columns(lines, ops);
	}
	add_column(lines, "# of Calls", WIDTH);
	if (lines->has_shapes)
		add_column(lines, "Input Shapes", least((int64_t)longest_shapes + 4, lines->table->shapes_width));
	add_source_column(lines, ops);
	add_flops_column(lines, ops);
}

static void put_name(struct lines *lines, const char *name)
{
	int64_t room = lines->table->name_width;
	struct buffer cut;

	if (room == TORCH_TABLE_NO_LIMIT || (int64_t)characters(name) < room - 3) {
		put_right(lines->out, name, strlen(name), lines->widths[0]);
		return;
	}
	buffer_init(&cut, SIZE_MAX);
	buffer_add(&cut, name, slice(name, room - 3));
	buffer_add(&cut, "...", 3);
	put_right(lines->out, cut.data, cut.length, lines->widths[0]);
	buffer_release(&cut);
}

/* The next line of `source`, cut at its beginning; returns what follows it. */
static const char *put_frame(struct lines *lines, const char *source)
{
	int64_t width = lines->widths[lines->source_column], length;
	size_t bytes = strcspn(source, "\n");
	char line[4096];

	snprintf(line, sizeof(line), "%.*s", (int)bytes, source);
	length = (int64_t)characters(line);
	if (length > width) {
		size_t cut = slice(line, length - width + (width > 3 ? 3 : 0));

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

/* The frames around the first one, and an empty line. */
static void put_more_frames(struct lines *lines, const char *source)
{
	int frames = 1;

	do {
		bool is_frame = *source && !(lines->table->is_old && frames++ >= 5);

		for (int i = 0; i < lines->count; i++) {
			if (i == lines->source_column && is_frame)
				source = put_frame(lines, source);
			else
				put_right(lines->out, "", 0, lines->widths[i]);
		}
		buffer_add_byte(lines->out, '\n');
		if (!is_frame)
			return;
	} while (true);
}

static void put_device_times(struct lines *lines, const struct torch_row *row, int *column)
{
	const char *unit = lines->table->time_unit;
	char cell[CELL_BYTES];

	if (!lines->has_device_time)
		return;
	format_time(cell, row->self_device_us, unit);
	put_cell(lines, column, cell);
	format_share(cell, row->self_device_us, lines->device_sum_us);
	put_cell(lines, column, cell);
	format_time(cell, row->device_us, unit);
	put_cell(lines, column, cell);
	format_time(cell, row->device_us / (double)row->count, unit);
	put_cell(lines, column, cell);
}

static void put_row(struct lines *lines, const struct torch_row *row)
{
	const char *source = row->first->source;
	const char *unit = lines->table->time_unit;
	char cell[CELL_BYTES];
	int column = 1;

	put_name(lines, row->first->name);
	format_share(cell, row->self_us, lines->sum_us);
	put_cell(lines, &column, cell);
	format_time(cell, row->self_us, unit);
	put_cell(lines, &column, cell);
	if (row->first->is_async)
		snprintf(cell, sizeof(cell), "0");
	else
		format_share(cell, row->total_us, lines->sum_us);
	put_cell(lines, &column, cell);
	format_time(cell, row->total_us, unit);
	put_cell(lines, &column, cell);
	format_time(cell, row->total_us / (double)row->count, unit);
	put_cell(lines, &column, cell);
	put_device_times(lines, row, &column);
	for (int i = 0; lines->table->has_memory && i < (lines->has_device_bytes ? 2 : 1); i++) {
		format_bytes(cell, row->bytes[i], lines->table->is_old);
		put_cell(lines, &column, cell);
		format_bytes(cell, row->self_bytes[i], lines->table->is_old);
		put_cell(lines, &column, cell);
	}
	snprintf(cell, sizeof(cell), "%" PRId64, row->count);
	put_cell(lines, &column, cell);
	if (lines->has_shapes) {
		int64_t width = lines->widths[column++];

		put_right(lines->out, row->first->shapes, slice(row->first->shapes, width), width);
	}
	if (lines->has_source) {
		source = put_frame(lines, source);
		column++;
	}
	if (lines->has_flops && row->flops > 0)
		snprintf(cell, sizeof(cell), "%8.3f", row->flops * lines->flops_scale);
	else
		snprintf(cell, sizeof(cell), "--");
	if (lines->has_flops)
		put_cell(lines, &column, cell);
	buffer_add_byte(lines->out, '\n');
	if (lines->has_source)
		put_more_frames(lines, source);
}

static void put_rows(struct lines *lines, const struct sorted *rows, uint32_t count)
{
	int64_t left = lines->table->row_limit;

	for (uint32_t i = 0; i < count && left != 0; i++) {
		if (lines->table->is_top_level && rows[i].row->first->parent != TORCH_NONE)
			continue;
		left -= left > 0;
		put_row(lines, rows[i].row);
		buffer_flow(lines->out);
	}
}

enum status torch_table_write(struct buffer *out, const struct torch_ops *ops, const struct torch_table *table,
                              struct error *err)
{
	struct lines lines = {.out = out, .table = table};
	struct sorted *rows;
	char cell[CELL_BYTES];

	rows = storage_resize(ops->model->storage, NULL, (size_t)ops->row_count + 1, sizeof(*rows));
	if (sort_rows(ops, table->sort, rows, err) || !ops->row_count) {
		storage_release(ops->model->storage, rows);
		return table->sort && ops->row_count ? err->status : STATUS_OK;
	}
	for (uint32_t i = 0; i < ops->row_count; i++)
		lines.sum_us += rows[i].row->self_us;
	add_columns(&lines, ops);
	if (table->header)
		put_banner(&lines, table->header);
	if (table->is_top_level)
		put_banner(&lines, "This report only display top-level ops statistics");
	put_separator(&lines);
	for (int i = 0; i < lines.count; i++) {
		if (lines.has_source && i == lines.source_column)
			buffer_printf(out, "%-*s  ", (int)lines.widths[i], lines.headers[i]);
		else
			put_right(out, lines.headers[i], strlen(lines.headers[i]), lines.widths[i]);
	}
	buffer_add_byte(out, '\n');
	put_separator(&lines);
	put_rows(&lines, rows, ops->row_count);
	put_separator(&lines);
	format_time(cell, lines.sum_us, table->time_unit);
	buffer_printf(out, "Self CPU time total: %s\n", cell);
	format_time(cell, lines.device_sum_us, table->time_unit);
	if (lines.has_device_time)
		buffer_printf(out, "Self %s time total: %s\n", lines.device, cell);
	storage_release(ops->model->storage, rows);
	return STATUS_OK;
}

/* ---- JSON ---- */

static void put_number(struct json_writer *json, const char *key, double value)
{
	json_key(json, key);
	json_double(json, value);
}

static void put_integer(struct json_writer *json, const char *key, int64_t value)
{
	json_key(json, key);
	json_int(json, value);
}

static void put_source_json(struct json_writer *json, const char *source)
{
	json_key(json, "stack");
	json_array_begin(json);
	while (*source) {
		size_t bytes = strcspn(source, "\n");

		json_string_n(json, source, bytes);
		source += bytes + (source[bytes] == '\n');
	}
	json_array_end(json);
}

static void put_marks_json(struct json_writer *json, const struct torch_event *event)
{
	json_key(json, "is_user_annotation");
	json_bool(json, event->is_annotation);
	json_key(json, "is_async");
	json_bool(json, event->is_async);
}

static void put_row_json(struct json_writer *json, const struct torch_row *row, const struct torch_table *table)
{
	json_object_begin(json);
	json_key(json, "key");
	json_string(json, row->first->name);
	put_integer(json, "count", row->count);
	put_number(json, "cpu_time_total", row->total_us);
	put_number(json, "self_cpu_time_total", row->self_us);
	if (table->device) {
		put_number(json, "device_time_total", row->device_us);
		put_number(json, "self_device_time_total", row->self_device_us);
	}
	put_integer(json, "cpu_memory_usage", row->bytes[0]);
	put_integer(json, "self_cpu_memory_usage", row->self_bytes[0]);
	put_integer(json, "device_memory_usage", row->bytes[1]);
	put_integer(json, "self_device_memory_usage", row->self_bytes[1]);
	put_number(json, "flops", table->has_flops ? row->flops : 0);
	put_integer(json, "scope", row->first->scope);
	if (table->has_shapes) {
		json_key(json, "input_shapes");
		json_string(json, row->first->shapes);
	}
	if (row->first->source[0])
		put_source_json(json, row->first->source);
	put_marks_json(json, row->first);
	json_key(json, "is_top_level");
	json_bool(json, row->first->parent == TORCH_NONE);
	json_object_end(json);
}

/* The number that PyTorch has for the thread; ours where it was not told. */
static int64_t thread_number(const struct torch_ops *ops, uint32_t track)
{
	uint32_t number = ops->model->tracks[track]->torch_thread;
	return number ? number : (int64_t)track + 1;
}

/* Types, strides and values as texts, a list each; left out where they were not recorded. */
static void put_texts_json(struct json_writer *json, const char *key, const struct inputs_part *line, char separator)
{
	struct inputs_part part = {0};

	if (!line->text)
		return;
	json_key(json, key);
	json_array_begin(json);
	while (operator_inputs_next(line, separator, &part))
		json_string_n(json, part.text, part.length);
	json_array_end(json);
}

static void put_inputs_json(struct json_writer *json, const struct torch_ops *ops, const struct torch_event *event)
{
	struct operator_inputs inputs = operator_inputs_split(model_text(ops->model, event->inputs));

	put_texts_json(json, "sizes", &inputs.sizes, ' ');
	put_texts_json(json, "types", &inputs.types, ';');
	put_texts_json(json, "strides", &inputs.strides, ' ');
	put_texts_json(json, "values", &inputs.values, ';');
}

static void put_event_json(struct json_writer *json, const struct torch_ops *ops, const struct torch_table *table,
                           uint32_t index, const uint32_t *id)
{
	const struct torch_event *event = &ops->events[index];

	json_object_begin(json);
	put_integer(json, "id", id[index]);
	json_key(json, "name");
	json_string(json, event->name);
	if (event->step >= 0)
		put_integer(json, "step", event->step);
	put_number(json, "start", event->start_us);
	put_number(json, "end", event->end_us);
	put_integer(json, "thread", thread_number(ops, event->track));
	put_integer(json, "pid", ops->model->processes[ops->model->tracks[event->track]->process].pid);
	put_integer(json, "tid", ops->model->tracks[event->track]->tid);
	put_integer(json, "sequence_nr", event->sequence);
	put_integer(json, "fwd_thread", event->forward_thread);
	put_integer(json, "scope", event->scope);
	if (event->inputs)
		put_inputs_json(json, ops, event);
	if (event->parent != TORCH_NONE)
		put_integer(json, "parent", id[event->parent]);
	put_integer(json, "cpu_memory_usage", event->bytes[0]);
	put_integer(json, "device_memory_usage", event->bytes[1]);
	put_number(json, "flops", table->has_flops ? event->flops : 0);
	json_key(json, "input_shapes");
	json_string(json, event->shapes);
	if (event->source[0])
		put_source_json(json, event->source);
	put_marks_json(json, event);
	json_object_end(json);
}

static void put_events_json(struct json_writer *json, const struct torch_ops *ops, const struct torch_table *table)
{
	uint32_t *id = storage_resize(ops->model->storage, NULL, (size_t)ops->event_count + 1, sizeof(*id));

	for (uint32_t i = 0; i < ops->order_count; i++)
		id[ops->order[i]] = i;
	json_key(json, "events");
	json_array_begin(json);
	for (uint32_t i = 0; i < ops->order_count; i++) {
		put_event_json(json, ops, table, ops->order[i], id);
		buffer_flow(json->out);
	}
	json_array_end(json);
	storage_release(ops->model->storage, id);
}

void torch_table_json(struct buffer *out, const struct torch_ops *ops, const struct torch_table *table, bool has_events)
{
	struct json_writer json;

	json_writer_init(&json, out, JSON_COMPACT);
	json_object_begin(&json);
	json_key(&json, "schema");
	json_string(&json, "stepscope.torch/1");
	if (has_events) {
		put_events_json(&json, ops, table);
	} else {
		json_key(&json, "rows");
		json_array_begin(&json);
		for (uint32_t i = 0; i < ops->row_count; i++)
			put_row_json(&json, &ops->rows[i], table);
		json_array_end(&json);
	}
	json_object_end(&json);
	buffer_add_byte(out, '\n');
}
