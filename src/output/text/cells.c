/* SPDX-License-Identifier: Apache-2.0
 *
 * cells.c: see the header. Units are those of the column; base/units.h formats the numbers.
 */
#include "output/text/cells.h"

#include "base/demangle.h"
#include "base/json_write.h"
#include "base/text.h"
#include "base/units.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MAXIMUM_TEXT ((size_t)1 << 20)

static void add_flops(struct buffer *out, double value, enum table_unit unit)
{
	char text[UNITS_BYTES];
	size_t length;

	units_rate(text, value, "FLOP");
	length = strlen(text);
	/* an amount has the same prefixes as a rate, but without "/s" */
	buffer_add(out, text, unit == UNIT_FLOP && length > 2 ? length - 2 : length);
}

/* Formats rates and plain numbers: whole numbers from 100 on, otherwise four digits. */
static char *plain(char *text, double value)
{
	return units_count(text, fabs(value) >= 100 && fabs(value) < 1e15 ? round(value) : value);
}

static void cells_add_number(struct buffer *out, double value, enum table_unit unit)
{
	char text[UNITS_BYTES];

	switch (unit) {
	case UNIT_NS:
	case UNIT_NS_SINCE_START:
		buffer_add_text(out, units_time(text, value));
		return;
	case UNIT_BYTES:
		buffer_add_text(out, units_bytes(text, value));
		return;
	case UNIT_RATIO:
		buffer_add_text(out, units_ratio(text, value));
		return;
	case UNIT_FLOP:
	case UNIT_FLOP_PER_SECOND:
		add_flops(out, value, unit);
		return;
	case UNIT_BYTES_PER_SECOND:
		buffer_add_text(out, units_rate(text, value, "B"));
		return;
	default:
		buffer_add_text(out, plain(text, value));
	}
}

/* Returns true for marks that change the direction of text. A name must not do that in a terminal. */
static bool is_direction(unsigned code)
{
	return code == 0x61c || code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069);
}

/* Returns the code point of a valid sequence of one to three bytes; 0 for four bytes. */
static unsigned code_point(const char *text, size_t bytes)
{
	const unsigned char *byte = (const unsigned char *)text;

	if (bytes == 1)
		return byte[0];
	if (bytes == 2)
		return (byte[0] & 0x1fu) << 6 | (byte[1] & 0x3fu);
	return bytes == 3 ? (byte[0] & 0x0fu) << 12 | (byte[1] & 0x3fu) << 6 | (byte[2] & 0x3fu) : 0;
}

static void add_escaped(struct buffer *out, const char *text)
{
	const char *end = text + strlen(text);

	while (text < end) {
		size_t bytes = utf8_length(text, (size_t)(end - text));
		unsigned code = bytes ? code_point(text, bytes) : 0;

		if (bytes == 1 && (code < 0x20 || code == 0x7f))
			buffer_printf(out, "\\x%02x", code);
		else if (bytes && (is_direction(code) || (code >= 0x80 && code < 0xa0)))
			buffer_printf(out, "\\u%04x", code);
		else if (bytes)
			buffer_add(out, text, bytes);
		else
			buffer_add_text(out, UTF8_REPLACEMENT);
		text += bytes ? bytes : 1;
	}
}

void text_for_people(struct buffer *out, const char *text)
{
	bool is_visible = text_width(text) > strspn(text, " ");
	bool has_control = false;

	for (const char *at = text; *at && !has_control; at++)
		has_control = (unsigned char)*at < 0x20 || *at == 0x7f;
	is_visible |= has_control; /* escaped control characters are visible */
	buffer_add_text(out, is_visible ? "" : "\"");
	add_escaped(out, text);
	buffer_add_text(out, is_visible ? "" : "\"");
}

void names_for_people(struct buffer *out, struct demangler *demangler, const char *text)
{
	struct buffer plain;

	if (!strstr(text, "_Z")) {
		text_for_people(out, text);
		return;
	}
	buffer_init(&plain, MAXIMUM_TEXT);
	demangler_words(demangler, &plain, text);
	text_for_people(out, plain.data);
	buffer_release(&plain);
}

void cell_for_people(struct buffer *out, const struct table *table, int row, int column)
{
	const struct table_cell *cell = table_get(table, row, column);
	const struct table_column *what = &table->columns[column];

	if (!cell->has_value) {
		buffer_add_text(out, "-");
		return;
	}
	switch (what->type) {
	case TABLE_TEXT:
		text_for_people(out, cell->text);
		return;
	case TABLE_BOOL:
		buffer_add_text(out, cell->b ? "yes" : "no");
		return;
	case TABLE_INT:
		if (what->unit == UNIT_NONE) /* an identifier (step, pid), not an amount */
			buffer_printf(out, "%" PRId64, cell->i);
		else
			cells_add_number(out, (double)cell->i, what->unit);
		return;
	case TABLE_DOUBLE:
		if (isfinite(cell->d))
			cells_add_number(out, cell->d, what->unit);
		else
			buffer_add_text(out, isnan(cell->d) ? "NaN" : cell->d < 0 ? "-inf" : "inf");
		return;
	}
}

void cell_for_programs(struct buffer *out, const struct table *table, int row, int column)
{
	const struct table_cell *cell = table_get(table, row, column);

	if (!cell->has_value)
		return;
	switch (table->columns[column].type) {
	case TABLE_TEXT:
		buffer_add_text(out, cell->text);
		return;
	case TABLE_BOOL:
		buffer_add_text(out, cell->b ? "true" : "false");
		return;
	case TABLE_INT:
		buffer_printf(out, "%" PRId64, cell->i);
		return;
	case TABLE_DOUBLE:
		if (isfinite(cell->d))
			json_number(out, cell->d);
		else
			buffer_add_text(out, isnan(cell->d) ? "nan" : cell->d < 0 ? "-inf" : "inf");
		return;
	}
}

const char *column_reason(const struct table *table, int column)
{
	const char *candidate = NULL;
	int lead = 0;

	/* majority vote: one odd row (a rest, a total) must not decide the reason */
	for (int row = 0; row < table->row_count; row++) {
		const struct table_cell *cell = table_get(table, row, column);
		bool is_same;

		if (cell->has_value || !cell->reason)
			continue;
		is_same = lead > 0 && !strcmp(candidate, cell->reason);
		candidate = lead > 0 ? candidate : cell->reason;
		lead += lead == 0 || is_same ? 1 : -1;
	}
	return candidate ? candidate : "not recorded";
}

bool column_is_missing(const struct table *table, int column)
{
	for (int row = 0; row < table->row_count; row++) {
		if (table_get(table, row, column)->has_value)
			return false;
	}
	return table->row_count > 0;
}
