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
		"BOOL", "true", "enable recording; if false, the program runs as without stepscope"},
	[ROW_STEPS] = {"steps", "--steps", "STEPSCOPE_STEPS", "", RECORD_TEXT,
		"LIST", "all", "steps to record with operators, by the program's numbers: 50-60,100 or 50- or all or "
		"none"},
	[ROW_START_STEP] = {"start_step", "--start-step", "STEPSCOPE_START_STEP", "", RECORD_COUNT,
		"N", "0", "first step to record with operators"},
	[ROW_NUM_STEPS] = {"num_steps", "--num-steps", "STEPSCOPE_NUM_STEPS", "", RECORD_COUNT,
		"N", "", "number of steps to record from --start-step (default: all remaining)"},
	[ROW_WAIT] = {"wait", "--wait", "STEPSCOPE_WAIT", "wait_steps", RECORD_COUNT,
		"N", "0", "schedule: steps without operators at the start of each cycle"},
	[ROW_WARMUP] = {"warmup", "--warmup", "STEPSCOPE_WARMUP", "warmup_steps", RECORD_COUNT,
		"N", "0", "schedule: warm-up steps after the --wait steps"},
	[ROW_ACTIVE] = {"active", "--active", "STEPSCOPE_ACTIVE", "active_steps", RECORD_COUNT,
		"N", "1", "schedule: steps recorded with operators at the end of each cycle"},
	[ROW_REPEAT] = {"repeat", "--repeat", "STEPSCOPE_REPEAT", "repeat_times", RECORD_COUNT,
		"N", "0", "schedule: number of cycles (0 repeats until the program ends)"},
	[ROW_SKIP_FIRST] = {"skip_first", "--skip-first", "STEPSCOPE_SKIP_FIRST", "", RECORD_COUNT,
		"N", "0", "schedule: steps before the first cycle"},
	[ROW_SKIP_FIRST_WAIT] = {"skip_first_wait", "--skip-first-wait", "STEPSCOPE_SKIP_FIRST_WAIT", "", RECORD_COUNT,
		"N", "0", "schedule: if not 0, the first cycle has no --wait steps"},
	[ROW_FREQUENCY] = {"profiling_frequency", "--profiling-frequency", "STEPSCOPE_PROFILING_FREQUENCY", "", RECORD_COUNT,
		"N", "", "schedule: steps per cycle; --wait becomes the rest after --warmup and --active (only "
		"with --repeat 0)"},
	[ROW_TYPE] = {"type", "--type", "STEPSCOPE_TYPE", "", RECORD_TEXT,
		"WORD", "advanced", "simple records steps and phases only, advanced adds operators, pytorch adds shapes "
		"and memory too"},
	[ROW_WITH] = {"with", "--with", "STEPSCOPE_WITH", "", RECORD_TEXT,
		"LIST", "", "data to record per operator besides times: shapes, memory, lines"},
	[ROW_SHAPES] = {"record_shapes", "--record-shapes", "STEPSCOPE_RECORD_SHAPES", "with_shapes", RECORD_BOOL,
		"BOOL", "false", "same as --with shapes"},
	[ROW_MEMORY] = {"profile_memory", "--profile-memory", "STEPSCOPE_PROFILE_MEMORY", "with_memory", RECORD_BOOL,
		"BOOL", "false", "same as --with memory"},
	[ROW_STACK] = {"with_stack", "--with-stack", "STEPSCOPE_WITH_STACK", "", RECORD_BOOL,
		"BOOL", "false", "same as --with lines"},
	[ROW_MEMORY_TIMELINE] = {"export_memory_timeline", "--export-memory-timeline", "STEPSCOPE_EXPORT_MEMORY_TIMELINE", "",
		RECORD_BOOL, "BOOL", "false", "same as --with shapes,memory,lines"},
	[ROW_RANKS] = {"ranks", "--ranks", "STEPSCOPE_RANKS", "", RECORD_TEXT,
		"LIST", "all", "ranks to record with operators: all, local0 (the first on each machine) or a list "
		"such as 0,8-15"},
	[ROW_OUT] = {"out", "--out", "STEPSCOPE_RUN_DIR", "output_dir dirpath profiling_output profiling_outputs prof_dir run_dir",
		RECORD_TEXT, "DIR", "", "run directory (default: a new one in stepscope-runs)"},
	[ROW_POOL] = {"pool", "--pool", "STEPSCOPE_POOL", "", RECORD_BYTES,
		"SIZE", "16M", "memory per process for events not yet on disk"},
	[ROW_KEEP_SIZE] = {"keep_size", "--keep-size", "STEPSCOPE_KEEP_SIZE", "", RECORD_BYTES,
		"SIZE", "", "newest operators to keep on disk per process (0 keeps all; default: 256M, or 0 if "
		"--steps or a schedule selects steps)"},
	[ROW_KEEP_TIME] = {"keep_time", "--keep-time", "STEPSCOPE_KEEP_TIME", "", RECORD_DURATION,
		"TIME", "0", "delete operators older than TIME, such as 10m (0 keeps all)"},
	[ROW_SEGMENT_SIZE] = {"segment_size", "--segment-size", "STEPSCOPE_SEGMENT_SIZE", "", RECORD_BYTES,
		"SIZE", "", "size at which recording starts a new file (default: an eighth of --keep-size, or 64M "
		"if that is 0)"},
	[ROW_SYNC_EVERY] = {"sync_every", "--sync-every", "STEPSCOPE_SYNC_EVERY", "", RECORD_DURATION,
		"TIME", "0", "call fdatasync() this often (0 never calls it)"},
	[ROW_BUDGET] = {"budget", "--budget", "STEPSCOPE_BUDGET", "", RECORD_SHARE,
		"SHARE", "3%", "share of time that recording may cost; limits the number of steps with operators "
		"(none sets no limit)"},
	[ROW_COST_EVERY] = {"cost_every", "--cost-every", "STEPSCOPE_COST_EVERY", "", RECORD_COUNT,
		"N", "0", "record operators in one of N steps (N rounded up to a power of two) instead of a "
		"--budget (0 uses the budget)"},
	[ROW_SAMPLE_PROCESS] = {"sample_process", "--sample-process", "STEPSCOPE_SAMPLE_PROCESS", "", RECORD_BOOL,
		"BOOL", "true", "record the process's CPU time, memory and I/O once a second"},
	[ROW_COUNT] = {NULL, NULL, NULL, NULL, RECORD_BOOL, NULL, NULL, NULL},
};
/* clang-format on */
