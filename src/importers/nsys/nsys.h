/* SPDX-License-Identifier: Apache-2.0
 *
 * nsys.h: shared by the files that turn an SQLite export of Nsight Systems (nsys export --type sqlite) into the model.
 * nsys_database.c reads the tables of an untrusted file. nsys_rows.c stages their rows like those of a Kineto trace
 * (kineto_stage.h). nsys.c does the rest.
 */
#ifndef IMPORTERS_NSYS_NSYS_H
#define IMPORTERS_NSYS_NSYS_H

#include "importers/kineto/kineto_import.h"

#include <sqlite3.h>

struct nsys {
	struct kineto_import import;
	sqlite3 *database;
	uint64_t file_bytes, rows; /* a file with more rows than bytes is damaged */
	bool is_cut;               /* the file is shorter than its header states */
	uint64_t operations;       /* by SQLite, counted to stop on damaged files */
	uint64_t text_bytes;       /* bytes of a table's texts and blobs: a good file stores each once */
	/* StringIds */
	struct number_map string_ids; /* -> index of the two below */
	struct intern texts;
	/* text_of: number in texts; string_of: string of the model, 0: not used so far */
	uint32_t *text_of, *string_of;
	uint32_t string_count, string_capacity;
	uint32_t sm_counts[64]; /* multiprocessors by device, 0: unknown */
	/* rows that could not be used */
	uint64_t odd_texts, without_time, without_duration, unknown_copies;
	uint64_t graphs;
};

#define NSYS_COLUMNS 24

struct nsys_table {
	const char *name;
	const char *columns[NSYS_COLUMNS]; /* up to NULL; '?' in front: optional, NULL if missing */
};

struct nsys_rows { /* rows of one table, in the order of its columns */
	sqlite3_stmt *statement;
	const struct nsys_table *table;
};

/* ---- nsys_database.c ---- */

enum status nsys_open(struct nsys *nsys, const char *path, struct error *err) MUST_CHECK;
void nsys_close(struct nsys *nsys);
bool nsys_has_table(struct nsys *nsys, const char *name);
/* Starts reading a table. Returns false if the table does not exist or lacks a required column; the ledger then lists
 * the column. */
bool nsys_begin(struct nsys *nsys, const struct nsys_table *table, struct nsys_rows *rows);
/* Moves to the next row. Returns false at the end, and ends the reading. If the table is damaged, the ledger says
 * so. */
bool nsys_next(struct nsys *nsys, struct nsys_rows *rows);

/* Returns false if the value is not an integer. */
static inline bool nsys_integer(const struct nsys_rows *rows, int column, int64_t *number)
{
	*number = sqlite3_column_int64(rows->statement, column);
	return sqlite3_column_type(rows->statement, column) == SQLITE_INTEGER;
}

/* Returns a text as UTF-8; NULL if there is none. Valid until the next text from a column whose number is also even, or
 * also odd. */
const char *nsys_text(struct nsys *nsys, const struct nsys_rows *rows, int column);
/* Returns the text of an id of StringIds as a string of the model; 0 if there is none. */
uint32_t nsys_string(struct nsys *nsys, const struct nsys_rows *rows, int column);

/* ---- nsys_rows.c ---- */

void nsys_read_strings(struct nsys *nsys);
void nsys_read_events(struct nsys *nsys);

#endif
