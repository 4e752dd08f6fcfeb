/* SPDX-License-Identifier: Apache-2.0
 *
 * help.h: prints the output of `stepscope --help`, `stepscope help CMD`, `-h` and `--version` on stdout, wrapped at
 * common.width.
 */
#ifndef COMMANDS_HELP_H
#define COMMANDS_HELP_H

#include "commands/command.h"

/* Prints all commands. */
void help_program(void);
/* Prints the help of one command. The short form (-h) starts with the examples and has no options; the long form has
 * all options. */
void help_command(const struct command *command, const struct option *options, bool is_short);
void help_version(void);

/* Returns the options of a command without the common ones. */
const struct option *command_options(const struct command *command);
/* Returns NULL if there is no such command. */
const struct command *command_find(const char *name);
/* Returns STATUS_USAGE, with the nearest command as the hint. */
enum status command_unknown(const char *name, struct error *err);

#endif
