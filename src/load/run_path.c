/* SPDX-License-Identifier: Apache-2.0
 *
 * run_path.c: the run that an operand names: a path, a name in the directory of runs, or "latest".
 */
#include "load/run_path.h"

#include "commands/command.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *runs_directory(void)
{
	const char *directory = getenv("STEPSCOPE_DIR");

	return directory && directory[0] ? directory : "stepscope-runs";
}

static bool exists(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0;
}

/* Explains why there is no latest run. "latest" is a link that `run` creates. */
static const char *no_latest(const char *directory, struct error *err)
{
	char link[PATH_MAX], target[PATH_MAX];
	ssize_t length;

	if (!exists(directory)) {
		error_set(err, STATUS_INPUT, "there is no latest run: '%s' does not exist", directory);
		error_hint(err, "record one with 'stepscope run -- PROGRAM', or give the path of a run");
		return NULL;
	}
	snprintf(link, sizeof(link), "%s/latest", directory);
	length = readlink(link, target, sizeof(target) - 1);
	if (length > 0)
		error_set(err, STATUS_INPUT, "the latest run is missing: '%s' points to '%.*s', which does not exist",
		          link, (int)length, target);
	else
		error_set(err, STATUS_INPUT, "there is no latest run: '%s' does not exist", link);
	error_hint(err, "give the path of a run");
	return NULL;
}

const char *command_run_path(const char *operand, struct error *err)
{
	static char path[PATH_MAX]; /* each call replaces the text, because a command names only a few runs */
	const char *directory = runs_directory();
	char *resolved;
	struct stat info;

	if (exists(operand) || strcmp(operand, "-") == 0)
		return operand;
	if (snprintf(path, sizeof(path), "%s/%s", directory, operand) >= (int)sizeof(path)) {
		error_set(err, STATUS_INPUT, "the name of the run is too long");
		return NULL;
	}
	if (!exists(path)) {
		if (!strcmp(operand, "latest"))
			return no_latest(directory, err);
		if (lstat(operand, &info) == 0 &&
		    stat(operand, &info) != 0) /* a link to a missing file, or to itself */
			return error_errno(err, STATUS_INPUT, errno, "cannot read '%s'", operand), NULL;
		error_set(err, STATUS_INPUT, "cannot find run '%s': neither '%s' nor '%s' exists", operand, operand,
		          path);
		error_hint(err, "give a directory, a file, a name in %s, or 'latest'", directory);
		return NULL;
	}
	if (strcmp(operand, "latest") != 0)
		return path;
	/* the run's name is more useful than "latest" */
	resolved = realpath(path, NULL);
	if (resolved) {
		const char *name = strrchr(resolved, '/');

		snprintf(path, sizeof(path), "%s/%s", directory, name ? name + 1 : resolved);
		if (!exists(path))
			snprintf(path, sizeof(path), "%s", resolved);
		free(resolved);
	}
	return path;
}
