/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_run.c: `stepscope run`: starts a program, records it and the machine, and exits as the program did. The parts are
 * in run_*.c. A failure of stepscope prints one line and never stops the program.
 */
#include "commands/command.h"
#include "commands/say.h"
#include "recorder/host_share.h"
#include "run/run_closing.h"
#include "run/run_manifest.h"
#include "run/run_state.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define PROGRAM_HINT "write the program and its arguments after '--': stepscope run -- ./train --epochs 3"

static enum status check_program(const struct options_result *arguments, struct error *err)
{
	int before = arguments->before_terminator;

	if (arguments->has_terminator && !before && arguments->operand_count > 0)
		return STATUS_OK;
	if (before > 0)
		error_set(err, STATUS_USAGE, "'%s' is before the '--'", arguments->operands[0]);
	else
		error_set(err, STATUS_USAGE, "the program is missing");
	error_hint(err, PROGRAM_HINT);
	return STATUS_USAGE;
}

/* Prints a problem of stepscope. */
static void say_trouble(const struct error *err, const char *consequence)
{
	say("stepscope: %s%s\n", err->text, consequence);
}

/* A script that uses --out may itself be recorded. Then its run joins the outer run, and its --out is ignored. */
static void say_unused_out(const struct run *run)
{
	const char *out = run->settings.out;
	char path[PATH_MAX];

	if (!run->directory.is_inherited || !out || common.is_quiet || !strcmp(out, run->directory.shown) ||
	    (realpath(out, path) && !strcmp(path, run->directory.path)))
		return;
	say("stepscope: --out %s has no effect: this run joins the one in %s (STEPSCOPE_RUN_DIR)\n", out,
	    run->directory.shown);
}

/* STEPSCOPE=0 in the environment overrides all options. */
static void obey_environment(struct run *run)
{
	const char *wish = getenv("STEPSCOPE");

	if (run->settings.resolved.mode == RECORD_OFF)
		run->off_reason = "enabled=false";
	if (!wish || (strcmp(wish, "0") != 0 && strcmp(wish, "off") != 0))
		return;
	run->settings.resolved.mode = RECORD_OFF;
	run->off_reason = "STEPSCOPE=0 in the environment";
}

/* Fails only with STATUS_USAGE. Without a directory, the program runs unrecorded. */
static enum status open_directory(struct run *run, struct error *err)
{
	enum status status;
	struct error problem = {.status = STATUS_OK};

	if (run->settings.resolved.mode == RECORD_OFF)
		return STATUS_OK;
	status = run_directory_open(&run->directory, run->settings.out, run->argv, &problem);
	if (status == STATUS_USAGE) {
		*err = problem;
		return status;
	}
	if (status) {
		say_trouble(&problem, "; the program runs unrecorded");
		return STATUS_OK;
	}
	say_unused_out(run);
	if (run_manifest_write(&run->directory, run->argv, &run->settings.given, &problem))
		say_trouble(&problem, "");
	if (common.is_verbose)
		say("stepscope: recording into %s\n", run->directory.path);
	return STATUS_OK;
}

/* Returns true in a container's first process. Signals whose default is to terminate do not affect it, so early signals
 * must be kept for the program. */
static bool is_first_process(void)
{
	return getpid() == 1;
}

static void start_program(struct run *run)
{
	const struct run_directory *directory = run->directory.fd >= 0 ? &run->directory : NULL;
	char **environment = run_environment_new(directory, &run->settings);

	if (!is_first_process())
		run_signals_init(&run->signals);
	/* the program's orphans become our children, so that their end is seen */
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	fflush(NULL);
	run_child_start(&run->child, run->argv, environment, &run->signals);
	run_environment_free(environment);
}

static int fail_to_start(struct run *run)
{
	const char *name = run->argv[0];
	int number = run->child.exec_errno;

	run_directory_discard(&run->directory);
	if (number == ENOENT && strchr(name, '/') && access(name, F_OK) == 0)
		say("stepscope: error: cannot start '%s': the interpreter that its first line names does not exist\n",
		    name);
	else if (number == ENOENT)
		say("stepscope: error: cannot start '%s': no such program%s\n", name,
		    strchr(name, '/') ? "" : " in PATH");
	else
		say("stepscope: error: cannot start '%s': %s\n", name, strerror(number));
	return run_exit_status(&run->child);
}

/* Sets up this process after the program has its settings. It gets many descriptors, survives a closed stderr, and
 * drops environment settings meant for the program. */
static void settle_process(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	signal(SIGPIPE, SIG_IGN);
	run_options_clear_environment();
}

static void start_host(struct run *run)
{
	struct error problem;
	struct buffer line;
	char text[512];

	if (run->directory.fd < 0)
		return;
	run->host = host_recording_new(run->directory.path, run->directory.run_id, !run->settings.is_host_off, text,
	                               sizeof(text));
	if (!run->host) {
		error_set(&problem, STATUS_IO, "%s", text);
		say_trouble(&problem, "; the machine is not recorded");
		return;
	}
	buffer_init(&line, 4096);
	run_manifest_command_line(&line, run->argv);
	host_recording_fact(run->host, "program", run->argv[0]);
	host_recording_fact(run->host, "argv", line.data);
	buffer_release(&line);
}

static void print_closing(struct run *run)
{
	struct run_closing closing;

	run_closing_find(&closing, run);
	run_closing_print(&closing);
	run_closing_release(&closing);
}

static int supervise_program(struct run *run)
{
	int exit_status;

	settle_process();
	run_directory_link_latest(&run->directory);
	start_host(run);
	run_supervise(run);
	run_record_facts(run);
	exit_status = run_exit_status(&run->child);
	print_closing(run);
	host_recording_free(run->host, "exit");
	run_watch_release(&run->watch);
	if (run->directory.fd >= 0)
		host_share_remove(run->directory.path);
	run_directory_release(&run->directory);
	return exit_status;
}

static int run_program(const struct options_result *arguments, struct error *err)
{
	static struct run run = {.directory.fd = -1};
	enum status status = check_program(arguments, err);

	if (!status)
		status = run_options_resolve(&run.settings, err);
	if (status)
		return status_exit(status);
	if (is_first_process())
		run_signals_init(&run.signals);
	obey_environment(&run);
	run.argv = (char *const *)&arguments->operands[0];
	status = open_directory(&run, err);
	if (status)
		return status_exit(status);
	start_program(&run);
	if (!run.child.is_running)
		return fail_to_start(&run);
	return supervise_program(&run);
}

const struct command command_run = {
	.name = "run",
	.summary = "Run a program and record its steps and the machine",
	.usage = "stepscope run [options] -- PROGRAM [arguments]",
	.examples = "  stepscope run -- ./train\n"
		    "  stepscope run --steps 50-69 --with shapes,memory -- ./train --epochs 3\n"
		    "  stepscope run --out runs/a --wait 10 --warmup 2 --active 5 --repeat 1 -- ./train\n"
		    "  stepscope run -- torchrun --nproc-per-node 8 train.py",
	.make_options = run_options_table,
	.operand_hint = PROGRAM_HINT,
	.run = run_program,
};
