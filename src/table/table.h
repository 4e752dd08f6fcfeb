/* SPDX-License-Identifier: Apache-2.0
 *
 * table.h: the result of every analysis and the input of every output. A table has a name, rows, and columns that are
 * data: name, type, unit, definition, role. A cell is a value, or the reason why it is missing; never a stand-in
 * number.
 *
 *     struct table table;
 *     table_init(&table, "phases", "Where a step goes", "mean time per step and phase");
 *     int name = table_column(&table, &(struct table_column){.name = "phase", .type = TABLE_TEXT, .role = ROLE_KEY,
 *                                                            .definition = "what the stretch of time was for"});
 *     ...
 *     int row = table_row(&table);
 *     table_set_text(&table, row, name, "data");
 *     table_set_missing(&table, row, flops, "no shapes were recorded");
 *
 * The table owns everything it holds (texts are copied). It has at most 64 columns.
 *
 * A table with a row per name is bounded: a program that puts the number of a step into a name makes millions of them.
 *
 *     table_bound(&table, total);              // before the first row
 *     ...                                      // as many rows as there are
 *     table_add_more(&table, name);            // after the last one
 *
 * A table with a row per step, mark or thread is not bounded: all rows are wanted. Its rows are kept in the storage of
 * the trace.
 *
 *     table_keep_in(&table, model->storage);   // before the first row
 */
#ifndef TABLE_TABLE_H
#define TABLE_TABLE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct storage;

enum table_type {
	TABLE_TEXT,
	TABLE_INT,
	TABLE_DOUBLE,
	TABLE_BOOL
};

enum table_unit {
	UNIT_NONE,
	UNIT_NS,         /* suffix _ns in names */
	UNIT_BYTES,      /* _bytes */
	UNIT_COUNT,      /* number of things */
	UNIT_RATIO,      /* _ratio; 1 is the whole; shown in per cent */
	UNIT_PER_SECOND, /* _per_s */
	UNIT_FLOP,
	UNIT_FLOP_PER_SECOND,
	UNIT_BYTES_PER_SECOND, /* _bytes_per_s; shown in powers of 1000 */
	UNIT_NS_SINCE_START,   /* instant */
};

enum table_role {
	ROLE_VALUE,    /* a measured quantity, or a fact */
	ROLE_KEY,      /* subject of the row */
	ROLE_SHARE,    /* part of a whole, which `denominator` names */
	ROLE_EVIDENCE, /* supports the value: counts, deviations */
};

/* Conditions that a column must meet. table_check() tests them; a violation is a bug of stepscope. */
enum table_rule {
	RULE_NOT_NEGATIVE = 1,
	RULE_SUMS_TO_ONE = 2,    /* shares: all rows sum to 1 (if all are measured) */
	RULE_AT_MOST_ONE = 4,    /* shares */
	RULE_AT_MOST_OTHER = 8,  /* row by row, at most the column named `other` */
	RULE_SUMS_TO_TOTAL = 16, /* all rows sum to `total`, exactly for integers */
	RULE_PART_OF_OTHER = 32, /* row by row, all integer columns with this rule and this `other` sum to `other` */
};

/* How table_bound() combines dropped rows into one value. */
enum table_more {
	MORE_NOTHING, /* not measured */
	MORE_SUM,     /* sum of the measured values */
	MORE_LEAST,
	MORE_MOST,
};

struct table_column {
	const char *name;  /* snake_case with unit suffix: self_cpu_ns */
	const char *title; /* for text output: "self"; NULL: name */
	enum table_type type;
	enum table_unit unit;
	enum table_role role;
	const char *definition;  /* one sentence */
	const char *denominator; /* of a share: the whole */
	unsigned rules;          /* enum table_rule */
	const char *other;       /* for RULE_AT_MOST_OTHER */
	double total;            /* for RULE_SUMS_TO_TOTAL */
	enum table_more more;    /* for numbers */
	bool is_hidden;          /* shown in text output only if asked for by name */
	bool is_tree;            /* indented below other rows; after sorting, the column before it is shown instead */
	bool keeps_end;          /* a text whose end matters more: cut at its start */
};

struct table_cell {
	bool has_value;
	union {
		int64_t i;
		double d;
		const char *text; /* TABLE_TEXT */
		bool b;
		const char *reason; /* !has_value: why it is missing */
	};
};

struct table {
	struct arena head;  /* name, columns */
	struct arena arena; /* texts of rows and data made for them; if bounded, freed with their rows */
	const char *name;
	const char *title;
	const char *definition;
	struct table_column columns[64];
	int column_count;
	struct table_cell *cells; /* row-major, column_count cells per row */
	int row_count, row_capacity;
	struct storage *storage;    /* of cells; NULL: malloc */
	const char *last_texts[64]; /* by column: the text or reason set last */
	const char *note;           /* printed under the table: missing data and the reason; NULL: no note */
	const char *empty;          /* why there are no rows; may be NULL */
	bool is_bounded;
	int bound_column;
	int least_row;       /* last of the rows that stayed so far; -1: all did */
	uint64_t more_count; /* rows that did not stay */
	struct table_cell more[64];
};

void table_init(struct table *table, const char *name, const char *title, const char *definition);
void table_release(struct table *table);

int table_column(struct table *table,
                 const struct table_column *column); /* call before the first row; returns the column's index */
void table_columns(struct table *table, const struct table_column *columns, int count); /* adds several columns */
/* Does the same, with this total for columns with RULE_SUMS_TO_TOTAL. */
void table_columns_of(struct table *table, const struct table_column *columns, int count, double total);
int table_row(struct table *table); /* all cells are missing, with reason NULL */
void table_set_int(struct table *table, int row, int column, int64_t value);
void table_set_double(struct table *table, int row, int column, double value);
void table_set_bool(struct table *table, int row, int column, bool value);
void table_set_text(struct table *table, int row, int column, const char *text);
/* Does the same without a copy: the text outlives the table, or is in its arena. */
void table_set_lasting_text(struct table *table, int row, int column, const char *text);
void table_set_text_or(struct table *table, int row, int column, const char *text,
                       const char *reason); /* NULL: missing */
void table_set_missing(struct table *table, int row, int column, const char *reason);
const struct table_cell *table_get(const struct table *table, int row, int column);
int table_find_column(const struct table *table, const char *name); /* returns -1 if there is no such column */

/* Keeps the rows, and the memory for sorting them, in this storage, which must outlive the table. Call it before the
 * first row. */
void table_keep_in(struct table *table, struct storage *storage);

/* Gets the number in a cell as double. Returns false for text and missing cells. */
bool table_number(const struct table *table, int row, int column, double *value);

/* Compares two values of a column of this type, like strcmp(). */
int table_compare_values(enum table_type type, const struct table_cell *a, const struct table_cell *b);

/* Returns the text of a cell in a column of texts; NULL: missing. */
const char *table_text(const struct table *table, int row, int column);

/* Sorts rows by a column: descending for numbers unless is_ascending. Missing cells come last; ties keep their order. A
 * tree is shown as a plain table afterwards. */
void table_sort(struct table *table, int column, bool is_ascending);
void table_limit(struct table *table, int rows); /* drops the rows after it */

/* Keeps these columns in this order, each at most once. Check the table first: rules may need the other columns. */
void table_choose(struct table *table, const int *columns, int count);

/* Checks the rules of all columns. STATUS_LIMIT names table, column, row and both numbers. */
enum status table_check(const struct table *table, struct error *err) MUST_CHECK;

#endif
