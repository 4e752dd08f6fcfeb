/* SPDX-License-Identifier: Apache-2.0
 *
 * text.h: tables and report layouts as text for a terminal. A layout is data (output/text/layout.h); nothing is
 * computed here.
 */
#ifndef OUTPUT_TEXT_TEXT_H
#define OUTPUT_TEXT_TEXT_H

#include "table/table.h"

struct text_style {
	int width; /* columns of the terminal */
	bool is_color;
	bool is_utf8; /* block characters and "±" may be used */
};

struct text_view {
	/* names separated by commas; NULL: all columns that are not hidden and have a value. "a|b" is b if a is left
	 * out; "?a" leaves a out if it is hidden. */
	const char *columns;
	const char *bar;   /* a share shown as a bar, or NULL */
	int limit;         /* most rows; 0: all */
	bool has_heading;  /* the row with the columns' titles */
	bool is_explained; /* definitions of the columns follow the table */
	bool is_raw;       /* names of C++ stay mangled */
	bool is_brief;     /* missing columns are left out without a note, even if they are named */
};

/* Writes rows and columns. Columns without a value are left out and listed below the table with the reason. A table of
 * one row is written as a list of its columns, unless columns were given. */
void text_table(struct buffer *out, const struct table *table, const struct text_view *view,
                const struct text_style *style);

/* Writes the definitions of the table and its columns. */
void text_definitions(struct buffer *out, const struct table *table, const struct text_style *style);

/* Writes "Title", in bold if colours are on. */
void text_heading(struct buffer *out, const char *title, const struct text_style *style);

/* Writes a sentence, wrapped and indented by `indent`; the first line starts at column `at`. */
void text_wrapped(struct buffer *out, const char *text, int indent, int at, const struct text_style *style);

/* Appends a row of the table through a template (base/template.h); its gaps are names of columns. */
void text_template(struct buffer *out, const struct table *table, int row, const char *template,
                   const struct text_style *style);

#endif
