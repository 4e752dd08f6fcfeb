/* SPDX-License-Identifier: Apache-2.0
 *
 * run_directory.c: makes run directories, mode 0700. Of the files in them it reads only run.json, to see whether --out
 * belongs to the same job.
 */
#include "run/run_directory.h"

#include "base/hash.h"
#include "run/run_launcher.h"
#include "run/run_manifest.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- names ---- */

static bool is_wrapper(const char *name)
{
	static const char *const wrappers[] = {"torchrun", "accelerate", "deepspeed", "horovodrun", "srun",   "mpirun",
	                                       "mpiexec",  "sh",         "bash",      "dash",       "env",    "numactl",
	                                       "taskset",  "nice",       "ionice",    "timeout",    "stdbuf", "setarch",
	                                       "uv",       "poetry",     "conda",     NULL};
	size_t python = strncmp(name, "python", 6) ? strncmp(name, "pypy", 4) ? 0 : 4 : 6;

	if (python && !name[python + strspn(name + python, "0123456789.")])
		return true;
	for (int i = 0; wrappers[i]; i++) {
		if (!strcmp(name, wrappers[i]))
			return true;
	}
	return false;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static bool is_script(const char *argument)
{
	size_t length = strlen(argument);

	return argument[0] != '-' && length > 3 &&
	       (!strcmp(argument + length - 3, ".py") || !strcmp(argument + length - 3, ".sh"));
}

/* Returns the argument that names the real program: the program itself, or the script or module of an interpreter or
 * launcher. */
static const char *telling_argument(char *const *argv)
{
	if (!is_wrapper(base_name(argv[0])))
		return argv[0];
	for (int i = 1; argv[i]; i++) {
		const char *dot;

		if (is_script(argv[i]))
			return argv[i];
		if (strcmp(argv[i], "-m") != 0 || !argv[i + 1])
			continue;
		dot = strrchr(argv[i + 1], '.');
		return dot && dot[1] ? dot + 1 : argv[i + 1];
	}
	return argv[0];
}

/* Writes "train" for ./bin/train, python -u train.py, python -m pkg.train, torchrun --nproc-per-node 8 train.py. */
static void program_stem(char *out, size_t bytes, char *const *argv)
{
	const char *name = base_name(telling_argument(argv));
	const char *dot = strrchr(name, '.');
	size_t length = dot && dot != name ? (size_t)(dot - name) : strlen(name);

	if (length > bytes - 1)
		length = bytes - 1;
	if (length > 40)
		length = 40;
	for (size_t i = 0; i < length; i++)
		out[i] = (char)(isalnum((unsigned char)name[i]) || (i && strchr("._-", name[i])) ? name[i] : '_');
	out[length] = '\0';
}

/* Makes the last part of the path. */
static void make_name(char *out, size_t bytes, char *const *argv, const char *job)
{
	char stem[64];
	time_t now = time(NULL);
	struct tm utc;

	program_stem(stem, sizeof(stem), argv);
	if (job[0]) {
		snprintf(out, bytes, "%s_%s", job, stem);
		return;
	}
	gmtime_r(&now, &utc);
	snprintf(out, bytes, "%04d-%02d-%02dT%02d-%02d-%02d_%s_%d", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
	         utc.tm_hour, utc.tm_min, utc.tm_sec, stem, (int)getpid());
}

/* ---- making ---- */

/* Makes the directory and its parents. */
static enum status make_all(const char *path, mode_t mode, struct error *err)
{
	char part[PATH_MAX];
	size_t length = strlen(path);

	if (!length || length >= sizeof(part))
		return error_errno(err, STATUS_IO, length ? ENAMETOOLONG : ENOENT, "cannot create '%s'", path);
	for (size_t i = 1; i <= length; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, i == length ? mode : 0777) != 0 && errno != EEXIST)
			return error_errno(err, STATUS_IO, errno, "cannot create the directory '%s'", part);
	}
	return STATUS_OK;
}

#define LOCK_TRIES 10 /* a command that looks for runs holds the lock for an instant */

/* The lock shows other commands that this process looks after dead processes of the run. An exclusive lock keeps out a
 * second run that starts at the same time. Returns false if another process holds the lock. On file systems without
 * locks every run is let in. */
static bool lock_directory(int fd, bool is_shared)
{
	for (int i = 0; flock(fd, (is_shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0; i++) {
		if (errno != EWOULDBLOCK || is_shared)
			return true;
		if (i == LOCK_TRIES)
			return false;
		usleep(10000);
	}
	return true;
}

static enum status open_directory(struct run_directory *directory, bool is_shared, struct error *err)
{
	directory->fd = open(directory->shown, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory->fd < 0)
		return error_errno(err, STATUS_IO, errno, "cannot open the run directory '%s'", directory->shown);
	if (!lock_directory(directory->fd, is_shared)) {
		error_set(err, STATUS_USAGE, "'%s' is in use by another run", directory->shown);
		error_hint(err, "give --out a new or empty directory");
		return STATUS_USAGE;
	}
	if (!realpath(directory->shown, directory->path))
		return error_errno(err, STATUS_IO, errno, "cannot find the run directory '%s'", directory->shown);
	if (faccessat(directory->fd, ".", W_OK | X_OK, AT_EACCESS) != 0)
		return error_errno(err, STATUS_IO, errno, "cannot write into '%s'", directory->shown);
	return STATUS_OK;
}

static bool has_recordings(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = copy >= 0 ? fdopendir(copy) : NULL;
	bool is_found = false;
	struct dirent *entry;

	if (!list)
		return false;
	while (!is_found && (entry = readdir(list)) != NULL) {
		size_t length = strlen(entry->d_name);

		is_found = length > 4 && !strcmp(entry->d_name + length - 4, ".ssr");
	}
	closedir(list);
	return is_found;
}

/* ---- ids ---- */

static void random_id(char *out)
{
	uint8_t bytes[16];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
		struct timespec now;

		clock_gettime(CLOCK_REALTIME, &now);
		memset(bytes, getpid() & 0xff, sizeof(bytes));
		memcpy(bytes, &now, sizeof(bytes));
	}
	for (int i = 0; i < 16; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* Derives the same id for all processes of a job: two hashes of its name. */
static void job_id(char *out, const char *job)
{
	uint64_t hash[2] = {HASH_BYTES, UINT64_C(0x6c62272e07bb0142)};

	for (; *job; job++) {
		hash[0] = hash_byte(hash[0], (uint8_t)*job);
		hash[1] = hash_byte(hash[1], (uint8_t)*job) + 1;
	}
	snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, hash[0], hash[1]);
}

static bool is_id(const char *text)
{
	return text && strlen(text) == 32 && strspn(text, "0123456789abcdef") == 32;
}

static void choose_id(struct run_directory *directory)
{
	const char *inherited = getenv("STEPSCOPE_IDENTITY");
	struct run_manifest_ids ids;

	if (directory->is_inherited && is_id(inherited))
		memcpy(directory->run_id, inherited, 33);
	else if (directory->job[0])
		job_id(directory->run_id, directory->job);
	else if (directory->is_inherited && run_manifest_read_ids(&ids, directory->fd) && is_id(ids.run_id))
		memcpy(directory->run_id, ids.run_id, 33);
	else
		random_id(directory->run_id);
}

/* ---- the three ways ---- */

static enum status open_inherited(struct run_directory *directory, const char *path, struct error *err)
{
	enum status status;

	directory->is_inherited = directory->is_shared = true;
	directory->is_nested = is_id(getenv("STEPSCOPE_IDENTITY")); /* only `stepscope run` sets this variable */
	snprintf(directory->shown, sizeof(directory->shown), "%s", path);
	status = make_all(path, 0700, err);
	return status ? status : open_directory(directory, true, err);
}

static enum status open_given(struct run_directory *directory, const char *out, struct error *err)
{
	struct run_manifest_ids ids;
	enum status status;

	snprintf(directory->shown, sizeof(directory->shown), "%s", out);
	status = make_all(out, 0700, err);
	if (!status)
		status = open_directory(directory, directory->job[0] != '\0', err);
	if (status)
		return status;
	if (!has_recordings(directory->fd))
		return STATUS_OK;
	if (directory->job[0] && run_manifest_read_ids(&ids, directory->fd) && !strcmp(ids.job, directory->job))
		return STATUS_OK;
	error_set(err, STATUS_USAGE, "'%s' already holds the recordings of another run", out);
	error_hint(err, "give --out a new or empty directory, or remove this directory");
	return STATUS_USAGE;
}

static const char *runs_directory(void)
{
	const char *directory = getenv("STEPSCOPE_DIR");
	return directory && directory[0] ? directory : "stepscope-runs";
}

static enum status open_default(struct run_directory *directory, char *const *argv, struct error *err)
{
	const char *base = runs_directory();
	char name[PATH_MAX / 4];
	enum status status;

	status = make_all(base, 0777, err);
	if (status)
		return status;
	make_name(name, sizeof(name), argv, directory->job);
	for (int attempt = 1; attempt < 100; attempt++) {
		char suffix[8] = "";

		if (attempt > 1)
			snprintf(suffix, sizeof(suffix), "-%d", attempt);
		if (snprintf(directory->shown, sizeof(directory->shown), "%s/%s%s", base, name, suffix) >=
		    (int)sizeof(directory->shown))
			return error_errno(err, STATUS_IO, ENAMETOOLONG, "cannot create a run directory in '%s'", base);
		if (mkdir(directory->shown, 0700) == 0 || (errno == EEXIST && directory->job[0]))
			break;
		if (errno != EEXIST)
			return error_errno(err, STATUS_IO, errno, "cannot create the run directory '%s'",
			                   directory->shown);
	}
	directory->is_default = true;
	return open_directory(directory, true, err);
}

enum status run_directory_open(struct run_directory *directory, const char *out, char *const *argv, struct error *err)
{
	const char *inherited = getenv("STEPSCOPE_RUN_DIR");
	struct run_launcher launcher;
	enum status status;

	*directory = (struct run_directory){.fd = -1};
	if (run_launcher_find(&launcher)) {
		memcpy(directory->job, launcher.job, sizeof(directory->job));
		directory->is_shared = true;
	}
	if (inherited && inherited[0])
		status = open_inherited(directory, inherited, err);
	else if (out && out[0])
		status = open_given(directory, out, err);
	else
		status = open_default(directory, argv, err);
	if (status)
		run_directory_release(directory);
	else
		choose_id(directory);
	return status;
}

/* A default run directory is next to the link. A directory given with --out gets its link in the directory of runs,
 * which is made if necessary. */
void run_directory_link_latest(const struct run_directory *directory)
{
	const char *slash = strrchr(directory->path, '/');
	const char *target = directory->is_default && slash ? slash + 1 : directory->path;
	const char *runs = directory->is_default ? directory->path : runs_directory();
	int base = directory->is_default && slash ? (int)(slash - directory->path) : (int)strlen(runs);
	char name[PATH_MAX + 32], link[PATH_MAX + 32];
	struct error ignored; /* on error there is no place for a link */

	if (directory->is_inherited || directory->fd < 0)
		return;
	if (!directory->is_default && make_all(runs, 0777, &ignored))
		return;
	snprintf(name, sizeof(name), "%.*s/.latest.%d", base, runs, (int)getpid());
	snprintf(link, sizeof(link), "%.*s/latest", base, runs);
	unlink(name);
	if (symlink(target, name) == 0 && rename(name, link) != 0)
		unlink(name);
}

void run_directory_discard(struct run_directory *directory)
{
	if (directory->fd >= 0 && !directory->is_shared) {
		run_manifest_remove(directory->fd);
		rmdir(directory->path);
	}
	run_directory_release(directory);
}

void run_directory_release(struct run_directory *directory)
{
	if (directory->fd >= 0)
		close(directory->fd);
	directory->fd = -1;
}

bool run_directory_has_recordings(const struct run_directory *directory)
{
	return directory->fd >= 0 && has_recordings(directory->fd);
}

bool run_directory_exists(const struct run_directory *directory)
{
	struct stat status;

	return directory->fd >= 0 && fstat(directory->fd, &status) == 0 && status.st_nlink > 0;
}
