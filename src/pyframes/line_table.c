/* SPDX-License-Identifier: Apache-2.0
 *
 * line_table.c: see line_table.h. The formats are in Objects/lnotab_notes.txt of CPython 3.8 and 3.10, and in
 * Objects/locations.md of 3.11.
 */
#include "pyframes/line_table.h"

static uint32_t as_line(int64_t line)
{
	return line > 0 && line < INT32_MAX ? (uint32_t)line : 0;
}

static uint32_t by_lnotab(struct pyframes_bytes *table, int64_t line, int64_t offset)
{
	for (int64_t at = 0;;) {
		int step = table->next(table), lines = table->next(table);
		if (lines < 0)
			return as_line(line);
		at += step;
		if (at > offset)
			return as_line(line);
		line += (int8_t)lines;
	}
}

static uint32_t by_line_table(struct pyframes_bytes *table, int64_t line, int64_t offset)
{
	for (int64_t at = 0;;) {
		int length = table->next(table), lines = table->next(table);
		if (lines < 0)
			return 0;
		bool has_line = (int8_t)lines != -128;
		line += has_line ? (int8_t)lines : 0;
		at += length;
		if (at > offset)
			return has_line ? as_line(line) : 0;
	}
}

/* Reads a number of six bits per byte, lowest bits first; bit 6 is set in all bytes but the last. */
static int64_t signed_number(struct pyframes_bytes *table)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 36; shift += 6) {
		int byte = table->next(table);
		if (byte < 0)
			return 0;
		value |= (uint64_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static uint32_t by_locations(struct pyframes_bytes *table, int64_t line, int64_t offset)
{
	enum {
		SHORT_FORMS = 10, /* lower codes: on the same line */
		ONE_LINE = 12,    /* codes 10 to 12: code - 10 lines further */
		NO_COLUMNS = 13,
		LONG = 14,
		NO_LINE = 15,
	};
	int byte = table->next(table);
	for (int64_t at = 0; byte >= 0;) {
		int code = byte >> 3 & 15;
		at += 2 * ((byte & 7) + 1);
		if (code >= SHORT_FORMS && code <= ONE_LINE)
			line += code - SHORT_FORMS;
		else if (code == NO_COLUMNS || code == LONG)
			line += signed_number(table);
		if (at > offset)
			return code == NO_LINE ? 0 : as_line(line);
		do /* the first byte of an entry has the highest bit set */
			byte = table->next(table);
		while (byte >= 0 && !(byte & 128));
	}
	return 0;
}

uint32_t pyframes_line(enum pyframes_lines kind, struct pyframes_bytes *table, uint32_t first_line, int64_t offset)
{
	if (offset < 0)
		return as_line(first_line);
	switch (kind) {
	case PYFRAMES_LNOTAB:
		return by_lnotab(table, first_line, offset);
	case PYFRAMES_LINE_TABLE:
		return by_line_table(table, first_line, offset);
	case PYFRAMES_LOCATIONS:
		return by_locations(table, first_line, offset);
	}
	return 0;
}
