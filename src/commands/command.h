/* SPDX-License-Identifier: Apache-2.0
 *
 * command.h: a subcommand of `stepscope`. One file cmd_<name>.c with its options inside, one line in commands/main.c.
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
	/* (optional) Instead of `options`, when rows come from a table elsewhere (run). Any number of calls, same answer. */
	const struct option *(*make_options)(void);
	const char *
		operand_hint; /* (optional) what to do about a wrong option behind an operand: it may be none of ours */
	/* Runs with parsed options. Returns the exit status: 0, or status_exit() after main printed err, or for `run` the
	 * program's own. */
	int (*run)(const struct options_result *arguments, struct error *err);
};

/* Options every command has: parsed by main before `run` is called. */
struct common_options {
	bool is_quiet, is_verbose;
	bool is_color; /* decided: option, NO_COLOR, CLICOLOR_FORCE, tty */
	bool is_utf8;  /* LC_ALL, LC_CTYPE or LANG says so: block characters may be printed */
	int width;     /* columns of the terminal, COLUMNS, or 100 */
};
extern struct common_options common;

extern const struct command *const commands[]; /* NULL-terminated */

#endif
