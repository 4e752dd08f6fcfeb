/* SPDX-License-Identifier: Apache-2.0
 *
 * cgroup_path.c: joins /proc/self/cgroup (which group) with /proc/self/mountinfo (which part of which tree is mounted
 * where). In a container the group's path may be the path on the host, while only its end is mounted.
 */
#include "host/cgroup_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns true if `word` is in the comma-separated list text[0..length). */
static bool cgroup_path_has_word(const char *text, size_t length, const char *word)
{
	size_t wanted = strlen(word);

	for (size_t start = 0; start <= length;) {
		const char *comma = memchr(text + start, ',', length - start);
		size_t end = comma ? (size_t)(comma - text) : length;

		if (end - start == wanted && !memcmp(text + start, word, wanted))
			return true;
		start = end + 1;
	}
	return false;
}

/* Copies a field of mountinfo, in which blanks are written as \040. */
static void copy_field(char *out, const char *field, size_t length)
{
	size_t used = 0;

	for (size_t i = 0; i < length && used < CGROUP_PATH_BYTES - 1; i++) {
		if (field[i] == '\\' && i + 3 < length && field[i + 1] >= '0' && field[i + 1] <= '3') {
			out[used++] = (char)((field[i + 1] - '0') << 6 | (field[i + 2] & 7) << 3 | (field[i + 3] & 7));
			i += 3;
		} else {
			out[used++] = field[i];
		}
	}
	out[used] = '\0';
}

/* Returns the n-th field (from 0) of a line separated by blanks. *length is its length, 0 if there is no such field. */
static const char *field_of(const char *line, const char *end, int n, size_t *length)
{
	for (; line < end; n--) {
		const char *blank = memchr(line, ' ', (size_t)(end - line));

		if (!blank)
			blank = end;
		if (n == 0) {
			*length = (size_t)(blank - line);
			return line;
		}
		line = blank + 1;
	}
	*length = 0;
	return end;
}

/* Parses a line of mountinfo: id parent device root mount options [more] - type source super-options. */
static bool take_mount(const char *line, const char *end, int version, const char *controller, char *root, char *mount)
{
	const char *rest = memmem(line, (size_t)(end - line), " - ", 3);
	const char *type, *options, *field;
	size_t type_length, options_length, length;

	if (!rest)
		return false;
	type = field_of(rest + 3, end, 0, &type_length);
	options = field_of(rest + 3, end, 2, &options_length);
	if (version == 2 ? type_length != 7 || strncmp(type, "cgroup2", 7) != 0
	                 : type_length != 6 || strncmp(type, "cgroup", 6) != 0 ||
	                           !cgroup_path_has_word(options, options_length, controller))
		return false;
	field = field_of(line, end, 3, &length);
	copy_field(root, field, length);
	field = field_of(line, end, 4, &length);
	copy_field(mount, field, length);
	return mount[0] == '/';
}

static bool find_mount(struct host *host, int version, const char *controller, char *root, char *mount)
{
	struct host_file file = {0};
	const char *text = host_file_read(host, &file, "/proc/self/mountinfo");
	bool is_found = false;

	while (text && *text && !is_found) {
		const char *end = strchrnul(text, '\n');

		is_found = take_mount(text, end, version, controller, root, mount);
		text = *end ? end + 1 : NULL;
	}
	host_file_close(&file);
	return is_found;
}

/* Finds the group in lines such as "4:memory:/docker/abc" or "0::/user.slice". */
static bool cgroup_path_find_group(struct host *host, int version, const char *controller, char *group)
{
	struct host_file file = {0};
	const char *text = host_file_read(host, &file, "/proc/self/cgroup");
	bool is_found = false;

	while (text && *text && !is_found) {
		const char *end = strchrnul(text, '\n');
		const char *names = memchr(text, ':', (size_t)(end - text));
		const char *path = names ? memchr(names + 1, ':', (size_t)(end - names - 1)) : NULL;

		if (path && (version == 2 ? path == names + 1
		                          : cgroup_path_has_word(names + 1, (size_t)(path - names - 1), controller))) {
			snprintf(group, CGROUP_PATH_BYTES, "%.*s", (int)(end - path - 1), path + 1);
			is_found = group[0] == '/';
		}
		text = *end ? end + 1 : NULL;
	}
	host_file_close(&file);
	return is_found;
}

static void cgroup_path_join(struct cgroup_path *path, const char *root, const char *group)
{
	size_t length = strcmp(root, "/") ? strlen(root) : 0;
	const char *below = !strncmp(group, root, length) && (group[length] == '/' || !group[length]) ? group + length
	                                                                                              : "";

	/* a group outside the mounted tree ("/../..") has no files here */
	if (strstr(below, "..") || !strcmp(below, "/"))
		below = "";
	if ((size_t)snprintf(path->directory, sizeof(path->directory), "%s%s", path->mount, below) >=
	    sizeof(path->directory))
		memcpy(path->directory, path->mount, sizeof(path->directory));
}

bool cgroup_path_find(struct cgroup_path *path, struct host *host, const char *controller)
{
	char root[CGROUP_PATH_BYTES], group[CGROUP_PATH_BYTES];

	*path = (struct cgroup_path){0};
	for (int version = 1; version <= 2; version++) {
		if (!find_mount(host, version, controller, root, path->mount) ||
		    !cgroup_path_find_group(host, version, controller, group))
			continue;
		path->version = version;
		cgroup_path_join(path, root, group);
		if (!host_exists(host, path->directory))
			memcpy(path->directory, path->mount, sizeof(path->directory));
		return true;
	}
	return false;
}

bool cgroup_path_up(struct cgroup_path *path)
{
	size_t length = strlen(path->directory);

	if (length <= strlen(path->mount))
		return false;
	while (length && path->directory[length - 1] != '/')
		length--;
	path->directory[length ? length - 1 : 0] = '\0';
	return strlen(path->directory) >= strlen(path->mount);
}
