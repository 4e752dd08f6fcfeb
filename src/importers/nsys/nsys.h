/* SPDX-License-Identifier: Apache-2.0
 *
 * nsys.h: shared by the files that turn an SQLite export of Nsight Systems (nsys export --type sqlite) into the model. nsys_database.c reads
 * tables of a file that nobody trusts, nsys_rows.c stages their rows as those of a trace of Kineto (kineto_stage.h), nsys.c does the rest.
 */
#ifndef IMPORTERS_NSYS_NSYS_H
#define IMPORTERS_NSYS_NSYS_H

#include "importers/kineto/kineto_import.h"

#include <sqlite3.h>

struct nsys {
	struct kineto_import import;
	sqlite3 *database;
	uint64_t file_bytes, rows; /* a file has no more rows than bytes; one that seems to is damaged */
	bool is_cut;               /* the file has fewer bytes than it says */
	uint64_t operations;       /* of SQLite */
	uint64_t text_bytes;       /* of a table's texts and blobs: a good file has each once */
	/* StringIds */
	struct number_map string_ids; /* -> index of the two below */
	struct intern texts;
	uint32_t *text_of, *string_of; /* numbers in texts; of the model, 0: not used so far */
	uint32_t string_count, string_capacity;
	uint32_t sm_counts[64]; /* multiprocessors by device, 0: not known */
	/* what could not be used */
	uint64_t odd_texts, without_time, without_duration, unknown_copies;
	uint64_t graphs;
};

#define NSYS_COLUMNS 24

struct nsys_table {
	const char *name;
	const char *columns[NSYS_COLUMNS]; /* up to NULL; '?' in front: it may be missing, and is NULL then */
};

struct nsys_rows { /* of one table, in the order of its columns */
	sqlite3_stmt *statement;
	const struct nsys_table *table;
};

/* ---- nsys_database.c ---- */

enum status nsys_open(struct nsys *nsys, const char *path, struct error *err) MUST_CHECK;
void nsys_close(struct nsys *nsys);
bool nsys_has_table(struct nsys *nsys, const char *name);
/* False: there is no such table, or it lacks a column that is needed, which is in the ledger then. */
bool nsys_begin(struct nsys *nsys, const struct nsys_table *table, struct nsys_rows *rows);
/* False at the end; where the table is damaged, that is in the ledger. Ends the reading. */
bool nsys_next(struct nsys *nsys, struct nsys_rows *rows);

/* False: it is no integer. */
static inline bool nsys_integer(const struct nsys_rows *rows, int column, int64_t *number)
{
	*number = sqlite3_column_int64(rows->statement, column);
	return sqlite3_column_type(rows->statement, column) == SQLITE_INTEGER;
}

/* As UTF-8; NULL: none. Until the next row, or the next but one text of it. */
const char *nsys_text(struct nsys *nsys, const struct nsys_rows *rows, int column);
/* What an id of StringIds stands for, as a string of the model; 0: none. */
uint32_t nsys_string(struct nsys *nsys, const struct nsys_rows *rows, int column);

/* ---- nsys_rows.c ---- */

void nsys_read_strings(struct nsys *nsys);
void nsys_read_events(struct nsys *nsys);

#endif
