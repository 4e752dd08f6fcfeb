/* SPDX-License-Identifier: Apache-2.0
 *
 * source.h: one kind of telemetry, for the files of this folder. A new one is its file and a line in host_sources (host.c).
 */
#ifndef HOST_SOURCE_H
#define HOST_SOURCE_H

#include "host/host.h"

#define HOST_MAX_CORES 256
#define HOST_MAX_DEVICES 64
#define HOST_NAME_BYTES 48 /* longer device names are cut */

struct host_source {
	const char *name;
	size_t state_bytes; /* zeroed by the caller */
	/* Once, before the first sample. (optional) */
	void (*open)(struct host *host, void *state);
	/* Once a second. What cannot be read gives no value. */
	void (*sample)(struct host *host, void *state);
	void (*close)(void *state);
};

extern const struct host_source host_cpu, host_memory, host_disk, host_network, host_pressure, host_cgroup;

/* ---- files ---- */

/* A file that is read again and again; all zero: not opened yet. */
struct host_file {
	int fd_plus_one; /* 0: not open */
	bool is_absent;  /* could not be opened: not tried again */
};

/* The whole text of `path` below the root, at most 1 MiB; NULL when it cannot be read. Valid until the next call. */
const char *host_file_read(struct host *host, struct host_file *file, const char *path);
void host_file_close(struct host_file *file);

/* Whether there is something of that name below the root. */
bool host_exists(const struct host *host, const char *path);

/* The number behind `key` at the start of a line; false when there is none. */
bool host_find_number(const char *text, const char *key, uint64_t *number);

/* ---- values ---- */

uint32_t host_counter(struct host *host, const char *format, ...) __attribute__((format(printf, 2, 3)));
void host_value(struct host *host, uint32_t counter, double value);

/* A number that only grows: its growth per second since the sample before. */
struct host_rate {
	uint64_t last;
	bool has_last;
};
bool host_rate(struct host *host, struct host_rate *rate, uint64_t now, double *per_second);
/* The same as the value of a counter, times `factor`. No value when it cannot be told. */
void host_rate_value(struct host *host, struct host_rate *rate, uint32_t counter, uint64_t now, double factor);

/* Says once that something is left out. */
void host_omit(struct host *host, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Numbers of processes killed for want of memory, as memory and cgroup see them. */
void host_note_oom_kills(struct host *host, bool is_cgroup, uint64_t total);

#endif
