/* SPDX-License-Identifier: Apache-2.0
 *
 * option_rows.c: the table of options. A new option needs a row here, a number in option_rows.h and its meaning in
 * options_resolve.c.
 */
#include "recorder/option_rows.h"

#include <stddef.h>

const char *const record_type_words[] = {"simple", "advanced", "pytorch", NULL};
const char *const record_with_words[] = {"shapes", "memory", "lines", NULL};

/* clang-format off */
const struct record_option record_options_table[] = {
	[ROW_ENABLED] = {"enabled", "--enabled", "STEPSCOPE_ENABLED", "profile profiling enable_profiling", RECORD_BOOL,
		"BOOL", "true", "record at all; false: the program runs as without stepscope"},
	[ROW_STEPS] = {"steps", "--steps", "STEPSCOPE_STEPS", "", RECORD_TEXT,
		"LIST", "all", "steps to record with operators, by the program's own numbers: 50-60,100 or 50- or all or none"},
	[ROW_START_STEP] = {"start_step", "--start-step", "STEPSCOPE_START_STEP", "", RECORD_COUNT,
		"N", "0", "first step to record with operators"},
	[ROW_NUM_STEPS] = {"num_steps", "--num-steps", "STEPSCOPE_NUM_STEPS", "", RECORD_COUNT,
		"N", "", "so many steps from --start-step on; default: to the end"},
	[ROW_WAIT] = {"wait", "--wait", "STEPSCOPE_WAIT", "wait_steps", RECORD_COUNT,
		"N", "0", "schedule: steps without operators at the start of each cycle"},
	[ROW_WARMUP] = {"warmup", "--warmup", "STEPSCOPE_WARMUP", "warmup_steps", RECORD_COUNT,
		"N", "0", "schedule: steps after them in which recording warms up"},
	[ROW_ACTIVE] = {"active", "--active", "STEPSCOPE_ACTIVE", "active_steps", RECORD_COUNT,
		"N", "1", "schedule: steps recorded with operators at the end of each cycle"},
	[ROW_REPEAT] = {"repeat", "--repeat", "STEPSCOPE_REPEAT", "repeat_times", RECORD_COUNT,
		"N", "0", "schedule: number of cycles; 0: until the program ends"},
	[ROW_SKIP_FIRST] = {"skip_first", "--skip-first", "STEPSCOPE_SKIP_FIRST", "", RECORD_COUNT,
		"N", "0", "schedule: steps before the first cycle"},
	[ROW_SKIP_FIRST_WAIT] = {"skip_first_wait", "--skip-first-wait", "STEPSCOPE_SKIP_FIRST_WAIT", "", RECORD_COUNT,
		"N", "0", "schedule: not 0: the first cycle has no wait steps"},
	[ROW_FREQUENCY] = {"profiling_frequency", "--profiling-frequency", "STEPSCOPE_PROFILING_FREQUENCY", "", RECORD_COUNT,
		"N", "", "schedule: length of a cycle; sets --wait to what --warmup and --active leave of it (with --repeat 0)"},
	[ROW_TYPE] = {"type", "--type", "STEPSCOPE_TYPE", "", RECORD_TEXT,
		"WORD", "advanced", "simple: steps and phases only; advanced: operators; pytorch: operators, shapes and memory"},
	[ROW_WITH] = {"with", "--with", "STEPSCOPE_WITH", "", RECORD_TEXT,
		"LIST", "", "what to add to operators and their times: shapes, memory, lines"},
	[ROW_SHAPES] = {"record_shapes", "--record-shapes", "STEPSCOPE_RECORD_SHAPES", "with_shapes", RECORD_BOOL,
		"BOOL", "false", "the same as --with shapes"},
	[ROW_MEMORY] = {"profile_memory", "--profile-memory", "STEPSCOPE_PROFILE_MEMORY", "with_memory", RECORD_BOOL,
		"BOOL", "false", "the same as --with memory"},
	[ROW_STACK] = {"with_stack", "--with-stack", "STEPSCOPE_WITH_STACK", "", RECORD_BOOL,
		"BOOL", "false", "the same as --with lines"},
	[ROW_MEMORY_TIMELINE] = {"export_memory_timeline", "--export-memory-timeline", "STEPSCOPE_EXPORT_MEMORY_TIMELINE", "",
		RECORD_BOOL, "BOOL", "false", "the same as --with shapes,memory,lines"},
	[ROW_RANKS] = {"ranks", "--ranks", "STEPSCOPE_RANKS", "", RECORD_TEXT,
		"LIST", "all", "ranks to record with operators: all, local0 (first of each machine) or a list such as 0,8-15"},
	[ROW_OUT] = {"out", "--out", "STEPSCOPE_RUN_DIR", "output_dir dirpath profiling_output profiling_outputs prof_dir run_dir",
		RECORD_TEXT, "DIR", "", "directory of this run; default: a new one in stepscope-runs"},
	[ROW_POOL] = {"pool", "--pool", "STEPSCOPE_POOL", "", RECORD_BYTES,
		"SIZE", "16M", "memory of a process for events on their way to the disk"},
	[ROW_KEEP_SIZE] = {"keep_size", "--keep-size", "STEPSCOPE_KEEP_SIZE", "", RECORD_BYTES,
		"SIZE", "", "newest operators kept on disk per process; 0: all; default: 256M when every step is recorded"},
	[ROW_KEEP_TIME] = {"keep_time", "--keep-time", "STEPSCOPE_KEEP_TIME", "", RECORD_DURATION,
		"TIME", "0", "newest operators kept on disk, by age: 10m; 0: all"},
	[ROW_SEGMENT_SIZE] = {"segment_size", "--segment-size", "STEPSCOPE_SEGMENT_SIZE", "", RECORD_BYTES,
		"SIZE", "", "size at which a new file is begun; default: 64M, or an eighth of --keep-size"},
	[ROW_SYNC_EVERY] = {"sync_every", "--sync-every", "STEPSCOPE_SYNC_EVERY", "", RECORD_DURATION,
		"TIME", "0", "have the disk itself confirm what was written that often; 0: leave it to the system"},
	[ROW_BUDGET] = {"budget", "--budget", "STEPSCOPE_BUDGET", "", RECORD_SHARE,
		"SHARE", "3%", "what recording may cost of the time: operators in as many steps as it allows; none: in all of them"},
	[ROW_COST_EVERY] = {"cost_every", "--cost-every", "STEPSCOPE_COST_EVERY", "", RECORD_COUNT,
		"N", "0", "operators in one of N steps (the next power of two) instead of a --budget; 0: by the budget"},
	[ROW_SAMPLE_PROCESS] = {"sample_process", "--sample-process", "STEPSCOPE_SAMPLE_PROCESS", "", RECORD_BOOL,
		"BOOL", "true", "note the process's CPU time, memory and I/O once a second"},
	[ROW_COUNT] = {NULL, NULL, NULL, NULL, RECORD_BOOL, NULL, NULL, NULL},
};
/* clang-format on */
