/* SPDX-License-Identifier: Apache-2.0
 *
 * help.c: see the header. All text comes from the tables of commands and options.
 */
#include "commands/help.h"

#include <stepscope/stepscope.h>
#include <string.h>

static const char *const help_words[] = {"help", "version"};

const struct option *command_options(const struct command *command)
{
	static const struct option none[] = {OPTION_END};

	if (command->make_options)
		return command->make_options();
	return command->options ? command->options : none;
}

const struct command *command_find(const char *name)
{
	for (int i = 0; commands[i]; i++) {
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	}
	return NULL;
}

enum status command_unknown(const char *name, struct error *err)
{
	const char *names[64];
	const char *nearest;
	int count = 0;

	for (int i = 0; commands[i] && count < 60; i++)
		names[count++] = commands[i]->name;
	for (size_t i = 0; i < sizeof(help_words) / sizeof(help_words[0]); i++)
		names[count++] = help_words[i];
	names[count] = NULL;
	nearest = nearest_name(name, names);
	error_set(err, STATUS_USAGE, "unknown command '%s'", name);
	if (nearest)
		error_hint(err, "did you mean 'stepscope %s'?", nearest);
	else
		error_hint(err, "'stepscope --help' lists the commands");
	return STATUS_USAGE;
}

void help_version(void)
{
	printf("stepscope %s\n", STEPSCOPE_VERSION);
}

void help_program(void)
{
	printf("usage: stepscope COMMAND [options]\n\nShows where each step of a training run "
	       "goes.\n\n  stepscope run -- ./train      record a program\n  stepscope report latest  "
	       "     show where its step time went\n  stepscope help report         list the options "
	       "of a command\n\nCommands:\n");
	for (int i = 0; commands[i]; i++)
		printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
	printf("  %-10s %s\n", "help", "Explain a command");
	printf("  %-10s %s\n\n", "version", "Print the version");
	printf("Exit status: 0 success, 1 a limit is broken, 2 invalid command line, 3 unusable "
	       "input,\n4 the machine lacks something needed, 5 no verdict. 'run' exits with the "
	       "program's status.\nstepscope sends no data anywhere (no telemetry).\n");
}

void help_command(const struct command *command, const struct option *options, bool is_short)
{
	if (is_short && command->examples)
		printf("%s\n\n", command->examples);
	printf("usage: %s\n\n%s.\n\n", command->usage, command->summary);
	if (!is_short && command->examples)
		printf("Examples:\n%s\n\n", command->examples);
	if (is_short)
		printf("'stepscope help %s' explains the options.\n", command->name);
	else
		options_help(options, stdout, common.width);
}
