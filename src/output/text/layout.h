/* SPDX-License-Identifier: Apache-2.0
 *
 * layout.h: what a report shows, as data: which tables, which columns, how many rows. It computes nothing.
 */
#ifndef OUTPUT_TEXT_LAYOUT_H
#define OUTPUT_TEXT_LAYOUT_H

#include "analysis/report.h"
#include "output/text/text.h"

enum layout_form {
	LAYOUT_END,
	LAYOUT_LINE,      /* label and a template over the first row */
	LAYOUT_TABLE,     /* title, rows and columns */
	LAYOUT_SENTENCES, /* title, and a template over every row; equal lines are one, empty ones left out */
	LAYOUT_SPACE,     /* an empty line */
	LAYOUT_TEXT,      /* label (may be NULL) and the template as it is, with {run} for the path of the run */
};

struct layout_section {
	enum layout_form form;
	const char *table;
	const char *label; /* of a line or text; NULL in a table: the table's title; "" of sentences: none, they go on */
	const char *template; /* of a line or text */
	const char *columns;  /* of a table */
	const char *bar;
	int limit;      /* rows at most; the heading then says "10 of 34 shown", and the option that shows all */
	int least_rows; /* left out when the table has fewer */
	bool has_heading;
	bool is_all_in_report; /* it is an option of `stepscope report`, this is another command */
	bool is_kept_empty;    /* an empty table is shown, with its reason */
};

extern const struct layout_section layout_report[]; /* `stepscope report` */
extern const struct layout_section layout_info[];   /* `stepscope info` */

/* Appends the layout as text. */
void layout_write(struct buffer *out, const struct layout_section *layout, struct report *report,
                  const struct text_style *style);

#endif
