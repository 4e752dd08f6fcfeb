/* SPDX-License-Identifier: Apache-2.0
 *
 * main.c: finds the command, parses its options and the common ones, and prints its error. It computes nothing.
 */
#include "commands/command.h"
#include "commands/help.h"
#include "commands/say.h"
#include "format/fold.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MAXIMUM_OPTIONS 128

/* Each command is defined at the end of its cmd_*.c. */
extern const struct command command_run, command_report, command_info, command_diagnose, command_export, command_query,
	command_validate, command_convert, command_compare, command_history, command_whatif;

const struct command *const commands[] = {
	&command_run,     &command_report, &command_diagnose, &command_whatif,   &command_info,    &command_compare,
	&command_history, &command_query,  &command_export,   &command_validate, &command_convert, NULL,
};

struct common_options common = {.width = 100};

static const char *color = "auto";
static bool is_help, is_short_help, is_version;

static const struct option common_rows[] = {
	OPTION_GROUP("Common options"),
	OPTION_FLAG("help", 0, &is_help, "print this help"),
	OPTION_FLAG("short-help", 'h', &is_short_help, "print three examples"),
	OPTION_FLAG("version", 0, &is_version, "print the version"),
	OPTION_FLAG("quiet", 'q', &common.is_quiet, "print no notes to stderr"),
	OPTION_FLAG("verbose", 'v', &common.is_verbose, "print more notes to stderr"),
	OPTION_TEXT("color", 0, &color, "WHEN", "color the output: auto, always or never (default: auto)"),
	OPTION_END,
};

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);

	return value && value[0];
}

static bool is_forced(const char *variable)
{
	const char *value = getenv(variable);

	return value && value[0] && strcmp(value, "0") != 0;
}

static enum status decide_color(struct error *err)
{
	const char *terminal = getenv("TERM");

	if (!strcmp(color, "always") || !strcmp(color, "never")) {
		common.is_color = color[0] == 'a';
		return STATUS_OK;
	}
	if (strcmp(color, "auto") != 0)
		return error_set(err, STATUS_USAGE, "option '--color' wants auto, always or never, got '%s'", color);
	if (is_set("NO_COLOR"))
		return STATUS_OK;
	common.is_color = is_forced("CLICOLOR_FORCE") || is_forced("FORCE_COLOR") ||
	                  (isatty(STDOUT_FILENO) && (!terminal || strcmp(terminal, "dumb") != 0));
	return STATUS_OK;
}

static void decide_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	long width = columns ? strtol(columns, NULL, 10) : 0;

	if (width <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		width = size.ws_col;
	common.width = width <= 0 ? 100 : width < 40 ? 40 : width > 1000 ? 1000 : (int)width;
}

/* Works like the C library: the first variable that is set decides the character set. */
static void decide_letters(void)
{
	static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *value = getenv(variables[i]);

		if (!value || !value[0])
			continue;
		common.is_utf8 = strcasestr(value, "utf-8") || strcasestr(value, "utf8");
		return;
	}
}

static int print_error(const struct error *err)
{
	fflush(stdout);
	say("stepscope: error: %s\n", err->text);
	if (err->hint[0])
		say("hint: %s\n", err->hint);
	return status_exit(err->status);
}

/* A result that did not reach its reader is a failure. */
static int close_output(int exit_status)
{
	struct error err;

	if (!ferror(stdout) && fflush(stdout) == 0)
		return exit_status;
	error_errno(&err, STATUS_IO, errno, "cannot write to standard output");
	return print_error(&err);
}

/* Joins the options of the command and the common ones. */
static void join_options(struct option *joined, const struct command *command)
{
	int count = 0;

	for (const struct option *row = command_options(command); row->type != OPTION_TYPE_END; row++) {
		if (count < MAXIMUM_OPTIONS)
			joined[count++] = *row;
	}
	memcpy(&joined[count], common_rows, sizeof(common_rows));
}

static int run_command(const struct command *command, int argc, const char **argv)
{
	struct option joined[MAXIMUM_OPTIONS + sizeof(common_rows) / sizeof(common_rows[0])];
	struct options_result arguments;
	struct error err = {.status = STATUS_OK};
	int exit_status;

	join_options(joined, command);
	if (options_parse(joined, argc, argv, &arguments, &err) || decide_color(&err)) {
		if (command->operand_hint && arguments.operand_count && !arguments.has_terminator)
			error_hint(&err, "%s", command->operand_hint);
		else if (!err.hint[0])
			error_hint(&err, "'stepscope help %s' explains the options", command->name);
		return print_error(&err);
	}
	if (is_help || is_short_help) {
		help_command(command, joined, is_short_help && !is_help);
		return close_output(0);
	}
	if (is_version) {
		help_version();
		return close_output(0);
	}
	exit_status = command->run(&arguments, &err);
	if (err.text[0])
		return print_error(&err);
	return close_output(exit_status);
}

static bool is_word(const char *argument, const char *a, const char *b, const char *c)
{
	return !strcmp(argument, a) || !strcmp(argument, b) || !strcmp(argument, c);
}

/* Runs `stepscope help [command]`. */
static int run_help(int argc, const char **argv)
{
	struct option joined[MAXIMUM_OPTIONS + sizeof(common_rows) / sizeof(common_rows[0])];
	const struct command *command;
	struct error err;

	if (argc < 2 || is_word(argv[1], "help", "--help", "-h")) {
		help_program();
		return close_output(0);
	}
	command = command_find(argv[1]);
	if (!command) {
		command_unknown(argv[1], &err);
		return print_error(&err);
	}
	join_options(joined, command);
	help_command(command, joined, false);
	return close_output(0);
}

int main(int argc, const char **argv)
{
	const struct command *command;
	struct error err;

	decide_width();
	decide_letters();
	if (argc < 2) {
		error_set(&err, STATUS_USAGE, "no command was given");
		error_hint(&err, "'stepscope --help' lists the commands");
		return print_error(&err);
	}
	if (is_word(argv[1], "help", "--help", "-h"))
		return run_help(argc - 1, argv + 1);
	if (is_word(argv[1], "version", "--version", "-V")) {
		help_version();
		return close_output(0);
	}
	command = command_find(argv[1]);
	if (command) {
		fold_stale_pools(NULL, NULL, NULL); /* of processes that died without a parent that could fold them */
		return run_command(command, argc - 1, argv + 1);
	}
	command_unknown(argv[1], &err);
	return print_error(&err);
}
