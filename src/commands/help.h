/* SPDX-License-Identifier: Apache-2.0
 *
 * help.h: what `stepscope --help`, `stepscope help CMD`, `-h` and `--version` print; stdout, wrapped at common.width.
 */
#ifndef COMMANDS_HELP_H
#define COMMANDS_HELP_H

#include "commands/command.h"

/* All commands. */
void help_program(void);
/* One command: short (-h) starts with the examples and ends there, long has all options. */
void help_command(const struct command *command, const struct option *options, bool is_short);
void help_version(void);

/* The options of a command without the common ones. */
const struct option *command_options(const struct command *command);
/* NULL: no such command. */
const struct command *command_find(const char *name);
/* STATUS_USAGE, with the nearest command as the hint. */
enum status command_unknown(const char *name, struct error *err);

#endif
