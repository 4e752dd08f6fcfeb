/* SPDX-License-Identifier: Apache-2.0
 *
 * run_directory.c: see run_directory.h.
 */
#include "recorder/run_directory.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ROOT "stepscope-runs"

static bool make_directories(char *path)
{
	for (char *at = path + 1; *at; at++) {
		if (*at != '/')
			continue;
		*at = 0;
		if (mkdir(path, 0755) != 0 && errno != EEXIST && errno != EISDIR) {
			*at = '/';
			return false;
		}
		*at = '/';
	}
	return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* Writes the program's name without directory and suffix. */
static void put_stem(char *out, size_t bytes)
{
	char exe[1024];
	ssize_t length = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	exe[length > 0 ? length : 0] = 0;
	const char *name = strrchr(exe, '/');
	snprintf(out, bytes, "%s", name && name[1] ? name + 1 : "program");
	char *dot = strrchr(out, '.');
	if (dot && dot != out)
		*dot = 0;
}

static void put_new_name(char *out, size_t bytes, pid_t pid)
{
	char stem[64], when[32];
	struct tm utc;
	time_t now = time(NULL);
	put_stem(stem, sizeof(stem));
	gmtime_r(&now, &utc);
	strftime(when, sizeof(when), "%Y-%m-%dT%H-%M-%S", &utc);
	snprintf(out, bytes, "%s_%s_%d", when, stem, (int)pid);
}

static void point_latest(const char *directory, const char *name, pid_t pid)
{
	char link[1200], temporary[1240];
	snprintf(link, sizeof(link), "%s/latest", directory);
	snprintf(temporary, sizeof(temporary), "%s.%d", link, (int)pid);
	if (symlink(name, temporary) == 0 && rename(temporary, link) != 0)
		unlink(temporary);
}

static bool make_absolute(char *out, size_t bytes, const char *path)
{
	char here[1024] = "";
	if (path[0] != '/' && !getcwd(here, sizeof(here)))
		return false;
	int length = snprintf(out, bytes, "%s%s%s", here, path[0] == '/' ? "" : "/", path);
	return length > 0 && (size_t)length < bytes;
}

bool run_directory_get(struct record_options *options, const char *wanted, pid_t pid, char *problem, size_t bytes)
{
	char path[1024], name[160] = "", root[1024];
	const char *inherited = getenv("STEPSCOPE_RUN_DIR");
	const char *base = getenv("STEPSCOPE_DIR");
	if (!wanted && inherited && inherited[0])
		wanted = inherited;
	if (!wanted && options->run_directory[0])
		wanted = options->run_directory;
	bool is_ok;
	if (wanted) {
		is_ok = make_absolute(path, sizeof(path), wanted);
	} else {
		put_new_name(name, sizeof(name), pid);
		is_ok = make_absolute(root, sizeof(root), base && base[0] ? base : ROOT) &&
		        (size_t)snprintf(path, sizeof(path), "%s/%s", root, name) < sizeof(path);
	}
	if (!is_ok) {
		snprintf(problem, bytes, "cannot record: the path of the run directory is too long");
		return false;
	}
	if (!make_directories(path)) {
		snprintf(problem, bytes, "cannot create the run directory '%s': %s", path, strerror(errno));
		return false;
	}
	if (!wanted)
		point_latest(root, name, pid);
	memcpy(options->run_directory, path, sizeof(path));
	return true;
}

bool run_directory_has_others(const char *directory, pid_t pid, uint64_t start_time)
{
	char own[64];
	bool has_others = false;
	struct dirent *entry;
	DIR *list = opendir(directory);
	snprintf(own, sizeof(own), ".%d.%" PRIu64 ".", (int)pid, start_time);
	while (list && !has_others && (entry = readdir(list)))
		has_others = strstr(entry->d_name, ".ssr") && !strstr(entry->d_name, own);
	if (list)
		closedir(list);
	return has_others;
}
