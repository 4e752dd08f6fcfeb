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
	RECORD_STEPS,    /* the steps of a list; start_step and num_steps become one */
	RECORD_OFF,
};

enum rank_selection { RANKS_ALL, RANKS_LIST, RANKS_LOCAL0 };

struct record_options {
	enum record_mode mode;
	/* RECORD_SCHEDULE, exactly torch.profiler.schedule() */
	int64_t wait, warmup, active, repeat, skip_first, skip_first_wait;
	/* RECORD_STEPS: step numbers as the program gives them */
	struct step_range steps[RECORDER_MAX_RANGES];
	int step_range_count;
	bool with_shapes, with_memory, with_lines;
	enum rank_selection ranks;
	struct step_range rank_list[RECORDER_MAX_RANGES];
	int rank_range_count;
	int64_t pool_bytes;          /* per process; 0: default 16 MiB */
	int64_t keep_bytes;          /* detail kept on disk per process; 0: everything. Default 256 MiB under always-on */
	int64_t keep_ns;             /* newest detail kept, by time; 0: no limit */
	int64_t segment_bytes;       /* size at which a segment is closed; 0: default, keep_bytes / 8 or 64 MiB */
	int64_t cost_every;          /* alternate recording on and off every N steps to measure its cost; 0: never */
	bool is_self_sampled;        /* /proc/self once a second; default true */
	int64_t fdatasync_ns;        /* flush to the disk's platter that often; 0: never */
	char run_directory[1024];    /* "": made by the first process (stepscope-runs/...) */
};

/* One row per option: the CLI makes its help from it, YAML and the environment their names. */
enum record_option_type { RECORD_BOOL, RECORD_COUNT, RECORD_BYTES, RECORD_DURATION, RECORD_TEXT };
struct record_option {
	const char *name;      /* "skip_first": key in lists; --skip-first on the command line; STEPSCOPE_SKIP_FIRST in the environment */
	const char *yaml;      /* further keys it is accepted under in YAML, separated by blanks: "profiler.start_step"; "" none */
	enum record_option_type type;
	const char *argument;  /* word in the help */
	const char *fallback;  /* default, as text */
	const char *help;
};
extern const struct record_option record_options_table[]; /* ends with name NULL */

/* Defaults. */
void record_options_init(struct record_options *options);

/* What was given, by option, before it is turned into record_options: a later set of the same option wins. */
struct record_settings {
	char value[40][256]; /* by row of the table; "" with is_set false: not given */
	bool is_set[40];
	const char *origin[40]; /* "--wait", "STEPSCOPE_WAIT", "file.yaml:3": for messages; borrowed */
};

/* Sets one option by its name, by "profiler.x" style YAML keys or by dotted overrides. `problem` (at least 256 bytes) gets one line,
 * with the nearest valid name, when the key is unknown or the value malformed. Keys of the guides' YAML files that are not about
 * profiling (model_name, training.epochs, ...) are not errors when `is_lenient`: then false is returned with problem "". */
bool record_settings_set(struct record_settings *settings, const char *key, const char *value, const char *origin,
			 bool is_lenient, char *problem, size_t problem_bytes);

/* "a=1,b=2" in one go. */
bool record_settings_parse(struct record_settings *settings, const char *list, const char *origin, char *problem,
			   size_t problem_bytes);

/* All STEPSCOPE_* variables of the table, and STEPSCOPE_OPTIONS first. */
bool record_settings_environment(struct record_settings *settings, char *const *environment, char *problem,
				 size_t problem_bytes);

/* Turns settings into options; refuses contradictions (wait= with steps=, repeat=0 with profiling_frequency < warmup +
 * active, active=0, start_step without num_steps is allowed: to the end, ...) with one line naming both origins. */
bool record_options_resolve(struct record_options *options, const struct record_settings *settings, char *problem,
			    size_t problem_bytes);

/* The settings as a canonical list for STEPSCOPE_OPTIONS. Returns its length, 0 when it did not fit. */
size_t record_settings_format(const struct record_settings *settings, char *out, size_t bytes);

#endif
