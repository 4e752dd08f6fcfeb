/* SPDX-License-Identifier: Apache-2.0
 *
 * history.h: the run history, one SQLite file: what `stepscope history add` kept of each run, and which runs are baselines.
 * A run belongs to a series, the runs that are compared with each other; within one it is found by its number, by its
 * name, as `last`, as `best`, or by the name of a baseline.
 *
 *     struct history history;
 *     if (history_open(&history, path, HISTORY_WRITE, err))
 *             return err->status;
 *     status = history_add(&history, &entry, &added, err);
 *     history_close(&history);
 *
 * Any number of processes may read and write at once: a change is one transaction that begins with the lock, and who finds it
 * taken waits HISTORY_WAIT_S. The journal is SQLite's older one, not WAL: it needs no memory that is shared between processes,
 * so a file on a network works as far as the locks of that file system do, and a file that cannot be written can be read.
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
#define HISTORY_STEPS 20000 /* kept of a run, the last ones */

struct sqlite3;

enum history_access {
	HISTORY_READ,
	HISTORY_WRITE /* makes the file and the folders above it */
};

struct history {
	struct sqlite3 *database;
	struct arena arena; /* texts handed out by history_find() */
	const char *path;
	const char *network; /* the file lies on a network file system of this name; NULL: it does not */
};

/* $STEPSCOPE_HISTORY, $XDG_DATA_HOME/stepscope/history.db or ~/.local/share/stepscope/history.db; NULL and err without a home. */
const char *history_default_path(struct arena *arena, struct error *err);

/* STATUS_INPUT: there is none, it is damaged, or of another version or another program. STATUS_ENVIRONMENT: no permission. On failure
 * nothing needs to be closed. */
enum status history_open(struct history *history, const char *path, enum history_access access,
                         struct error *err) MUST_CHECK;
void history_close(struct history *history);

/* ---- writing ---- */

struct history_entry {
	const char *series, *name, *path;
	const char *identity;        /* of the recording: the same one is kept once, the newer numbers win */
	const struct table *numbers; /* one row, of key_numbers.h */
	const struct compared_run *run;
};

struct history_added {
	int64_t run;      /* its number */
	bool is_known;    /* it was there before */
	const char *from; /* the series that it was in then */
};

/* STATUS_USAGE when the run is a baseline of another series. */
enum status history_add(struct history *history, const struct history_entry *entry, struct history_added *added,
                        struct error *err) MUST_CHECK;
/* STATUS_USAGE when the run is a baseline. */
enum status history_remove(struct history *history, int64_t run, struct error *err) MUST_CHECK;
/* Of the run's series; the name may have been another run's. */
enum status history_set_baseline(struct history *history, const char *name, int64_t run, struct error *err) MUST_CHECK;
/* STATUS_INPUT when the series (NULL: any) has none of that name. */
enum status history_remove_baseline(struct history *history, const char *series, const char *name,
                                    struct error *err) MUST_CHECK;

/* ---- reading ---- */

struct history_run {
	int64_t run;
	const char *series, *name, *path, *identity, *added; /* in the history's arena */
	bool has_no_speed; /* found as `best`, but no run of the series has a speed: it is the last one */
};

struct history_except { /* recordings that `last` and `best` do not find: those that are compared with them */
	const char *const *identities;
	int count;
};

struct history_wanted {
	const char *series; /* NULL: any */
	/* `last` (added last), `best` (most tokens per second; smallest median step time in a series without tokens; in one without
	 * steps the last), a number, the name of a baseline, or the name of a run, the newest of that name. */
	const char *word;
	/* Of `last` and `best` only: */
	const struct history_except *except; /* (optional) */
	int skip;                            /* so many others come before it */
};

enum status history_find(struct history *history, const struct history_wanted *wanted, struct history_run *found,
                         struct error *err) MUST_CHECK;

/* Is a run with this identity one of those? */
bool history_is_excepted(const char *identity, const struct history_except *except);

struct history_scatter {
	size_t runs;    /* that have a speed, of which `best` is the fastest */
	bool has_noise; /* there are enough */
	double noise;   /* standard deviation of one run, as a ratio, while the program stays as it is */
};

/* The runs of the series (NULL: all) but these. */
enum status history_scatter(struct history *history, const char *series, const struct history_except *except,
                            struct history_scatter *scatter, struct error *err) MUST_CHECK;

/* One row per run with its key numbers, newest first, or only of this run (0: all). The tables are initialised here in any
 * case. limit 0: all. */
enum status history_list(struct history *history, const char *series, int64_t run, int64_t limit, struct table *runs,
                         struct error *err) MUST_CHECK;
enum status history_baselines(struct history *history, const char *series, struct table *baselines,
                              struct error *err) MUST_CHECK;
enum status history_facts(struct history *history, int64_t run, struct table *facts, struct error *err) MUST_CHECK;

/* What was kept for comparisons. On failure nothing needs to be released. */
enum status history_load(struct history *history, const struct history_run *found, struct compared_run *run,
                         struct error *err) MUST_CHECK;

#endif
