/* SPDX-License-Identifier: Apache-2.0
 *
 * nsys_database.c: tables of an untrusted SQLite file. It is opened read-only and as immutable, so that nothing is
 * created beside it. Its schema may not call functions, views and virtual tables are not read, triggers cannot run, and
 * no extension is loaded. SQLite may use 256 MiB. Columns are chosen by name, because versions of nsys have different
 * ones.
 */
#include "base/utf8.h"
#include "importers/nsys/nsys.h"
#include "importers/text_lines.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MEMORY_BYTES ((sqlite3_int64)256 << 20)
#define TEXT_BYTES (16 << 20)
#define PATH_BYTES 8192
#define OPERATIONS_STEP 1000
#define OPERATIONS_MAX(file_bytes) (10000000 + 100 * (file_bytes))
#define TEXTS_MAX(file_bytes) ((1 << 20) + 2 * (file_bytes))

static const struct {
	int option, value;
} options[] = {
	{SQLITE_DBCONFIG_DEFENSIVE, 1},
	{SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
	{SQLITE_DBCONFIG_ENABLE_VIEW, 0},
	{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
	{SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
	{SQLITE_DBCONFIG_DQS_DML, 0},
	{SQLITE_DBCONFIG_DQS_DDL, 0},
};

static const struct {
	int limit, value;
} limits[] = {
	{SQLITE_LIMIT_LENGTH, TEXT_BYTES},  {SQLITE_LIMIT_SQL_LENGTH, 100000}, {SQLITE_LIMIT_COLUMN, 200},
	{SQLITE_LIMIT_EXPR_DEPTH, 20},      {SQLITE_LIMIT_COMPOUND_SELECT, 3}, {SQLITE_LIMIT_VDBE_OP, 25000},
	{SQLITE_LIMIT_FUNCTION_ARG, 8},     {SQLITE_LIMIT_ATTACHED, 0},        {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50},
	{SQLITE_LIMIT_VARIABLE_NUMBER, 10}, {SQLITE_LIMIT_TRIGGER_DEPTH, 1},   {SQLITE_LIMIT_WORKER_THREADS, 0},
};

/* Writes "file:PATH?immutable=1&mode=ro"; returns false if it is too long. */
static bool write_address(char *out, size_t capacity, const char *path)
{
	static const char after[] = "?immutable=1&mode=ro";
	size_t length = (size_t)snprintf(out, capacity, "file:%s", path[0] == '/' ? "//" : "");
	for (; *path && length + 4 + sizeof after < capacity; path++) {
		bool is_plain = (*path >= 'a' && *path <= 'z') || (*path >= 'A' && *path <= 'Z') ||
		                (*path >= '0' && *path <= '9') || strchr("/._-", *path);
		length += (size_t)snprintf(out + length, capacity - length, is_plain ? "%c" : "%%%02X",
		                           (unsigned char)*path);
	}
	memcpy(out + length, after, sizeof after);
	return !*path;
}

/* Allows only reading. */
static int authorize(void *context, int action, const char *first, const char *second, const char *third,
                     const char *fourth)
{
	return action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_PRAGMA ? SQLITE_OK : SQLITE_DENY;
}

/* Stops long reads: a damaged tree that contains its pages many times has endless rows. */
static int count_operations(void *context)
{
	struct nsys *nsys = context;
	nsys->operations += OPERATIONS_STEP;
	return nsys->operations > OPERATIONS_MAX(nsys->file_bytes);
}

/* SQLite's longer message is not used: it quotes the file, which may contain anything. */
static const char *problem_of(const struct nsys *nsys)
{
	return sqlite3_errstr(sqlite3_extended_errcode(nsys->database));
}

static void nsys_database_note_damage(struct nsys *nsys, const char *where)
{
	char text[256];
	snprintf(text, sizeof text, "the table is damaged (%.100s); rows before the damage are read", problem_of(nsys));
	model_add_ledger(nsys->import.model, LEDGER_DAMAGED, MODEL_NONE, where, 1, text);
}

static uint64_t big_endian(const uint8_t *bytes, size_t length)
{
	uint64_t number = 0;
	for (size_t i = 0; i < length; i++)
		number = number << 8 | bytes[i];
	return number;
}

/* Returns the number of bytes that the database has according to its header, but the file lacks. Returns 0 if the
 * header was written by an SQLite that does not state the size. */
static uint64_t missing_bytes(const struct nsys *nsys, const char *path)
{
	uint8_t head[100];
	FILE *file = fopen(path, "re");
	bool is_read = file && fread(head, sizeof head, 1, file) == 1;
	if (file)
		fclose(file);
	if (!is_read || memcmp(head + 24, head + 92, 4) != 0)
		return 0;
	uint64_t page = big_endian(head + 16, 2), bytes = (page == 1 ? 65536 : page) * big_endian(head + 28, 4);
	return bytes > nsys->file_bytes ? bytes - nsys->file_bytes : 0;
}

/* SQLite rejects a file with fewer pages than its header states, unless writable_schema is on, which is meant for
 * repairs. Then tables end where their pages do. */
static void allow_cut(struct nsys *nsys, const char *path)
{
	uint64_t missing = missing_bytes(nsys, path);
	if (!missing)
		return;
	nsys->is_cut = true;
	sqlite3_db_config(nsys->database, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
	sqlite3_exec(nsys->database, "PRAGMA writable_schema = ON", NULL, NULL, NULL);
	model_add_ledger(nsys->import.model, LEDGER_DAMAGED, MODEL_NONE, file_name_of(path), missing,
	                 "the file is cut off: bytes at its end are missing; the remaining pages are read");
}

/* Reports logs that SQLite would apply before reading, if it could write. */
static void tell_logs(const struct nsys *nsys, const char *path)
{
	static const char *const logs[] = {"-wal", "-journal"};
	char name[PATH_BYTES];
	struct stat info;
	for (size_t i = 0; i < sizeof logs / sizeof logs[0]; i++)
		if (snprintf(name, sizeof name, "%s%s", path, logs[i]) < (int)sizeof name && stat(name, &info) == 0 &&
		    info.st_size > 0)
			model_add_ledger(nsys->import.model, LEDGER_DAMAGED, MODEL_NONE, file_name_of(name), 1,
			                 "the database was not closed: changes in this second file are not read (let "
			                 "nsys finish, or open the database once with sqlite3)");
}

enum status nsys_open(struct nsys *nsys, const char *path, struct error *err)
{
	char address[PATH_BYTES];
	if (!write_address(address, sizeof address, path))
		return error_set(err, STATUS_INPUT, "the path '%s' is too long", path);
	int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_PRIVATECACHE;
	if (sqlite3_open_v2(address, &nsys->database, flags, NULL) != SQLITE_OK)
		return error_set(err, STATUS_INPUT, "cannot open '%s': %s", path, problem_of(nsys));
	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
		sqlite3_db_config(nsys->database, options[i].option, options[i].value, NULL);
	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
		sqlite3_limit(nsys->database, limits[i].limit, limits[i].value);
	sqlite3_hard_heap_limit64(MEMORY_BYTES);
	sqlite3_progress_handler(nsys->database, OPERATIONS_STEP, count_operations, nsys);
	sqlite3_exec(nsys->database, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY",
	             NULL, NULL, NULL);
	sqlite3_set_authorizer(nsys->database, authorize, NULL);
	allow_cut(nsys, path);
	if (sqlite3_exec(nsys->database, "SELECT 1 FROM sqlite_schema LIMIT 1", NULL, NULL, NULL) != SQLITE_OK) {
		error_set(err, STATUS_INPUT, "'%s' is an SQLite database that cannot be read: %s", path,
		          problem_of(nsys));
		error_hint(err, "'nsys export --type sqlite --force-overwrite true report.nsys-rep' creates it again");
		return STATUS_INPUT;
	}
	tell_logs(nsys, path);
	return STATUS_OK;
}

void nsys_close(struct nsys *nsys)
{
	sqlite3_close(nsys->database);
	nsys->database = NULL;
	sqlite3_hard_heap_limit64(0); /* the next user sets its own limit */
}

/* Returns true for an ordinary table, not a view or a virtual table. */
bool nsys_has_table(struct nsys *nsys, const char *name)
{
	sqlite3_stmt *statement = NULL;
	bool is_there = false;
	if (sqlite3_prepare_v2(nsys->database, "SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = ?1",
	                       -1, &statement, NULL) == SQLITE_OK) {
		sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
		is_there = sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_int64(statement, 0) > 0;
	}
	sqlite3_finalize(statement);
	return is_there;
}

/* Computed columns do not count. */
static bool has_column(struct nsys *nsys, const char *table, const char *column)
{
	sqlite3_stmt *statement = NULL;
	char sql[128];
	bool is_there = false;
	snprintf(sql, sizeof sql, "PRAGMA table_info(\"%s\")", table);
	if (sqlite3_prepare_v2(nsys->database, sql, -1, &statement, NULL) == SQLITE_OK)
		while (!is_there && sqlite3_step(statement) == SQLITE_ROW) {
			const char *name = (const char *)sqlite3_column_text(statement, 1);
			is_there = name && sqlite3_stricmp(name, column) == 0;
		}
	sqlite3_finalize(statement);
	return is_there;
}

static void note_column(struct nsys *nsys, const char *table, const char *column)
{
	char text[192];
	snprintf(text, sizeof text,
	         nsys->is_cut ? "the table is after the point where the file is cut off, or has no column '%s'"
	                      : "the table has no column '%s' and was not read",
	         column);
	model_add_ledger(nsys->import.model, nsys->is_cut ? LEDGER_DAMAGED : LEDGER_OTHER, MODEL_NONE, table, 1, text);
}

bool nsys_begin(struct nsys *nsys, const struct nsys_table *table, struct nsys_rows *rows)
{
	char sql[2048] = "SELECT ";
	size_t length = strlen(sql);
	*rows = (struct nsys_rows){.table = table};
	nsys->text_bytes = 0;
	if (!nsys_has_table(nsys, table->name))
		return false;
	for (int i = 0; i < NSYS_COLUMNS && table->columns[i]; i++) {
		const char *column = table->columns[i];
		bool may_be_missing = column[0] == '?';
		bool is_there = has_column(nsys, table->name, column + may_be_missing);
		if (!is_there && !may_be_missing) {
			note_column(nsys, table->name, column);
			return false;
		}
		length += (size_t)snprintf(sql + length, sizeof sql - length, is_there ? "%s\"%s\"" : "%sNULL",
		                           i ? ", " : "", column + may_be_missing);
	}
	snprintf(sql + length, sizeof sql - length, " FROM \"%s\" NOT INDEXED", table->name);
	if (sqlite3_prepare_v2(nsys->database, sql, -1, &rows->statement, NULL) == SQLITE_OK)
		return true;
	nsys_database_note_damage(nsys, table->name);
	return false;
}

/* Also counts columns whose text is not wanted, because SQLite assembles those, too. */
static void count_texts(struct nsys *nsys, const struct nsys_rows *rows)
{
	for (int i = 0; i < NSYS_COLUMNS && rows->table->columns[i]; i++) {
		int type = sqlite3_column_type(rows->statement, i);
		if (type == SQLITE_TEXT || type == SQLITE_BLOB)
			nsys->text_bytes += (uint64_t)sqlite3_column_bytes(rows->statement, i);
	}
}

static const char *nsys_database_excess_of(const struct nsys *nsys)
{
	return nsys->rows > nsys->file_bytes ? "the table has more rows than the file has bytes: the rest was not read"
	       : nsys->text_bytes > TEXTS_MAX(nsys->file_bytes)
	               ? "the table has more text than the file has bytes: the rest was not read"
	               : NULL;
}

bool nsys_next(struct nsys *nsys, struct nsys_rows *rows)
{
	int result = sqlite3_step(rows->statement);
	struct model *model = nsys->import.model;
	if (result == SQLITE_ROW) {
		nsys->rows++;
		count_texts(nsys, rows);
	}
	const char *excess = result == SQLITE_ROW ? nsys_database_excess_of(nsys) : NULL;
	if (result == SQLITE_ROW && !excess) {
		if (model->on_progress && nsys->rows % 65536 == 0)
			model->on_progress(model->progress_context, nsys->rows * 40 % (nsys->file_bytes + 1),
			                   nsys->file_bytes);
		return true;
	}
	if (excess)
		model_add_ledger(model, LEDGER_DAMAGED, MODEL_NONE, rows->table->name, 1, excess);
	else if (result != SQLITE_DONE)
		nsys_database_note_damage(nsys, rows->table->name);
	sqlite3_finalize(rows->statement);
	rows->statement = NULL;
	return false;
}

const char *nsys_text(struct nsys *nsys, const struct nsys_rows *rows, int column)
{
	struct buffer *out = column % 2 ? &nsys->import.text : &nsys->import.inputs;
	const char *text = (const char *)sqlite3_column_text(rows->statement, column);
	if (!text)
		return NULL;
	buffer_clear(out);
	nsys->odd_texts += !utf8_append_valid(out, text, strlen(text));
	return out->length ? out->data : "";
}

uint32_t nsys_string(struct nsys *nsys, const struct nsys_rows *rows, int column)
{
	int64_t id;
	uint32_t found = nsys_integer(rows, column, &id) ? number_map_find(&nsys->string_ids, (uint64_t)id)
	                                                 : NUMBER_MAP_NONE;
	if (found == NUMBER_MAP_NONE)
		return 0;
	if (!nsys->string_of[found])
		nsys->string_of[found] = intern_add_n(&nsys->import.model->strings,
		                                      intern_text(&nsys->texts, nsys->text_of[found]),
		                                      intern_length(&nsys->texts, nsys->text_of[found]));
	return nsys->string_of[found];
}
