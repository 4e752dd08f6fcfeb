/* SPDX-License-Identifier: Apache-2.0
 *
 * nvidia_smi_lines.c: see nvidia_smi.h.
 */
#include "importers/smi/nvidia_smi.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool nvidia_smi_lines_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static void copy(char *out, size_t size, const char *text, size_t length)
{
	length = length < size - 1 ? length : size - 1;
	memcpy(out, text, length);
	out[length] = '\0';
}

static void trim(const char **text, size_t *length)
{
	while (*length && nvidia_smi_lines_is_blank(**text)) {
		++*text;
		--*length;
	}
	while (*length && nvidia_smi_lines_is_blank((*text)[*length - 1]))
		--*length;
}

/* Takes the next cell, and moves *at past it. Returns false if there is none. */
static bool next_cell(const struct smi_layout *layout, const char **at, const char *end, const char **text,
                      size_t *length)
{
	const char *stop = *at;
	if (layout->separator == ' ') {
		while (*at < end && nvidia_smi_lines_is_blank(**at))
			++*at;
		for (stop = *at; stop < end && !nvidia_smi_lines_is_blank(*stop);)
			stop++;
	} else {
		while (stop < end && (*stop != layout->separator ||
		                      (layout->is_strict && stop + 1 < end && !nvidia_smi_lines_is_blank(stop[1]))))
			stop++;
	}
	if (*at > end || (layout->separator == ' ' && *at == end))
		return false;
	*text = *at;
	*length = (size_t)(stop - *at);
	*at = stop + 1;
	trim(text, length);
	return true;
}

/* ---- names ---- */

static const struct {
	const char *name;
	enum smi_role role;
} roles[] = {
	{"timestamp", SMI_TIMESTAMP}, {"Date", SMI_DATE},
	{"Time", SMI_CLOCK},          {"index", SMI_INDEX},
	{"gpu", SMI_INDEX},           {"uuid", SMI_ID},
	{"gpu_uuid", SMI_ID},         {"pci.bus_id", SMI_ID},
	{"gpu_bus_id", SMI_ID},       {"serial", SMI_ID},
	{"gpu_serial", SMI_ID},       {"pid", SMI_PID},
	{"count", SMI_IGNORED},       {"driver_count", SMI_IGNORED},
};

/* Prefixes of the other names that nvidia-smi can be asked for. */
static const char *const families[] = {
	"utilization.", "memory.",
	"temperature",  "power.",
	"clocks",       "fan.",
	"pcie.",        "pci.",
	"ecc.",         "encoder.",
	"decoder.",     "name",
	"gpu_name",     "pstate",
	"driver_",      "vbios",
	"compute_",     "display_",
	"persistence",  "mig.",
	"enforced.",    "module.",
	"accounting.",  "retired_pages",
	"process_name", "used_gpu_memory",
	"used_memory",  "process.",
	"sm",           "mem",
	"enc",          "dec",
	"pwr",          "gtemp",
	"mtemp",        "mclk",
	"pclk",         "jpg",
	"ofa",          "fb",
	"bar1",         "command",
	"type",         "inforom",
	"gsp.",         "c2c.",
	"fabric.",      "platform.",
	"temp",         "pviol",
	"tviol",        "ccpm",
	"sbecc",        "dbecc",
	"pci",          "rxpci",
	"txpci",
};

static bool is_known(const struct smi_column *column)
{
	if (column->role != SMI_VALUE)
		return true;
	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		if (strncmp(column->name, families[i], strlen(families[i])) == 0)
			return true;
	return false;
}

/* Splits "memory.used [MiB]" into name and unit. */
static void name_column(struct smi_column *column, const char *text, size_t length)
{
	const char *bracket = memchr(text, '[', length);
	*column = (struct smi_column){0};
	if (bracket && text[length - 1] == ']' && bracket > text) {
		copy(column->unit, sizeof column->unit, bracket + 1, (size_t)(text + length - 2 - bracket));
		length = (size_t)(bracket - text);
		trim(&text, &length);
	}
	copy(column->name, sizeof column->name, text, length);
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		if (strcmp(column->name, roles[i].name) == 0)
			column->role = roles[i].role;
}

/* Takes dmon's second line: `# Idx W C`, with commas in CSV. */
static bool take_units(struct smi_layout *layout, const char *line, size_t length)
{
	const char *at = line + 1, *end = line + length, *text;
	size_t bytes, first = strspn(at, " ");
	if (layout->count == 0 ||
	    (strncmp(at + first, "Idx", 3) != 0 && strncmp(at, "YYYYMMDD", 8) != 0 && strncmp(at, "HH:MM:SS", 8) != 0))
		return false;
	for (uint32_t i = 0; i < layout->count && next_cell(layout, &at, end, &text, &bytes); i++)
		if (layout->columns[i].role == SMI_VALUE && !(bytes == 1 && *text == '#') &&
		    !(bytes == 1 && *text == '-'))
			copy(layout->columns[i].unit, sizeof layout->columns[i].unit, text, bytes);
	return true;
}

/* A column that was requested twice has the same values twice. */
static void ignore_repeated(struct smi_layout *layout, struct smi_column *column)
{
	for (const struct smi_column *other = layout->columns; other < column; other++)
		if (column->role == SMI_VALUE && strcmp(other->name, column->name) == 0)
			column->role = SMI_IGNORED;
}

static bool take_names(struct smi_layout *layout, const char *at, const char *end)
{
	uint32_t known = 0, quantities = 0;
	const char *text;
	size_t bytes;
	while (next_cell(layout, &at, end, &text, &bytes)) {
		struct smi_column *column = &layout->columns[layout->count];
		assert(layout->count <= SMI_COLUMNS);
		if (!bytes || !isalpha((unsigned char)*text))
			return false;
		if (layout->count == SMI_COLUMNS) {
			layout->beyond++;
			continue;
		}
		name_column(column, text, bytes);
		known += is_known(column);
		quantities += is_known(column) && (column->role == SMI_VALUE || column->role == SMI_ID);
		ignore_repeated(layout, column);
		layout->count++;
	}
	return quantities && 2 * known >= layout->count;
}

bool smi_may_be_header(const char *line, size_t length)
{
	trim(&line, &length);
	return length && (*line == '#' || isalpha((unsigned char)*line));
}

bool smi_header(struct smi_layout *layout, const char *line, size_t length)
{
	if (!smi_may_be_header(line, length))
		return false;
	if (*line == '#' && take_units(layout, line, length))
		return true;
	struct smi_layout found = {.separator = ' ', .has_header = true};
	if (memchr(line, ',', length))
		found.separator = ',';
	else if (*line != '#')
		found.separator = memchr(line, ';', length) ? ';' : '\t';
	found.is_strict = found.separator == ',' && memmem(line, length, ", ", 2);
	if (!take_names(&found, line + (*line == '#'), line + length))
		return false;
	*layout = found;
	return true;
}

bool smi_is_names(const char *line, size_t length)
{
	const struct smi_layout layout = {.separator = ','};
	const char *at = line, *text;
	size_t bytes, count = 0;
	for (; next_cell(&layout, &at, line + length, &text, &bytes); count++)
		if (!bytes || !isalpha((unsigned char)*text))
			return false;
	return count > 1;
}

/* ---- values ---- */

static bool is_missing(const char *text, size_t length)
{
	static const char *const words[] = {"", "-", "N/A", "ERR!", "Not Supported", "n/a", "nan"};
	if (length && *text == '[' && text[length - 1] == ']')
		return true;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (length == strlen(words[i]) && memcmp(text, words[i], length) == 0)
			return true;
	return false;
}

/* Reads "97 %", "592.74 W", "592,74 W", "61"; "P2" of pstate; "Active" and "Not Active" of clocks_event_reasons. */
static bool nvidia_smi_lines_read_number(struct smi_cell *cell)
{
	char text[64], *rest;
	if (!cell->length || cell->length >= sizeof text)
		return false;
	copy(text, sizeof text, cell->text, cell->length);
	if (strcmp(text, "Active") == 0 || strcmp(text, "Not Active") == 0) {
		cell->number = *text == 'A';
		return true;
	}
	char *first = text + (*text == 'P' && isdigit((unsigned char)text[1]));
	if (!isdigit((unsigned char)*first) && *first != '-' && *first != '.')
		return false;
	for (char *comma = first; *comma; comma++)
		if (*comma == ',')
			*comma = '.';
	cell->number = strtod(first, &rest);
	if (rest == first || !isfinite(cell->number) || (first[0] == '0' && (first[1] | 0x20) == 'x'))
		return false;
	if (*rest && !nvidia_smi_lines_is_blank(*rest))
		return false;
	rest += strspn(rest, " ");
	copy(cell->unit, sizeof cell->unit, rest, strlen(rest));
	return strlen(rest) < sizeof cell->unit && !strpbrk(rest, " .:/0123456789");
}

/* Returns true for the last column of pmon, a program's name, which may contain blanks. */
static bool is_rest(const struct smi_layout *layout, uint32_t column)
{
	return layout->separator == ' ' && column + 1 == layout->count &&
	       strcmp(layout->columns[column].name, "command") == 0;
}

uint32_t smi_cells(const struct smi_layout *layout, const char *line, size_t length, struct smi_cell *cells)
{
	const char *at = line, *end = line + length, *text;
	size_t bytes;
	uint32_t count = 0;
	for (; next_cell(layout, &at, end, &text, &bytes); count++) {
		struct smi_cell *cell = &cells[count];
		if (count >= SMI_COLUMNS)
			continue;
		if (is_rest(layout, count)) {
			bytes = (size_t)(end - text);
			at = end;
			trim(&text, &bytes);
		}
		*cell = (struct smi_cell){.text = text, .length = bytes, .kind = SMI_TEXT};
		if (is_missing(cell->text, cell->length))
			cell->kind = SMI_MISSING;
		else if (nvidia_smi_lines_read_number(cell))
			cell->kind = SMI_NUMBER;
	}
	return count;
}

/* ---- times ---- */

static int64_t days_since_1970(int year, int month, int day)
{
	int64_t y = month > 2 ? year : year - 1, era = y / 400, of_era = y - era * 400;
	int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool read_clock(const char *text, int64_t *ns)
{
	unsigned hour, minute, second;
	int length = 0;
	if (sscanf(text, "%2u:%2u:%2u%n", &hour, &minute, &second, &length) != 3 || hour > 23 || minute > 59 ||
	    second > 60)
		return false;
	*ns = ((hour * 60LL + minute) * 60 + second) * 1000000000LL;
	text += length;
	int64_t unit = 100000000;
	if (*text == '.' || *text == ',')
		for (text++; isdigit((unsigned char)*text); text++, unit /= 10)
			*ns += unit * (*text - '0');
	return *text == '\0';
}

static bool read_date(const char *text, const char *form, int64_t *ns, int *length)
{
	unsigned year, month, day;
	if (sscanf(text, form, &year, &month, &day, length) != 3 || year < 1990 || year > 2200 || month < 1 ||
	    month > 12 || day < 1 || day > 31)
		return false;
	*ns = days_since_1970((int)year, (int)month, (int)day) * 86400 * 1000000000LL;
	return true;
}

/* Reads "2026/11/21 07:03:09.412", also with - or T. */
static bool read_timestamp(const struct smi_cell *cell, int64_t *time_ns)
{
	char text[48];
	int length = 0;
	int64_t day_ns, ns;
	if (cell->length >= sizeof text)
		return false;
	copy(text, sizeof text, cell->text, cell->length);
	if (!read_date(text, "%4u/%2u/%2u%n", &day_ns, &length) && !read_date(text, "%4u-%2u-%2u%n", &day_ns, &length))
		return false;
	if ((text[length] != ' ' && text[length] != 'T') || !read_clock(text + length + 1, &ns))
		return false;
	*time_ns = day_ns + ns;
	return true;
}

static bool has_role(const struct smi_layout *layout, enum smi_role role)
{
	bool is_found = false;
	for (uint32_t i = 0; i < layout->count && !is_found; i++)
		is_found = layout->columns[i].role == role;
	return is_found;
}

bool smi_has_clock_only(const struct smi_layout *layout)
{
	return has_role(layout, SMI_CLOCK) && !has_role(layout, SMI_DATE) && !has_role(layout, SMI_TIMESTAMP);
}

bool smi_time(const struct smi_layout *layout, const struct smi_cell *cells, int64_t *time_ns)
{
	int64_t day_ns = 0, clock_ns = 0;
	bool has_date = false, has_clock = false;
	for (uint32_t i = 0; i < layout->count; i++) {
		char text[32];
		int length = 0;
		if (layout->columns[i].role == SMI_TIMESTAMP)
			return read_timestamp(&cells[i], time_ns);
		copy(text, sizeof text, cells[i].text, cells[i].length);
		if (layout->columns[i].role == SMI_DATE)
			has_date = read_date(text, "%4u%2u%2u%n", &day_ns, &length);
		if (layout->columns[i].role == SMI_CLOCK)
			has_clock = read_clock(text, &clock_ns);
	}
	*time_ns = day_ns + clock_ns;
	return has_clock && (has_date || !has_role(layout, SMI_DATE));
}

bool smi_has_time(const struct smi_layout *layout, const struct smi_cell *cells)
{
	for (uint32_t i = 0; i < layout->count; i++)
		if ((layout->columns[i].role == SMI_TIMESTAMP || layout->columns[i].role == SMI_CLOCK) &&
		    cells[i].kind != SMI_MISSING)
			return true;
	return false;
}

bool smi_guess(struct smi_layout *layout, const char *line, size_t length)
{
	struct smi_layout found = {.separator = ','};
	struct smi_cell cells[SMI_COLUMNS];
	unsigned signs = 0;
	int64_t ignored;
	if (!memchr(line, ',', length))
		return false;
	found.is_strict = memmem(line, length, ", ", 2);
	found.count = smi_cells(&found, line, length, cells);
	if (found.count > SMI_COLUMNS)
		return false;
	for (uint32_t i = 0; i < found.count; i++) {
		struct smi_column *column = &found.columns[i];
		bool is_time = read_timestamp(&cells[i], &ignored);
		snprintf(column->name, sizeof column->name, "column %u", i + 1);
		copy(column->unit, sizeof column->unit, cells[i].unit, strlen(cells[i].unit));
		column->role = is_time ? SMI_TIMESTAMP : SMI_VALUE;
		if (cells[i].length > 4 && memcmp(cells[i].text, "GPU-", 4) == 0)
			column->role = SMI_ID;
		signs += is_time || column->role == SMI_ID || strcmp(column->unit, "MiB") == 0 ||
		         strcmp(column->unit, "%") == 0;
	}
	if (signs == 0 || found.count < 2)
		return false;
	*layout = found;
	return true;
}
