/* SPDX-License-Identifier: Apache-2.0
 *
 * host.c: runs the sources and gives them files, counters and rates.
 */
#include "base/memory.h"
#include "host/source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct host_source *const host_sources[] = {
	&host_cpu, &host_memory, &host_disk, &host_network, &host_pressure, &host_cgroup,
};
#define SOURCE_COUNT (sizeof(host_sources) / sizeof(host_sources[0]))
#define MAXIMUM_TEXT (1u << 20)
#define MAXIMUM_OMITTED 8

struct oom_count {
	uint64_t first, last;
	bool is_known;
};

struct host {
	char root[PATH_MAX];
	void *states[SOURCE_COUNT];
	bool is_open;
	int64_t last_ns;
	double elapsed_s; /* since the previous sample; 0: this is the first */
	const struct host_sink *sink;
	char *text;
	size_t text_bytes;
	char omitted[MAXIMUM_OMITTED][160];
	int omitted_count;
	struct oom_count oom_kills[2]; /* machine, cgroup */
};

/* ---- files ---- */

static bool make_path(const struct host *host, char *out, const char *path)
{
	return snprintf(out, PATH_MAX, "%s%s", host->root, path) < PATH_MAX;
}

/* Reads from the start to the end; /proc returns its files in pieces. */
static bool host_read_all(struct host *host, int fd)
{
	size_t length = 0;

	for (;;) {
		ssize_t got;

		if (host->text_bytes - length < 4097) {
			if (host->text_bytes >= MAXIMUM_TEXT)
				break;
			host->text_bytes = host->text_bytes ? host->text_bytes * 2 : 16384;
			host->text = memory_resize(host->text, host->text_bytes, 1);
		}
		got = pread(fd, host->text + length, host->text_bytes - length - 1, (off_t)length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return false;
		if (got == 0)
			break;
		length += (size_t)got;
	}
	host->text[length] = '\0';
	return true;
}

const char *host_file_read(struct host *host, struct host_file *file, const char *path)
{
	char full[PATH_MAX];

	if (file->is_absent)
		return NULL;
	if (!file->fd_plus_one) {
		int fd = make_path(host, full, path) ? open(full, O_RDONLY | O_CLOEXEC) : -1;

		if (fd < 0) {
			file->is_absent = true;
			return NULL;
		}
		file->fd_plus_one = fd + 1;
	}
	if (host_read_all(host, file->fd_plus_one - 1))
		return host->text;
	/* pressure files fail at the first read if unsupported; removed cgroups and devices fail later */
	host_file_close(file);
	file->is_absent = true;
	return NULL;
}

void host_file_close(struct host_file *file)
{
	if (file->fd_plus_one)
		close(file->fd_plus_one - 1);
	file->fd_plus_one = 0;
}

bool host_exists(const struct host *host, const char *path)
{
	char full[PATH_MAX];

	return make_path(host, full, path) && access(full, F_OK) == 0;
}

bool host_find_number(const char *text, const char *key, uint64_t *number)
{
	size_t length = strlen(key);

	for (const char *at = text; at; at = strchr(at, '\n')) {
		char *end;

		at += *at == '\n';
		if (strncmp(at, key, length) != 0)
			continue;
		*number = strtoull(at + length, &end, 10);
		return end != at + length;
	}
	return false;
}

/* ---- values ---- */

uint32_t host_counter(struct host *host, const char *format, ...)
{
	char name[160] = "host.";
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(name + 5, sizeof(name) - 5, format, arguments);
	va_end(arguments);
	return host->sink->counter(host->sink->context, name);
}

void host_value(struct host *host, uint32_t counter, double value)
{
	host->sink->value(host->sink->context, counter, value);
}

bool host_rate(struct host *host, struct host_rate *rate, uint64_t now, double *per_second)
{
	/* a counter that decreased has restarted */
	bool is_known = rate->has_last && host->elapsed_s > 0 && now >= rate->last;

	if (is_known)
		*per_second = (double)(now - rate->last) / host->elapsed_s;
	rate->last = now;
	rate->has_last = true;
	return is_known;
}

void host_rate_value(struct host *host, struct host_rate *rate, uint32_t counter, uint64_t now, double factor)
{
	double per_second;

	if (host_rate(host, rate, now, &per_second))
		host_value(host, counter, per_second * factor);
}

void host_omit(struct host *host, const char *format, ...)
{
	char text[160];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (int i = 0; i < host->omitted_count; i++) {
		if (!strcmp(host->omitted[i], text))
			return;
	}
	if (host->omitted_count < MAXIMUM_OMITTED)
		memcpy(host->omitted[host->omitted_count++], text, sizeof(text));
}

void host_note_oom_kills(struct host *host, bool is_cgroup, uint64_t total)
{
	struct oom_count *count = &host->oom_kills[is_cgroup];

	if (!count->is_known)
		count->first = total;
	count->is_known = true;
	count->last = total;
}

/* ---- public ---- */

struct host *host_new(const char *root)
{
	struct host *host = memory_resize(NULL, 1, sizeof(*host));

	memset(host, 0, sizeof(*host));
	snprintf(host->root, sizeof(host->root), "%s", strcmp(root, "/") ? root : "");
	return host;
}

void host_free(struct host *host)
{
	if (!host)
		return;
	for (size_t i = 0; i < SOURCE_COUNT; i++) {
		if (host->states[i] && host_sources[i]->close)
			host_sources[i]->close(host->states[i]);
		free(host->states[i]);
	}
	free(host->text);
	free(host);
}

static void open_sources(struct host *host)
{
	host->is_open = true;
	for (size_t i = 0; i < SOURCE_COUNT; i++) {
		host->states[i] = memory_resize(NULL, 1, host_sources[i]->state_bytes);
		memset(host->states[i], 0, host_sources[i]->state_bytes);
		if (host_sources[i]->open)
			host_sources[i]->open(host, host->states[i]);
	}
}

void host_sample(struct host *host, int64_t now_ns, const struct host_sink *sink)
{
	host->elapsed_s = host->is_open ? (double)(now_ns - host->last_ns) * 1e-9 : 0;
	host->last_ns = now_ns;
	host->sink = sink;
	if (!host->is_open)
		open_sources(host);
	for (size_t i = 0; i < SOURCE_COUNT; i++)
		host_sources[i]->sample(host, host->states[i]);
	host->sink = NULL;
}

const char *host_ledger(const struct host *host, int index)
{
	return index < host->omitted_count ? host->omitted[index] : NULL;
}

bool host_oom_kills(const struct host *host, uint64_t *count)
{
	const struct oom_count *machine = &host->oom_kills[0], *cgroup = &host->oom_kills[1];
	const struct oom_count *best = cgroup->is_known && cgroup->last > cgroup->first ? cgroup : machine;

	if (!best->is_known)
		best = cgroup;
	*count = best->last - best->first;
	return best->is_known;
}
