/* SPDX-License-Identifier: Apache-2.0
 *
 * nvidia_smi.c: the importer of nvidia-smi's tables. Rows are collected first, because a file need not state the GPU of
 * a row: then rows of one tick are distinguished by their order. Times are local ones of a machine with an unknown time
 * zone.
 */
#include "importers/smi/nvidia_smi.h"

#include "base/memory.h"
#include "importers/importer.h"
#include "importers/text_lines.h"
#include "model/number_map.h"
#include "model/reasons.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define CELLS_MAX (32u << 20)
#define HEAD_LINES 50
#define HEAD_LINE_BYTES (64u << 10)
#define DEVICES_MAX 64u /* number that the order of rows can distinguish */
#define FILES_MAX 32    /* files taken from a folder */
#define BESIDE_BYTES (256 << 20)
#define SECOND_NS 1000000000LL
#define QUARTER_NS (900 * SECOND_NS)
#define DAY_NS (96 * QUARTER_NS)
#define WALL_TIMES_NS (1000000000 * SECOND_NS) /* since 1970: in 2001 */

struct cell {
	double number;
	uint32_t text; /* string */
	uint8_t kind;  /* enum smi_kind */
};

struct nvidia_smi_row {
	int64_t time_ns;
	bool has_time;
	uint32_t device; /* string; 0: the row does not state it */
};

struct telemetry {
	struct model *model;
	const char *path;
	const char *owner; /* the file's name, if several are beside a trace; NULL: it is the only one */
	struct smi_layout layout;
	struct nvidia_smi_row *rows;
	uint32_t row_count, row_capacity;
	struct cell *cells; /* layout.count per row */
	size_t cell_capacity;
	struct number_map series;    /* key: subject and name, both strings */
	struct value_series **known; /* values of that map */
	uint32_t known_count, known_capacity;
	uint32_t process;
	int64_t shift_ns, first_ns, last_ns; /* local time + shift = the model's */
	bool has_times;
	int64_t day_ns, clock_ns; /* without dates: midnights passed so far, and the last time of day */
	bool is_dateless, is_dated;
	uint64_t values, ordered; /* rows distinguished by their order */
	uint64_t left_out, odd_times, changed_texts;
	struct repair_count unreadable, cut, cut_values;
};

/* ---- rows ---- */

/* Adds the file's name to the subject: values in two files are not one quantity. */
static uint32_t add_subject(struct telemetry *telemetry, const char *text)
{
	char owned[256];
	if (telemetry->owner)
		snprintf(owned, sizeof owned, "%.80s: %s", telemetry->owner, text);
	return intern_add(&telemetry->model->strings, telemetry->owner ? owned : text);
}

/* Returns the GPU of the row, and the process on it. */
static uint32_t subject_of(struct telemetry *telemetry, const struct smi_cell *cells)
{
	const struct smi_layout *layout = &telemetry->layout;
	char device[80] = "", process[64] = "", text[160];
	for (uint32_t i = 0; i < layout->count; i++) {
		enum smi_role role = layout->columns[i].role;
		int length = (int)(cells[i].length < 48 ? cells[i].length : 48);
		if (cells[i].kind == SMI_MISSING)
			continue;
		if (role == SMI_INDEX)
			snprintf(device, sizeof device, "GPU %.*s", length, cells[i].text);
		else if (role == SMI_ID && !*device)
			snprintf(device, sizeof device, "%.*s", length, cells[i].text);
		else if (role == SMI_PID)
			snprintf(process, sizeof process, "%spid %.*s", *device ? ", " : "", length, cells[i].text);
	}
	snprintf(text, sizeof text, "%s%s", device, *device || *process != ',' ? process : process + 2);
	return *text ? add_subject(telemetry, text) : 0;
}

static struct nvidia_smi_row *nvidia_smi_add_row(struct telemetry *telemetry)
{
	uint32_t columns = telemetry->layout.count;
	MEMORY_GROW(telemetry->rows, telemetry->row_count, telemetry->row_capacity, 256);
	/* has its own capacity, because earlier rows may have had fewer columns */
	size_t wanted = ((size_t)telemetry->row_count + 1) * columns;
	if (wanted > telemetry->cell_capacity) {
		size_t doubled = 2 * telemetry->cell_capacity;
		telemetry->cell_capacity = doubled > wanted ? doubled : wanted;
		telemetry->cells = memory_resize(telemetry->cells, telemetry->cell_capacity, sizeof *telemetry->cells);
	}
	return &telemetry->rows[telemetry->row_count++];
}

/* Returns false if the number has another unit than the column. */
static bool has_unit(struct smi_column *column, const struct smi_cell *cell)
{
	if (!*column->unit && *cell->unit)
		snprintf(column->unit, sizeof column->unit, "%s", cell->unit);
	return !*cell->unit || strcmp(column->unit, cell->unit) == 0;
}

/* If a file has no dates, a time of day much earlier than the one before is of the next day. A file has dates in all
 * rows or in none. */
static void add_day(struct telemetry *telemetry, struct nvidia_smi_row *row)
{
	bool is_dateless = smi_has_clock_only(&telemetry->layout);
	row->has_time = is_dateless ? !telemetry->is_dated : !telemetry->is_dateless;
	telemetry->is_dated |= row->has_time && !is_dateless;
	if (!row->has_time || !is_dateless)
		return;
	if (telemetry->is_dateless && row->time_ns < telemetry->clock_ns - DAY_NS / 2)
		telemetry->day_ns += DAY_NS;
	telemetry->is_dateless = true;
	telemetry->clock_ns = row->time_ns;
	row->time_ns += telemetry->day_ns;
}

/* nvidia-smi ends every line, so a line without an end was cut off. Its last value is complete only if the column's
 * unit follows it. */
static bool is_cut(const struct smi_column *column, const struct smi_cell *cell)
{
	return cell->kind != SMI_MISSING && (!*cell->unit || strcmp(column->unit, cell->unit) != 0);
}

static void take_row(struct telemetry *telemetry, const struct text_lines *lines)
{
	struct smi_cell cells[SMI_COLUMNS];
	struct smi_layout *layout = &telemetry->layout;
	uint32_t count = layout->count;
	if (smi_cells(layout, lines->line, lines->length, cells) != count + layout->beyond) {
		repair_note(lines->is_terminated ? &telemetry->unreadable : &telemetry->cut, lines->offset);
		return;
	}
	if ((uint64_t)(telemetry->row_count + 1) * count > CELLS_MAX) {
		telemetry->left_out++;
		return;
	}
	if (!lines->is_terminated && !layout->beyond && is_cut(&layout->columns[count - 1], &cells[count - 1])) {
		cells[count - 1].kind = SMI_MISSING;
		repair_note(&telemetry->cut_values, lines->offset);
	}
	struct nvidia_smi_row *row = nvidia_smi_add_row(telemetry);
	*row = (struct nvidia_smi_row){.device = subject_of(telemetry, cells)};
	row->has_time = smi_time(layout, cells, &row->time_ns);
	if (row->has_time)
		add_day(telemetry, row);
	telemetry->odd_times += !row->has_time && smi_has_time(layout, cells);
	for (uint32_t i = 0; i < count; i++) {
		struct cell *cell = &telemetry->cells[(size_t)(telemetry->row_count - 1) * count + i];
		*cell = (struct cell){.kind = (uint8_t)cells[i].kind, .number = cells[i].number};
		if (cells[i].kind == SMI_NUMBER && !has_unit(&layout->columns[i], &cells[i]))
			cell->kind = SMI_TEXT;
		if (layout->columns[i].role == SMI_VALUE && cell->kind != SMI_NUMBER)
			cell->text = intern_add_n(&telemetry->model->strings, cells[i].text, cells[i].length);
	}
}

/* ---- GPU of a row ---- */

static bool is_new_tick(const struct telemetry *telemetry, uint32_t row, int64_t gap_ns)
{
	return telemetry->rows[row].time_ns - telemetry->rows[row - 1].time_ns > gap_ns;
}

/* Returns the number of rows per tick. Rows of one tick are closer together than a fifth of the widest distance among
 * the first rows. If ticks have different numbers of rows, all rows are of one GPU. */
static uint32_t rows_per_tick(const struct telemetry *telemetry)
{
	int64_t widest_ns = 0;
	uint32_t first = 0, begin = 0;
	for (uint32_t i = 1; i < telemetry->row_count && i < 4 * DEVICES_MAX; i++)
		if (telemetry->rows[i].time_ns - telemetry->rows[i - 1].time_ns > widest_ns)
			widest_ns = telemetry->rows[i].time_ns - telemetry->rows[i - 1].time_ns;
	for (uint32_t i = 1; i <= telemetry->row_count; i++) {
		if (i < telemetry->row_count && !is_new_tick(telemetry, i, widest_ns / 5))
			continue;
		first = first ? first : i;
		if (i - begin != first && i < telemetry->row_count)
			return 1;
		begin = i;
	}
	return first && first <= DEVICES_MAX && widest_ns ? first : 1;
}

static void name_devices(struct telemetry *telemetry)
{
	uint32_t count = rows_per_tick(telemetry);
	char text[32];
	for (uint32_t i = 0; i < telemetry->row_count; i++) {
		if (telemetry->rows[i].device)
			continue;
		snprintf(text, sizeof text, count > 1 ? "GPU #%u" : "GPU", i % count + 1);
		telemetry->rows[i].device = add_subject(telemetry, text);
		telemetry->ordered += count > 1;
	}
}

/* ---- delivery ---- */

static struct value_series *series_of(struct telemetry *telemetry, uint32_t subject, const struct smi_column *column)
{
	struct model *model = telemetry->model;
	uint32_t name = intern_add(&model->strings, column->name);
	uint64_t key = (uint64_t)subject << 32 | name;
	uint32_t found = number_map_find(&telemetry->series, key);
	if (found != NUMBER_MAP_NONE)
		return telemetry->known[found];
	MEMORY_GROW(telemetry->known, telemetry->known_count, telemetry->known_capacity, 64);
	number_map_set(&telemetry->series, key, telemetry->known_count);
	return telemetry->known[telemetry->known_count++] = model_add_series(
		       model,
		       &(struct value_series){.process = telemetry->process,
	                                      .name = name,
	                                      .subject = subject,
	                                      .unit = *column->unit ? intern_add(&model->strings, column->unit) : 0});
}

/* Adds the first text of a text column as a fact of the GPU. */
static void nvidia_smi_add_fact(struct telemetry *telemetry, uint32_t subject, const struct smi_column *column,
                                uint32_t text)
{
	struct model *model = telemetry->model;
	char key[256];
	snprintf(key, sizeof key, "%s.%s", model_text(model, subject), column->name);
	const char *first = model_meta(model, telemetry->process, key);
	if (!first)
		model_add_meta(model, telemetry->process, key, model_text(model, text));
	else
		telemetry->changed_texts += strcmp(first, model_text(model, text)) != 0;
}

static bool is_numeric(const struct telemetry *telemetry, uint32_t column)
{
	for (uint32_t i = 0; i < telemetry->row_count; i++)
		if (telemetry->cells[(size_t)i * telemetry->layout.count + column].kind == SMI_NUMBER)
			return true;
	return false;
}

static bool nvidia_smi_is_text(const struct telemetry *telemetry, uint32_t column)
{
	for (uint32_t i = 0; i < telemetry->row_count; i++)
		if (telemetry->cells[(size_t)i * telemetry->layout.count + column].kind == SMI_TEXT)
			return true;
	return false;
}

static void deliver_column(struct telemetry *telemetry, uint32_t number)
{
	const struct smi_column *column = &telemetry->layout.columns[number];
	bool has_numbers = is_numeric(telemetry, number),
	     has_texts = !has_numbers && nvidia_smi_is_text(telemetry, number);
	for (uint32_t i = 0; i < telemetry->row_count; i++) {
		const struct nvidia_smi_row *row = &telemetry->rows[i];
		const struct cell *cell = &telemetry->cells[(size_t)i * telemetry->layout.count + number];
		if (has_texts) {
			if (cell->kind == SMI_TEXT)
				nvidia_smi_add_fact(telemetry, row->device, column, cell->text);
			continue;
		}
		if (cell->kind != SMI_NUMBER && cell->text)
			nvidia_smi_add_fact(telemetry, row->device, column, cell->text); /* why it has no number */
		model_series_add(telemetry->model, series_of(telemetry, row->device, column),
		                 row->time_ns + telemetry->shift_ns, cell->kind == SMI_NUMBER ? cell->number : NAN);
		telemetry->values += cell->kind == SMI_NUMBER;
	}
}

/* A row without a time gets the time of the row before; the first rows get the start of the file. If no row has a time,
 * all rows are of one instant. */
static void nvidia_smi_find_times(struct telemetry *telemetry)
{
	for (uint32_t i = 0; i < telemetry->row_count; i++) {
		struct nvidia_smi_row *row = &telemetry->rows[i];
		if (!row->has_time)
			row->time_ns = i ? telemetry->rows[i - 1].time_ns : telemetry->last_ns;
		if (!row->has_time)
			continue;
		telemetry->first_ns = telemetry->has_times && telemetry->first_ns < row->time_ns ? telemetry->first_ns
		                                                                                 : row->time_ns;
		telemetry->last_ns = telemetry->has_times && telemetry->last_ns > row->time_ns ? telemetry->last_ns
		                                                                               : row->time_ns;
		telemetry->has_times = true;
	}
}

/* Delivers the rows since the last line of names. */
static void deliver(struct telemetry *telemetry)
{
	name_devices(telemetry);
	for (uint32_t i = 0; i < telemetry->layout.count; i++)
		if (telemetry->layout.columns[i].role == SMI_VALUE)
			deliver_column(telemetry, i);
	telemetry->row_count = 0;
}

/* ---- the file ---- */

enum take {
	TAKE_TIMES, /* only find the times in the file */
	TAKE_VALUES,
};

static void end_of_rows(struct telemetry *telemetry, enum take take)
{
	nvidia_smi_find_times(telemetry);
	if (take == TAKE_VALUES)
		deliver(telemetry);
	telemetry->row_count = 0;
}

static bool nvidia_smi_is_same(const struct smi_layout *a, const struct smi_layout *b)
{
	bool is_same = a->count == b->count && a->separator == b->separator;
	for (uint32_t i = 0; is_same && i < a->count; i++)
		is_same = strcmp(a->columns[i].name, b->columns[i].name) == 0;
	return is_same;
}

static bool take_header(struct telemetry *telemetry, const struct text_lines *lines, enum take take)
{
	struct smi_layout found = telemetry->layout;
	if (!smi_header(&found, lines->line, lines->length))
		return false;
	if (!nvidia_smi_is_same(&found, &telemetry->layout)) /* another query; -l repeats the same names */
		end_of_rows(telemetry, take);
	telemetry->layout = found;
	return true;
}

static void take_line(struct telemetry *telemetry, const struct text_lines *lines, enum take take)
{
	if (lines->length == 0 ||
	    (smi_may_be_header(lines->line, lines->length) && take_header(telemetry, lines, take)))
		return;
	if (!telemetry->layout.count && !smi_guess(&telemetry->layout, lines->line, lines->length)) {
		repair_note(lines->is_terminated ? &telemetry->unreadable : &telemetry->cut, lines->offset);
		return;
	}
	take_row(telemetry, lines);
}

static void release_rows(struct telemetry *telemetry)
{
	free(telemetry->rows);
	free(telemetry->cells);
	telemetry->rows = NULL;
	telemetry->cells = NULL;
	telemetry->row_count = telemetry->row_capacity = 0;
	telemetry->cell_capacity = 0;
}

static enum status nvidia_smi_read_file(struct telemetry *telemetry, enum take take, struct error *err)
{
	struct text_lines lines;
	enum status status = text_lines_open(&lines, telemetry->path, err);
	if (status != STATUS_OK)
		return status;
	while (text_lines_next(&lines))
		take_line(telemetry, &lines, take);
	end_of_rows(telemetry, take);
	release_rows(telemetry);
	if (take == TAKE_VALUES)
		text_lines_report(&lines, telemetry->model, telemetry->path);
	text_lines_close(&lines);
	return STATUS_OK;
}

static void nvidia_smi_release(struct telemetry *telemetry)
{
	release_rows(telemetry);
	free(telemetry->known);
	number_map_release(&telemetry->series);
}

static void nvidia_smi_note(struct telemetry *telemetry, uint64_t count, const char *sentence)
{
	if (count)
		model_add_ledger(telemetry->model, LEDGER_OTHER, telemetry->process, file_name_of(telemetry->path),
		                 count, sentence);
}

static void report(struct telemetry *telemetry)
{
	struct model *model = telemetry->model;
	repair_report(&telemetry->unreadable, model, telemetry->path,
	              "lines with another number of values than the header were left out");
	repair_report(&telemetry->cut, model, telemetry->path, "the last line is cut off and was left out");
	repair_report(&telemetry->cut_values, model, telemetry->path,
	              "the last line has no end, so its last value may be cut off and was left out");
	nvidia_smi_note(telemetry, telemetry->ordered,
	                "rows do not name their GPU: rows of one tick are numbered in their order");
	nvidia_smi_note(telemetry, telemetry->left_out, "rows after 32 million values were left out");
	nvidia_smi_note(telemetry, telemetry->layout.beyond, "columns after the first 512 were not read");
	nvidia_smi_note(telemetry, telemetry->odd_times,
	                "times are invalid or outside the years 1990 to 2200: their rows have the time of the row "
	                "before");
	nvidia_smi_note(telemetry, telemetry->changed_texts,
	                "texts differ from the first text of their column; only the first is kept, as a fact");
	nvidia_smi_note(telemetry, !telemetry->layout.has_header,
	                "the file has no column names: its columns are "
	                "numbered");
	nvidia_smi_note(telemetry, !telemetry->has_times, "the file has no times: only the number of values is known");
	nvidia_smi_note(telemetry, telemetry->is_dateless,
	                "the file has times of day without a date: if a time goes back, the next day starts");
}

static void nvidia_smi_add_process(struct telemetry *telemetry)
{
	struct model *model = telemetry->model;
	telemetry->process = model_add_process(model);
	struct process *process = &model->processes[telemetry->process];
	process->role = STEPSCOPE_ROLE_HOST;
	process->name = intern_add(&model->strings, "nvidia-smi");
	process->is_closed = true;
}

static enum status nvidia_smi_load(const char *path, const struct model_filter *filter, struct model *model,
                                   struct error *err)
{
	struct telemetry times = {.model = model, .path = path}, telemetry = times;
	enum status status = nvidia_smi_read_file(&times, TAKE_TIMES, err);
	telemetry.shift_ns = -times.first_ns;
	telemetry.last_ns = times.first_ns; /* for rows before the first time */
	if (status == STATUS_OK) {
		nvidia_smi_add_process(&telemetry);
		status = nvidia_smi_read_file(&telemetry, TAKE_VALUES, err);
	}
	if (status == STATUS_OK && !telemetry.values)
		status = error_set(err, STATUS_INPUT, "'%s' has no readable nvidia-smi values", path);
	if (status == STATUS_OK) {
		struct process *process = &model->processes[telemetry.process];
		process->event_count = telemetry.values;
		process->last_ns = telemetry.last_ns - telemetry.first_ns;
		model_add_meta(model, MODEL_NONE, "trace.format", "nvidia-smi");
		report(&telemetry);
	}
	nvidia_smi_release(&times);
	nvidia_smi_release(&telemetry);
	return status;
}

static bool is_table(const char *path)
{
	struct text_lines lines;
	struct smi_layout layout = {0};
	struct error ignored;
	bool is_found = false, is_other = false;
	if (text_lines_open(&lines, path, &ignored) != STATUS_OK)
		return false;
	lines.most_bytes = HEAD_LINES * HEAD_LINE_BYTES;
	for (int i = 0; i < HEAD_LINES && !is_found && !is_other && text_lines_next(&lines); i++) {
		if (lines.length >= HEAD_LINE_BYTES)
			continue;
		is_found = smi_header(&layout, lines.line, lines.length) ||
		           smi_guess(&layout, lines.line, lines.length);
		is_other = smi_is_names(lines.line, lines.length);
	}
	text_lines_close(&lines);
	return is_found;
}

static bool nvidia_smi_recognises(const char *path, bool is_directory, const char *head, size_t length)
{
	return !is_directory && length && is_table(path);
}

/* ---- beside a recording or a trace ---- */

struct nvidia_smi_stretch {
	int64_t first_ns, last_ns;
};

/* A trace may itself have wall times, like those of PyTorch before 2.3: no other clock counts from 1970. */
static bool has_wall_time(const struct process *process)
{
	return process->realtime_offset_ns || process->first_ns >= WALL_TIMES_NS;
}

/* Finds the wall time of the run; returns false if it is unknown. */
static bool run_stretch(const struct model *model, struct nvidia_smi_stretch *stretch, int64_t *offset_ns)
{
	bool has_any = false;
	for (uint32_t i = 0; i < model->processes_count; i++) {
		const struct process *process = &model->processes[i];
		if (!process->has_times || !has_wall_time(process) || process->role == STEPSCOPE_ROLE_HOST)
			continue;
		if (!has_any)
			*offset_ns = process->realtime_offset_ns;
		stretch->first_ns = has_any && stretch->first_ns < process->first_ns ? stretch->first_ns
		                                                                     : process->first_ns;
		stretch->last_ns = has_any && stretch->last_ns > process->last_ns ? stretch->last_ns : process->last_ns;
		has_any = true;
	}
	stretch->first_ns += *offset_ns;
	stretch->last_ns += *offset_ns;
	return has_any;
}

static bool overlaps(const struct telemetry *telemetry, const struct nvidia_smi_stretch *run, int64_t zone_ns)
{
	return telemetry->first_ns - zone_ns <= run->last_ns && telemetry->last_ns - zone_ns >= run->first_ns;
}

/* Finds how far the file's local time is ahead of UTC: as on this machine, otherwise in the only zone in which the file
 * overlaps the run. Returns false if no zone or several zones do. */
static bool find_zone(const struct telemetry *telemetry, const struct nvidia_smi_stretch *run, int64_t *zone_ns)
{
	time_t when = (time_t)(run->first_ns / SECOND_NS);
	struct tm tm;
	int64_t found = 0;
	uint32_t count = 0;
	if (localtime_r(&when, &tm)) {
		*zone_ns = tm.tm_gmtoff * SECOND_NS;
		if (overlaps(telemetry, run, *zone_ns))
			return true;
	}
	for (int64_t zone = -48; zone <= 56; zone++) {
		if (!overlaps(telemetry, run, zone * QUARTER_NS))
			continue;
		found = zone * QUARTER_NS;
		count++;
	}
	*zone_ns = found;
	return count == 1;
}

static void add_zone(struct telemetry *telemetry, int64_t zone_ns)
{
	char text[80];
	int minutes = (int)(zone_ns / SECOND_NS / 60);
	snprintf(text, sizeof text, "local time was taken as UTC%+03d:%02d", minutes / 60, abs(minutes) % 60);
	model_add_meta(telemetry->model, telemetry->process, "nvidia-smi.zone", text);
	model_add_meta(telemetry->model, telemetry->process, "nvidia-smi.file", file_name_of(telemetry->path));
}

static void nvidia_smi_add_file(struct model *model, const char *path, bool is_only,
                                const struct nvidia_smi_stretch *run, int64_t offset_ns)
{
	const char *owner = is_only ? NULL : file_name_of(path);
	struct telemetry times = {.model = model, .path = path, .owner = owner}, telemetry = times;
	struct error ignored;
	int64_t zone_ns;
	if (nvidia_smi_read_file(&times, TAKE_TIMES, &ignored) != STATUS_OK)
		goto out;
	bool is_dated = times.has_times && !times.is_dateless;
	if (!is_dated || !find_zone(&times, run, &zone_ns)) {
		model_add_ledger(model, LEDGER_OTHER, MODEL_NONE, file_name_of(path), 1,
		                 is_dated ? "the telemetry next to the input is from another time and is not shown"
		                          : "the telemetry next to the input has no times with a date and is not "
		                            "shown");
		goto out;
	}
	nvidia_smi_add_process(&telemetry);
	telemetry.shift_ns = -zone_ns - offset_ns;
	telemetry.last_ns = times.first_ns; /* for rows before the first time */
	if (nvidia_smi_read_file(&telemetry, TAKE_VALUES, &ignored) == STATUS_OK) {
		struct process *process = &model->processes[telemetry.process];
		process->realtime_offset_ns = offset_ns;
		process->has_times = true;
		process->first_ns = telemetry.first_ns + telemetry.shift_ns;
		process->last_ns = telemetry.last_ns + telemetry.shift_ns;
		add_zone(&telemetry, zone_ns);
		report(&telemetry);
	}
out:
	nvidia_smi_release(&times);
	nvidia_smi_release(&telemetry);
}

static int by_name(const struct dirent **left, const struct dirent **right)
{
	return strcmp((*left)->d_name, (*right)->d_name);
}

static int is_csv(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);
	return *entry->d_name != '.' && length > 4 && strcmp(entry->d_name + length - 4, ".csv") == 0;
}

static uint32_t find_files(const char *folder, char *paths[FILES_MAX])
{
	struct dirent **entries = NULL;
	uint32_t found = 0;
	int count = scandir(folder, &entries, is_csv, by_name);
	for (int i = 0; i < count; i++) {
		char path[4096];
		struct stat info;
		bool is_named = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name) < (int)sizeof path;
		if (found < FILES_MAX && is_named && stat(path, &info) == 0 && S_ISREG(info.st_mode) &&
		    info.st_size <= BESIDE_BYTES && is_table(path) && (paths[found] = strdup(path)))
			found++;
		free(entries[i]);
	}
	free(entries);
	return found;
}

void smi_add_beside(struct model *model, const char *folder)
{
	char *paths[FILES_MAX];
	struct nvidia_smi_stretch run = {0};
	int64_t offset_ns = 0;
	uint32_t before = model->series_count;
	bool is_known = run_stretch(model, &run, &offset_ns);
	uint32_t count = find_files(folder, paths);
	for (uint32_t i = 0; i < count; i++) {
		if (is_known)
			nvidia_smi_add_file(model, paths[i], count == 1, &run, offset_ns);
		else
			model_add_ledger(model, LEDGER_OTHER, MODEL_NONE, file_name_of(paths[i]), 1,
			                 "the telemetry next to the input is not shown, because the input has no "
			                 "time of day");
		free(paths[i]);
	}
	if (model->series_count > before)
		model_finish_series(model);
}

static bool nvidia_smi_begins(const char *name, const char *head, size_t length)
{
	length = length < INPUT_HEAD_BYTES ? length : INPUT_HEAD_BYTES;
	struct smi_layout layout = {0};
	const char *line = head, *end;
	bool is_found = false;
	for (; !is_found && (end = memchr(line, '\n', length - (size_t)(line - head))); line = end + 1) {
		size_t bytes = (size_t)(end - line) - (end > line && end[-1] == '\r');
		is_found = smi_header(&layout, line, bytes) || smi_guess(&layout, line, bytes);
	}
	return is_found;
}

static const char *const nvidia_smi_reasons[REASON_COUNT] = {
	[REASON_NO_STEPS] = "telemetry has no steps: use a trace or a recording of the run",
	[REASON_NO_PHASES] = "telemetry has no phases",
	[REASON_NO_OPERATORS] = "telemetry has no operators",
	[REASON_NO_MODULES] = "telemetry has no module calls",
	[REASON_NO_ALLOCATIONS] = "telemetry has no allocations",
	[REASON_NO_TOTALS] = "telemetry has no allocator totals",
	[REASON_NO_SHAPES] = "telemetry has no input sizes",
	[REASON_NO_FORMULA] = "telemetry has no FLOP or byte counts",
	[REASON_NO_FLOPS] = "telemetry has no FLOP or byte counts",
	[REASON_NO_BYTES] = "telemetry has no FLOP or byte counts",
	[REASON_NO_LINES] = "telemetry has no Python lines",
	[REASON_NO_METRICS] = "telemetry has no metrics",
	[REASON_NO_MARKS] = "telemetry has no marks",
	[REASON_NO_TIMES] = "the file has no times",
	[REASON_NO_THREAD_USE] = "telemetry does not contain the CPU time, waits and page faults of a step",
	[REASON_NO_READINGS] = "telemetry does not contain readings of a thread's CPU time",
	[REASON_NO_COST] = "another tool recorded this",
	[REASON_NO_CAPTURE] = "another tool recorded this",
};

const struct importer importer_nvidia_smi = {
	.name = "nvidia-smi",
	.kind = "an nvidia-smi table",
	.looked_for = "an nvidia-smi table",
	.recognises = nvidia_smi_recognises,
	.load = nvidia_smi_load,
	.begins = nvidia_smi_begins,
	.reasons = nvidia_smi_reasons,
};
