/* SPDX-License-Identifier: Apache-2.0
 *
 * run_manifest.c: composes run.json in memory and moves it into place atomically; the first process of a job wins.
 */
#include "run/run_manifest.h"

#include "base/json_read.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/shell.h"
#include "base/time_now.h"
#include "run/run_launcher.h"
#include "run/run_mask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define MANIFEST_NAME "run.json"
#define MANIFEST_BYTES (4u << 20)
#define PLAIN_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%*"

extern char **environ;

/* ---- parts ---- */

static void add_argv(struct json_writer *json, char *const *argv)
{
	bool is_secret = false;
	struct buffer text;

	buffer_init(&text, MANIFEST_BYTES);
	json_key(json, "argv");
	json_array_begin(json);
	for (; *argv; argv++) {
		buffer_clear(&text);
		run_mask_argument(&text, *argv, &is_secret);
		json_string(json, text.data ? text.data : "");
	}
	json_array_end(json);
	buffer_release(&text);
}

static void add_environment(struct json_writer *json)
{
	struct buffer text;

	buffer_init(&text, MANIFEST_BYTES);
	json_key(json, "environment");
	json_object_begin(json);
	for (char **entry = environ; *entry; entry++) {
		char name[128];
		size_t length = strcspn(*entry, "=");

		if (!(*entry)[length] || length >= sizeof(name))
			continue;
		memcpy(name, *entry, length);
		name[length] = '\0';
		if (!run_launcher_is_variable(name))
			continue;
		buffer_clear(&text);
		run_mask_variable(&text, name, *entry + length + 1);
		json_key(json, name);
		json_string(json, text.data ? text.data : "");
	}
	json_object_end(json);
	buffer_release(&text);
}

static void add_schedule(struct json_writer *json, const struct record_settings *settings)
{
	json_key(json, "schedule");
	json_object_begin(json);
	for (int i = 0; record_options_table[i].name; i++) {
		if (!settings->is_set[i])
			continue;
		json_key(json, record_options_table[i].name);
		json_string(json, i == record_option_row("out") ? settings->run_directory : settings->value[i]);
	}
	json_object_end(json);
}

/* Writes the first "model name" of /proc/cpuinfo, or null if it is missing (aarch64). */
static void add_processor(struct json_writer *json)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	char line[512], *value = NULL;

	json_key(json, "cpu_model");
	while (file && !value && fgets(line, sizeof(line), file)) {
		value = !strncmp(line, "model name", 10) ? strchr(line, ':') : NULL;
		if (value)
			value[strcspn(value, "\n")] = '\0';
	}
	if (value && value[1])
		json_string(json, value + 2);
	else
		json_null(json);
	if (file)
		fclose(file);
}

static void add_machine(struct json_writer *json)
{
	struct utsname names;

	uname(&names);
	json_key(json, "host"), json_string(json, names.nodename);
	json_key(json, "system"), json_string(json, names.sysname);
	json_key(json, "kernel"), json_string(json, names.release);
	json_key(json, "architecture"), json_string(json, names.machine);
	add_processor(json);
	json_key(json, "cores"), json_int(json, sysconf(_SC_NPROCESSORS_ONLN));
	json_key(json, "memory_bytes");
	json_uint(json, (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
}

static void run_manifest_add_time(struct json_writer *json)
{
	struct timespec now;
	struct tm utc;
	char text[64];

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02dZ", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
	         utc.tm_hour, utc.tm_min, utc.tm_sec);
	json_key(json, "started"), json_string(json, text);
	json_key(json, "started_ns"), json_int(json, timespec_ns(&now));
}

static void run_manifest_add_text(struct json_writer *json, const char *key, const char *text)
{
	json_key(json, key);
	if (text && text[0])
		json_string(json, text);
	else
		json_null(json);
}

static void compose(struct buffer *out, const struct run_directory *directory, char *const *argv,
                    const struct record_settings *settings)
{
	struct json_writer json;
	char *cwd = getcwd(NULL, 0);

	json_writer_init(&json, out, JSON_PRETTY);
	json_object_begin(&json);
	json_key(&json, "schema"), json_string(&json, "stepscope.run/1");
	json_key(&json, "stepscope"), json_string(&json, STEPSCOPE_VERSION);
	json_key(&json, "run_id"), json_string(&json, directory->run_id);
	run_manifest_add_text(&json, "job", directory->job);
	run_manifest_add_time(&json);
	add_argv(&json, argv);
	run_manifest_add_text(&json, "cwd", cwd);
	json_key(&json, "pid"), json_int(&json, getpid());
	add_machine(&json);
	run_manifest_add_text(&json, "restart_count", getenv("TORCHELASTIC_RESTART_COUNT"));
	add_schedule(&json, settings);
	add_environment(&json);
	json_object_end(&json);
	buffer_add_text(out, "\n");
	free(cwd);
}

/* ---- files ---- */

static bool run_manifest_write_all(int fd, const char *data, size_t length)
{
	while (length) {
		ssize_t written = write(fd, data, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		data += written;
		length -= (size_t)written;
	}
	return true;
}

/* Gives the file its final name unless that exists. Not all file systems support links. */
static bool put_in_place(int fd, const char *name)
{
	if (linkat(fd, name, fd, MANIFEST_NAME, 0) == 0 || errno == EEXIST) {
		unlinkat(fd, name, 0);
		return true;
	}
	if (renameat2(fd, name, fd, MANIFEST_NAME, RENAME_NOREPLACE) == 0)
		return true;
	if (errno == EEXIST) {
		unlinkat(fd, name, 0);
		return true;
	}
	return faccessat(fd, MANIFEST_NAME, F_OK, 0) != 0 && renameat(fd, name, fd, MANIFEST_NAME) == 0;
}

static bool run_manifest_store(int directory_fd, const struct buffer *text)
{
	char name[64];
	int fd, problem = 0;

	snprintf(name, sizeof(name), ".run.json.%d", (int)getpid());
	unlinkat(directory_fd, name, 0);
	fd = openat(directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	if (!run_manifest_write_all(fd, text->data, text->length))
		problem = errno ? errno : EIO;
	if (close(fd) != 0 && !problem)
		problem = errno;
	if (!problem && put_in_place(directory_fd, name))
		return true;
	if (!problem)
		problem = errno;
	unlinkat(directory_fd, name, 0);
	errno = problem;
	return false;
}

enum status run_manifest_write(const struct run_directory *directory, char *const *argv,
                               const struct record_settings *settings, struct error *err)
{
	struct buffer text;
	enum status status = STATUS_OK;

	if (faccessat(directory->fd, MANIFEST_NAME, F_OK, 0) == 0)
		return STATUS_OK;
	buffer_init(&text, MANIFEST_BYTES);
	compose(&text, directory, argv, settings);
	if (text.is_overflown)
		status = error_set(err, STATUS_IO, "no '%s/%s': the command line is too long", directory->shown,
		                   MANIFEST_NAME);
	else if (!run_manifest_store(directory->fd, &text))
		status = error_errno(err, STATUS_IO, errno, "cannot write '%s/%s'", directory->shown, MANIFEST_NAME);
	buffer_release(&text);
	return status;
}

static void parse_ids(struct run_manifest_ids *ids, const char *data, size_t length)
{
	struct json_reader reader;
	enum json_token token;
	char *wanted;
	size_t room;

	json_reader_init(&reader, data, length);
	token = json_next(&reader);
	while (token == JSON_OBJECT_BEGIN && (token = json_next(&reader)) == JSON_KEY) {
		wanted = !strcmp(reader.text.data, "run_id") ? ids->run_id
		         : !strcmp(reader.text.data, "job")  ? ids->job
		                                             : NULL;
		room = wanted == ids->job ? sizeof(ids->job) : sizeof(ids->run_id);
		token = json_next(&reader);
		if (wanted && token == JSON_STRING)
			snprintf(wanted, room, "%s", reader.text.data);
		if (!json_skip(&reader, token))
			break;
		token = JSON_OBJECT_BEGIN; /* the next key of the same object */
	}
	json_reader_release(&reader);
}

bool run_manifest_read_ids(struct run_manifest_ids *ids, int directory_fd)
{
	int fd = openat(directory_fd, MANIFEST_NAME, O_RDONLY | O_CLOEXEC);
	struct buffer text;
	char *room;
	ssize_t got = 1;

	*ids = (struct run_manifest_ids){0};
	if (fd < 0)
		return false;
	buffer_init(&text, MANIFEST_BYTES);
	while (got > 0 && (room = buffer_reserve(&text, 65536)) != NULL) {
		got = read(fd, room, 65536);
		text.length += got > 0 ? (size_t)got : 0;
	}
	close(fd);
	if (text.length)
		parse_ids(ids, text.data, text.length);
	buffer_release(&text);
	return ids->run_id[0] != '\0';
}

void run_manifest_remove(int directory_fd)
{
	unlinkat(directory_fd, MANIFEST_NAME, 0);
}

void run_manifest_command_line(struct buffer *out, char *const *argv)
{
	bool is_secret = false;
	struct buffer text;
	char *word;

	buffer_init(&text, MANIFEST_BYTES);
	for (int i = 0; argv[i]; i++) {
		buffer_clear(&text);
		run_mask_argument(&text, argv[i], &is_secret);
		buffer_add_text(out, i ? " " : "");
		if (text.length && !text.data[strspn(text.data, PLAIN_CHARACTERS)]) {
			buffer_add_text(out, text.data);
			continue;
		}
		word = memory_resize(NULL, 4 * text.length + 8, 1);
		shell_quote(word, 4 * text.length + 8, text.data ? text.data : "");
		buffer_add_text(out, word);
		free(word);
	}
	buffer_release(&text);
}
