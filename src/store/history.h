/* SPDX-License-Identifier: Apache-2.0
 *
 * history.h: the run history, one SQLite file with the runs that `stepscope history add` kept, and the baselines among
 * them. A run belongs to a series, which is a set of comparable runs. Within a series a run is found by its number,
 * its name, `last`, `best` or the name of a baseline.
 *
 *     struct history history;
 *     if (history_open(&history, path, HISTORY_WRITE, err))
 *             return err->status;
 *     status = history_add(&history, &entry, &added, err);
 *     history_close(&history);
 *
 * Any number of processes may read and write at once. A change is one transaction that first takes the write lock; a
 * process that finds the lock taken waits up to HISTORY_WAIT_S. The journal is SQLite's rollback journal, not WAL: it
 * needs no memory shared between processes. A file on a network file system therefore works as well as the locks of
 * that file system do, and a read-only file can be read.
 */
#ifndef STORE_HISTORY_H
#define STORE_HISTORY_H

#include "base/arena.h"
#include "base/error.h"
#include "compare/compared_run.h"
#include "table/table.h"

#include <stdbool.h>
#include <stdint.h>

#define HISTORY_SCHEMA 3 /* PRAGMA user_version */
#define HISTORY_WAIT_S 60
#define HISTORY_STEPS 20000 /* most steps kept per run: the last ones */

struct sqlite3;

enum history_access {
	HISTORY_READ,
	HISTORY_WRITE /* creates the file and its folders */
};

struct history {
	struct sqlite3 *database;
	struct arena arena; /* texts returned by history_find() */
	const char *path;
	const char *network; /* name of the network file system that holds the file; NULL: it is local */
};

/* Returns $STEPSCOPE_HISTORY, $XDG_DATA_HOME/stepscope/history.db or ~/.local/share/stepscope/history.db. Returns NULL
 * and sets err if there is no home. */
const char *history_default_path(struct arena *arena, struct error *err);

/* Returns STATUS_INPUT if the file is missing, damaged, of another version or of another program, and
 * STATUS_ENVIRONMENT if access is denied. On failure nothing needs to be closed. */
enum status history_open(struct history *history, const char *path, enum history_access access,
                         struct error *err) MUST_CHECK;
void history_close(struct history *history);

/* ---- writing ---- */

struct history_entry {
	const char *series, *name, *path;
	const char *identity; /* of the recording: a recording is kept once, and adding it again replaces its numbers */
	const struct table *numbers; /* one row with the columns of key_numbers.h */
	const struct compared_run *run;
};

struct history_added {
	int64_t run;      /* its number */
	bool is_known;    /* the history had it before */
	const char *from; /* its series before this call */
};

/* Returns STATUS_USAGE if the run is a baseline of another series. */
enum status history_add(struct history *history, const struct history_entry *entry, struct history_added *added,
                        struct error *err) MUST_CHECK;
/* Returns STATUS_USAGE if the run is a baseline. */
enum status history_remove(struct history *history, int64_t run, struct error *err) MUST_CHECK;
/* Sets a baseline of the run's series. If another run has the name, it loses it. */
enum status history_set_baseline(struct history *history, const char *name, int64_t run, struct error *err) MUST_CHECK;
/* Returns STATUS_INPUT if the series (NULL: every series) has no baseline of that name. */
enum status history_remove_baseline(struct history *history, const char *series, const char *name,
                                    struct error *err) MUST_CHECK;

/* ---- reading ---- */

struct history_run {
	int64_t run;
	const char *series, *name, *path, *identity, *added; /* in the history's arena */
	bool has_no_speed; /* found as `best`, but no run of the series has a speed, so it is the last run */
};

struct history_except { /* recordings that `last` and `best` skip because they are compared with the found run */
	const char *const *identities;
	int count;
};

struct history_wanted {
	const char *series; /* NULL: any */
	/* `last` (most recently added), `best`, a number, the name of a baseline, or the name of a run (the newest run
	 * of that name). `best` is the run with the most tokens per second; in a series without tokens, the smallest
	 * median step time; in a series without steps, the last run. */
	const char *word;
	/* for `last` and `best` only: */
	const struct history_except *except; /* (optional) */
	int skip;                            /* number of other matches to skip first */
};

enum status history_find(struct history *history, const struct history_wanted *wanted, struct history_run *found,
                         struct error *err) MUST_CHECK;

/* Returns true if `except` lists this identity. */
bool history_is_excepted(const char *identity, const struct history_except *except);

struct history_scatter {
	size_t runs;    /* number of runs with a speed, of which `best` is the fastest */
	bool has_noise; /* there are enough runs */
	double noise;   /* standard deviation from run to run of an unchanged program, as a ratio */
};

/* Measures the scatter of the series' runs (NULL: all runs) without those in `except`. */
enum status history_scatter(struct history *history, const char *series, const struct history_except *except,
                            struct history_scatter *scatter, struct error *err) MUST_CHECK;

/* Lists one row per run with its key numbers, newest first, or only the given run (0: all). limit 0 means no limit.
 * These functions initialise their tables in any case. */
enum status history_list(struct history *history, const char *series, int64_t run, int64_t limit, struct table *runs,
                         struct error *err) MUST_CHECK;
enum status history_baselines(struct history *history, const char *series, struct table *baselines,
                              struct error *err) MUST_CHECK;
enum status history_facts(struct history *history, int64_t run, struct table *facts, struct error *err) MUST_CHECK;

/* Loads the run as it was kept for comparisons. On failure nothing needs to be released. */
enum status history_load(struct history *history, const struct history_run *found, struct compared_run *run,
                         struct error *err) MUST_CHECK;

#endif
