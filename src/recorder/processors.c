/* SPDX-License-Identifier: Apache-2.0
 *
 * processors.c: see the header. A limit applies at every level of the tree of control groups above the process, in both
 * versions of control groups. In a container, the path of the group may be that of the host, so that only the root is
 * found.
 */
#include "recorder/processors.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_PROCESSORS 8192
#define PATH_BYTES 1024

unsigned processors_allowed(void)
{
	union {
		cpu_set_t set;
		unsigned char bytes[MOST_PROCESSORS / 8];
	} mask = {.bytes = {0}};
	if (sched_getaffinity(0, sizeof(mask), &mask.set) != 0)
		return 0;
	return (unsigned)CPU_COUNT_S(sizeof(mask), &mask.set);
}

static bool processors_read(const char *path, char *text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, text, bytes - 1) : -1;
	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = 0;
	return length > 0;
}

/* Reads "200000 100000" or "max 100000"; in version 1 two files. Sets *quota to 0 if there is no limit. */
static bool read_level(const char *folder, bool is_v2, double *quota)
{
	char path[PATH_BYTES + 32], text[64], period[64], *end;
	snprintf(path, sizeof(path), "%s/%s", folder, is_v2 ? "cpu.max" : "cpu.cfs_quota_us");
	if (!processors_read(path, text, sizeof(text)))
		return false;
	double allowed = strtod(text, &end);
	*quota = 0;
	if (end == text || allowed <= 0)
		return end != text || strncmp(text, "max", 3) == 0;
	snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
	if (!is_v2 && processors_read(path, period, sizeof(period)))
		end = period;
	double each = strtod(end, NULL);
	*quota = each > 0 ? allowed / each : 0;
	return each > 0;
}

/* Walks from the group at `path` up to the root of the tree. */
static bool read_tree(const char *root, const char *path, size_t length, bool is_v2, double *quota)
{
	char folder[PATH_BYTES];
	size_t base = strlen(root);
	bool is_found = false;
	if (base + length >= sizeof(folder))
		length = 0;
	memcpy(folder, root, base);
	memcpy(folder + base, path, length);
	for (size_t end = base + length;; end--) {
		double here;
		if (end > base && folder[end - 1] == '/')
			continue;
		folder[end] = 0;
		if (read_level(folder, is_v2, &here)) {
			is_found = true;
			*quota = here > 0 && (*quota <= 0 || here < *quota) ? here : *quota;
		}
		while (end > base && folder[end - 1] != '/')
			end--;
		if (end <= base)
			return is_found;
	}
}

/* Is the controller `cpu` in the list of a line "4:cpu,cpuacct:/path"? */
static bool has_cpu(const char *list, const char *end)
{
	while (list < end) {
		size_t length = strcspn(list, ",:");
		if (length == 3 && memcmp(list, "cpu", 3) == 0)
			return true;
		list += length + 1;
	}
	return false;
}

bool processors_find_quota(const char *groups, const char *mounted, double *quota)
{
	char text[2048], root[PATH_BYTES / 2];
	bool is_found = false;
	*quota = 0;
	if (!processors_read(groups, text, sizeof(text)))
		return false;
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *list = line + strcspn(line, ":\n"), *path = *list == ':' ? strchr(list + 1, ':') : NULL;
		if (!path)
			continue;
		bool is_v2 = path == list + 1;
		if (!is_v2 && !has_cpu(list + 1, path))
			continue;
		snprintf(root, sizeof(root), "%s%s", mounted, is_v2 ? "" : "/cpu");
		is_found |= read_tree(root, path + 1, strcspn(path + 1, "\n"), is_v2, quota);
	}
	return is_found;
}

void processors_quota_text(char *text, size_t bytes)
{
	double quota;
	if (!processors_find_quota("/proc/self/cgroup", "/sys/fs/cgroup", &quota))
		snprintf(text, bytes, "not measured: no control group of the process has a file about its CPU quota");
	else if (quota > 0)
		snprintf(text, bytes, "%.2f", quota);
	else
		snprintf(text, bytes, "none");
}
