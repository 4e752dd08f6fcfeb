/* SPDX-License-Identifier: Apache-2.0
 *
 * history_open.c: opens the history file: its path, schema, version and owner.
 */
#include "store/database.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define APPLICATION_ID 0x53545048 /* "STPH" */
#define MOST_TEXT_BYTES (16 << 20)
#define UPGRADED 2 /* version */

/* Run numbers are never reused. If `value` is NULL, `reason` says why; `place` keeps the order. Phases are columns in
 * the order of enum stepscope_phase. A change of this schema, or of the checksum in kept_run.c, must raise
 * HISTORY_SCHEMA. */
#define SINCE_3                                                                                                        \
	"CREATE TABLE functions(run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE, place INTEGER NOT NULL,"       \
	" what TEXT NOT NULL, name TEXT NOT NULL, file TEXT, self REAL NOT NULL, total REAL NOT NULL,"                 \
	" self_ratio REAL NOT NULL, total_ratio REAL NOT NULL, PRIMARY KEY(run, place)) WITHOUT ROWID;"                \
	"CREATE TABLE telemetry(run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE, place INTEGER NOT NULL,"       \
	" gpu TEXT NOT NULL, quantity TEXT NOT NULL, unit TEXT, median REAL NOT NULL, error REAL NOT NULL,"            \
	" block REAL NOT NULL, count INTEGER NOT NULL, PRIMARY KEY(run, place)) WITHOUT ROWID;"

static const char schema[] =
	"CREATE TABLE runs(run INTEGER PRIMARY KEY AUTOINCREMENT, series TEXT NOT NULL, name TEXT NOT NULL,"
	" path TEXT NOT NULL, identity TEXT NOT NULL UNIQUE, added TEXT NOT NULL, created TEXT, created_ns INTEGER,"
	" no_steps TEXT, warm_up INTEGER, warm_up_reason TEXT, summary_steps INTEGER, summary_median_ns REAL,"
	" summary_error REAL, summary_tokens REAL);"
	"CREATE TABLE numbers(run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE, key TEXT NOT NULL,"
	" value REAL, reason TEXT, PRIMARY KEY(run, key)) WITHOUT ROWID;"
	"CREATE TABLE facts(run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE, place INTEGER NOT NULL,"
	" kind TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY(run, place)) WITHOUT ROWID;"
	"CREATE TABLE metrics(run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE, place INTEGER NOT NULL,"
	" name TEXT NOT NULL, value REAL, reason TEXT, PRIMARY KEY(run, place)) WITHOUT ROWID;"
	"CREATE TABLE steps(run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE, place INTEGER NOT NULL,"
	" step INTEGER NOT NULL, duration_ns REAL NOT NULL, cpu_ns REAL, running_ns REAL, tokens REAL, samples REAL, other_ns REAL, data_ns REAL,"
	" forward_ns REAL, backward_ns REAL, optimizer_ns REAL, communication_ns REAL, checkpoint_ns REAL,"
	" evaluation_ns REAL, PRIMARY KEY(run, place)) WITHOUT ROWID;"
	"CREATE TABLE parts(run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE, place INTEGER NOT NULL,"
	" level TEXT NOT NULL, name TEXT NOT NULL, family TEXT, amount REAL NOT NULL, calls REAL,"
	" PRIMARY KEY(run, place)) WITHOUT ROWID;" SINCE_3
	"CREATE TABLE baselines(series TEXT NOT NULL, name TEXT NOT NULL, run INTEGER NOT NULL REFERENCES runs,"
	" PRIMARY KEY(series, name)) WITHOUT ROWID;"
	"CREATE INDEX runs_of_series ON runs(series, run);"
	"PRAGMA application_id = 1398034504;"
	"PRAGMA user_version = 3;";

/* Upgrades a history of version 2 to version 3. The kept rows do not change. */
static const char upgrade[] = "ALTER TABLE parts RENAME COLUMN ns TO amount;" SINCE_3 "PRAGMA user_version = 3;";

/* ---- the path ---- */

const char *history_default_path(struct arena *arena, struct error *err)
{
	const char *file = getenv("STEPSCOPE_HISTORY"), *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

	if (file && file[0])
		return arena_dup(arena, file);
	if (data && data[0] == '/') /* the XDG specification says to ignore relative paths */
		return arena_printf(arena, "%s/stepscope/history.db", data);
	if (home && home[0])
		return arena_printf(arena, "%s/.local/share/stepscope/history.db", home);
	error_set(err, STATUS_ENVIRONMENT, "cannot find a directory for the run history: HOME is not set");
	error_hint(err, "give a file with --history");
	return NULL;
}

/* Creates all folders above the file. */
static enum status make_folders(const char *path, struct error *err)
{
	char folder[PATH_MAX];

	if (snprintf(folder, sizeof(folder), "%s", path) >= (int)sizeof(folder))
		return error_set(err, STATUS_USAGE, "the name of the run history is too long");
	for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(folder, 0700) != 0 && errno != EEXIST)
			return error_errno(err, STATUS_ENVIRONMENT, errno, "cannot create the directory '%s'", folder);
		*slash = '/';
	}
	return STATUS_OK;
}

static const char *network_of(const char *path)
{
	static const struct {
		unsigned long magic;
		const char *name;
	} systems[] = {{NFS_SUPER_MAGIC, "NFS"}, {SMB_SUPER_MAGIC, "SMB"},   {0xff534d42, "CIFS"},
	               {0xfe534d42, "SMB 2"},    {CEPH_SUPER_MAGIC, "Ceph"}, {0x0bd00bd0, "Lustre"},
	               {0x47504653, "GPFS"},     {AFS_SUPER_MAGIC, "AFS"},   {FUSE_SUPER_MAGIC, "FUSE"},
	               {V9FS_MAGIC, "9P"}};
	struct statfs info;

	if (statfs(path, &info) != 0)
		return NULL;
	for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++) {
		if ((unsigned int)info.f_type == (unsigned int)systems[i].magic)
			return systems[i].name;
	}
	return NULL;
}

/* ---- the contents ---- */

static enum status history_open_read_number(const struct history *history, const char *sql, int64_t *number,
                                            struct error *err)
{
	sqlite3_stmt *statement = NULL;
	enum status status = database_prepare(history, &statement, err, sql, "");

	while (database_step(history, &statement, &status, err))
		*number = sqlite3_column_int64(statement, 0);
	return status;
}

struct history_open_contents {
	int64_t application, version, things;
};

static enum status read_contents(const struct history *history, struct history_open_contents *contents,
                                 struct error *err)
{
	*contents = (struct history_open_contents){0};
	if (history_open_read_number(history, "PRAGMA application_id", &contents->application, err) ||
	    history_open_read_number(history, "PRAGMA user_version", &contents->version, err) ||
	    history_open_read_number(history, "SELECT count(*) FROM sqlite_master", &contents->things, err))
		return err->status;
	return STATUS_OK;
}

static enum status no_history(const struct history *history, struct error *err)
{
	error_set(err, STATUS_INPUT, "there is no run history yet: '%s' %s", history->path,
	          history->database ? "is empty" : "does not exist");
	error_hint(err, "'stepscope history add RUN' creates it");
	return STATUS_INPUT;
}

/* Returns true also for a file that another process has created but not yet filled. */
static bool is_empty(const struct history_open_contents *contents)
{
	return !contents->application && !contents->version && !contents->things;
}

static enum status check_contents(const struct history *history, const struct history_open_contents *contents,
                                  struct error *err)
{
	if (is_empty(contents))
		return no_history(history, err);
	if (contents->application != APPLICATION_ID)
		return error_set(err, STATUS_INPUT, "'%s' is a database, but not a run history", history->path);
	if (contents->version > HISTORY_SCHEMA)
		return error_set(err, STATUS_INPUT,
		                 "the run history '%s' is from a later stepscope: it has version %lld, this stepscope "
		                 "knows %d",
		                 history->path, (long long)contents->version, HISTORY_SCHEMA);
	if (contents->version < 1)
		return error_set(err, STATUS_INPUT, "the run history '%s' is damaged: it has no version",
		                 history->path);
	if (contents->version < HISTORY_SCHEMA) {
		error_set(err, STATUS_INPUT,
		          "the run history '%s' is from an earlier stepscope: it has version %lld, this "
		          "stepscope knows %d",
		          history->path, (long long)contents->version, HISTORY_SCHEMA);
		error_hint(
			err,
			contents->version == UPGRADED
				? "'stepscope history add' updates it; earlier versions of stepscope then cannot read it"
				: "add the runs to a new file with --history FILE, or move this file away");
		return STATUS_INPUT;
	}
	return STATUS_OK;
}

/* Returns the statements that bring the file to this version, or NULL if it needs none or cannot be upgraded. */
static const char *statements_for(const struct history_open_contents *contents)
{
	if (is_empty(contents))
		return schema;
	return contents->application == APPLICATION_ID && contents->version == UPGRADED ? upgrade : NULL;
}

/* If several processes find the file empty, the first one creates the schema. The others check again under the lock. */
static enum status make_schema(const struct history *history, struct error *err)
{
	struct history_open_contents contents;
	enum status status = read_contents(history, &contents, err);

	if (status || !statements_for(&contents))
		return status;
	status = database_begin(history, err);
	if (status)
		return status;
	status = read_contents(history, &contents, err);
	if (!status && statements_for(&contents))
		status = database_run(history, statements_for(&contents), err);
	return database_end(history, status, err);
}

/* ---- opening ---- */

/* The file may come from an untrusted source: nothing in it is executed, and its texts are limited in length. */
static void set_limits(const struct history *history)
{
	sqlite3 *database = history->database;

	sqlite3_busy_timeout(database, HISTORY_WAIT_S * 1000);
	sqlite3_limit(database, SQLITE_LIMIT_LENGTH, MOST_TEXT_BYTES);
	sqlite3_limit(database, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
	sqlite3_db_config(database, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
}

static enum status prepare_reading(const struct history *history, struct error *err)
{
	struct stat info;

	if (stat(history->path, &info) == 0)
		return STATUS_OK;
	if (errno == ENOENT)
		return no_history(history, err);
	return error_errno(err, STATUS_ENVIRONMENT, errno, "cannot read the run history '%s'", history->path);
}

/* Only the owner can read a new file, as with recordings. To share a history, its owner changes the permissions. */
static enum status prepare_writing(const struct history *history, struct error *err)
{
	enum status status = make_folders(history->path, err);
	int file;

	if (status)
		return status;
	file = open(history->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0)
		return error_errno(err, STATUS_ENVIRONMENT, errno, "cannot write the run history '%s'", history->path);
	close(file);
	return STATUS_OK;
}

static enum status open_database(struct history *history, enum history_access access, struct error *err)
{
	struct stat info;
	enum status status;

	if (stat(history->path, &info) == 0 && !S_ISREG(info.st_mode))
		return error_set(err, STATUS_INPUT, "'%s' is not a run history: it is not a file", history->path);
	status = access == HISTORY_WRITE ? prepare_writing(history, err) : prepare_reading(history, err);
	if (status)
		return status;
	/* The file is opened read-write even for reading: if a writer was killed, the next reader rolls its transaction
	 * back. If the file cannot be written, SQLite opens it read-only. */
	if (sqlite3_open_v2(history->path, &history->database, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		return database_error(history, err);
	set_limits(history);
	return STATUS_OK;
}

enum status history_open(struct history *history, const char *path, enum history_access access, struct error *err)
{
	struct history_open_contents contents;
	enum status status;

	*history = (struct history){0};
	arena_init(&history->arena, 0);
	history->path = arena_dup(&history->arena, path);
	status = open_database(history, access, err);
	if (!status && access == HISTORY_WRITE)
		status = make_schema(history, err);
	if (!status)
		status = read_contents(history, &contents, err);
	if (!status)
		status = check_contents(history, &contents, err);
	history->network = network_of(path);
	if (status)
		history_close(history);
	return status;
}

void history_close(struct history *history)
{
	sqlite3_close(history->database);
	arena_release(&history->arena);
	*history = (struct history){0};
}
