/* SPDX-License-Identifier: Apache-2.0
 *
 * text.h: tables and report layouts as text for a terminal. A layout is data (output/text/layout.h); nothing is computed here.
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
	const char *
		columns; /* names separated by commas, or NULL: all that are not hidden and measured somewhere; a|b: a, or
	                      * b when a is left out; ?a: a, unless it is hidden */
	const char *bar;   /* a share that gets a bar, or NULL */
	int limit;         /* rows at most; 0: all */
	bool has_heading;  /* the row with the columns' titles */
	bool is_explained; /* definitions of the columns follow */
	bool is_raw;       /* names of C++ stay mangled */
	bool is_brief;     /* unmeasured columns are left out without a note, named ones too */
};

/* Rows and columns, columns without any measured cell left out and named below with the reason. A table of one row is
 * written as a list of its columns, unless columns were given. */
void text_table(struct buffer *out, const struct table *table, const struct text_view *view,
                const struct text_style *style);

/* What the table and each of its columns mean. */
void text_definitions(struct buffer *out, const struct table *table, const struct text_style *style);

/* "Title", in bold when there is colour. */
void text_heading(struct buffer *out, const char *title, const struct text_style *style);

/* A sentence, wrapped and indented by `indent`, the first line being at column `at` already. */
void text_wrapped(struct buffer *out, const char *text, int indent, int at, const struct text_style *style);

/* Appends a row of the table through a template (base/template.h) whose gaps are names of columns. */
void text_template(struct buffer *out, const struct table *table, int row, const char *template,
                   const struct text_style *style);

#endif
