/* SPDX-License-Identifier: Apache-2.0
 *
 * command.h: a subcommand of `stepscope`. It needs a file cmd_<name>.c with its options, and a line in commands/main.c.
 */
#ifndef COMMANDS_COMMAND_H
#define COMMANDS_COMMAND_H

#include "base/error.h"
#include "base/options.h"

struct command {
	const char *name;
	const char *summary;  /* one line */
	const char *usage;    /* "stepscope report [options] RUN" */
	const char *examples; /* three lines, for -h */
	const struct option *options;
	/* (optional) Replaces `options` if the rows come from a table in another file (run). Every call returns the
	 * same rows. */
	const struct option *(*make_options)(void);
	const char *operand_hint; /* (optional) hint for a wrong option after an operand: the program may own it */
	/* Runs the command with parsed options. Returns the exit status: 0, status_exit() (main then prints err), or
	 * for `run` the exit status of the program. */
	int (*run)(const struct options_result *arguments, struct error *err);
};

/* Help texts of options that several commands have. */
#define STEPS_HELP "only steps A to B, or one step"
#define WINDOW_HELP "only the Nth window (or windows N to M) recorded by stepscope.profile; N@PID selects the process"
#define MEMORY_HELP(size) "memory for the trace; parts of a larger trace go to temporary files (default: " size ")"

/* Options of every command; main parses them before it calls `run`. */
struct common_options {
	bool is_quiet, is_verbose;
	bool is_color; /* decided from the option, NO_COLOR, CLICOLOR_FORCE and the terminal */
	bool is_utf8;  /* LC_ALL, LC_CTYPE or LANG allows it: block characters may be printed */
	int width;     /* columns of the terminal, COLUMNS, or 100 */
};
extern struct common_options common;

extern const struct command *const commands[]; /* NULL-terminated */

#endif
