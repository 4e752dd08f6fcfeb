/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h: what to record, as one table of options behind the command line, the environment and YAML files. Part of
 * libstepscope: no malloc, no stdio, no dependency.
 *
 * A list of options in text form, "wait=1,warmup=1,active=3,with=shapes:memory", is how `stepscope run` hands its decision to the
 * processes it starts (STEPSCOPE_OPTIONS) and what stepscope_init() takes.
 */
#ifndef RECORDER_OPTIONS_H
#define RECORDER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORDER_MAX_RANGES 32

struct step_range {
	int64_t first, last; /* inclusive */
};

enum record_mode {
	RECORD_ALWAYS,   /* everything, all the time */
	RECORD_SCHEDULE, /* wait, warmup, active, repeat */
	RECORD_STEPS, /* the steps of a list; start_step and num_steps become one; an empty list: steps and phases only */
	RECORD_OFF,
};

enum rank_selection {
	RANKS_ALL,
	RANKS_LIST,
	RANKS_LOCAL0
};

struct record_options {
	enum record_mode mode;
	/* RECORD_SCHEDULE, exactly torch.profiler.schedule() */
	int64_t wait, warmup, active, repeat, skip_first, skip_first_wait;
	int64_t profiling_frequency; /* length of a cycle that `wait` was made from; 0: it was not */
	/* RECORD_STEPS: step numbers as the program gives them */
	struct step_range steps[RECORDER_MAX_RANGES]; /* ascending, apart; last may be INT64_MAX: to the end */
	int step_range_count;
	bool with_shapes, with_memory, with_lines;
	enum rank_selection ranks;
	struct step_range rank_list[RECORDER_MAX_RANGES];
	int rank_range_count;
	int64_t pool_bytes;    /* per process; 0: default 16 MiB */
	int64_t keep_bytes;    /* detail kept on disk per process; 0: everything. Default 256 MiB under always-on */
	int64_t keep_ns;       /* newest detail kept, by time; 0: no limit */
	int64_t segment_bytes; /* size at which a segment is closed; 0: default, keep_bytes / 8 or 64 MiB */
	double budget; /* RECORD_ALWAYS: what operators may cost, as a share of the program's time; 0: they are in all steps */
	int64_t cost_every; /* with a budget: operators in one of so many steps, whatever they cost; 0: by the budget */
	const char *asked;  /* option that asked for steps, which are whole then; NULL: none did */
	bool is_self_sampled;     /* /proc/self once a second; default true */
	int64_t fdatasync_ns;     /* flush to the disk's platter that often; 0: never */
	char run_directory[1024]; /* "": made by the first process (stepscope-runs/...) */
};

/* One row per option: the CLI makes its help from it, YAML and the environment their names. */
enum record_option_type {
	RECORD_BOOL,
	RECORD_COUNT,
	RECORD_BYTES,
	RECORD_DURATION,
	RECORD_SHARE, /* "3%", or "none" */
	RECORD_TEXT
};
struct record_option {
	const char *name;        /* key in lists and in a profiler block: "skip_first" */
	const char *flag;        /* on the command line: "--skip-first"; constant text, fit for an origin */
	const char *environment; /* "STEPSCOPE_SKIP_FIRST"; likewise */
	const char *yaml; /* further names it has in the guides' blocks, separated by blanks: "wait_steps"; "" none */
	enum record_option_type type;
	const char *argument; /* word in the help */
	const char *fallback; /* default, as text; "" when it depends on others */
	const char *help;
};
extern const struct record_option record_options_table[]; /* ends with name NULL */

/* The row of a name (not of the further ones), -1 when there is none. */
int record_option_row(const char *name);

/* Where a key of a YAML file belongs to, by its name alone. */
enum record_key {
	RECORD_KEY_OTHER,
	RECORD_KEY_OPTION, /* an option, outside of a block: "wait", "steps.0" */
	RECORD_KEY_BLOCK,  /* a block 'profiler', 'profiling' or 'stepscope', or in one: "training.profiler.type" */
};
enum record_key record_key_of(const char *key);
/* The row of the option that such a key means, -1: of none. *block: how much of the key is the path of the block that it lies
 * in, "training.profiler"; 0: it lies in none. */
int record_key_row(const char *key, size_t *block);

/* Defaults. */
void record_options_init(struct record_options *options);

#define RECORDER_MAX_OPTIONS 40

/* What was given, by option, before it is turned into record_options: a later set of the same option wins. Starts as {0}. */
struct record_settings {
	char value[RECORDER_MAX_OPTIONS][256]; /* by row of the table; "" with is_set false: not given */
	bool is_set[RECORDER_MAX_OPTIONS];
	const char *origin[RECORDER_MAX_OPTIONS]; /* "--wait", "STEPSCOPE_WAIT", "file.yaml:3": for messages; borrowed */
	char run_directory[1024];                 /* value of "out", which may be long */
};

/* Sets one option. `key` is a name or one of the further names, bare ("wait", "skip-first", "profiler_wait_steps") or in a
 * profiler block ("profiler.wait_steps", "training.profiler.type", "++stepscope.steps.0" for item 0 of a YAML list). An empty
 * value gives the default back. `problem` (at least 256 bytes) gets one line, with the nearest valid name, when the key is
 * unknown or the value malformed; it is "" on success. With `is_lenient` (a training program's own YAML) only keys of a
 * profiler block are ours: for all others (model_name, warmup_steps, training.epochs, ...) false is returned with problem "". */
bool record_settings_set(struct record_settings *settings, const char *key, const char *value, const char *origin,
                         bool is_lenient, char *problem, size_t problem_bytes);

/* "a=1,b=2" in one go. A comma or backslash within a value is written with a backslash before it. */
bool record_settings_parse(struct record_settings *settings, const char *list, const char *origin, char *problem,
                           size_t problem_bytes);

/* All STEPSCOPE_* variables of the table, and STEPSCOPE_OPTIONS first: what that one sets wins over the single variables, because
 * `stepscope run` weighed them already when it wrote it. A variable that is nearly one of the table's is refused. */
bool record_settings_environment(struct record_settings *settings, char *const *environment, char *problem,
                                 size_t problem_bytes);

/* Puts `over` above `settings`, option by option. Where `over` says which steps to record in one way (a list, a window, a
 * schedule, type=simple), what `settings` says of it in another way goes, instead of contradicting. For the command line above
 * a YAML file, and the environment above stepscope_init("wait=1,..."). */
void record_settings_overlay(struct record_settings *settings, const struct record_settings *over);

/* Turns settings into options; refuses contradictions (wait= with steps=, repeat=0 with profiling_frequency < warmup +
 * active, start_step without num_steps is allowed: to the end, ...) with one line naming both origins. */
bool record_options_resolve(struct record_options *options, const struct record_settings *settings, char *problem,
                            size_t problem_bytes);

/* The settings as a canonical list for STEPSCOPE_OPTIONS. Returns its length, 0 when it did not fit. */
size_t record_settings_format(const struct record_settings *settings, char *out, size_t bytes);

/* Text of a row and the room it has. */
char *record_settings_room(struct record_settings *settings, int row, size_t *bytes);
const char *record_settings_value(const struct record_settings *settings, int row);
void record_settings_unset(struct record_settings *settings, int row);

#endif
