/* SPDX-License-Identifier: Apache-2.0
 *
 * summary.h: the JSON summary of a run, schema stepscope.summary/1. Its tables and columns are data, in
 * summary_layout.c.
 */
#ifndef OUTPUT_TEXT_SUMMARY_H
#define OUTPUT_TEXT_SUMMARY_H

#include "analysis/report.h"

enum summary_form {
	SUMMARY_END,
	SUMMARY_VALUE,  /* "key": column of the table's first row */
	SUMMARY_PAIR,   /* "key": [column, second] */
	SUMMARY_OBJECT, /* "key": { ... entries up to SUMMARY_CLOSE ... } */
	SUMMARY_CLOSE,
	SUMMARY_ROWS, /* "key": [{columns of each row}] */
	SUMMARY_NULL, /* "key": null, with `reason` */
};

struct summary_entry {
	enum summary_form form;
	const char *key;
	const char *table;
	const char *column; /* of VALUE and PAIR; of ROWS: "column" or "column=key", separated by commas; NULL: all */
	const char *second;
	const char *reason;
};

extern const struct summary_entry summary_layout[];

/* Writes the whole document, with a final newline. */
void summary_write(struct buffer *out, struct report *report);

#endif
