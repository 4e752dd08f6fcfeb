/* SPDX-License-Identifier: Apache-2.0
 *
 * layout.h: the content of a report as data: tables, columns and numbers of rows. It computes nothing.
 */
#ifndef OUTPUT_TEXT_LAYOUT_H
#define OUTPUT_TEXT_LAYOUT_H

#include "analysis/report.h"
#include "output/text/text.h"

enum layout_form {
	LAYOUT_END,
	LAYOUT_LINE,      /* label and a template over the first row */
	LAYOUT_TABLE,     /* title, rows and columns */
	LAYOUT_SENTENCES, /* title, and a template over every row; equal lines are merged, empty ones left out */
	LAYOUT_SPACE,     /* an empty line */
	LAYOUT_TEXT,      /* label (may be NULL) and the template unchanged, with {run} for the path of the run */
};

struct layout_section {
	enum layout_form form;
	const char *table;
	/* of a line or text. In a table or sentences, NULL means the table's title. "" means that sentences have no
	 * heading. */
	const char *label;
	const char *template; /* of a line or text */
	const char *columns;  /* of a table */
	const char *bar;
	int limit;      /* most rows; the heading then says "10 of 34 shown", and the option that shows all */
	int least_rows; /* left out if the table has fewer */
	bool has_heading;
	bool is_all_in_report; /* `stepscope report` has the option that shows all; this is another command */
	bool is_kept_empty;    /* an empty table is shown, with its reason */
};

extern const struct layout_section layout_report[]; /* `stepscope report` */
extern const struct layout_section layout_info[];   /* `stepscope info` */

/* Appends the layout as text. */
void layout_write(struct buffer *out, const struct layout_section *layout, struct report *report,
                  const struct text_style *style);

#endif
