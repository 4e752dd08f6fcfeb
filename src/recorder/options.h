/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h: recording options, as one table used by the command line, the environment and YAML files. Part of
 * libstepscope: no malloc, no stdio, no dependency.
 *
 * A list of options in text form is "wait=1,warmup=1,active=3,with=shapes:memory". `stepscope run` passes its decision
 * in this form to the processes it starts (STEPSCOPE_OPTIONS), and stepscope_init() takes it.
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
	/* The steps of a list. start_step and num_steps become a list of one range. An empty list: steps and phases
	 * only. */
	RECORD_STEPS,
	RECORD_OFF,
};

enum rank_selection {
	RANKS_ALL,
	RANKS_LIST,
	RANKS_LOCAL0
};

struct record_options {
	enum record_mode mode;
	/* RECORD_SCHEDULE, with the meaning of torch.profiler.schedule() */
	int64_t wait, warmup, active, repeat, skip_first, skip_first_wait;
	int64_t profiling_frequency; /* length of a cycle, from which `wait` was computed; 0: not given */
	/* RECORD_STEPS: step numbers as the program gives them */
	struct step_range steps[RECORDER_MAX_RANGES]; /* ascending, not touching; last may be INT64_MAX: to the end */
	int step_range_count;
	bool with_shapes, with_memory, with_lines;
	enum rank_selection ranks;
	struct step_range rank_list[RECORDER_MAX_RANGES];
	int rank_range_count;
	int64_t pool_bytes;    /* per process; 0: default 16 MiB */
	int64_t keep_bytes;    /* detail kept on disk per process; 0: everything. Default 256 MiB for RECORD_ALWAYS */
	int64_t keep_ns;       /* maximum age of the detail kept; 0: no limit */
	int64_t segment_bytes; /* size at which a segment is closed; 0: default, keep_bytes / 8 or 64 MiB */
	/* RECORD_ALWAYS: allowed cost of operators, as a share of the program's time; 0: all steps have operators */
	double budget;
	/* With a budget: one in `cost_every` steps has operators, whatever they cost; 0: the budget decides */
	int64_t cost_every;
	const char *asked;        /* option that selects steps, all of which then have operators; NULL: not given */
	bool is_self_sampled;     /* /proc/self once a second; default true */
	int64_t fdatasync_ns;     /* time between two calls of fdatasync(); 0: never */
	char run_directory[1024]; /* "": the first process creates one (stepscope-runs/...) */
};

/* One row per option: the CLI takes its help from the row, YAML and the environment their names. */
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
	const char *flag;        /* name on the command line: "--skip-first"; constant text, usable as an origin */
	const char *environment; /* "STEPSCOPE_SKIP_FIRST"; likewise */
	/* Further names in the guides' YAML blocks, separated by blanks: "wait_steps"; "": no further name. */
	const char *yaml;
	enum record_option_type type;
	const char *argument; /* word in the help */
	const char *fallback; /* default, as text; "" if it depends on other options */
	const char *help;
};
extern const struct record_option record_options_table[]; /* ends with name NULL */

/* Returns the row of a name (further names are not searched), or -1 if there is no such row. */
int record_option_row(const char *name);

/* Kind of a key of a YAML file, by its name alone. */
enum record_key {
	RECORD_KEY_OTHER,
	RECORD_KEY_OPTION, /* an option outside a block: "wait", "steps.0" */
	/* A block 'profiler', 'profiling' or 'stepscope', or a key in such a block: "training.profiler.type". */
	RECORD_KEY_BLOCK,
};
enum record_key record_key_of(const char *key);
/* Returns the row of the option that such a key means, or -1 if it means no option. *block: length of the part of the
 * key that is the path of its block, "training.profiler"; 0: the key is not in a block. */
int record_key_row(const char *key, size_t *block);

/* Sets the defaults. */
void record_options_init(struct record_options *options);

#define RECORDER_MAX_OPTIONS 40

/* The given values by option, before they become record_options. A later value of an option wins. Starts as {0}. */
struct record_settings {
	char value[RECORDER_MAX_OPTIONS][256]; /* indexed by row of the table; "" if is_set is false */
	bool is_set[RECORDER_MAX_OPTIONS];
	/* For messages: "--wait", "STEPSCOPE_WAIT", "file.yaml:3"; borrowed. */
	const char *origin[RECORDER_MAX_OPTIONS];
	char run_directory[1024]; /* value of "out", which may be long */
};

/* Sets one option. `key` is a name or a further name, bare ("wait", "skip-first", "profiler_wait_steps") or in a
 * profiler block ("profiler.wait_steps", "training.profiler.type", "++stepscope.steps.0" for item 0 of a YAML list). An
 * empty value restores the default.
 *
 * If the key is unknown or the value is malformed, returns false, and `problem` (at least 256 bytes) holds one line
 * with the nearest valid name. On success `problem` is "". With `is_lenient` (a training program's own YAML), only keys
 * in a profiler block are options of stepscope. For other keys (model_name, warmup_steps, training.epochs, ...) returns
 * false, with "" in `problem`. */
bool record_settings_set(struct record_settings *settings, const char *key, const char *value, const char *origin,
                         bool is_lenient, char *problem, size_t problem_bytes);

/* Sets all options of a list "a=1,b=2". A comma or backslash in a value has a backslash before it. */
bool record_settings_parse(struct record_settings *settings, const char *list, const char *origin, char *problem,
                           size_t problem_bytes);

/* Sets options from STEPSCOPE_OPTIONS and from the STEPSCOPE_* variables of the table. STEPSCOPE_OPTIONS wins over the
 * single variables, because `stepscope run` took them into account when it wrote it. A variable whose name is nearly
 * one of the table's is refused. */
bool record_settings_environment(struct record_settings *settings, char *const *environment, char *problem,
                                 size_t problem_bytes);

/* Overlays `settings` with `over`, option by option. `over` may select steps in one way (a list, a window, a schedule,
 * type=simple). Selections in `settings` that use another way are then removed, because they would contradict it. Used
 * for the command line over a YAML file, and for the environment over stepscope_init("wait=1,..."). */
void record_settings_overlay(struct record_settings *settings, const struct record_settings *over);

/* Turns settings into options. Refuses contradictions (wait= with steps=, repeat=0 with profiling_frequency < warmup +
 * active, ...) with one line that names both origins. start_step without num_steps is valid: to the end. */
bool record_options_resolve(struct record_options *options, const struct record_settings *settings, char *problem,
                            size_t problem_bytes);

/* Writes the settings as a canonical list for STEPSCOPE_OPTIONS. Returns its length, or 0 if it does not fit. */
size_t record_settings_format(const struct record_settings *settings, char *out, size_t bytes);

/* Returns the text of a row; record_settings_room() also gives its size in bytes. */
char *record_settings_room(struct record_settings *settings, int row, size_t *bytes);
const char *record_settings_value(const struct record_settings *settings, int row);
void record_settings_unset(struct record_settings *settings, int row);

#endif
