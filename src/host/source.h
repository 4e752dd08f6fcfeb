/* SPDX-License-Identifier: Apache-2.0
 *
 * source.h: the interface of one source of telemetry, for the files of this folder. To add a source, add a file and a
 * line in host_sources (host.c).
 */
#ifndef HOST_SOURCE_H
#define HOST_SOURCE_H

#include "host/host.h"

#define HOST_MAX_CORES 256
#define HOST_MAX_DEVICES 64
#define HOST_NAME_BYTES 48 /* longer device names are truncated */

struct host_source {
	const char *name;
	size_t state_bytes; /* zeroed by the caller */
	/* Once, before the first sample. (optional) */
	void (*open)(struct host *host, void *state);
	/* Once a second. A quantity that cannot be read gets no value. */
	void (*sample)(struct host *host, void *state);
	void (*close)(void *state);
};

extern const struct host_source host_cpu, host_memory, host_disk, host_network, host_pressure, host_cgroup;

/* ---- files ---- */

/* A file that is read repeatedly; all zero: not opened yet. */
struct host_file {
	int fd_plus_one; /* 0: not open */
	bool is_absent;  /* open() failed and is not tried again */
};

/* Returns the whole text of `path` below the root, at most 1 MiB, or NULL if it cannot be read. Valid until the next
 * call. */
const char *host_file_read(struct host *host, struct host_file *file, const char *path);
void host_file_close(struct host_file *file);

/* Returns true if `path` exists below the root. */
bool host_exists(const struct host *host, const char *path);

/* Reads the number after `key` at the start of a line. Returns false if there is none. */
bool host_find_number(const char *text, const char *key, uint64_t *number);

/* ---- values ---- */

uint32_t host_counter(struct host *host, const char *format, ...) __attribute__((format(printf, 2, 3)));
void host_value(struct host *host, uint32_t counter, double value);

/* The growth per second, since the previous sample, of a number that only grows. */
struct host_rate {
	uint64_t last;
	bool has_last;
};
bool host_rate(struct host *host, struct host_rate *rate, uint64_t now, double *per_second);
/* Gives the rate, times `factor`, to a counter. Gives no value if the rate is unknown. */
void host_rate_value(struct host *host, struct host_rate *rate, uint32_t counter, uint64_t now, double factor);

/* Adds an omission to the ledger, once. */
void host_omit(struct host *host, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Notes the number of processes killed because memory was full, from the sources memory and cgroup. */
void host_note_oom_kills(struct host *host, bool is_cgroup, uint64_t total);

#endif
